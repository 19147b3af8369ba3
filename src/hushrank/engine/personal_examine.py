"""How good a model of personalised search is on each user's later searches: MAP, MRR, P@1 and P-Improve.

Measures are means over searches, of all users together. Of generated users one number each is kept as well, by which
runs are compared user by user; of real users nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from hushrank.engine.personal_people import People, Span, stack_block, state_widths
from hushrank.metrics.clicked import ClickedMeasures, PairChanges, count_changes, measure_clicked
from hushrank.personal.inputs import InputWidths, PersonalInputs, take_queries, trim_history
from hushrank.types import Array

MAP, MRR, FIRST, IMPROVE = "MAP", "MRR", "P@1", "P-Improve"
USERS = "users"  # prefix of what is kept for each user: users/offline/MAP [n_clients], NaN without a search
ORIGINAL = "original/MAP"  # of the general engine's order, on the same searches
_SEARCHES, _ROWS = 8, 16  # Why: searches scored at once bound memory, whatever the user's number of searches
_HISTORY = 128  # rows. Why: eight searches reach back 50 rows, and seldom have 70 searches without a click among them
# (users [n_rows], inputs [n_rows, B, ...]) -> scores [n_rows, B, D]
ScoreRows: TypeAlias = Callable[[Sequence[int], PersonalInputs], Array]


@dataclass
class _Sums:
    """Measures so far, over all users."""

    n_clients: int
    found: dict[str, list[Array]] = field(default_factory=dict)
    users: dict[str, Array] = field(default_factory=dict)
    changes: PairChanges = PairChanges(0, 0, 0)  # noqa: RUF009 - frozen

    def add(self, measures: ClickedMeasures, owners: Array) -> None:
        """owners [n] of the searches."""
        for name, values in (
            (MAP, measures.average_precision),
            (MRR, measures.reciprocal_rank),
            (FIRST, measures.first_is_clicked),
        ):
            self.found.setdefault(name, []).append(values)
            sums = self.users.setdefault(name, np.zeros((2, self.n_clients)))
            np.add.at(sums[0], owners, values)
            np.add.at(sums[1], owners, 1)

    def means(self, prefix: str, *, has_lists: bool) -> dict[str, Array]:
        every = {name: np.concatenate(values) if values else np.zeros(0) for name, values in self.found.items()}
        named = {
            f"{prefix}/{name}": np.asarray(values.mean() if len(values) else np.nan) for name, values in every.items()
        }
        if has_lists:
            named[f"{prefix}/{IMPROVE}"] = np.asarray(self.changes.p_improve)
        for name, (total, count) in self.users.items():
            mean = np.divide(total, count, out=np.full(self.n_clients, np.nan), where=count > 0)
            named[f"{USERS}/{prefix}/{name}"] = mean
        return named


@dataclass(frozen=True)
class Examination:
    """Of users of a population. has_lists: whether the log has the lists as they were shown, for P-Improve."""

    people: People
    has_lists: bool
    users: Array | None = None  # ascending, those who are measured; None: all

    def widths(self, span: Span) -> InputWidths:
        has_test = span.stop > self.people.population.periods.test
        return state_widths(self.people, queries=_SEARCHES, history=_HISTORY, has_test=has_test)

    def measure(self, score: ScoreRows, spans: dict[str, Span], *, trained: float) -> dict[str, Array]:
        """{metric: number}, and for each generated user the mean over the user's searches. trained: as of
        `People.inputs_of`."""
        n_users = self.people.population.n_users
        sums = {prefix: (_Sums(n_users), _Sums(n_users)) for prefix in spans}
        for prefix, users, inputs in self.list_blocks(spans, trained=trained):
            self._add(*sums[prefix], score(users, inputs), users, inputs)
        named: dict[str, Array] = {}
        for prefix, (ours, original) in sums.items():
            named |= ours.means(prefix, has_lists=self.has_lists)
            if prefix == "offline":
                theirs = original.means(prefix, has_lists=False)
                named[ORIGINAL] = theirs.get(f"offline/{MAP}", np.asarray(np.nan))
                if f"{USERS}/offline/{MAP}" in theirs:
                    named[f"{USERS}/{ORIGINAL}"] = theirs[f"{USERS}/offline/{MAP}"]
        is_known = self.people.population.is_generated
        return {name: found for name, found in named.items() if is_known or not name.startswith(f"{USERS}/")}

    def _add(self, ours: _Sums, original: _Sums, scores: Array, users: Sequence[int], inputs: PersonalInputs) -> None:
        clicked, listed = (np.concatenate(part) for part in (inputs.is_clicked, inputs.is_document))
        owners = np.repeat([*users, *[0] * (_ROWS - len(users))], _SEARCHES)[(clicked & listed).any(axis=-1)]
        flat = scores.reshape(clicked.shape)
        ours.add(measure_clicked(flat, clicked, listed), owners)
        ours.changes += count_changes(flat, clicked, listed) if self.has_lists else PairChanges(0, 0, 0)
        original.add(measure_clicked(np.zeros(clicked.shape), clicked, listed), owners)

    def list_blocks(self, spans: dict[str, Span], *, trained: float) -> Iterator[tuple[str, list[int], PersonalInputs]]:
        """Rows of up to eight searches of one user each, sixteen rows at a time; each user is read once."""
        widths = {prefix: self.widths(span) for prefix, span in spans.items()}
        waiting: dict[str, list[tuple[int, PersonalInputs]]] = {prefix: [] for prefix in spans}
        for user in range(self.people.population.n_users) if self.users is None else self.users.tolist():
            for prefix, span in spans.items():
                waiting[prefix] += self.list_rows(user, span, trained=trained)
                while len(waiting[prefix]) >= _ROWS:
                    yield prefix, *self._stack(waiting[prefix][:_ROWS], widths[prefix])
                    waiting[prefix] = waiting[prefix][_ROWS:]
        for prefix, rows in waiting.items():
            if rows:
                yield prefix, *self._stack(rows, widths[prefix])

    def list_rows(self, user: int, span: Span, *, trained: float) -> list[tuple[int, PersonalInputs]]:
        inputs = self.people.inputs_of(user, span, trained=trained)
        n = len(inputs.is_query)
        some = [np.arange(first, min(first + _SEARCHES, n)) for first in range(0, n, _SEARCHES)]
        return [(user, trim_history(take_queries(inputs, places))) for places in some]

    def _stack(self, rows: list[tuple[int, PersonalInputs]], widths: InputWidths) -> tuple[list[int], PersonalInputs]:
        users, inputs = [user for user, _ in rows], [each for _, each in rows]
        return users, stack_block(self.people, inputs, widths, size=_ROWS)


def score_originally(users: Sequence[int], inputs: PersonalInputs) -> Array:
    """The general engine's order: equal scores keep it."""
    del users
    return np.zeros(inputs.is_clicked.shape)
