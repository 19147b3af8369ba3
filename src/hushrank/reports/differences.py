"""Paired comparison of runs with the first one, where folds and repeats match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hushrank.files import Json
from hushrank.look.numbers import format_count, format_p, format_signed, spread_decimals
from hushrank.metrics.significance import Comparison, bonferroni, paired_t_test
from hushrank.reports.budgets import find_footing, refuse_sums
from hushrank.reports.markup import TableCell, paragraph, table
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import (
    OFFLINE,
    ONLINE,
    PER_SEARCH,
    click_models,
    count_text,
    measures_of,
    metric_text,
    some_of,
)

LEVEL = 0.05
TESTED = (
    OFFLINE,
    ONLINE,
    PER_SEARCH,
)  # Why not validation: it serves to choose settings, so a difference there proves nothing


@dataclass(frozen=True, slots=True)
class Difference:
    """One run against the first, under one click model, in one metric."""

    label: str
    click: str
    metric: str
    comparison: Comparison | None
    reason: str  # why there is no comparison
    is_by_user: bool = False  # whether single users were compared, and not folds and repeats


@dataclass(frozen=True, slots=True)
class Judged:
    """A difference that was tested."""

    difference: Difference
    comparison: Comparison
    adjusted: float  # p, corrected for all tests of the page

    @property
    def verdict(self) -> str:
        if self.adjusted >= LEVEL:
            return "no difference shown"
        return "higher" if self.comparison.mean_difference > 0 else "lower"


def find_differences(runs: Sequence[RunSummary], labels: Sequence[str], *, metric: str = OFFLINE) -> list[Difference]:
    """Each later run against the first, under each click model that it has."""
    return [
        _difference(runs[0], run, label, click, metric)
        for click in click_models(runs)
        for run, label in zip(runs[1:], labels[1:], strict=True)
        if metric in run.metrics.get(click, {})
    ]


def judge_differences(runs: Sequence[RunSummary], labels: Sequence[str]) -> tuple[list[Judged], list[Difference]]:
    """What was tested, and what was not: of runs of unequal length where they had searched equally often."""
    footing = find_footing(runs)
    compared = runs if footing is None else footing.runs
    tested = TESTED if measures_of(runs).is_usual else (measures_of(runs).offline,)
    found = [difference for metric in tested for difference in find_differences(compared, labels, metric=metric)]
    if footing is not None:
        looks = dict(zip(labels, footing.looks, strict=True))
        found = [_refuse_other_look(difference, looks[labels[0]], looks[difference.label]) for difference in found]
        found += find_differences(runs, labels, metric=ONLINE)  # which says why sums are not tested
    shown = [(difference, difference.comparison) for difference in found if difference.comparison is not None]
    adjusted = bonferroni([comparison.p for _, comparison in shown])
    judged = [Judged(d, comparison, p) for (d, comparison), p in zip(shown, adjusted, strict=True)]
    return judged, [difference for difference in found if difference.comparison is None]


def _refuse_other_look(difference: Difference, first: int | None, own: int | None) -> Difference:
    """Without a test where the two were not looked at after as many searches: the later look would win."""
    if difference.comparison is None or not own or not first or own == first:  # 0: learnt from labels
        return difference
    reason = (
        f"It was looked at after {format_count(own)} searches and the first after {format_count(first)}. Choose "
        "eval_every so that both are looked at after the same number."
    )
    return replace(difference, comparison=None, reason=reason)


def describe_differences(runs: Sequence[RunSummary], labels: Sequence[str]) -> list[Json] | None:
    """The tests for scripts; None where SciPy is missing."""
    try:
        judged, not_tested = judge_differences(runs, labels)
    except ImportError:
        return None
    tests: list[Json] = [
        {
            **_describe(one.difference),
            "difference": one.comparison.mean_difference,
            "interval": list(one.comparison.interval),
            "p": one.comparison.p,
            "p_corrected": one.adjusted,
            "verdict": one.verdict,
        }
        for one in judged
    ]
    return [*tests, *({**_describe(difference), "reason": difference.reason} for difference in not_tested)]


def compare_with_first(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """HTML: a table of differences with their p values, corrected for all tests of the page, or why there is none."""
    try:
        judged, not_tested = judge_differences(runs, labels)
    except ImportError:
        # Why no command: it would show a path of this machine to whoever gets the page
        return paragraph("Not tested: this needs SciPy, which the extra lab of hushrank installs.", style="empty")
    rows = [_row(one) for one in judged]
    parts = [paragraph(text, style="note") for text in _not_tested(not_tested)]
    if rows:
        headings = [TableCell("run"), TableCell("user"), TableCell("measure"), *_HEADINGS, TableCell("verdict")]
        shown = table(headings, rows, label="Differences", has_tools=True)
        measures = list(dict.fromkeys(one.difference.metric for one in judged))
        how = _explain_users if any(one.difference.is_by_user for one in judged) else _explain
        parts = [paragraph(how(labels[0], len(rows), measures)), shown, *parts]
    return "".join(parts)


_HEADINGS = [TableCell(text, style="number") for text in ("difference", "95 % interval", "p", "p, corrected")]


def _not_tested(found: Sequence[Difference]) -> list[str]:
    """One sentence per reason."""
    by_reason: dict[str, list[str]] = {}
    for difference in found:
        by_reason.setdefault(difference.reason, []).append(f"{difference.label} ({difference.click})")
    return [f"Not tested: {some_of(list(dict.fromkeys(names)))}. {reason}" for reason, names in by_reason.items()]


def _describe(difference: Difference) -> Json:
    return {"run": difference.label, "user": difference.click, "measure": difference.metric}


def _explain(first: str, n: int, measures: Sequence[str]) -> str:
    tests = "one test" if n == 1 else f"all {count_text(n, 'test')} of this page"
    online = "online per search, at the looks named under Budgets" if PER_SEARCH in measures else "online"
    return (
        f"nDCG@10 on test queries and {online}, against {first}, fold by fold and repeat by repeat: two-tailed paired "
        f"t-test, p corrected for {tests} (Bonferroni). Validation is not tested, since it serves to choose settings. "
        "Repeats share their folds' queries, so read p as a guide."
    )


def _explain_users(first: str, n: int, measures: Sequence[str]) -> str:
    tests = "one test" if n == 1 else f"all {count_text(n, 'test')} of this page"
    return (
        f"{some_of([metric_text(name) for name in measures])} against {first}, user by user: the mean over each user's "
        "test searches (and over repeats), two-tailed paired t-test over users, p corrected for "
        f"{tests} (Bonferroni). A mean over users weighs all users alike, unlike the mean over searches in the table."
    )


def _compare_users(first: RunSummary, run: RunSummary, label: str, click: str, metric: str) -> Difference | None:
    """By the users that both runs have measured; None where single users were not kept."""
    ours, theirs = run.users.get(metric), first.users.get(metric)
    if not ours or not theirs:
        return None
    users = sorted(ours.keys() & theirs.keys())
    try:
        found = paired_t_test([ours[user] for user in users], [theirs[user] for user in users])
    except ValueError as error:
        return Difference(label, click, metric, None, f"{str(error)[:1].upper()}{str(error)[1:]}")
    return Difference(label, click, metric, found, "", is_by_user=True)


def _difference(first: RunSummary, run: RunSummary, label: str, click: str, metric: str) -> Difference:
    ours, theirs = run.metrics[click][metric], first.metrics.get(click, {}).get(metric)
    if theirs is None:
        is_there = click in first.metrics
        reason = (
            "The first run has no such measure up to there." if is_there else "The first run does not have this user."
        )
        return Difference(label, click, metric, None, reason)
    ours_by = {(v.fold, v.repeat): v.value for v in ours.values}
    theirs_by = {(v.fold, v.repeat): v.value for v in theirs.values}
    if run.data.get("fingerprint") != first.data.get("fingerprint"):
        return Difference(label, click, metric, None, "The first run used other data.")
    if (by_user := _compare_users(first, run, label, click, metric)) is not None:
        return by_user
    if set(ours_by) != set(theirs_by):
        return Difference(label, click, metric, None, "Its folds and repeats are not those of the first run.")
    if metric == ONLINE and (reason := refuse_sums(first, run)):
        return Difference(label, click, metric, None, reason)
    pairs = sorted(ours_by)
    try:
        found = paired_t_test([ours_by[pair] for pair in pairs], [theirs_by[pair] for pair in pairs])
    except ValueError as error:
        return Difference(label, click, metric, None, f"{str(error)[:1].upper()}{str(error)[1:]}")
    return Difference(label, click, metric, found, "")


def _row(judged: Judged) -> list[TableCell]:
    difference, found, adjusted = judged.difference, judged.comparison, judged.adjusted
    low, high = found.interval
    decimals = spread_decimals((high - low) / 2)
    interval = f"{format_signed(low, decimals=decimals)} to {format_signed(high, decimals=decimals)}"
    difference_text = format_signed(found.mean_difference, decimals=decimals)
    return [
        TableCell(difference.label),
        TableCell(difference.click),
        TableCell(metric_text(difference.metric)),
        TableCell(difference_text, value=found.mean_difference, style="number"),
        TableCell(interval, style="number"),
        TableCell(format_p(found.p), value=found.p, style="number"),
        TableCell(format_p(adjusted), value=adjusted, style="number"),
        TableCell(judged.verdict),
    ]
