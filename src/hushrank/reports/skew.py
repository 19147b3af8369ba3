"""How clients differ, on a page and in a terminal: the skew in a sentence, and each client's share in a chart."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hushrank.look.bars import Bar, bar_chart
from hushrank.look.chart import AxisScale, ChartText, Line, line_chart
from hushrank.look.numbers import format_value
from hushrank.reports.markup import TableCell, csv_link, disclosure, paragraph, section, table
from hushrank.reports.summary import RunSkew, RunSummary
from hushrank.reports.wording import some_of

MOST_BARS = 20  # more make a chart longer than a screen
_ROUNDING = 1e-6  # of shares that add up to 1
_SCALE = "0 is all clients alike, 1 nothing in common"


def skew_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """One part for each way in which clients differ; runs in which that is the same share it."""
    whose: dict[RunSkew, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        for skew in run.skews:
            whose.setdefault(skew, []).append(label)
    parts = []
    for i, (skew, names) in enumerate(whose.items()):
        title = some_of(names) if len(runs) > 1 else skew.name
        heading = f"<h3>{escape(title)}</h3>" if max(len(runs), len(whose)) > 1 else ""
        parts.append(heading + paragraph(describe_skew(skew)) + skew_figure(skew, name=f"skew-{i}"))
    return section("How clients differ", *parts) if parts else ""


def skew_lines(runs: Sequence[RunSummary], labels: Sequence[str]) -> list[str]:
    """One line for each way in which a run's clients differ."""
    return [
        (f"{label}: " if len(runs) > 1 else "") + _short(skew)
        for run, label in zip(runs, labels, strict=True)
        for skew in run.skews
    ]


def describe_skew(skew: RunSkew) -> str:
    if not skew.rows:
        return f"The control of partition {skew.name}: {skew.measure}, so the skew is 0."
    return f"Partition {skew.name}: the skew is {format_value(skew.value)} ({_SCALE}). It is the {skew.measure}."


def _short(skew: RunSkew) -> str:
    if not skew.rows:
        return f"Clients: control of partition {skew.name}, all alike (skew 0)"
    return f"Clients differ by partition {skew.name}: skew {format_value(skew.value)} ({_SCALE})"


def skew_figure(skew: RunSkew, *, name: str) -> str:
    """The chart and the numbers behind it. `name` must be unique on the page."""
    if not skew.rows:
        return ""
    shown = skew.rows[:MOST_BARS]
    chart = _chart(RunSkew(skew.name, skew.value, skew.measure, skew.unit, shown), name=name)
    left_out = len(skew.rows) - len(shown)
    note = paragraph(f"The first {MOST_BARS} of {len(skew.rows)} groups of clients.", style="note") if left_out else ""
    return f"<figure>{chart}{note}{_numbers(skew)}</figure>"


def _chart(skew: RunSkew, *, name: str) -> str:
    """Bars of single numbers and of shares of a whole; lines of numbers that do not add up to anything."""
    title = f"{skew.unit}, by client"
    bars = [Bar(client, values) for client, values in skew.rows]
    if all(len(bar.parts) == 1 or abs(bar.total - 1) < _ROUNDING for bar in bars):
        return bar_chart(bars, ChartText(title, skew.unit, ""), name=name)
    parts = [part for part, _ in bars[0].parts]
    places = tuple(float(i) for i in range(len(parts)))
    lines = [Line(bar.label, places, tuple(value for _, value in bar.parts), has_dots=True) for bar in bars]
    scale = AxisScale(places, texts=tuple(parts))
    return line_chart(lines, ChartText(title, "of a document", skew.unit), name=name, scale=scale)


def _numbers(skew: RunSkew) -> str:
    columns = [part for part, _ in skew.rows[0][1]]
    cells = [
        [TableCell(client), *(TableCell(format_value(v), value=v, style="number") for _, v in values)]
        for client, values in skew.rows
    ]
    headings = [TableCell("clients"), *(TableCell(part, style="number") for part in columns)]
    csv = [("clients", *columns), *((client, *(v for _, v in values)) for client, values in skew.rows)]
    return disclosure(
        "Numbers behind this chart",
        table(headings, cells, label=f"{skew.unit}, by client"),
        csv_link(csv, file_name=f"skew-{skew.name}.csv", text="Save these numbers as CSV"),
    )
