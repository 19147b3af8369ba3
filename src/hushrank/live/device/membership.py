"""A client's home, and how it comes into a federation and out of it.

DIR/client.sqlite   impressions, answers, the newest ranker, and the membership: server, agreement, credential
DIR/ledger.jsonl    what has been spent of the privacy budget; only where something is promised
DIR/trusted.pem     certificates to trust beside the system's; only where joining named some
DIR/lock            held while a client is at work
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hushrank.files import Json, replacing
from hushrank.live.device.store import STORE, Interactions, Membership
from hushrank.live.device.transport import Transport, parse_json
from hushrank.live.wire.agreement import Agreement, as_json, parse_agreement
from hushrank.live.wire.credentials import hash_secret, make_secret, name_client
from hushrank.live.wire.protocol import ENROL, FEDERATION, LEAVE, WIRE_VERSION
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import guarantee_of
from hushrank.locks import LOCK, lock_directory

TRUSTED = "trusted.pem"
JOINING, MEMBER, LEFT = "joining", "member", "left"  # states of a membership
_MOST_K = 10_000  # Why: what a page of so many results costs in privacy takes a moment to count, more takes hours


class AgreementChangedError(ValueError):
    """The server's terms are not those under which this client joined."""


@contextmanager
def hold_home(home: Path, *, is_durable: bool = True) -> Iterator[Interactions]:
    """The store of a home in which no other client works meanwhile. Who fails before joining leaves nothing new."""
    new = list_missing(home / STORE, home / LOCK, home)
    refusal = f"another client is at work in {home}. Stop it first."
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_directory(home, refusal=refusal):
        keeps = (home / STORE).exists()
        try:
            with Interactions(home / STORE, is_durable=is_durable) as store:
                try:
                    yield store
                finally:
                    keeps = keeps or not store.is_empty()
        finally:
            if not keeps:  # Why while it is held: afterwards it may be another client's
                remove_new(new)
    if not keeps and sys.platform == "win32":  # Why: there a file that is open cannot be removed
        remove_new(new)


def list_missing(*places: Path) -> list[Path]:
    """Those that are not there, and the directories around the last that are not, the innermost first."""
    return [place for place in (*places, *places[-1].parents) if not place.exists()]


def remove_new(new: Sequence[Path]) -> None:
    """Take back files and empty directories that were missing before; what somebody else uses by now stays."""
    for place in new:
        with suppress(OSError):
            place.rmdir() if place.is_dir() else place.unlink()


def join_federation(
    store: Interactions,
    transport: Transport,
    *,
    token: str | None = None,
    accept: Callable[[Agreement], None] = lambda _: None,
) -> Agreement:
    """Become a member, or go on as one; `transport` carries the credential from now on.

    `accept`: raises where the owner does not want this agreement; then nothing was sent.

    The credential is on the disk before it is sent: a lost answer is asked for again and loses nothing.
    """
    known = store.membership()
    if known is not None and known.state == LEFT:
        raise ValueError(
            f"{store.path.parent} has left its federation. Another --home may join again; what this device has spent "
            "stays spent there."
        )
    agreement = ask_agreement(transport)
    if token is None and (known is None or known.state == JOINING):
        raise ValueError(
            f"{transport.url} is new to this device: ask whoever runs it for a token, and give it with --token."
        )
    if known is not None and known.state == MEMBER:
        check_agreement(parse_agreement(json.loads(known.agreement)), agreement)
    accept(agreement)
    credential = known.credential if known is not None else make_secret()
    state = known.state if known is not None else JOINING
    joining = Membership(transport.url, json.dumps(as_json(agreement)), credential, state)
    if joining != known:
        store.keep_membership(joining)
    transport.credential = credential
    if state == JOINING:
        try:
            enrol(transport, token)
        except RefusedError as error:
            if known is None:
                store.forget_membership()  # Why only now: an answer that was lost may have taken the credential
            raise _explain_token(error, transport.url) from error
        store.keep_membership(replace(joining, state=MEMBER))
    return agreement


