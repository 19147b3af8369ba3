"""What a device spends of its privacy budget: the ledger of its home, checked against all that it ever answered.

Every answer is charged to the device and reserved in the home's ledger before it is made and committed, and where both
ledgers ended is committed with it (`heads.py`). So neither has fewer entries than the outbox has answers, nor than the
server has seen. One that has was lost, damaged or rolled back, or another copy of this home is at work: nothing is
answered until it is restored, or rebuilt from what the device, the outbox and the server know. The budget itself is
never set anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from hushrank.live.device.heads import Heads, compare_device, compare_ledger, read_heads
from hushrank.live.device.outbox import SENT
from hushrank.live.device.store import Interactions
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import Outcome, Standing
from hushrank.live.wire.terms import price_of, relation_of, total_epsilon_of
from hushrank.privacy.chain import LedgerError
from hushrank.privacy.device_ledger import Charge, DeviceLedger, charge_device, check_cap, read_device
from hushrank.privacy.ledger import (
    Budget,
    Entry,
    Ledger,
    check_budget,
    compare_length,
    open_ledger,
    read_budget,
    read_ledger,
    reserve_round,
    write_ledger,
)
from hushrank.privacy.renyi import Spend

LEDGER, SET_ASIDE = "ledger.jsonl", "ledger.old.jsonl"
_ROUNDING = 1.0 + 1e-9  # Why: a budget for exactly so many rounds must not fail in the last one by a rounding error
_MOST_ANSWERS = 10**6  # Why: nobody has given more, and a server that says so would fill the disk


@dataclass(frozen=True, slots=True)
class Purse:
    """Of a person's device. Pretend people have none: there is nobody whose budget it would be."""

    device: Path  # the ledger of the whole device
    cap: float  # epsilon that it may have spent, in all federations, when this home answers


@dataclass(frozen=True, slots=True)
class AnswerAccount:
    """The two ledgers that an answer of this home is charged to."""

    store: Interactions
    path: Path  # of the home's ledger
    purse: Purse | None

    @property
    def home(self) -> str:
        return self.store.identity().name

    def read_device(self) -> DeviceLedger | None:
        return None if self.purse is None else read_device(self.purse.device)


def open_account(
    store: Interactions,
    agreement: Agreement,
    credential: str,
    *,
    epsilon: float | None = None,
    price: Spend | None = None,
    purse: Purse | None = None,
) -> AnswerAccount | None:
    """What every answer is charged to; None where nothing is promised and nothing can be counted.

    `epsilon`: the most that this home is willing to spend; by default what the agreed rounds cost together.
    `price`: of one answer; by default as agreed.
    """
    path, price = find_ledger(store), price or price_of(agreement)
    if price is None:
        if epsilon is not None:
            raise ValueError("--epsilon sets a privacy budget, but this federation promises no privacy: leave it out.")
        return None
    n_answers = store.outbox.count()
    if n_answers and not path.exists():
        what = f"{path} is missing, but this device has given {n_answers} answers. Restore it."
        raise _explain_loss(what, store)
    budget = make_budget(store, agreement, price, credential, epsilon)
    try:
        ledger = open_ledger(path, budget)
    except LedgerError as error:
        if _read_known(path) is not None:  # Why: one that is whole, but of another budget, is not lost
            raise
        raise _explain_loss(str(error), store) from error
    store.keep_budget(ledger.budget.epsilon)
    account = AnswerAccount(store, path, purse)
    if (noted := store.heads()) is None or (purse is not None and not noted.device_hash):
        note_ledgers(account, ledger)
    check_account(account)
    return account


def note_ledgers(account: AnswerAccount, ledger: Ledger) -> None:
    """Where the ledgers end, as a home begins or is taken over from an older version; the device is charged for all
    answers that it does not know of."""
    device, budget = account.read_device(), ledger.budget
    if account.purse is not None and device is not None:
        unknown = ledger.entries[device.count(account.home) :]
        charges = [Charge(account.home, budget.federation, entry.round, budget.delta, entry.spend) for entry in unknown]
        device = charge_device(account.purse.device, charges, cap=None)
    account.store.keep_heads(read_heads(ledger, device, account.home))


def check_account(account: AnswerAccount, standing: Standing | None = None) -> None:
    """Refuse a ledger that knows of fewer answers than this device made, or than the server saw."""
    store, n_answers, noted = account.store, account.store.outbox.count(), account.store.heads()
    try:
        ledger, device = read_ledger(account.path), account.read_device()
        if noted is not None:
            compare_ledger(noted, ledger)
        if noted is not None and device is not None:
            compare_device(noted, device, account.home)
        if standing is not None:
            compare_length(ledger, standing.seen_updates + count_missing(store, standing))
    except (LedgerError, FileNotFoundError) as error:
        raise _explain_loss(str(error), store) from error
    if n_answers > len(ledger.entries):
        what = f"{account.path} has {len(ledger.entries)} entries, but this device has given {n_answers} answers"
        raise _explain_loss(f"{what}: the file was rolled back. Restore the newer one.", store)


def count_missing(store: Interactions, standing: Standing) -> int:
    """Answers that the server acknowledged and no longer knows of: its file was restored from an older copy."""
    accepted = [a for a in store.outbox.answers() if a.state == SENT or a.reason == Outcome.abandoned]
    return max(len(accepted) - standing.accepted_updates, 0)


