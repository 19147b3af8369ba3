"""What a client has spent in a federation: an append-only file, a chain of hashes, checked before the client answers.

A client *reserves* a round first: the entry is on the disk before the answer leaves. So a process killed at any moment
never under-counts: what was reserved counts as spent, answered or not, and a last line that was cut off while it was
written counts as the dearest entry. Each line holds the hash of the line before, so a file that was edited, or lost
lines in its middle, is refused. Lines missing at the *end* leave a good chain: `compare_length` notices them by the
server's own count. Whoever rolls back this file and the server's count together is not noticed, and the file's owner
can write a new chain: the ledger protects its owner from accidents, not from themselves.

A round costs its full price, however seldom a client is sampled: whoever asked knows that it was, so sampling hides
nothing from them. Only the accounts of `accounting.py`, against those who do not know who was asked, count it.

A ledger names its neighbouring relation. Earlier versions wrote add-remove into every one, which does not hold in a
live federation: such a ledger is kept as it was written, and its numbers are those of the relation that the federation
has now, at the same price (`describe_relation`).

No query, document or click is in it, and no time: only round numbers and what they cost. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from hushrank.files import replacing
from hushrank.privacy.chain import (
    START,
    Chain,
    LedgerError,
    append_line,
    create_file,
    flush_directory,
    hash_of,
    lock_file,
    seal_line,
    unseal_line,
    verify_chain,
    write_at,
)
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.renyi import Spend, check_delta, check_epsilon, composed_epsilon

FORMAT = 1
_MOST_LEFT = 10**6


class BudgetSpentError(ValueError):
    """The client may not answer any more."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a client is willing to spend in a federation: the header of its ledger."""

    federation: str
    client: str  # as the federation knows it
    epsilon: float  # for all rounds together
    delta: float | None  # None: pure epsilon, without Gaussian noise
    price: Spend  # of one round, as agreed on joining
    adjacency: str = Adjacency.zero_out  # which two federations the price is about

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        Adjacency(self.adjacency)
        if not (self.federation and self.client):
            raise ValueError("a ledger needs the names of the federation and of the client.")
        alone = composed_epsilon([self.price], delta=self.delta)
        if alone > self.epsilon:
            raise ValueError(
                f"one round alone spends epsilon {alone:.4g}, more than the budget of {self.epsilon:g}: this client "
                "could never answer. Ask the federation for more noise, or allow more."
            )


@dataclass(frozen=True, slots=True)
class Entry:
    """One round that was reserved."""

    round: int | None  # None: cut off while it was written, so nobody knows
    spend: Spend


@dataclass(frozen=True, slots=True)
class Ledger:
    """A verified file."""

    budget: Budget
    entries: tuple[Entry, ...]  # a line that was cut off is among them
    chain: Chain  # of its whole lines
    is_torn: bool  # the last line was cut off; the next reservation repairs it

    @property
    def head(self) -> str:
        """Hash of the last whole line."""
        return self.chain.head.hash

    @property
    def epsilon_spent(self) -> float:
        return composed_epsilon([entry.spend for entry in self.entries], delta=self.budget.delta)

    @property
    def dearest(self) -> Spend:
        spends = {self.budget.price, *(entry.spend for entry in self.entries)}
        return max(spends, key=lambda spend: (composed_epsilon([spend], delta=self.budget.delta), repr(spend)))


def open_ledger(path: Path, budget: Budget) -> Ledger:
    """The client's ledger for a federation, made if there is none; one made for another budget is refused."""
    is_new = create_file(path)
    with lock_file(path, writing=True) as file:
        content = file.read()
        if b"\n" not in content:  # Why: nothing can have been reserved, but a cut-off line counts all the same
            header = seal_line(_header(budget), START)
            torn = b"" if is_new and not content else seal_line(_entry(1, Entry(None, budget.price)), hash_of(header))
            write_at(file, 0, header + torn)
            flush_directory(path.parent)
            content = header + torn
        ledger = _verify(content, path)
    if not _is_same(ledger.budget, budget):
        raise LedgerError(f"{path} was made for {ledger.budget}, not for {budget}. Budgets are not changed in place.")
    return ledger


