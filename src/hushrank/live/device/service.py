"""A person's own client: their store, their ledger, and a federation that it joins, goes on in, or leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushrank.live.device.client import Ending, Listeners, Participant, take_part
from hushrank.live.device.membership import hold_home, join_federation, leave_federation, open_account
from hushrank.live.device.named import make_learning
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop, Transport
from hushrank.live.wire.protocol import DEFAULT_URL

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


def serve_device(device: Device, listeners: Listeners, stop: Stop) -> Ending:
    """Take part until the end."""
    with (
        hold_home(device.home) as store,
        _open_transport(
            device, store, stop=stop, patience_s=_PATIENCE_S if device.is_once else None, tell=listeners.tell
        ) as transport,
    ):
        agreement = join_federation(store, transport, token=device.token)
        assert transport.credential is not None
        ledger = open_account(device.home, agreement, transport.credential, epsilon=device.epsilon)
        listeners.greet(agreement)
        member = Participant(store, transport, make_learning(agreement), ledger, report=listeners.report)
        return take_part(member, rounds=device.rounds, is_once=device.is_once)


def leave_device(device: Device, tell: Callable[[str], None]) -> str:
    """Leave the federation; the address of what was left."""
    check_home(device.home)
    with (
        hold_home(device.home) as store,
        _open_transport(device, store, stop=Stop(), patience_s=_PATIENCE_S, tell=tell) as transport,
    ):
        leave_federation(store, transport)
        return transport.url


def check_home(home: Path) -> None:
    if not (home / STORE).is_file():
        raise ValueError(f"{home} is no client's home: name the one that hushrank client had with --home.")


def _open_transport(
    device: Device, store: Interactions, *, stop: Stop, patience_s: float | None, tell: Callable[[str], None]
) -> Transport:
    known = store.membership()
    url = device.url or (known.url if known is not None else DEFAULT_URL)
    return Transport(url, ca=device.ca, stop=stop, patience_s=patience_s, tell=tell)
