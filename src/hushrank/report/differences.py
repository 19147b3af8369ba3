"""Paired comparison of runs with the first one, where folds and repeats match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushrank.look.numbers import format_p, format_signed, spread_decimals
from hushrank.metrics.significance import Comparison, bonferroni, paired_t_test
from hushrank.report.markup import Cell, paragraph, table
from hushrank.report.summary import RunSummary
from hushrank.report.wording import OFFLINE, click_models

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """One run against the first, under one click model."""

    label: str
    click: str
    comparison: Comparison | None
    reason: str  # why there is no comparison


def find_differences(runs: Sequence[RunSummary], labels: Sequence[str], *, metric: str = OFFLINE) -> list[Difference]:
    """Each later run against the first, under each click model that it has."""
    return [
        _difference(runs[0], run, label, click, metric)
        for click in click_models(runs)
        for run, label in zip(runs[1:], labels[1:], strict=True)
        if metric in run.metrics.get(click, {})
    ]


def compare_with_first(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """HTML: a table of differences with their p values, or why there is none."""
    try:
        found = find_differences(runs, labels)
    except ImportError:
        return paragraph("Not tested: this needs SciPy. Install it with: pip install 'hushrank[lab]'", style="empty")
    tested = [(d, d.comparison) for d in found if d.comparison is not None]
    adjusted = bonferroni([comparison.p for _, comparison in tested])
    rows = [_row(d, comparison, p) for (d, comparison), p in zip(tested, adjusted, strict=True)]
    parts = [paragraph(text, style="note") for text in _not_tested(found)]
    if rows:
        headings = [Cell("run"), Cell("user"), *(Cell(text, style="number") for text in _HEADINGS), Cell("verdict")]
        parts = [paragraph(_explain(labels[0], len(rows))), table(headings, rows, label="Differences"), *parts]
    return "".join(parts)


_HEADINGS = ("difference in nDCG@10", "95 % interval", "p", "p, corrected")


def _not_tested(found: Sequence[Difference]) -> list[str]:
    """One sentence per reason."""
    by_reason: dict[str, list[str]] = {}
    for difference in found:
        if difference.comparison is None:
            by_reason.setdefault(difference.reason, []).append(f"{difference.label} ({difference.click})")
    return [f"Not tested: {', '.join(names)}. {reason}" for reason, names in by_reason.items()]


def _explain(first: str, n: int) -> str:
    tests = "one test" if n == 1 else f"{n} tests"
    return (
        f"nDCG@10 on test queries against {first}, fold by fold and repeat by repeat: two-tailed paired t-test, "
        f"p corrected for {tests} (Bonferroni). Repeats share their folds' queries, so read p as a guide."
    )


def _difference(first: RunSummary, run: RunSummary, label: str, click: str, metric: str) -> Difference:
    ours, theirs = run.metrics[click][metric], first.metrics.get(click, {}).get(metric)
    if theirs is None:
        return Difference(label, click, None, "The first run does not have this user.")
    ours_by = {(v.fold, v.repeat): v.value for v in ours.values}
    theirs_by = {(v.fold, v.repeat): v.value for v in theirs.values}
    if run.data.get("fingerprint") != first.data.get("fingerprint"):
        return Difference(label, click, None, "The first run used other data.")
    if set(ours_by) != set(theirs_by):
        return Difference(label, click, None, "Its folds and repeats are not those of the first run.")
    pairs = sorted(ours_by)
    try:
        found = paired_t_test([ours_by[pair] for pair in pairs], [theirs_by[pair] for pair in pairs])
    except ValueError as error:
        return Difference(label, click, None, f"{str(error)[:1].upper()}{str(error)[1:]}")
    return Difference(label, click, found, "")


def _row(difference: Difference, found: Comparison, adjusted: float) -> list[Cell]:
    low, high = found.interval
    decimals = spread_decimals((high - low) / 2)
    verdict = "no difference shown" if adjusted >= LEVEL else "higher" if found.mean_difference > 0 else "lower"
    interval = f"{format_signed(low, decimals=decimals)} to {format_signed(high, decimals=decimals)}"
    return [
        Cell(difference.label),
        Cell(difference.click),
        Cell(format_signed(found.mean_difference, decimals=decimals), style="number"),
        Cell(interval, style="number"),
        Cell(format_p(found.p), style="number"),
        Cell(format_p(adjusted), style="number"),
        Cell(verdict),
    ]
