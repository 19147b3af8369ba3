"""What the tables and figures of FedPS [fedps] read from runs: the best round, single users, weeks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from hushrank.reports.summary import from_directory
from hushrank.reproduce.papers.study import gain
from hushrank.reproduce.reproduction import POPULATION
from hushrank.reproduce.verdicts import Cell, Finished, NotJudged, Pair, Trials, Values, Verdict, both
from hushrank.runs.personal_search import BEST, CHOSEN_BY, ENGINES_ORDER, PRIMARY, STAGE

N_ROUNDS, N_STEPS = "rounds", "steps"
MRR, FIRST, IMPROVE = "offline/MRR", "offline/P@1", "offline/P-Improve"
CLOSE = 0.02  # of central training's MAP: within it, another training counts as equal
EQUAL = "lists of one length"  # the same users, with lists of ten in all weeks: whether long test lists are the reason
OF_EQUAL = {"variant": EQUAL}
_NO_SINGLE = "Of real users no single number is kept, and tests pair users."


def best_rounds(trial: Finished, user: str) -> dict[tuple[int, int], int]:
    """The first of the rounds with the highest MAP on validation searches, for each training; the last without any."""
    curves = trial.curve(user, CHOSEN_BY, along="round")
    if not curves:
        return {cell: curve[-1][0] for cell, curve in trial.curve(user, PRIMARY, along="round").items()}
    return {cell: max(curve, key=lambda look: (look[1], -look[0]))[0] for cell, curve in curves.items()}


def read_at_best(trial: Finished, user: str, name: str) -> Values:
    """A metric at the best round, or when that was; nothing where the data have no such metric."""
    best = best_rounds(trial, user)
    if name == N_ROUNDS:
        return {cell: float(round) for cell, round in best.items()}
    if name == N_STEPS:
        return {cell: float(round * steps_per_round(trial)) for cell, round in best.items()}
    return {cell: dict(curve)[best[cell]] for cell, curve in trial.curve(user, name, along="round").items()}


def steps_per_round(trial: Finished) -> int:
    """One client alone joins the step before it."""
    recipe = trial.result["recipe"]
    n, k = recipe["n_clients"], recipe["cohort"] or recipe["n_clients"]
    return max(-(-n // k) - (n % k == 1), 1)


def name_stage(stage: int) -> str:
    return f"improvement/stage {stage}"


def read_stage(trial: Finished, user: str, name: str) -> Values:
    """MAP over the original order's, on the searches of the week after a stage; nothing for weeks that were not run."""
    stage = int(name.rsplit(" ", 1)[1])
    ours, original = (trial.curve(user, metric, along="round") for metric in (PRIMARY, ENGINES_ORDER))
    at = {cell: (dict(curve), dict(original[cell])) for cell, curve in ours.items()}
    return {cell: curve[stage] - before[stage] for cell, (curve, before) in at.items() if stage in curve}


def read_weeks(trial: Finished, stages: Sequence[int], metric: str = PRIMARY) -> dict[int, dict[int, float]]:
    """{stage: {user: MAP on the week after it}}; a user who did not search in that week is left out."""
    users = from_directory(trial.directory).users
    names = {stage: f"{STAGE}{stage}/{metric}" for stage in stages}
    if not users.keys() >= set(names.values()):
        raise NotJudged(_NO_SINGLE)
    return {stage: dict(users[name]) for stage, name in names.items()}


def populations_of(outcome: Trials, data: str) -> list[int | None]:
    """None: a real log."""
    return list(dict.fromkeys(t.cell.get(POPULATION) for t in outcome.finished if t.cell["data"] == data))


def pair_users(
    outcome: Trials, data: str, ours: Cell, theirs: Cell, population: int | None, *, metric: str = PRIMARY
) -> Pair:
    """User by user, one population alone."""
    found = [outcome.find(data=data, population=population, **cell) for cell in (ours, theirs)]
    values = [from_directory(trial.directory).users.get(f"{BEST}{metric}") for trial in found]
    if None in values:
        raise NotJudged(_NO_SINGLE)
    name = " ".join(filter(None, [data, "" if population is None else str(population), tell_pair(ours, theirs)]))
    return Pair(name, *({(population or 0, user): v for user, v in (each or {}).items()} for each in values))


def pool_users(outcome: Trials, data: str, ours: Cell, theirs: Cell, *, metric: str = PRIMARY) -> Pair:
    """The users of all populations together."""
    every = populations_of(outcome, data)
    pairs = [pair_users(outcome, data, ours, theirs, population, metric=metric) for population in every]
    sides = [{key: v for pair in pairs for key, v in getattr(pair, side).items()} for side in ("ours", "theirs")]
    each = f" (by population {', '.join(f'{gain([pair]):+.4f}' for pair in pairs)})" if len(pairs) > 1 else ""
    which = "" if metric == PRIMARY else f", {metric}"
    return Pair(f"{data} {tell_pair(ours, theirs)}{which}{each}", *sides)


def tell_pair(ours: Cell, theirs: Cell) -> str:
    """`hrnn fedps over central`"""
    shared = [str(value) for key, value in ours.items() if theirs.get(key) == value]
    sides = (" ".join(_word(k, v) for k, v in a.items() if b.get(k) != v) for a, b in ((ours, theirs), (theirs, ours)))
    return " ".join([*shared, " over ".join(sides)])


def _word(key: str, value: object) -> str:
    return str(value) if isinstance(value, str) else f"{key}={value}"


def tell_equal_lists(outcome: Trials, judge: Callable[[str], list[Verdict]]) -> Verdict:
    """What a claim comes to where test lists are as long as those that are trained on; judges nothing."""
    data = list(dict.fromkeys(t.cell["data"] for t in outcome.finished if t.cell.get("variant") == EQUAL))
    try:
        found = [verdict for each in data for verdict in judge(each)]
    except NotJudged:
        found = []  # some are left to run
    if not found:
        return Verdict(True, None, "")
    verdict = reduce(both, found)
    why = f"With {EQUAL} it {'holds' if verdict.holds else 'does not hold'}: {verdict.why}"
    return Verdict(True, None, why, tests=verdict.tests)