def reserve_answer(account: AnswerAccount, *, round: int, spend: Spend) -> Heads:
    """Count one answer as spent in both ledgers, on the disk, before it is made; where they end then, to be committed
    with the answer. Raises BudgetSpentError, and charges nothing, where either does not cover it."""
    ledger, noted = read_ledger(account.path), account.store.heads()
    check_budget(ledger, spend)
    charge = Charge(account.home, ledger.budget.federation, round, ledger.budget.delta, spend)
    if account.purse is not None:
        check_cap(read_device(account.purse.device), [charge], cap=account.purse.cap)
    account.store.keep_heads((noted or Heads(len(ledger.entries), ledger.head)).begin())
    device = None if account.purse is None else charge_device(account.purse.device, [charge], cap=account.purse.cap)
    return read_heads(reserve_round(account.path, round=round, spend=spend), device, account.home)


def rebuild_account(
    store: Interactions,
    agreement: Agreement,
    credential: str,
    standing: Standing,
    *,
    epsilon: float | None = None,
    price: Spend | None = None,
    purse: Purse | None = None,
) -> str:
    """A new ledger in the place of one that was lost, every answer that may have been given counted; in words.

    Whatever stood in its place is set aside. One that is whole and long enough stays as it is.
    """
    path, price = find_ledger(store), price or price_of(agreement)
    if price is None:
        raise ValueError("this federation promises no privacy: there is no ledger to rebuild.")
    account = AnswerAccount(store, path, purse)
    n_answers = count_answers(account, standing)
    if n_answers > _MOST_ANSWERS:
        raise ValueError(f"the server says that it saw {standing.seen_updates} answers, which nobody gave.")
    known = _read_known(path)
    if known is not None and len(known.entries) >= n_answers:
        note_ledgers(account, known)
        return f"{path} is whole, with {len(known.entries)} answers; nothing was rebuilt"
    n_answers = max(n_answers, _count_lines(path))
    budget = make_budget(store, agreement, price, credential, epsilon)
    rounds: list[int | None] = [answer.round for answer in store.outbox.answers()]
    rounds += [None] * (n_answers - len(rounds))
    if path.exists():
        path.replace(path.with_name(SET_ASIDE))
    ledger = write_ledger(path, budget, [Entry(round, price) for round in rounds])
    store.keep_budget(budget.epsilon)
    note_ledgers(account, ledger)
    return f"{path} was rebuilt: {n_answers} answers count as given, {describe_spending(ledger)}"


def count_answers(account: AnswerAccount, standing: Standing) -> int:
    """The most that this home can have given: what the server saw, or accepted beside what it did not, or all that
    was made here, or charged on this device.

    Why not the larger of two counts: a store that was restored from a copy lacks answers that the server has.
    """
    answers, device = account.store.outbox.answers(), account.read_device()
    refused = [a for a in answers if a.state != SENT and a.reason != Outcome.abandoned]
    n_charges = 0 if device is None else device.count(account.home)
    return max(len(answers), standing.accepted_updates + len(refused), standing.seen_updates, n_charges)


def make_budget(
    store: Interactions, agreement: Agreement, price: Spend, credential: str, epsilon: float | None
) -> Budget:
    """As it was made on joining, if anything still knows it; `epsilon`: as the owner says now."""
    kept = store.budget()
    if kept is None and (written := read_budget(find_ledger(store))) is not None:
        kept = written.epsilon
    if kept is not None and epsilon not in (None, kept):
        raise LedgerError(f"the budget of {store.path.parent} is epsilon {kept:g}. Budgets are not changed in place.")
    chosen = epsilon if epsilon is not None else kept
    return Budget(
        federation=f"{agreement.name} ({agreement.digest[:16]})",
        client=hashlib.sha256(credential.encode()).hexdigest()[:16],
        epsilon=chosen if chosen is not None else (total_epsilon_of(agreement) or 0.0) * _ROUNDING,
        delta=agreement.delta,
        price=price,
        adjacency=relation_of(agreement),
    )


def find_ledger(store: Interactions) -> Path:
    return store.path.with_name(LEDGER)


def _read_known(path: Path) -> Ledger | None:
    """A ledger that is there and whole."""
    try:
        return read_ledger(path)
    except (FileNotFoundError, LedgerError):
        return None


def _count_lines(path: Path) -> int:
    """Entries that can be made out in whatever stands in a ledger's place."""
    return path.read_bytes().count(b'"entry":') if path.exists() else 0


def _explain_loss(what: str, store: Interactions) -> LedgerError:
    return LedgerError(
        f"{what} If this home is a copy of one that goes on, delete this one. If there is no newer file: hushrank "
        f"client --rebuild-ledger --home {store.path.parent} counts every answer that may have been given as spent."
    )


def describe_spending(ledger: Ledger) -> str:
    """`epsilon 0.31 of 8 spent at delta 1e-05 (zero-out, against readers of rankers, not the server)`"""
    delta = "" if ledger.budget.delta is None else f" at delta {ledger.budget.delta:g}"
    whom = f"{ledger.budget.adjacency}, against {ledger.budget.price.against}"
    return f"epsilon {ledger.epsilon_spent:.4g} of {ledger.budget.epsilon:.4g} spent{delta} ({whom})"
