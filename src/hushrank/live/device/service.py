"""A person's own client: their store, their ledger, and a federation that it joins, goes on in, or leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hushrank.live.device.account import Purse, open_account, rebuild_account
from hushrank.live.device.client import Ending, Listeners, Participant, take_part
from hushrank.live.device.consent import (
    Consent,
    check_consent,
    check_cost,
    check_requirements,
    check_room,
    keep_consent,
    price_for,
    recall_consent,
)
from hushrank.live.device.membership import (
    find_trust,
    hold_home,
    join_federation,
    leave_federation,
    leave_forgotten,
    remember_trust,
)
from hushrank.live.device.named import make_learning
from hushrank.live.device.noise_key import find_home_key
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop, Transport, parse_json
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import ForgettingState, Forgotten, parse_forgotten, parse_standing
from hushrank.live.wire.protocol import DEFAULT_URL, FORGOTTEN, ME
from hushrank.privacy.device_ledger import find_device
from hushrank.privacy.renyi import Spend
from hushrank.unlearning.record import verify_record, write_record

SPREAD = 0.25  # Why: rounds stay open three times as long as nearly all answers take, so that this never lengthens them
RECORD = "erasure-record.json"  # in the home of a client that was forgotten
_PATIENCE_S = 20.0  # where somebody waits for the end
_ASK_AGAIN_S = 1.0  # whether a client is forgotten


@dataclass(frozen=True, slots=True)
class Device:
    """What its owner decided."""

    home: Path
    url: str | None = None  # None: where it joined before, else a server on this machine
    token: str | None = None  # to join with
    epsilon: float | None = None  # the most that this device may spend, in all federations; None: the default
    ca: Path | None = None  # certificates to trust beside the system's
    rounds: int | None = None  # answers to give; None: until the federation is finished
    is_once: bool = False  # answer what is asked now, and wait for nothing
    rebuilds_ledger: bool = False  # in the place of one that was lost, before anything is answered
    requires: tuple[str, ...] = ()  # of the agreement, as `consent.py` reads it; remembered
    takes_seeded: bool = False  # a simulation, without privacy; remembered
    takes_shares: bool = False  # noise shares that no secure sum hides, at their price; remembered
    spread: float | None = None  # part of a round's time within which its answer leaves at random; None: the default

    @property
    def consent(self) -> Consent:
        return Consent(self.epsilon, self.requires, self.takes_seeded, self.takes_shares)


def serve_device(device: Device, listeners: Listeners, stop: Stop) -> Ending:
    """Take part until the end."""
    with (
        hold_home(device.home) as store,
        open_transport(
            store,
            device.url,
            device.ca,
            stop=stop,
            tell=listeners.tell,
            patience_s=_PATIENCE_S if device.is_once else None,
        ) as transport,
    ):
        check_requirements(device.requires)
        consent = recall_consent(store, device.consent)
        agreement = join_federation(
            store, transport, token=device.token, accept=partial(accept_agreement, store, consent)
        )
        if device.ca is not None:
            remember_trust(device.home, device.ca)
        member = make_member(store, transport, agreement, device, consent, listeners)
        keep_consent(store, consent)
        listeners.greet(agreement)
        return take_part(member, rounds=device.rounds, is_once=device.is_once)


def accept_agreement(store: Interactions, consent: Consent, agreement: Agreement) -> None:
    """Refuse what the owner of this device has not accepted; what it costs only as long as nothing was spent."""
    check_consent(agreement, consent)
    if store.budget() is None:
        check_cost(agreement, consent, find_device())


def make_member(
    store: Interactions,
    transport: Transport,
    agreement: Agreement,
    device: Device,
    consent: Consent,
    listeners: Listeners,
) -> Participant:
    """This device as a client, its ledgers open."""
    assert transport.credential is not None
    price, purse = price_for(agreement), Purse(find_device(), consent.cap)
    is_older = store.budget() is not None and store.consent() is None  # joined before devices had a cap
    # Why not where there is another: a home's budget stays, and what is typed now is the device's
    epsilon = device.epsilon if store.budget() in (None, device.epsilon) else None
    terms: Any = {"epsilon": epsilon, "price": price, "purse": purse}
    if device.rebuilds_ledger:
        listeners.tell(rebuild_ledger(store, transport, agreement, **terms))
    account = open_account(store, agreement, transport.credential, **terms)
    if account is not None and is_older:
        check_room(agreement, purse.device, cap=purse.cap)
    return Participant(
        store,
        transport,
        replace(make_learning(agreement), price=price),
        account,
        key=find_home_key(store.identity().secret, agreement, transport.credential),
        report=listeners.report,
        spread=SPREAD if device.spread is None else device.spread,
    )


def rebuild_ledger(
    store: Interactions,
    transport: Transport,
    agreement: Agreement,
    *,
    epsilon: float | None = None,
    price: Spend | None = None,
    purse: Purse | None = None,
) -> str:
    """In the place of one that was lost, from what this device and its server know; in words."""
    assert transport.credential is not None
    standing = transport.call("GET", ME, parse=parse_json(parse_standing))
    terms: Any = {"epsilon": epsilon, "price": price, "purse": purse}
    return rebuild_account(store, agreement, transport.credential, standing, **terms)


def leave_device(device: Device, tell: Callable[[str], None]) -> str:
    """Leave the federation; the address of what was left."""
    check_home(device.home)
    with (
        hold_home(device.home) as store,
        open_transport(store, device.url, device.ca, stop=Stop(), tell=tell, patience_s=_PATIENCE_S) as transport,
    ):
        leave_federation(store, transport)
        return transport.url


def leave_to_be_forgotten(device: Device, stop: Stop, tell: Callable[[str], None], *, waits: bool) -> Path | None:
    """Leave, and ask to be forgotten. waits: until that is done; where the record lies then."""
    check_home(device.home)
    with (
        hold_home(device.home) as store,
        open_transport(
            store, device.url, device.ca, stop=stop, tell=tell, patience_s=None if waits else _PATIENCE_S
        ) as transport,
    ):
        pseudonym = leave_forgotten(store, transport)
        tell(f"left {transport.url}, which is to forget this client; its pseudonym there is {pseudonym}")
        return await_record(device.home, transport, pseudonym, tell) if waits else None


def await_record(home: Path, transport: Transport, pseudonym: str, tell: Callable[[str], None]) -> Path:
    """Where the record lies, as soon as this client is forgotten."""
    path, told = FORGOTTEN.format(client=pseudonym), -1
    while True:
        found = transport.call("GET", path, parse=parse_json(parse_forgotten))
        if found.state is ForgettingState.failed:
            raise ValueError(
                f"this client could not be forgotten: {found.detail} Try again: hushrank client leave --forget"
            )
        if found.state is ForgettingState.done:
            return keep_record(home, found, pseudonym)
        if found.state is ForgettingState.running and found.step != told:
            told = found.step
            tell(f"{told} of {found.steps} steps are done")
        transport.stop.wait(_ASK_AGAIN_S)


def keep_record(home: Path, found: Forgotten, pseudonym: str) -> Path:
    """Where the record lies; one that is not of this client, or not as it was signed, is refused."""
    record, path = dict(found.record or {}), home / RECORD
    if pseudonym not in record.get("clients", ()):
        raise ValueError("the server's erasure record is not about this client: ask whoever runs the server.")
    write_record(path, record)
    path.chmod(0o600)
    if find_spec("cryptography") is not None:
        verify_record(path)
    return path


def check_home(home: Path) -> None:
    if not (home / STORE).is_file():
        raise ValueError(f"{home} is no client's home: name the one that hushrank client had with --home.")


def open_transport(
    store: Interactions,
    url: str | None,
    ca: Path | None,
    *,
    stop: Stop,
    tell: Callable[[str], None],
    patience_s: float | None = None,
) -> Transport:
    """To this server, trusting these certificates; None: to the one that was joined, trusting what was named then."""
    known = store.membership()
    url = url or (known.url if known is not None else DEFAULT_URL)
    transport = Transport(url, ca=ca or find_trust(store.path.parent), stop=stop, patience_s=patience_s, tell=tell)
    transport.receipt = store.receipt()
    return transport
