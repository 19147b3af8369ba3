"""Membership tests as a figure: the ROC curve of each way to forget, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hushrank.look.chart import AxisScale, ChartText, Line, line_chart
from hushrank.look.numbers import NOT_KNOWN, format_count, format_value
from hushrank.metrics.roc import FALSE_ALARMS, MeasuredRoc, Roc
from hushrank.reports.markup import TableCell, csv_link, disclosure, paragraph, section, table
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.wording import date_text

_CHANCE = Line("chance", (0.0, 1.0), (0.0, 1.0))
_TICKS = AxisScale((0.0, 0.25, 0.5, 0.75, 1.0))
_COLUMNS = ("rankers tested", "area", "interval", "found")


def roc_figure(measured: Mapping[str, MeasuredRoc], *, name: str) -> str:
    """A chart of {rankers that were tested: what the test found}, its numbers one click away."""
    text = ChartText(
        title="Rankers that remember a leaver, found against false alarms",
        x_title="false alarms (share of retrained rankers)",
        y_title="found (share of rankers tested)",
        empty="No membership test was made. It needs rankers that may remember a leaver, and retrained ones.",
    )
    lines = [_curve(label, found.roc) for label, found in measured.items()]
    chart = line_chart([*lines, _CHANCE] if lines else [], text, name=name, scale=_TICKS)
    return f"<figure>{chart}{_explain(measured)}</figure>" if lines else f"<figure>{chart}</figure>"


def write_memberships(measured: Mapping[str, Mapping[str, MeasuredRoc]], path: Path, *, when: str, lead: str) -> Path:
    """One HTML file with a figure for each case: {case: {rankers that were tested: what the test found}}."""
    figures = [(case, roc_figure(found, name=f"roc-{i}")) for i, (case, found) in enumerate(measured.items())]
    body = "".join(section(case, figure) for case, figure in figures)
    page = render_page("Are they forgotten?", body, kind="membership tests", when=date_text(when), lead=lead)
    return write_page(page, path)


def _curve(label: str, roc: Roc) -> Line:
    return Line(label, tuple(map(float, roc.false_alarms)), tuple(map(float, roc.found)))


def _explain(measured: Mapping[str, MeasuredRoc]) -> str:
    sure = " and ".join(f"{100 * confidence:g} %" for confidence in sorted({m.confidence for m in measured.values()}))
    note = (
        "An area of .5 is chance: the test cannot tell the ranker from one that was retrained without the leaver. 1 "
        "finds every ranker that remembers. A better attack may find more. Intervals have a confidence of "
        f"{sure}, over leavers. Found is the share at {100 * FALSE_ALARMS:g} % false alarms."
    )
    if any(found.interval is None for found in measured.values()):
        note += f" {NOT_KNOWN}: the leavers agree so well that there is no spread to judge by."
    rows = [_row(label, found) for label, found in measured.items()]
    headings = [TableCell(_COLUMNS[0]), *(TableCell(column, style="number") for column in _COLUMNS[1:])]
    points = [
        (label, false_alarms, found)
        for label, each in measured.items()
        for false_alarms, found in zip(each.roc.false_alarms.tolist(), each.roc.found.tolist(), strict=True)
    ]
    counts = [
        f"{label}: {format_count(found.n_groups)} leavers, {format_count(found.n_positives)} rankers tested, "
        f"{format_count(found.n_negatives)} retrained."
        for label, found in measured.items()
    ]
    rows_of_csv = [("rankers", "false_alarms", "found"), *points]
    csv = csv_link(rows_of_csv, file_name="membership.csv", text="Save the curves as CSV")
    shown = table(headings, rows, label="Membership tests")
    return paragraph(note, style="note") + shown + disclosure("Numbers behind this chart", *map(paragraph, counts), csv)


def _row(label: str, found: MeasuredRoc) -> list[TableCell]:
    ends = " to ".join(format_value(end, decimals=2) for end in found.interval) if found.interval else NOT_KNOWN
    return [
        TableCell(label),
        TableCell(format_value(found.area, decimals=2), value=found.area, style="number"),
        TableCell(ends, style="number"),
        TableCell(format_value(found.found, decimals=2), value=found.found, style="number"),
    ]
