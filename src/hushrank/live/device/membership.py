"""A client's home, and how it comes into a federation and out of it.

DIR/client.sqlite   impressions, answers, the newest ranker, and the membership: server, agreement, credential
DIR/ledger.jsonl    what has been spent of the privacy budget; only where something is promised
DIR/lock            held while a client is at work
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hushrank.live.device.store import STORE, Interactions, Membership
from hushrank.live.device.transport import Transport, parse_json
from hushrank.live.wire.agreement import Agreement, as_json, parse_agreement
from hushrank.live.wire.credentials import make_secret
from hushrank.live.wire.protocol import ENROL, FEDERATION, LEAVE, WIRE_VERSION
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import guarantee_of, price_of, total_epsilon_of
from hushrank.locks import LOCK, lock_directory
from hushrank.privacy.ledger import Budget, Ledger, LedgerError, open_ledger, read_ledger

LEDGER = "ledger.jsonl"
JOINING, MEMBER, LEFT = "joining", "member", "left"  # states of a membership
_ROUNDING = 1.0 + 1e-9  # Why: a budget for exactly so many rounds must not fail in the last one by a rounding error


class AgreementChangedError(ValueError):
    """The server's terms are not those under which this client joined."""


@contextmanager
def hold_home(home: Path, *, is_durable: bool = True) -> Iterator[Interactions]:
    """The store of a home in which no other client works meanwhile. Who fails before joining leaves nothing new."""
    new = list_missing(home / STORE, home / LOCK, home)
    refusal = f"another client is at work in {home}. Stop it, or name another directory."
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    keeps = True  # Why: where another client holds the home, all of it is theirs
    try:
        with lock_directory(home, refusal=refusal):
            keeps = (home / STORE).exists()
            with Interactions(home / STORE, is_durable=is_durable) as store:
                try:
                    yield store
                finally:
                    keeps = keeps or not store.is_empty()
    finally:
        if not keeps:
            remove_new(new)


def list_missing(*places: Path) -> list[Path]:
    """Those that are not there, and the directories around the last that are not, the innermost first."""
    return [place for place in (*places, *places[-1].parents) if not place.exists()]


def remove_new(new: Sequence[Path]) -> None:
    """Take back files and empty directories that were missing before; what somebody else uses by now stays."""
    for place in new:
        with suppress(OSError):
            place.rmdir() if place.is_dir() else place.unlink()


def join_federation(store: Interactions, transport: Transport, *, token: str | None = None) -> Agreement:
    """Become a member, or go on as one; `transport` carries the credential from now on.

    The credential is on the disk before it is sent: a lost answer is asked for again and loses nothing.
    """
    known = store.membership()
    if known is not None and known.state == LEFT:
        raise ValueError(f"{store.path.parent} has left its federation. To join again, name another --home.")
    agreement = ask_agreement(transport)
    if token is None and (known is None or known.state == JOINING):
        raise ValueError(
            f"{transport.url} is new to this device: ask whoever runs it for a token, and give it with --token."
        )
    if known is not None and known.state == MEMBER:
        check_agreement(parse_agreement(json.loads(known.agreement)), agreement)
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
        "to the new one, join it with another --home; impressions and budget of this one stay where they are."
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
        return ValueError(str(error))
    return ValueError(f"{url} does not know this token, or another device used it, or it is too old: ask for another.")


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
                raise
        store.keep_membership(replace(known, state=LEFT))


def open_account(home: Path, agreement: Agreement, credential: str, *, epsilon: float | None = None) -> Path | None:
    """The ledger that every answer is checked with; None where nothing is promised and nothing can be counted.

    `epsilon`: the most that this device is willing to spend; by default what the agreed rounds cost together.
    """
    price = price_of(agreement)
    if price is None:
        if epsilon is not None:
            raise ValueError("--epsilon sets a privacy budget, but this federation promises no privacy: leave it out.")
        return None
    path = home / LEDGER
    if epsilon is None:
        known = _read_budget(path)
        epsilon = known.epsilon if known is not None else (total_epsilon_of(agreement) or 0.0) * _ROUNDING
    budget = Budget(
        federation=f"{agreement.name} ({agreement.digest[:16]})",
        client=hashlib.sha256(credential.encode()).hexdigest()[:16],
        epsilon=epsilon,
        delta=agreement.delta,
        price=price,
    )
    open_ledger(path, budget)
    return path


def _read_budget(path: Path) -> Budget | None:
    """Of a ledger that is there; None of one that is not, or was cut off in its first line."""
    try:
        return read_ledger(path).budget
    except (FileNotFoundError, LedgerError):
        return None


def describe_spending(ledger: Ledger) -> str:
    """`epsilon 0.31 of 8 spent`"""
    delta = "" if ledger.budget.delta is None else f" at delta {ledger.budget.delta:g}"
    return f"epsilon {ledger.epsilon_spent:.4g} of {ledger.budget.epsilon:.4g} spent{delta}"