def ask_agreement(transport: Transport) -> Agreement:
    """What the server's clients agree on, every stage of it made once to see that it can be."""
    said: Any = transport.call("GET", FEDERATION, parse=parse_json(lambda values: values))
    if not isinstance(said, dict) or said.get("wire") != WIRE_VERSION:
        raise ValueError(
            f"{transport.url} speaks another version of the wire than {WIRE_VERSION}: update the older of the two."
        )
    agreement = parse_agreement(said.get("agreement"))
    if said.get("digest") != agreement.digest:
        raise ValueError(f"{transport.url}: the agreement and its digest do not belong together.")
    if agreement.k > _MOST_K:
        raise ValueError(f"{transport.url} wants pages of {agreement.k} results, at most {_MOST_K} are shown.")
    guarantee_of(agreement)
    return agreement


def check_agreement(joined: Agreement, now: Agreement) -> None:
    """Refuse terms that have changed, and say which."""
    if joined.digest == now.digest:
        return
    old, new = as_json(joined), as_json(now)
    changes = ", ".join(
        f"{key} {old.get(key)} -> {new.get(key)}" for key in {**old, **new} if old.get(key) != new.get(key)
    )
    raise AgreementChangedError(
        f"the federation's agreement has changed since this client joined ({changes}). Nothing was sent. If you agree "
        "to the new one, join it with another --home; impressions stay in this one, and what this device has spent "
        "stays spent there."
    )


def enrol(transport: Transport, token: str | None) -> None:
    transport.call(
        "POST",
        ENROL,
        parse=parse_json(lambda values: values),
        body=json.dumps({"token": token}).encode(),
        headers={"Content-Type": "application/json"},
    )


def _explain_token(error: RefusedError, url: str) -> ValueError:
    if error.reason is not Reason.token:
        return explain_version(error, url) or ValueError(str(error))
    return ValueError(f"{url} does not know this token, or another device used it, or it is too old: ask for another.")


def explain_version(error: RefusedError, url: str) -> ValueError | None:
    """What a person reads where the server speaks another version of the wire; None: that is not why it refused."""
    if error.reason is not Reason.version:
        return None
    return ValueError(
        f"{url} speaks another version of the wire: update hushrank, here or there. This one speaks version "
        f"{WIRE_VERSION}. The server says: {error}"
    )


def remember_trust(home: Path, ca: Path) -> None:
    """Keep a copy of the certificates that were named, so that the file may go and no command has to name it again."""
    content = ca.read_bytes()
    if find_trust(home) is None or (home / TRUSTED).read_bytes() != content:
        with replacing(home / TRUSTED) as temporary:
            temporary.chmod(0o600)
            temporary.write_bytes(content)


def find_trust(home: Path) -> Path | None:
    """The certificates that a home remembers; None: those of the system are enough."""
    return home / TRUSTED if (home / TRUSTED).is_file() else None


def leave_forgotten(store: Interactions, transport: Transport) -> str:
    """Tell the server, and never answer again; the server is to forget what this client did. Its pseudonym there.

    Who has left may still ask for it. What people saw and clicked stays on this device, lengths of updates do not.
    """
    known = store.membership()
    if known is None:
        raise ValueError(f"{store.path.parent} belongs to no federation: there is nothing to leave.")
    transport.credential = known.credential
    said, headers = json.dumps({"forget": True}).encode(), {"Content-Type": "application/json"}
    try:
        answer = transport.call("POST", LEAVE, parse=parse_json(_read_object), body=said, headers=headers)
    except RefusedError as error:
        if error.reason is Reason.credential:
            raise ValueError(
                f"{transport.url} does not know this client: there is nothing that it could forget."
            ) from error
        raise explain_version(error, transport.url) or error from error
    store.keep_membership(replace(known, state=LEFT))
    store.forget_lengths()
    pseudonym = name_client(hash_secret(known.credential), parse_agreement(json.loads(known.agreement)).digest)
    if answer.get("client") != pseudonym:
        raise ValueError(f"{transport.url} is of an older version, which cannot forget a client. You have left it.")
    return pseudonym


def _read_object(values: object) -> Json:
    if not isinstance(values, dict):
        raise ValueError("an answer that is no JSON object")
    return values


def leave_federation(store: Interactions, transport: Transport) -> None:
    """Tell the server, and never answer again. What is on this device stays."""
    known = store.membership()
    if known is None:
        raise ValueError(f"{store.path.parent} belongs to no federation: there is nothing to leave.")
    if known.state != LEFT:
        transport.credential = known.credential
        try:
            transport.call("POST", LEAVE, parse=lambda _: None)
        except RefusedError as error:
            if error.reason is not Reason.credential:  # Why: who is not known there has left already
                raise explain_version(error, transport.url) or error from error
        store.keep_membership(replace(known, state=LEFT))
