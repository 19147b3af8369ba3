"""Learning curves: measurements of many folds and repeats become one line with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from statistics import fmean, stdev

from hushrank.look.chart import ChartText, Line, Reference, line_chart
from hushrank.look.numbers import format_count, format_spread
from hushrank.reports.markup import TableCell, csv_link, disclosure, paragraph, table
from hushrank.reports.summary import Measurement, RunSummary
from hushrank.reports.wording import OFFLINE, ONLINE, Measures, measures_of

MAX_POINTS = 200  # per line; a screen shows no more
MAX_LINES = 8  # per chart; more cannot be told apart


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Where a run stood after some interactions."""

    round: int
    interactions: float
    mean: float
    std: float | None  # over folds and repeats; None when there is a single value
    n: int  # folds x repeats


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A value from a paper, to stand beside ours."""

    label: str
    value: float
    metric: str = OFFLINE
    click: str | None = None  # the user under whom it was measured; None: every chart of the metric shows it


@dataclass(frozen=True, slots=True)
class CurveKind:
    """One measurement that is drawn over time."""

    metric: str
    y_title: str


CURVES = (
    CurveKind(
        OFFLINE,
        "nDCG@10 on test queries (0 to 1)",
    ),
    CurveKind(
        ONLINE,
        "nDCG@10 of the lists shown (0 to 1)",
    ),
)


def curves_of(measures: Measures) -> tuple[CurveKind, ...]:
    """The two charts of a pair: of simulated users what they saw meanwhile, of logs validation."""
    if measures.is_usual:
        return CURVES
    parts = {measures.offline: "test", measures.vali: "validation"}
    return tuple(CurveKind(name, f"{measures.name} on {part} queries (0 to 1)") for name, part in parts.items())


def curve_points(measurements: Sequence[Measurement], *, click: str, metric: str) -> tuple[CurvePoint, ...]:
    """Mean and standard deviation over folds and repeats at each measured round, in order of rounds."""
    by_round: dict[int, list[Measurement]] = {}
    for found in measurements:
        if found.click == click and found.name == metric:
            by_round.setdefault(found.round, []).append(found)
    return tuple(_point(n, by_round[n]) for n in sorted(by_round))


def thin(points: Sequence[CurvePoint], *, n: int = MAX_POINTS) -> tuple[CurvePoint, ...]:
    """At most n points at even distances, with the first and the last."""
    if len(points) <= n:
        return tuple(points)
    return tuple(points[round(i * (len(points) - 1) / (n - 1))] for i in range(n))


def drawn_runs(runs: Sequence[RunSummary], *, n: int = MAX_LINES) -> list[int]:
    """Which runs a chart shows: the first, which the others are compared with, and those that ended highest."""
    best = sorted(range(1, len(runs)), key=lambda i: -_final_quality(runs[i]))
    return sorted([0, *best[: n - 1]]) if runs else []


def references_for(published: Sequence[PublishedValue], *, metric: str, click: str) -> tuple[Reference, ...]:
    """The published values that belong into one chart.

    Why: a published online value is a discounted sum over rounds, and the chart shows means; it belongs into none.
    """
    fitting = [p for p in published if p.metric == metric != ONLINE and p.click in (None, click) and isfinite(p.value)]
    return tuple(Reference(p.label, p.value) for p in fitting)


def curve_figure(
    runs: Sequence[RunSummary],
    labels: Sequence[str],
    kind: CurveKind,
    *,
    click: str,
    name: str,
    references: Sequence[Reference] = (),
) -> str:
    """A chart of all runs under one click model, with its numbers one click away."""
    points = [curve_points(run.curve, click=click, metric=kind.metric) for run in runs]
    shown = [thin(run_points) for run_points in points]
    text = ChartText(
        title=f"{kind.metric}{measures_of(runs).under(click)}, over interactions",
        x_title="interactions (searches by all clients together)",
        y_title=kind.y_title,
        empty=f"No {kind.metric} was recorded along the way. Set eval_every in the recipe to see how it grew.",
    )
    chart = line_chart(
        [_line(label, run_points) for label, run_points in zip(labels, shown, strict=True)],
        text,
        name=name,
        references=references,
    )
    if not any(shown):
        return f"<figure>{chart}</figure>"
    is_thinned = shown != points
    return f"<figure>{chart}{_numbers(labels, shown, kind, click=click, is_thinned=is_thinned)}</figure>"


def _final_quality(run: RunSummary) -> float:
    """Mean quality on test queries over users; without any, lower than all others."""
    known = [named[run.primary].mean for named in run.metrics.values() if run.primary in named]
    finite = [value for value in known if isfinite(value)]
    return fmean(finite) if finite else -inf


def _point(round_number: int, found: Sequence[Measurement]) -> CurvePoint:
    values = [m.value for m in found if isfinite(m.value)]
    return CurvePoint(
        round_number,
        fmean(m.interactions for m in found),
        fmean(values) if values else nan,
        stdev(values) if len(values) > 1 else None,
        len(values),
    )


def _line(label: str, points: Sequence[CurvePoint]) -> Line:
    return Line(
        label,
        tuple(point.interactions for point in points),
        tuple(point.mean for point in points),
        tuple(point.std or 0.0 for point in points) if any(point.std for point in points) else None,
    )


def _numbers(
    labels: Sequence[str], shown: Sequence[Sequence[CurvePoint]], kind: CurveKind, *, click: str, is_thinned: bool
) -> str:
    rows = [(label, point) for label, points in zip(labels, shown, strict=True) for point in points]
    mean = "mean ± std" if any(point.std is not None for _, point in rows) else "value"
    headings = [TableCell("run")] + [
        TableCell(text, style="number") for text in ("round", "interactions", mean, "runs")
    ]
    cells = [
        [
            TableCell(label),
            TableCell(format_count(point.round), style="number"),
            TableCell(format_count(point.interactions), style="number"),
            TableCell(format_spread(point.mean, point.std), style="number"),
            TableCell(str(point.n), style="number"),
        ]
        for label, point in rows
    ]
    csv = [("run", "click", "metric", "round", "interactions", "mean", "std", "n")] + [
        (label, click, kind.metric, p.round, f"{p.interactions:.0f}", p.mean, "" if p.std is None else p.std, p.n)
        for label, p in rows
    ]
    parts = [
        table(headings, cells, label=f"{kind.metric} under the {click} user"),
        csv_link(csv, file_name=f"{kind.metric}-{click}.csv".replace("/", "-"), text="Save these numbers as CSV"),
    ]
    if is_thinned:
        parts.append(paragraph(f"At most {MAX_POINTS} points per run; metrics.jsonl holds all of them.", style="note"))
    return disclosure("Numbers behind this chart", *parts)
