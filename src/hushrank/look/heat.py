"""A heat map as SVG: rows in groups, a number in every cell, the colour saying how far it is from a reference.

Blue is above, vermilion below, each in steps, so that a reader can tell colours apart and read the number anyway. Wider
than a phone, it scrolls in its own box.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from hushrank.look.chart import LETTER, ChartText
from hushrank.look.numbers import format_value

STEPS = (0.005, 0.02, 0.05, 0.1, 0.2)  # of the distance from the reference at which the colour changes
_CELL, _ROW, _GROUP_GAP = 46.0, 20.0, 7.0
_SLANT = 0.62  # height of a column's heading, slanted, for each pixel of its length


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell."""

    text: str  # what stands in it
    distance: float | None = None  # from the reference, what the colour shows; None: no colour
    note: str = ""  # read on hover
    is_marked: bool = False  # set in bold


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One row."""

    group: str  # rows of the same group stand together, its name beside the first of them
    label: str
    cells: tuple[HeatCell, ...]  # one for each column


def heat_map(rows: Sequence[HeatRow], columns: Sequence[str], text: ChartText, *, name: str) -> str:
    """HTML of a heat map with its key. `name` must be unique on the page; x_title names the columns, y_title the
    numbers."""
    if not rows or not columns:
        return f'<p class="empty">{escape(text.empty)}</p>'
    groups = max(len(row.group) for row in rows) * LETTER + 8
    left = groups + max(len(row.label) for row in rows) * LETTER + 10
    top = 20 + max(len(column) for column in columns) * LETTER * _SLANT + 14
    drawn, bottom = _rows(rows, left=left, top=top)
    last = len(columns[-1]) * LETTER * 0.8  # of the last heading, which leans over the edge
    width = left + _CELL * len(columns) + max(last - _CELL / 2, 0)
    svg = (
        f'<svg role="img" viewBox="0 0 {width:.0f} {bottom:.0f}" width="{width:.0f}" height="{bottom:.0f}" '
        f'aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{escape(text.title)}</title>'
        f'<desc id="{name}-d">{escape(describe_heat(rows, columns))}</desc>'
        f'<text class="axis-title" x="0" y="12">{escape(text.y_title)}, by {escape(text.x_title)}</text>'
        f"{_headings(columns, left=left, top=top)}{drawn}</svg>"
    )
    box = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(text.title)}">{svg}</div>'
    return f'<div class="chart heat">{box}{_key(rows)}</div>'


def describe_heat(rows: Sequence[HeatRow], columns: Sequence[str]) -> str:
    """The map in a sentence: of every column the cell that is furthest below the reference."""
    said = []
    for place, column in enumerate(columns):
        known = [(row.cells[place].distance, row) for row in rows if row.cells[place].distance is not None]
        if known:
            _, row = min(known, key=lambda pair: pair[0] or 0.0)
            said.append(f"{column}: lowest {row.cells[place].text} ({row.group} {row.label})".replace("  ", " "))
    return "; ".join(said) + "."


def heat_class(distance: float | None) -> str:
    """The CSS class of a cell: `below-3` is the third step below the reference."""
    if distance is None:
        return "unknown"
    step = bisect_right(STEPS, abs(distance))
    return f"{'below' if distance < 0 else 'above'}-{step}" if step else "same"


def _headings(columns: Sequence[str], *, left: float, top: float) -> str:
    parts = []
    for i, column in enumerate(columns):
        x, y = left + _CELL * (i + 0.5), top - 7
        parts.append(f'<text class="name" transform="translate({x:.1f} {y:.1f}) rotate(-38)">{escape(column)}</text>')
    return "".join(parts)


def _rows(rows: Sequence[HeatRow], *, left: float, top: float) -> tuple[str, float]:
    """The drawing, and where it ends."""
    parts, y, group = list[str](), top, rows[0].group
    for i, row in enumerate(rows):
        if row.group != group:
            y, group = y + _GROUP_GAP, row.group
        if i == 0 or row.group != rows[i - 1].group:
            parts.append(f'<text class="name" x="0" y="{y + 14:.1f}">{escape(row.group)}</text>')
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 14:.1f}" text-anchor="end">{escape(row.label)}</text>')
        parts += [_cell(cell, left + _CELL * place, y) for place, cell in enumerate(row.cells)]
        y += _ROW
    return "".join(parts), y + 4


def _cell(cell: HeatCell, x: float, y: float) -> str:
    mark = " marked" if cell.is_marked else ""
    return (
        f'<g class="{heat_class(cell.distance)}{mark}"><rect x="{x:.1f}" y="{y:.1f}" width="{_CELL - 1.5:g}" '
        f'height="{_ROW - 1.5:g}"/><text x="{x + _CELL / 2 - 0.75:.1f}" y="{y + 13.5:.1f}" text-anchor="middle">'
        f"{escape(cell.text)}</text>{f'<title>{escape(cell.note)}</title>' if cell.note else ''}</g>"
    )


def _key(rows: Sequence[HeatRow]) -> str:
    """What the colours mean, those that occur."""
    there = {heat_class(cell.distance) for row in rows for cell in row.cells}
    bounds = [format_value(step, decimals=3 if step < 0.01 else 2) for step in STEPS]
    ranges = [f"{low} to {high}" for low, high in pairwise(bounds)] + [f"{bounds[-1]} or more"]
    meant = {f"above-{i + 1}": f"higher by {words}" for i, words in reversed(list(enumerate(ranges)))}
    meant |= {"same": f"within {bounds[0]}"}
    meant |= {f"below-{i + 1}": f"lower by {words}" for i, words in enumerate(ranges)}
    sample = '<svg viewBox="0 0 28 14" aria-hidden="true"><rect width="28" height="14"/></svg>'
    items = [f'<li class="{name}">{sample}{words}</li>' for name, words in meant.items() if name in there]
    return f'<ul class="heat-key">{"".join(items)}</ul>'
