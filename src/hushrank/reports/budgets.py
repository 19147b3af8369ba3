"""What runs were given to learn from, and the same runs at equal numbers of searches where that was not the same.

A run that searched longer has longer sums and a later end. So runs of unequal length are compared where the shortest
ends: on curves, at the last look that is not after the common number of searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import fmean, stdev

from hushrank.look.numbers import format_count
from hushrank.reports.summary import Measurement, Metric, RunSummary, Value
from hushrank.reports.wording import (
    ONLINE,
    PER_SEARCH,
    PERSONAL,
    Measures,
    count_text,
    join_words,
    measures_of,
    n_rankers,
    setting_text,
    some_of,
)


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """What one training of a run was given; None is not known."""

    rounds: int | None
    clients: int | None  # that take part in a round
    each: str  # searches per client and round
    searches: float | None  # of all clients together, the mean over the run's trainings; 0: it learnt from labels
    messages: int | None  # that clients sent

    @property
    def plan(self) -> tuple[object, ...]:
        return self.rounds, self.clients, self.each


@dataclass(frozen=True, slots=True)
class Footing:
    """Runs of unequal length where they had made equally many searches."""

    searches: int  # at which they are compared: the most that every training of every run has made
    runs: tuple[RunSummary, ...]  # the same, with what was measured up to there as their metrics
    looks: tuple[int | None, ...]  # [n_runs] the searches at which each was looked at; None: at none up to there


COLUMNS = {
    "rounds": "rounds",
    "clients": "clients per round",
    "each": "searches per client and round",
    "searches": "searches",
    "messages": "messages sent",
}  # of a table of budgets
LOOK = "compared after"  # a last column, of runs of unequal length


def read_budget(run: RunSummary) -> TrainingBudget:
    rounds, clients = (_count(run.recipe.get(key)) for key in ("rounds", "n_clients"))
    clients = run.clients_each or _count(run.recipe.get("cohort")) or clients
    n = n_rankers(run)
    searches = run.n_interactions / n if run.n_interactions is not None and n else None
    if searches == 0:  # Why: rankers that read labels have these keys and do not use them
        return TrainingBudget(None, None, "none", 0.0, 0)
    is_sent = bool(run.bytes_per_client_round)
    messages = rounds * clients * is_sent if rounds is not None and clients is not None else None
    messages = messages if run.messages is None else run.messages
    each = setting_text(run.searches_each or run.recipe.get("interactions"))
    return TrainingBudget(rounds, clients, each, searches, messages)


def differing_columns(budgets: Sequence[TrainingBudget]) -> list[str]:
    """In what budgets differ. Why not in searches alone: sampled cohorts of one plan differ a little by chance."""
    found = [name for name in COLUMNS if len({getattr(budget, name) for budget in budgets}) > 1]
    return [] if found == ["searches"] and len({budget.plan for budget in budgets}) == 1 else found


def has_same_length(runs: Sequence[RunSummary]) -> bool:
    """Whether all that searched did so in as many rounds and as often: then their sums and ends can be compared."""
    budgets = [budget for budget in map(read_budget, runs) if budget.searches != 0]
    is_one_plan = len({budget.plan for budget in budgets}) <= 1
    return is_one_plan or len({(budget.rounds, budget.searches) for budget in budgets}) <= 1


def find_footing(runs: Sequence[RunSummary]) -> Footing | None:
    """The runs at equal numbers of searches; None where they can be compared as they are."""
    if has_same_length(runs):
        return None
    lengths = [_shortest(run) for run in runs]
    common = _find_shared_look(runs, min((length for length in lengths if length), default=0))
    cut = [_cut(run, common) for run in runs]
    return Footing(common, tuple(run for run, _ in cut), tuple(look for _, look in cut))


def _find_shared_look(runs: Sequence[RunSummary], most: int) -> int:
    """The largest number of searches up to `most` at which every run was looked at; where there is none, `most`.

    Why shared: online quality rises while a ranker learns, so that even a slightly longer start would look better.
    """
    looked = [{found.interactions for found in run.curve if 0 < found.interactions <= most} for run in runs]
    shared = set.intersection(*each) if (each := [looks for looks in looked if looks]) else set[int]()
    return int(max(shared, default=most))


def explain_budgets(runs: Sequence[RunSummary], labels: Sequence[str]) -> list[str]:
    """Sentences about budgets that differ, the most important first; nothing where they are the same."""
    differing = differing_columns([read_budget(run) for run in runs])
    if len(runs) < 2 or not differing:
        return []
    names = join_words([COLUMNS[name] for name in differing])
    footing = find_footing(runs)
    if footing is not None and not footing.searches:
        return [f"These runs had unequal budgets ({names}), and no curves that show them at equal numbers of searches."]
    if footing is None:
        return [
            f"These runs had unequal budgets ({names}). {_explain_equal(runs, labels)} They are compared as they are."
        ]
    said = (
        f"These runs had unequal budgets ({names}). They are compared over the first "
        f"{format_count(footing.searches)} searches, which every training made: by the quality reached there, and by "
        "the mean quality of a search up to there."
    )
    return [said, *_explain_looks(footing, labels)]


def _explain_equal(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """In what runs of one length do not differ."""
    silent = [label for run, label in zip(runs, labels, strict=True) if read_budget(run).searches == 0]
    if not silent:
        return "They had as many rounds and searches."
    learnt = f"{join_words(silent)} learnt from labels and made no searches."
    if not measures_of(runs).is_usual:
        learnt = f"{join_words(silent)} trained nothing."
    return f"{learnt} The others had as many rounds and searches." if len(runs) - len(silent) > 1 else learnt


def tabulate_budgets(runs: Sequence[RunSummary]) -> tuple[list[str], list[list[float | str | None]]]:
    """Headings and cells of a table of budgets, one row per run."""
    budgets, footing = [read_budget(run) for run in runs], find_footing(runs)
    rows: list[list[float | str | None]] = [[getattr(budget, name) for name in COLUMNS] for budget in budgets]
    if footing is None:
        return [*COLUMNS.values()], rows
    compared = [None if budget.searches == 0 else look for budget, look in zip(budgets, footing.looks, strict=True)]
    return [*COLUMNS.values(), LOOK], [[*row, look] for row, look in zip(rows, compared, strict=True)]


def refuse_sums(first: RunSummary, run: RunSummary) -> str:
    """Why the online sums of two runs cannot be compared; empty where they can."""
    if has_same_length([first, run]):
        return ""
    ours, theirs = read_budget(run), read_budget(first)
    if ours.rounds == theirs.rounds:
        return (
            f"One run made {format_count(ours.searches)} searches and the first {format_count(theirs.searches)} in as "
            "many rounds: who searches more in a round learns more between two of its terms."
        )
    lengths = (
        f"{format_count(budget.rounds)} rounds ({format_count(budget.searches)} searches)" for budget in (ours, theirs)
    )
    return (
        f"An online sum grows with the number of rounds, and this one is over {' and the first over '.join(lengths)}: "
        "the longer run would win whatever it learnt."
    )


def _count(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _shortest(run: RunSummary) -> int:
    """Searches that every training of a run has made; 0 where no curve says so."""
    last: dict[tuple[str, int, int], float] = {}
    for found in run.curve:
        who = (found.click, found.fold, found.repeat)
        last[who] = max(last.get(who, 0.0), found.interactions)
    return int(min(last.values(), default=0))


def _cut(run: RunSummary, searches: int) -> tuple[RunSummary, int | None]:
    """A run with the metrics that it had after so many searches, and the look at which that was measured."""
    before = [found for found in run.curve if found.interactions <= searches]
    cells: dict[tuple[str, int, int], list[Measurement]] = {}
    for found in before:
        cells.setdefault((found.click, found.fold, found.repeat), []).append(found)
    metrics: dict[str, dict[str, list[Value]]] = {click: {} for click in run.metrics}
    for (click, fold, repeat), measured in cells.items():
        for name, value in _measure_start(measured, measures_of([run])).items():
            metrics.setdefault(click, {}).setdefault(name, []).append(Value(fold, repeat, value))
    spread = {click: {name: _spread(values) for name, values in named.items()} for click, named in metrics.items()}
    look = int(max((found.interactions for found in before), default=0))
    is_untrained = (
        look == 0 and _shortest(run) > 0
    )  # Why: a ranker before its first search says nothing of its training
    if is_untrained or not before:
        return replace(run, metrics={click: {} for click in run.metrics}), None
    return replace(run, metrics=spread), look


def _measure_start(measured: Sequence[Measurement], measures: Measures) -> dict[str, float]:
    """Of one training's first part: the last look at test and validation queries, and the mean quality of a search.

    A point of the online curve is the mean since the look before, so it weighs as many searches as came since then.
    """
    found = {}
    for name in (measures.offline, measures.vali, PERSONAL):
        looks = [one for one in measured if one.name == name]
        if looks:
            found[name] = max(looks, key=lambda one: one.round).value
    total, weighted = 0.0, 0.0
    for one in sorted((one for one in measured if one.name == ONLINE), key=lambda one: one.round):
        weighted += (one.interactions - total) * one.value
        total = one.interactions
    return {**found, PER_SEARCH: weighted / total} if total else found


def _spread(values: Sequence[Value]) -> Metric:
    numbers = [one.value for one in values]
    finite = all(isfinite(number) for number in numbers)
    return Metric(fmean(numbers), stdev(numbers) if finite and len(numbers) > 1 else None, tuple(values))


def _explain_looks(footing: Footing, labels: Sequence[str]) -> list[str]:
    """Which runs were not looked at just there, and which have no curve."""
    pairs = list(zip(labels, footing.looks, footing.runs, strict=True))
    early = [
        f"{label} after {format_count(look)}"
        for label, look, run in pairs
        if look is not None and look != footing.searches and read_budget(run).searches != 0
    ]
    blind = [label for label, look, run in pairs if look is None and not run.curve]
    late = [label for label, look, run in pairs if look is None and run.curve]
    said = []
    if early:
        said.append(
            f"No look was taken just there in {count_text(len(early), 'run')}; the last one before counts: "
            f"{some_of(early)}."
        )
    if late:
        said.append(
            f"The first look came later in {some_of(late)}: it is not compared. Run it again with a smaller eval_every."
        )
    if blind:
        said.append(
            f"No curve was recorded for {some_of(blind)} (metrics.jsonl is missing): it is not compared. Run it again."
        )
    return said