def _is_same(written: Budget, budget: Budget) -> bool:
    """Whether a ledger is the budget's, but for the relation that earlier versions wrote."""
    is_older = written.adjacency == Adjacency.add_remove
    return written == (replace(budget, adjacency=written.adjacency) if is_older else budget)


def describe_relation(budget: Budget) -> str:
    """Against whom an epsilon of this ledger holds, and for which two federations."""
    against = f"against {budget.price.against}"
    if budget.adjacency != Adjacency.add_remove:
        return f"{against}, if {Adjacency(budget.adjacency).words}"
    held = Adjacency.replace_one if budget.price.mechanism == "pure" else Adjacency.zero_out
    return (
        f"{against}, if {held.words}; add-remove was written by an earlier version and does not hold in a "
        "live federation"
    )


def write_ledger(path: Path, budget: Budget, entries: Sequence[Entry]) -> Ledger:
    """A new ledger with these entries, whole or not at all, even beyond the budget: what was spent was spent."""
    lines = [seal_line(_header(budget), START)]
    for number, entry in enumerate(entries, start=1):
        lines.append(seal_line(_entry(number, entry), hash_of(lines[-1])))
    with replacing(path) as temporary:
        temporary.chmod(0o600)
        temporary.write_bytes(b"".join(lines))
    flush_directory(path.parent)
    return read_ledger(path)


def read_ledger(path: Path) -> Ledger:
    """What the file says, verified from its first line to its last."""
    with lock_file(path, writing=False) as file:
        return _verify(file.read(), path)


def read_budget(path: Path) -> Budget | None:
    """What the first line says, whatever became of the others; None: it is not there, or damaged."""
    try:
        with lock_file(path, writing=False) as file:
            return _parse_header(unseal_line(file.read().split(b"\n")[0], START, path, 1), path)
    except (FileNotFoundError, LedgerError):
        return None


def reserve_round(path: Path, *, round: int, spend: Spend | None = None) -> Ledger:
    """Count one answer as spent, on the disk, before it is given; spend None: the price agreed on joining.

    Answering the same round again with new noise is a new answer and is reserved again; sending the same bytes again
    is not. Raises BudgetSpentError, and reserves nothing, where it would exceed the budget.
    """
    if round < 0:
        raise ValueError(f"round is {round}, must be at least 0.")
    with lock_file(path, writing=True) as file:
        ledger = _repair(file, _verify(file.read(), path))
        spend = spend or ledger.budget.price
        check_budget(ledger, spend)
        return _append(file, ledger, Entry(round, spend))


def check_budget(ledger: Ledger, spend: Spend) -> None:
    """Refuse an answer that the budget does not cover, and say so."""
    spent = ledger.epsilon_spent
    after = composed_epsilon([*(entry.spend for entry in ledger.entries), spend], delta=ledger.budget.delta)
    if after > ledger.budget.epsilon:
        raise BudgetSpentError(
            f"the privacy budget for {ledger.budget.federation} is used up: epsilon {spent:.4g} of "
            f"{ledger.budget.epsilon:g} was spent in {len(ledger.entries)} rounds against {spend.against}, one more "
            f"would make {after:.4g}. This client answers no more."
        )


def compare_length(ledger: Ledger, server_count: int) -> None:
    """Refuse a ledger that knows of fewer answers than the server has seen: an older copy took its place.

    More entries than the server counts are usual: reserved, but never arrived. A rollback of both is out of scope.
    """
    if server_count > len(ledger.entries):
        raise LedgerError(
            f"the ledger for {ledger.budget.federation} has {len(ledger.entries)} entries, but the server has seen "
            f"{server_count} updates of this client: the file was rolled back, or a copy of this client answers, too. "
            "Restore the newer one; this client answers no more until then."
        )


