"""Clients whose people click differently [thesis, Section 4.5.1]."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hushrank.clicks.named import named_user
from hushrank.clicks.table import ClickTable, TableUser
from hushrank.keys import key
from hushrank.partitions.division import Aspect, Division, Kind, Skew, Whole, check_even
from hushrank.types import Array, User

BEHAVIOURS = {
    "ccm": ("perfect", "navigational", "informational"),
    "pbm": ("pbm-0", "pbm-0.5", "pbm-1", "pbm-1.5", "pbm-2"),
}
_K = 10  # places of a list


@dataclass(frozen=True)
class Behaviours:
    """Client c clicks as the c-th of the named people; those of the recipe's `clicks` are not asked.

    Differs: in the control a client's behaviour is drawn once per round, for all its searches of that round.
    """

    behaviour: str = key(
        "ccm", "of people: ccm (perfect, navigational, informational), pbm (pbm-0 to pbm-2)", choices=tuple(BEHAVIOURS)
    )
    aspect = Aspect.people
    is_redrawn = True

    def searches(self, n_clients: int) -> None:
        del n_clients

    def divide(self, whole: Whole) -> Division:
        names = BEHAVIOURS[self.behaviour]
        check_even(whole.n_clients, len(names), f"click behaviours ({', '.join(names)})")
        kinds = tuple(Kind(name, user=named_user(name, n_grades=whole.n_grades)) for name in names)
        return Division(kinds, tuple(range(len(names))), is_drawn=False)

    def measure(self, whole: Whole, division: Division) -> Skew:
        outcomes = [describe_outcomes(kind.user, whole.n_grades) for kind in division.kinds if kind.user is not None]
        distances = [np.abs(one - other).sum(axis=-1).mean() / 2 for one, other in combinations(outcomes, 2)]
        rows = tuple(
            (kind.name, tuple((f"grade {g}", float(p)) for g, p in enumerate(1 - own[..., 0].mean(axis=0))))
            for kind, own in zip(division.kinds, outcomes, strict=True)
        )
        measure = "mean total variation between two clients' clicks on a document, over grades and places"
        return Skew(
            "clicks", float(np.mean(distances)), measure, f"probability of a click, mean over {_K} places", rows
        )


def describe_outcomes(user: User, n_grades: int) -> Array:
    """[k, n_grades, 3] P(no click), P(click, and reads on), P(click, and leaves) of a document that is reached."""
    assert isinstance(user, TableUser)
    table: ClickTable = user.as_table(_K)
    click = np.array(table.examine)[:, None] * np.array(table.click)[:n_grades]
    stop = np.array(table.stop)[:n_grades]
    return np.stack([1 - click, click * (1 - stop), click * stop], axis=-1)
