"""What a device spends of its privacy budget: the ledger of its home, checked against all that it ever answered.

Every answer is reserved in the ledger before it is made and committed, so the ledger never has fewer entries than the
outbox has answers, nor than the server has accepted. One that has was lost, damaged or rolled back: nothing is answered
until it is restored, or rebuilt from what the outbox and the server know. The budget itself is never set anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from hushrank.live.device.outbox import SENT
from hushrank.live.device.store import Interactions
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import Outcome, Standing
from hushrank.live.wire.terms import price_of, relation_of, total_epsilon_of
from hushrank.privacy.ledger import (
    Budget,
    Entry,
    Ledger,
    LedgerError,
    compare_length,
    open_ledger,
    read_budget,
    read_ledger,
    write_ledger,
)
from hushrank.privacy.renyi import Spend

LEDGER, SET_ASIDE = "ledger.jsonl", "ledger.old.jsonl"
_ROUNDING = 1.0 + 1e-9  # Why: a budget for exactly so many rounds must not fail in the last one by a rounding error
_MOST_ANSWERS = 10**6  # Why: nobody has given more, and a server that says so would fill the disk


def open_account(
    store: Interactions, agreement: Agreement, credential: str, *, epsilon: float | None = None
) -> Path | None:
    """The ledger that every answer is checked with; None where nothing is promised and nothing can be counted.

    `epsilon`: the most that this device is willing to spend; by default what the agreed rounds cost together.
    """
    path, price = find_ledger(store), price_of(agreement)
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
    check_account(store, 0)
    return path


def check_account(store: Interactions, n_accepted: int) -> None:
    """Refuse a ledger that knows of fewer answers than this device made, or than the server accepted."""
    path, n_answers = find_ledger(store), store.outbox.count()
    try:
        ledger = read_ledger(path)
        compare_length(ledger, n_accepted)
    except (LedgerError, FileNotFoundError) as error:
        raise _explain_loss(str(error), store) from error
    if n_answers > len(ledger.entries):
        what = f"{path} has {len(ledger.entries)} entries, but this device has given {n_answers} answers"
        raise _explain_loss(f"{what}: the file was rolled back. Restore the newer one.", store)


def rebuild_account(
    store: Interactions, agreement: Agreement, credential: str, standing: Standing, *, epsilon: float | None = None
) -> str:
    """A new ledger in the place of one that was lost, every answer that may have been given counted; in words.

    Whatever stood in its place is set aside. One that is whole and long enough stays as it is.
    """
    path, price = find_ledger(store), price_of(agreement)
    if price is None:
        raise ValueError("this federation promises no privacy: there is no ledger to rebuild.")
    n_answers = count_answers(store, standing)
    if n_answers > _MOST_ANSWERS:
        raise ValueError(f"the server says that it accepted {standing.accepted_updates} answers, which nobody gave.")
    known = _read_known(path)
    if known is not None and len(known.entries) >= n_answers:
        return f"{path} is whole, with {len(known.entries)} answers; nothing was rebuilt"
    n_answers = max(n_answers, _count_lines(path))
    budget = make_budget(store, agreement, price, credential, epsilon)
    rounds: list[int | None] = [answer.round for answer in store.outbox.answers()]
    rounds += [None] * (n_answers - len(rounds))
    if path.exists():
        path.replace(path.with_name(SET_ASIDE))
    ledger = write_ledger(path, budget, [Entry(round, price) for round in rounds])
    store.keep_budget(budget.epsilon)
    return f"{path} was rebuilt: {n_answers} answers count as given, {describe_spending(ledger)}"


def count_answers(store: Interactions, standing: Standing) -> int:
    """The most that this device can have given: what the server accepted, and what it did not accept, or all it made.

    Why not the larger of two counts: a store that was restored from a copy lacks answers that the server has.
    """
    answers = store.outbox.answers()
    refused = [a for a in answers if a.state != SENT and a.reason != Outcome.abandoned]
    return max(len(answers), standing.accepted_updates + len(refused))


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
        f"client --rebuild-ledger --home {store.path.parent} makes one that counts every answer as spent."
    )


def describe_spending(ledger: Ledger) -> str:
    """`epsilon 0.31 of 8 spent at delta 1e-05 (zero-out, against readers of rankers, not the server)`"""
    delta = "" if ledger.budget.delta is None else f" at delta {ledger.budget.delta:g}"
    whom = f"{ledger.budget.adjacency}, against {ledger.budget.price.against}"
    return f"epsilon {ledger.epsilon_spent:.4g} of {ledger.budget.epsilon:.4g} spent{delta} ({whom})"