def count_rounds_left(ledger: Ledger) -> int:
    """How many more answers the budget covers, at the price agreed on joining (at most a million)."""
    price, spends = ledger.budget.price, [entry.spend for entry in ledger.entries]

    def covers(n: int) -> bool:
        more = Spend(price.mechanism, price.ratio, price.times * n)
        return composed_epsilon([*spends, more], delta=ledger.budget.delta) <= ledger.budget.epsilon

    few, many = 0, 1
    while many < _MOST_LEFT and covers(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if covers(middle) else (few, middle)
    return min(few, _MOST_LEFT)


def describe_ledger(ledger: Ledger) -> dict[str, Any]:
    """As JSON: what was spent, and what is left."""
    budget, spent = ledger.budget, ledger.epsilon_spent
    return {
        "federation": budget.federation,
        "client": budget.client,
        "epsilon_budget": budget.epsilon,
        "epsilon_spent": spent,
        "delta": budget.delta,
        "adjacency": str(budget.adjacency),
        "holds": describe_relation(budget),
        "entries": len(ledger.entries),
        "rounds_left": count_rounds_left(ledger),
        "chain": "intact, last line cut off and counted as spent" if ledger.is_torn else "intact",
        "head": ledger.head,
        "rounds": [{"round": entry.round, **asdict(entry.spend)} for entry in ledger.entries],
    }


def _repair(file: BinaryIO, ledger: Ledger) -> Ledger:
    """Write the charge for a cut-off line in its place.

    Why over it and not after cutting it away: killed in between, the file must not end as if nothing had happened.
    """
    if not ledger.is_torn:
        return ledger
    whole = Ledger(ledger.budget, ledger.entries[:-1], ledger.chain, is_torn=False)
    return _append(file, whole, ledger.entries[-1])


def _append(file: BinaryIO, ledger: Ledger, entry: Entry) -> Ledger:
    chain = append_line(file, ledger.chain, _entry(len(ledger.entries) + 1, entry))
    return Ledger(ledger.budget, (*ledger.entries, entry), chain, is_torn=False)


def _verify(content: bytes, path: Path) -> Ledger:
    chain = verify_chain(content, path)
    budget = _parse_header(dict(chain.fields[0]), path)
    parsed = [_parse_entry(dict(fields), number, path) for number, fields in enumerate(chain.fields[1:], start=1)]
    ledger = Ledger(budget, tuple(parsed), chain, is_torn=False)
    if not chain.is_torn:
        return ledger
    return Ledger(budget, (*parsed, Entry(None, ledger.dearest)), chain, is_torn=True)


def _header(budget: Budget) -> dict[str, Any]:
    return {"ledger": FORMAT, **asdict(budget), "adjacency": str(budget.adjacency)}


def _entry(number: int, entry: Entry) -> dict[str, Any]:
    return {"entry": number, "round": entry.round, **asdict(entry.spend)}


def _parse_header(fields: dict[str, Any], path: Path) -> Budget:
    if fields.pop("ledger", None) != FORMAT:
        raise LedgerError(f"{path} is no ledger of format {FORMAT}: it was written by another version.")
    try:
        return Budget(**{**fields, "price": Spend(**fields["price"])})
    except (TypeError, KeyError, ValueError) as error:
        raise LedgerError(f"{path}, line 1: {error}") from error


def _parse_entry(fields: dict[str, Any], number: int, path: Path) -> Entry:
    try:
        if fields.pop("entry") != number:
            raise ValueError("entries are not numbered 1, 2, ...")
        round = fields.pop("round")
        return Entry(None if round is None else int(round), Spend(**fields))
    except (TypeError, KeyError, ValueError) as error:
        raise LedgerError(f"{path}, line {number + 1}: {error}") from error
