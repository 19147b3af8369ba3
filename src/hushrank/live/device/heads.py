"""Where a home's two ledgers ended when the last answer was committed: by this an older copy of any of them is noticed.

Three files say how often a home has answered: its own ledger, the ledger of the whole device, and its store. An answer
is announced in the store (`n_begun`), charged to the device, reserved in the home's ledger, and committed to the store
together with where both ledgers then ended. So, whoever was killed at whatever moment:

- a ledger that does not hold the noted end was rolled back, or is another one;
- a ledger with more entries than noted and announced belongs to a newer store than this one;
- more charges of this home on this device than noted and announced were made by a copy of this home, or by this home
  before it was restored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hushrank.privacy.chain import Head, LedgerError
from hushrank.privacy.device_ledger import DeviceLedger
from hushrank.privacy.ledger import Ledger

HEADS = "n_entries, hash, n_charges, device_entries, device_hash, n_begun"  # columns


@dataclass(frozen=True, slots=True)
class Heads:
    """As the store notes them."""

    n_entries: int  # of the home's ledger, one that was cut off included
    hash: str  # of its last whole line
    n_charges: int = 0  # of this home in the device's ledger
    device_entries: int = 0  # of the device's ledger
    device_hash: str = ""  # of its last whole line; "": there was none
    n_begun: int = 0  # answers that were announced since, and perhaps charged

    def begin(self) -> Heads:
        return replace(self, n_begun=self.n_begun + 1)


def read_heads(ledger: Ledger, device: DeviceLedger | None, home: str) -> Heads:
    """Where the ledgers end now."""
    if device is None or device.chain is None:
        return Heads(len(ledger.entries), ledger.head)
    end = device.chain.head
    return Heads(len(ledger.entries), ledger.head, device.count(home), end.n_entries, end.hash)


def compare_ledger(noted: Heads, ledger: Ledger) -> None:
    """Refuse a home's ledger, or a store, that is older than the other."""
    n_entries, n_whole = len(ledger.entries), noted.n_entries
    is_there = n_whole <= n_entries and noted.hash in ledger.chain.hashes
    if not is_there:
        raise LedgerError(
            f"the ledger has {n_entries} entries and lacks the last that the store knows of ({n_whole}): the file was "
            "rolled back, or is another one. Restore the newer one."
        )
    if n_entries > n_whole + noted.n_begun:
        raise LedgerError(
            f"the ledger has {n_entries} entries, the store knows of {n_whole}: the store was rolled back. Restore the "
            "newer one."
        )


def compare_device(noted: Heads, device: DeviceLedger, home: str) -> None:
    """Refuse a device's ledger that is older than the store, or a store that is not the only one of its home."""
    end = Head(noted.device_entries, noted.device_hash)
    if noted.device_hash and (device.chain is None or not device.chain.holds(end)):
        raise LedgerError(
            "the ledger of this device lacks answers that this home has given: it was rolled back or deleted, or the "
            "home comes from another device. Restore the newer one."
        )
    if (n_charges := device.count(home)) > noted.n_charges + noted.n_begun:
        raise LedgerError(
            f"this device has charged {n_charges} answers of this home, the home knows of {noted.n_charges}: it was "
            "restored from an older copy, or a copy of it takes part as this very client."
        )


def write_heads(run: Callable[..., Any], heads: Heads) -> None:
    """As a part of a transaction."""
    values = (heads.n_entries, heads.hash, heads.n_charges, heads.device_entries, heads.device_hash, heads.n_begun)
    run(f"INSERT OR REPLACE INTO heads (one, {HEADS}) VALUES (1, ?, ?, ?, ?, ?, ?)", values)
