"""Other protections in Table 3 of [fedps]: users who share an id, and cover queries, in logs that one place has.

Both are central PEPS on what an engine has then (`personal/queries/ids.py`), of the same groups and covers as in Table
2. Differs: a cover has no click, so that it adds nothing to learn from; the paper supposes that its covers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from statistics import fmean

from hushrank.personal.keys import COVER_QUERY, GROUP_USER, WHOLE
from hushrank.reproduce.papers.fedps_reading import (
    CLOSE,
    FIRST,
    IMPROVE,
    MRR,
    OF_EQUAL,
    pool_users,
    populations_of,
    read_at_best,
    tell_equal_lists,
)
from hushrank.reproduce.verdicts import Cell, Pair, Trials, Verdict, all_better, all_equal, both, check_some, ordered
from hushrank.runs.personal_search import PRIMARY

WAYS = (GROUP_USER, COVER_QUERY)
_CENTRAL: Cell = {"method": "central", "ranker": "peps"}
_PROXY: Cell = {"method": "fedps-proxy", "ranker": "peps", "offload": WHOLE}


def cell_of(way: str) -> Cell:
    return {"method": way, "ranker": "peps"}


def proxy_above_others(outcome: Trials) -> Verdict:
    """Whole tasks handed over; user by user, but for P-Improve, which is not kept for single users."""
    check_some(outcome.data)
    better = all_better(pair_with_others(outcome, outcome.data))
    pooled = _compare_improvement(outcome)
    judged = both(better, ordered(pooled)) if pooled else better
    equal = tell_equal_lists(outcome, lambda data: [all_better(pair_with_others(outcome, [data], **OF_EQUAL))])
    return both(judged, equal)


def pair_with_others(outcome: Trials, names: Sequence[str], **variant: str) -> list[Pair]:
    return [
        pool_users(outcome, data, {**_PROXY, **variant}, {**cell_of(way), **variant}, metric=metric)
        for data in names
        for way in WAYS
        for metric in (PRIMARY, MRR, FIRST)
    ]


def _compare_improvement(outcome: Trials) -> list[tuple[str, float, float]]:
    """[(name, ours, theirs)] of the logs that have the lists as they were shown."""
    named = [(data, way, _improve(outcome, data, _PROXY)) for data in outcome.data for way in WAYS]
    return [
        (f"{data} {IMPROVE} fedps-proxy over {way}", fmean(ours), fmean(_improve(outcome, data, cell_of(way))))
        for data, way, ours in named
        if ours
    ]


def _improve(outcome: Trials, data: str, cell: Cell) -> list[float]:
    """P-Improve of each population; nothing where the log has none."""
    found = [outcome.find(data=data, population=each, **cell) for each in populations_of(outcome, data)]
    return [value for trial in found for value in read_at_best(trial, trial.users[0], IMPROVE).values()]


def covers_cost_nothing(outcome: Trials) -> Verdict:
    """Covers: within 2 % of central training's MAP, as `federated_equals_central`. A shared id: below it."""
    check_some(outcome.data)
    found = reduce(both, (verdict for data in outcome.data for verdict in compare_with_open(outcome, data)))
    return both(found, tell_equal_lists(outcome, lambda data: compare_with_open(outcome, data, **OF_EQUAL)))


def compare_with_open(outcome: Trials, data: str, **variant: str) -> list[Verdict]:
    """Covers and a shared id, each with logs in which nobody hides."""
    central, shared, covered = ({**cell, **variant} for cell in (_CENTRAL, cell_of(GROUP_USER), cell_of(COVER_QUERY)))
    pair = pool_users(outcome, data, covered, central)
    equal = all_equal([pair], margin=round(CLOSE * fmean(pair.theirs.values()), 4))
    return [equal, all_better([pool_users(outcome, data, central, shared)])]
