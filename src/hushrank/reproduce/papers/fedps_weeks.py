"""Figure 4 of FedPS [fedps]: claims about models that are updated week by week, judged user by user.

A user's value is the mean over those weeks of a claim in which the user searched, so that every user counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from statistics import fmean

from hushrank.reproduce.papers.fedps_reading import CLOSE, name_stage, populations_of, read_stage, read_weeks
from hushrank.reproduce.verdicts import (
    Cell,
    NotJudged,
    Pair,
    Trials,
    Values,
    Verdict,
    all_better,
    all_equal,
    both,
    check_some,
)
from hushrank.runs.personal_search import ENGINES_ORDER, PRIMARY

RETRAIN, CONTINUE, ONLINE = "retrain", "continue", "online"
_CENTRAL, _FLAT, _PROXY = (
    {"method": method, "updating": RETRAIN} for method in ("central", "fedps-flat", "fedps-proxy")
)


def list_stages(outcome: Trials) -> list[int]:
    """Those with a week after them."""
    return list(range(1, int(outcome.finished[0].result["recipe"]["stages"])))


def _halves(outcome: Trials) -> tuple[list[int], list[int]]:
    """The stages of the first half and of the second; one in the middle is in none."""
    stages = list_stages(outcome)
    half = len(stages) // 2
    return stages[:half], stages[-half:]


def mean_gains(outcome: Trials, data: str, cell: Cell, stages: Sequence[int]) -> Values:
    """{(population, user): MAP over the engine's order, mean over the weeks after these stages}"""
    return {user: fmean(gains.values()) for user, gains in read_gains(outcome, data, cell, stages).items()}


def read_gains(
    outcome: Trials, data: str, cell: Cell, stages: Sequence[int]
) -> Mapping[tuple[int, int], Mapping[int, float]]:
    """{(population, user): {stage: MAP over the engine's order}}"""
    ours, original = (read_map(outcome, data, cell, stages, metric) for metric in (PRIMARY, ENGINES_ORDER))
    return {user: {stage: v - original[user][stage] for stage, v in found.items()} for user, found in ours.items()}


def read_map(
    outcome: Trials, data: str, cell: Cell, stages: Sequence[int], metric: str = PRIMARY
) -> dict[tuple[int, int], dict[int, float]]:
    """{(population, user): {stage: MAP on the week after it}}"""
    found: dict[tuple[int, int], dict[int, float]] = {}
    for population in populations_of(outcome, data):
        trial = outcome.find(data=data, population=population, **cell)
        for stage, values in read_weeks(trial, stages, metric).items():
            for user, value in values.items():
                found.setdefault((population or 0, user), {})[stage] = value
    return found


def match(name: str, ours: Values, theirs: Values) -> Pair:
    """Of the users that both sides have."""
    users = ours.keys() & theirs.keys()
    return Pair(name, {user: ours[user] for user in users}, {user: theirs[user] for user in users})


def compare_cells(outcome: Trials, ours: Cell, theirs: Cell, stages: Sequence[int], name: str) -> list[Pair]:
    return [
        match(f"{data} {name}", *(mean_gains(outcome, data, cell, stages) for cell in (ours, theirs)))
        for data in outcome.data
    ]


# Claims
def quality_grows(outcome: Trials) -> Verdict:
    """Retrained, every week above the one before. Told beside it: what a week brings on average ("generally", says the
    paper), with the first week and without it, and other ways of updating, of which no claim is made."""
    cells = {(t.cell["method"], t.cell["updating"]): t.cell for t in outcome.finished}
    retrained = [cell for (_, how), cell in cells.items() if how == RETRAIN]
    check_some(retrained)
    verdict = judge_steps(outcome, retrained)
    stages = list_stages(outcome)
    for some in (stages, stages[1:]) if len(stages) > 2 else (stages,):
        trend = judge_trend(outcome, retrained, some)
        why = f"Gained by a week, from week {some[0]}: {trend.why}"
        verdict = both(verdict, Verdict(True, None, why, tests=trend.tests))
    verdict = both(verdict, Verdict(True, None, tell_weeks(outcome, retrained)))
    others = [cell for (_, how), cell in cells.items() if how != RETRAIN]
    if not others:
        return verdict
    also = judge_steps(outcome, others)
    told = f"Updated in other ways, of which no claim is made: {also.why} {tell_weeks(outcome, others)}"
    return both(verdict, Verdict(True, None, told, tests=also.tests))


def judge_steps(outcome: Trials, cells: Sequence[Cell]) -> Verdict:
    """Each week over the one before, for each of these: users who searched in both."""
    return all_better(
        [
            match(
                f"{data} {_name(cell)}, week {later} over {earlier}",
                *(mean_gains(outcome, data, cell, [stage]) for stage in (later, earlier)),
            )
            for data in outcome.data
            for cell in map(_trained, cells)
            for earlier, later in pairwise(list_stages(outcome))
        ]
    )


def judge_trend(outcome: Trials, cells: Sequence[Cell], stages: Sequence[int]) -> Verdict:
    """What every user gains by a week, the slope of a straight line, above nothing."""
    pairs = []
    for data in outcome.data:
        for cell in map(_trained, cells):
            every = read_gains(outcome, data, cell, stages)
            slopes = {user: find_slope(gains) for user, gains in every.items() if len(gains) > 1}
            pairs.append(Pair(f"{data} {_name(cell)}", slopes, dict.fromkeys(slopes, 0.0)))
    return all_better(pairs)


def find_slope(gains: Mapping[int, float]) -> float:
    """Of the straight line with the least squares."""
    middle = fmean(gains)
    return sum((x - middle) * y for x, y in gains.items()) / sum((x - middle) ** 2 for x in gains)


def tell_weeks(outcome: Trials, cells: Sequence[Cell]) -> str:
    """The means over searches, as in the rows."""
    return f"MAP gained on the engine's order by week, over searches: {'; '.join(_tell(outcome, c) for c in cells)}."


def _tell(outcome: Trials, cell: Cell) -> str:
    trials = [t for t in outcome.finished if _trained(cell).items() <= t.cell.items()]
    gains = [
        fmean(v for t in trials for v in read_stage(t, t.users[0], name_stage(s)).values())
        for s in list_stages(outcome)
    ]
    return f"{_name(cell)} {', '.join(f'{gain:+.4f}' for gain in gains)}"


def _trained(cell: Cell) -> Cell:
    return {key: cell[key] for key in ("method", "updating")}


def _name(cell: Cell) -> str:
    return f"{cell['method']} {cell['updating']}"


def retraining_above_online(outcome: Trials) -> Verdict:
    """All weeks together; continuing with new logs alone, of which the paper claims nothing, is told beside it."""
    stages = list_stages(outcome)
    flat: dict[str, Cell] = {how: {"method": "fedps-flat", "updating": how} for how in (RETRAIN, CONTINUE, ONLINE)}
    found = all_better(compare_cells(outcome, flat[RETRAIN], flat[ONLINE], stages, "retrain over online"))
    try:
        also = all_better(compare_cells(outcome, flat[RETRAIN], flat[CONTINUE], stages, "retrain over continue"))
    except NotJudged:
        return found  # not run
    return both(found, Verdict(True, None, f"No claim is made of this one: {also.why}", tests=also.tests))


def below_central_early(outcome: Trials) -> Verdict:
    """Central over proxy in the first half of the stages."""
    return all_better(compare_cells(outcome, _CENTRAL, _PROXY, _halves(outcome)[0], "central over proxy, early"))


def near_central_late(outcome: Trials) -> Verdict:
    """Within 2 % of central training's MAP in the second half."""
    late = _halves(outcome)[1]
    found = []
    for data in outcome.data:
        level = fmean(fmean(weeks.values()) for weeks in read_map(outcome, data, _CENTRAL, late).values())
        sides = (mean_gains(outcome, data, cell, late) for cell in (_PROXY, _CENTRAL))
        pair = match(f"{data} proxy over central, late", *sides)
        found.append(all_equal([pair], margin=round(CLOSE * level, 4)))
    check_some(found)
    return reduce(both, found)


def flat_falls_behind(outcome: Trials) -> Verdict:
    """Proxy over flat in all stages, and by more in the second half than in the first."""
    early, late = _halves(outcome)
    above = all_better(compare_cells(outcome, _PROXY, _FLAT, [*early, *late], "proxy over flat"))
    growing = []
    for data in outcome.data:
        sides = []
        for stages in (late, early):
            proxy, flat = (mean_gains(outcome, data, cell, stages) for cell in (_PROXY, _FLAT))
            sides.append({user: proxy[user] - flat[user] for user in proxy.keys() & flat.keys()})
        growing.append(match(f"{data} difference, late over early", *sides))
    return both(above, all_better(growing))
