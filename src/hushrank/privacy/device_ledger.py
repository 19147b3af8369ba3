"""What a whole device has spent, in all its federations: one ledger for each account of the operating system.

A home can be deleted, copied, restored or made anew; each of these would begin a budget again. So every answer of every
home is also charged here, in one place that does not belong to any home. The place is the account's directory for
state: `$HUSHRANK_DEVICE`, else `$XDG_STATE_HOME/hushrank` or `~/.local/state/hushrank`; on macOS and Windows the
directories that stand for it there.

The charges of several federations are composed as those of one: they are about the same person's data, whoever asked.
Delta is the smallest that any of them agreed on. It is a chain like a client's own ledger, with the same limits: who
owns the account can write another. No query, document or click is in it, and no time. Standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from hushrank.privacy.chain import (
    START,
    Chain,
    LedgerError,
    append_line,
    create_file,
    flush_directory,
    lock_file,
    seal_line,
    verify_chain,
    write_at,
)
from hushrank.privacy.ledger import BudgetSpentError
from hushrank.privacy.renyi import EVERYBODY, READERS, Spend, composed_epsilon

FORMAT = 1
_BEGINNING = b'{"device":'
FILE, PLACE = "device.jsonl", "HUSHRANK_DEVICE"
LIFETIME_EPSILON = 8.0  # that a device spends unless its owner says otherwise; docs/live_client.md says why 8


@dataclass(frozen=True, slots=True)
class Charge:
    """One answer of one home."""

    home: str  # its random name; "": cut off while it was written, so nobody knows
    federation: str
    round: int | None  # None: not known
    delta: float | None  # as agreed; None: pure epsilon
    spend: Spend


@dataclass(frozen=True, slots=True)
class DeviceLedger:
    """A verified file, or the emptiness where there is none yet."""

    charges: tuple[Charge, ...] = ()  # one that was cut off is among them
    chain: Chain | None = None  # of its whole lines; None: there is no file

    def count(self, home: str) -> int:
        """Answers of one home."""
        return sum(charge.home == home for charge in self.charges)

    @property
    def epsilon_spent(self) -> float:
        return compose_charges(self.charges)

    @property
    def against(self) -> str:
        """Whom the sum counts against: those against whom every part of it does."""
        return READERS if any(charge.spend.against == READERS for charge in self.charges) else EVERYBODY


def compose_charges(charges: Iterable[Charge]) -> float:
    """What all these answers cost the person whose data they are made of."""
    known = tuple(charges)
    deltas = [charge.delta for charge in known if charge.delta is not None]
    return composed_epsilon([charge.spend for charge in known], delta=min(deltas, default=None))


def find_device() -> Path:
    """Where the ledger of this account is, or will be."""
    if chosen := os.environ.get(PLACE):
        return Path(chosen) / FILE
    if sys.platform == "win32":
        state = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        state = Path.home() / "Library" / "Application Support"
    else:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "hushrank" / FILE


def read_device(path: Path) -> DeviceLedger:
    """What the file says, verified; nothing where there is none."""
    try:
        with lock_file(path, writing=False) as file:
            return _verify(file.read(), path)
    except FileNotFoundError:
        return DeviceLedger()


def is_device(path: Path) -> bool:
    """Whether a file is, or begins like, a device's ledger."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def describe_device(ledger: DeviceLedger) -> dict[str, Any]:
    """As JSON: what was spent, and by which homes."""
    known = ledger.charges
    return {
        "epsilon_spent": ledger.epsilon_spent,
        "delta": min((charge.delta for charge in known if charge.delta is not None), default=None),
        "holds": f"against {ledger.against}, for all that this account's homes have ever answered",
        "entries": len(known),
        "homes": len({charge.home for charge in known}),
        "federations": len({charge.federation for charge in known}),
        "chain": "intact, last line cut off and counted as spent"
        if ledger.chain and ledger.chain.is_torn
        else "intact",
        "head": None if ledger.chain is None else ledger.chain.head.hash,
        "rounds": [asdict(charge) for charge in known],
    }


def check_cap(ledger: DeviceLedger, charges: Sequence[Charge], *, cap: float) -> None:
    """Refuse answers that the owner's cap does not cover, and say so."""
    after = compose_charges((*ledger.charges, *charges))
    if after > cap:
        raise BudgetSpentError(
            f"the privacy budget of this device is used up: epsilon {ledger.epsilon_spent:.4g} of {cap:g} was spent in "
            f"all its federations together, one more answer would make {after:.4g}. This client answers no more."
        )


def charge_device(path: Path, charges: Sequence[Charge], *, cap: float | None) -> DeviceLedger:
    """Count answers as spent, on the disk; beyond the cap it raises and charges nothing. cap None: they were given."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_file(path)
    with lock_file(path, writing=True) as file:
        ledger = _open(file, path)
        if cap is not None:
            check_cap(ledger, charges, cap=cap)
        chain, known = ledger.chain, ledger.charges
        assert chain is not None
        if chain.is_torn:
            chain = append_line(file, chain, _entry(len(known), known[-1]))
        for number, charge in enumerate(charges, start=len(known) + 1):
            chain = append_line(file, chain, _entry(number, charge))
        return DeviceLedger((*known, *charges), chain)


def _open(file: BinaryIO, path: Path) -> DeviceLedger:
    content = file.read()
    if b"\n" not in content:  # Why: without a whole first line nothing can have been charged
        content = seal_line({"device": FORMAT}, START)
        write_at(file, 0, content)
        flush_directory(path.parent)
    return _verify(content, path)


def _verify(content: bytes, path: Path) -> DeviceLedger:
    if b"\n" not in content:
        return DeviceLedger()
    chain = verify_chain(content, path)
    if chain.fields[0].get("device") != FORMAT:
        raise LedgerError(f"{path} is no device's ledger of format {FORMAT}: it was written by another version.")
    charges = [_parse(dict(fields), number, path) for number, fields in enumerate(chain.fields[1:], start=1)]
    if chain.is_torn and charges:  # Why: a price that is not known is the dearest that is
        dearest = max(charges, key=lambda charge: (compose_charges([charge]), repr(charge)))
        charges.append(Charge("", dearest.federation, None, dearest.delta, dearest.spend))
    elif chain.is_torn:
        chain = Chain(chain.fields, chain.hashes, chain.n_bytes, is_torn=False)
    return DeviceLedger(tuple(charges), chain)


def _entry(number: int, charge: Charge) -> dict[str, Any]:
    said = {"home": charge.home, "federation": charge.federation, "round": charge.round, "delta": charge.delta}
    return {"entry": number, **said, "spend": asdict(charge.spend)}


def _parse(fields: dict[str, Any], number: int, path: Path) -> Charge:
    try:
        if fields.pop("entry") != number:
            raise ValueError("entries are not numbered 1, 2, ...")
        return Charge(**{**fields, "spend": Spend(**fields["spend"])})
    except (TypeError, KeyError, ValueError) as error:
        raise LedgerError(f"{path}, line {number + 1}: {error}") from error
