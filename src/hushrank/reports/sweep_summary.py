"""A sweep as its page and its tables see it, read from its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hushrank.files import JsonObject, refuse_newer
from hushrank.look.numbers import format_spread
from hushrank.reports.cells import known
from hushrank.reports.wording import OFFLINE, Measures, count_text, join_words, setting_text

SUPPORTED_FORMAT = 1
STATES = ("finished", "failed", "waiting")


@dataclass(frozen=True, slots=True)
class MeanQuality:
    """A mean over folds and repeats."""

    mean: float | None  # None when it was not finite
    std: float | None
    n: int  # folds x repeats


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One point of the grid."""

    label: str
    directory: str  # below the sweep's own
    settings: JsonObject  # what makes it differ from the others
    state: str  # one of STATES
    error: str  # one line; empty unless it failed
    metrics: Mapping[str, Mapping[str, MeanQuality]]  # [click model][metric name]; empty unless it finished


@dataclass(frozen=True, slots=True)
class FoldChoice:
    """What was chosen in one fold."""

    fold: int
    label: str  # of the run
    vali: float | None
    test: float | None


@dataclass(frozen=True, slots=True)
class Selected:
    """What was chosen under one user, and what it gave."""

    click: str
    folds: tuple[FoldChoice, ...]
    metrics: Mapping[str, MeanQuality]


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """A whole sweep."""

    name: str
    recipe: Mapping[str, object]  # what all runs share, before their own settings
    axes: Mapping[str, Sequence[object]]
    is_selecting: bool  # settings are chosen on validation queries
    is_pooled: bool  # once for all folds, rather than in each
    runs: tuple[SweepRun, ...]
    selected: tuple[Selected, ...]
    measures: Measures = Measures()  # noqa: RUF009 - frozen: what the runs are judged by

    def in_state(self, state: str) -> list[SweepRun]:
        return [run for run in self.runs if run.state == state]


def read_sweep(sweep: JsonObject) -> SweepSummary:
    """The JSON of a sweep; a ValueError of one line says what is wrong with it."""
    refuse_newer("this sweep", sweep.get("format", SUPPORTED_FORMAT), SUPPORTED_FORMAT)
    measures = Measures(str(sweep.get("primary") or OFFLINE).removeprefix("offline/"))
    try:
        return SweepSummary(
            str(sweep["name"]),
            sweep.get("recipe") or {},
            sweep.get("axes") or {},
            sweep.get("select") is not None,
            sweep.get("select") == "pooled",
            tuple(_run(run, measures) for run in sweep["runs"]),
            tuple(_selected(click, found, measures) for click, found in (sweep.get("selected") or {}).items()),
            measures,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the table of this sweep is damaged ({error!r}). Run the sweep again.") from error


def outcome(sweep: SweepSummary) -> str:
    """What came out, in a sentence."""
    if not sweep.runs:
        return "This sweep has no runs: give it at least one axis with a value."
    finished = sweep.in_state("finished")
    if not finished:
        return f"None of {count_text(len(sweep.runs), 'run')} has finished yet: {_unfinished(sweep)}."
    ran = f"{count_text(len(finished), 'run')} finished"
    rest, measures = _unfinished(sweep), sweep.measures
    ran = f"Of {count_text(len(sweep.runs), 'run')} {len(finished)} finished, {rest}" if rest else ran
    if sweep.selected:
        chosen = [(s.metrics.get(measures.offline), measures.under(s.click)) for s in sweep.selected]
        reached = [f"{quality_text(quality)}{whose}" for quality, whose in chosen]
        return f"{ran}; with settings chosen on validation queries the test {measures.name} is {join_words(reached)}."
    best = best_runs(sweep)
    if not best:
        return f"{ran}, none with a result on test queries."
    values = [f"{quality_text(run.metrics[click][measures.offline])}{measures.under(click)}" for click, run in best]
    if len({run.label for _, run in best}) == 1:
        return f"{ran}; {best[0][1].label} has the highest test {measures.name}: {join_words(values)}."
    named = [f"{value} ({run.label})" for value, (_, run) in zip(values, best, strict=True)]
    return f"{ran}; the highest test {measures.name} is {join_words(named)}."


def best_runs(sweep: SweepSummary) -> list[tuple[str, SweepRun]]:
    """For each user the run that is highest on test queries."""
    found = []
    for click in users(sweep):
        named = [(run, run.metrics.get(click, {}).get(sweep.measures.offline)) for run in sweep.runs]
        means = [(run, quality.mean) for run, quality in named if quality is not None]
        finite = [(mean, run) for run, mean in means if mean is not None]
        if finite:
            found.append((click, max(finite, key=lambda pair: pair[0])[1]))
    return found


def users(sweep: SweepSummary) -> list[str]:
    """Every user of any run, in the order in which they first appear."""
    return list(dict.fromkeys(click for run in sweep.runs for click in run.metrics))


def run_users(sweep: SweepSummary) -> list[tuple[SweepRun, str]]:
    """The rows of a table: each run under each of its users, or once without a user while it has no result."""
    return [(run, click) for run in sweep.runs for click in (run.metrics or ("",))]


def setting_keys(sweep: SweepSummary) -> list[str]:
    """What the runs differ in."""
    return list(dict.fromkeys([*sweep.axes, *(key for run in sweep.runs for key in run.settings)]))


def quality_text(quality: MeanQuality | None) -> str:
    return format_spread(quality.mean, quality.std) if quality else format_spread(None, None)


def chosen_text(selected: Selected) -> str:
    """`server_rate=10 (4 folds), server_rate=1 (1 fold)`, the most frequent first."""
    counts: dict[str, int] = {}
    for choice in selected.folds:
        counts[choice.label] = counts.get(choice.label, 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    order = sorted(counts, key=lambda label: -counts[label])
    return ", ".join(f"{label} ({counts[label]}\u00a0{'fold' if counts[label] == 1 else 'folds'})" for label in order)


def axis_text(values: Sequence[object]) -> str:
    return ", ".join(setting_text(value) for value in values)


def _unfinished(sweep: SweepSummary) -> str:
    failed, waiting = len(sweep.in_state("failed")), len(sweep.in_state("waiting"))
    parts = [
        f"{failed} failed" if failed else "",
        f"{waiting} {'is' if waiting == 1 else 'are'} waiting" if waiting else "",
    ]
    return join_words([part for part in parts if part])


def _run(run: JsonObject, measures: Measures) -> SweepRun:
    state = str(run["state"])
    if state not in STATES:
        raise ValueError(f"the state of {run['label']} is {state!r}, must be one of {', '.join(STATES)}.")
    metrics = {
        str(click): {name: _quality(named[name]) for name in measures.words if name in named}
        for click, named in (run.get("metrics") or {}).items()
    }
    error = " ".join(str(run.get("error") or "").split())
    return SweepRun(str(run["label"]), str(run["directory"]), run.get("settings") or {}, state, error, metrics)


def _selected(click: str, found: JsonObject, measures: Measures) -> Selected:
    folds = tuple(
        FoldChoice(int(f["fold"]), str(f["label"]), _number(f.get("vali")), _number(f.get("test")))
        for f in found["folds"]
    )
    return Selected(str(click), folds, {name: _quality(found[name]) for name in measures.words if name in found})


def _quality(found: JsonObject) -> MeanQuality:
    n = int(found["n"]) if "n" in found else len(found.get("values", ()))
    return MeanQuality(_number(found["mean"]), _number(found.get("std")) if n > 1 else None, n)


def _number(found: object) -> float | None:
    return known(float(found)) if isinstance(found, int | float) else None
