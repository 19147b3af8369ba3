"""Quality against one setting of a sweep, a line for each combination of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import inf, isfinite, nan

from hushrank.look.chart import AxisScale, ChartText, Line, line_chart
from hushrank.reports.curves import MAX_LINES
from hushrank.reports.markup import disclosure, paragraph, section
from hushrank.reports.sweep_summary import SweepRun, SweepSummary, setting_keys, users
from hushrank.reports.wording import OFFLINE, ONLINE, VALI, Measures, setting_text

_TITLES = {
    OFFLINE: "nDCG@10 on test queries (0 to 1)",
    VALI: "nDCG@10 on validation queries (0 to 1)",
    ONLINE: "online nDCG@10 (discounted sum)",
}


@dataclass(frozen=True, slots=True)
class Axis:
    """The setting along which a chart runs."""

    key: str
    values: tuple[float, ...]  # increasing
    is_log: bool  # they are positive and span more than a decade


def find_axis(sweep: SweepSummary) -> Axis | None:
    """The numeric setting that takes most values, the first of equals; None when no setting is a number."""
    axes = [axis for key in setting_keys(sweep) if (axis := _axis(sweep, key)) is not None]
    return max(axes, key=lambda axis: len(axis.values), default=None)


def chart_section(sweep: SweepSummary) -> str:
    """Two charts per user: test queries, and what settings were chosen on (or what people saw, without a choice)."""
    axis = find_axis(sweep)
    if axis is None or not sweep.in_state("finished"):
        return ""
    measures = sweep.measures
    metrics = (measures.offline, measures.vali if sweep.is_selecting or not measures.is_usual else ONLINE)
    lines = _combinations(sweep, axis)
    drawn = _drawn(lines, sweep.measures)
    rows = []
    for i, click in enumerate(users(sweep)):
        figures = [
            _figure(axis, {label: lines[label] for label in drawn}, metric, measures, click=click, name=f"axis-{i}-{j}")
            for j, metric in enumerate(metrics)
        ]
        rows.append(f'<h3>{escape(measures.heading(click))}</h3><div class="pair">{"".join(figures)}</div>')
    left_out = [label for label in lines if label not in drawn]
    return section(f"Quality against {axis.key}", _note(sweep, axis), _left_out(left_out, len(drawn)), *rows)


def axis_line(axis: Axis, label: str, runs: Sequence[SweepRun], metric: str, *, click: str) -> Line:
    """The runs of one combination along the axis; a run that has not finished leaves a gap."""
    found = {float(run.settings[axis.key]): run.metrics.get(click, {}).get(metric) for run in runs}
    qualities = [found.get(value) for value in axis.values]
    means = tuple(q.mean if q is not None and q.mean is not None else nan for q in qualities)
    spreads = tuple(q.std or 0.0 if q is not None else 0.0 for q in qualities)
    return Line(label, axis.values, means, spreads if any(spreads) else None, has_dots=True)


def _axis(sweep: SweepSummary, key: str) -> Axis | None:
    found = [run.settings[key] for run in sweep.runs if key in run.settings]
    numbers = [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
    values = tuple(sorted({float(value) for value in numbers if isfinite(value)}))
    if len(values) < 2 or len(numbers) < len(found):
        return None
    return Axis(key, values, values[0] > 0 and values[-1] > 10 * values[0])


def _combinations(sweep: SweepSummary, axis: Axis) -> dict[str, list[SweepRun]]:
    """{what else was set: runs}, runs along the axis."""
    others = [key for key in setting_keys(sweep) if key != axis.key]
    found: dict[str, list[SweepRun]] = {}
    for run in sweep.runs:
        if axis.key in run.settings:
            parts = [f"{key}={setting_text(run.settings[key])}" for key in others if key in run.settings]
            found.setdefault(" ".join(parts) or str(sweep.recipe.get("recipe", sweep.name)), []).append(run)
    return found


def _drawn(lines: dict[str, list[SweepRun]], measures: Measures) -> list[str]:
    """The labels of the lines that a chart shows: those with the highest point on validation or test queries."""

    def height(label: str) -> float:
        named = [metrics for run in lines[label] for metrics in run.metrics.values()]
        found = [metrics.get(measures.vali) or metrics.get(measures.offline) for metrics in named]
        return max((q.mean for q in found if q is not None and q.mean is not None), default=-inf)

    best = sorted(lines, key=lambda label: -height(label))[:MAX_LINES]
    return [label for label in lines if label in best]


def _figure(
    axis: Axis, lines: dict[str, list[SweepRun]], metric: str, measures: Measures, *, click: str, name: str
) -> str:
    called = measures.words[metric]
    text = ChartText(
        title=f"{called}{measures.under(click)}, against {axis.key}",
        x_title=f"{axis.key}{' (logarithmic)' if axis.is_log else ''}",
        y_title=_TITLES.get(metric, f"{called} (0 to 1)"),
        empty=f"No run has a {called} under this user.",
    )
    drawn = [axis_line(axis, label, runs, metric, click=click) for label, runs in lines.items()]
    chart = line_chart(drawn, text, name=name, scale=AxisScale(axis.values, is_log=axis.is_log))
    return f"<figure>{chart}</figure>"


def _note(sweep: SweepSummary, axis: Axis) -> str:
    others = [key for key in setting_keys(sweep) if key != axis.key]
    qualities = [quality for run in sweep.runs for named in run.metrics.values() for quality in named.values()]
    text = "The numbers are those of the table above."
    text += " A line for each combination of the other settings." if others else ""
    text += " The band is one standard deviation to each side." if any(q.std for q in qualities) else ""
    return paragraph(text, style="note")


def _left_out(labels: Sequence[str], n_drawn: int) -> str:
    if not labels:
        return ""
    text = (
        f"Of {n_drawn + len(labels)} combinations {n_drawn} are drawn, those that reach the highest validation "
        "quality; the table has all of them. To draw others, compare their runs: hushrank report RUN..."
    )
    names = "".join(f"<li>{escape(label)}</li>" for label in labels)
    return paragraph(text, style="note") + disclosure(f"{len(labels)} that are not drawn", f"<ul>{names}</ul>")
