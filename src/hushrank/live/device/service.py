"""A person's own client: their store, their ledger, and a federation that it joins, goes on in, or leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushrank.live.device.account import open_account, rebuild_account
from hushrank.live.device.client import Ending, Listeners, Participant, take_part
from hushrank.live.device.membership import (
    find_trust,
    hold_home,
    join_federation,
    leave_federation,
    remember_trust,
)
from hushrank.live.device.named import make_learning
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop, Transport, parse_json
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import parse_standing
from hushrank.live.wire.protocol import DEFAULT_URL, ME

_PATIENCE_S = 20.0  # where somebody waits for the end


@dataclass(frozen=True, slots=True)
class Device:
    """What its owner decided."""

    home: Path
    url: str | None = None  # None: where it joined before, else a server on this machine
    token: str | None = None  # to join with
    epsilon: float | None = None  # the most privacy to spend; None: what the agreed rounds cost
    ca: Path | None = None  # certificates to trust beside the system's
    rounds: int | None = None  # answers to give; None: until the federation is finished
    is_once: bool = False  # answer what is asked now, and wait for nothing
    rebuilds_ledger: bool = False  # in the place of one that was lost, before anything is answered


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
        agreement = join_federation(store, transport, token=device.token)
        assert transport.credential is not None
        if device.ca is not None:
            remember_trust(device.home, device.ca)
        if device.rebuilds_ledger:
            listeners.tell(rebuild_ledger(store, transport, agreement, epsilon=device.epsilon))
        ledger = open_account(store, agreement, transport.credential, epsilon=device.epsilon)
        listeners.greet(agreement)
        member = Participant(store, transport, make_learning(agreement), ledger, report=listeners.report)
        return take_part(member, rounds=device.rounds, is_once=device.is_once)


def rebuild_ledger(
    store: Interactions, transport: Transport, agreement: Agreement, *, epsilon: float | None = None
) -> str:
    """In the place of one that was lost, from what this device and its server know; in words."""
    assert transport.credential is not None
    standing = transport.call("GET", ME, parse=parse_json(parse_standing))
    return rebuild_account(store, agreement, transport.credential, standing, epsilon=epsilon)


def leave_device(device: Device, tell: Callable[[str], None]) -> str:
    """Leave the federation; the address of what was left."""
    check_home(device.home)
    with (
        hold_home(device.home) as store,
        open_transport(store, device.url, device.ca, stop=Stop(), tell=tell, patience_s=_PATIENCE_S) as transport,
    ):
        leave_federation(store, transport)
        return transport.url


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
