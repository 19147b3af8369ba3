"""Horizontal bars from zero, whole or made of parts, as SVG, drawn twice as the line chart is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hushrank.look.axis import format_ticks, nice_ticks
from hushrank.look.chart import LETTER, ChartText, colour_class
from hushrank.look.numbers import format_value

_ROW, _BAR = 26.0, 16.0  # from bar to bar, and the height of one
_GAP = 1.5  # between the parts of a bar
_LEAST = 16.0  # width from which on a part has its number in it


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that is compared."""

    label: str
    parts: tuple[tuple[str, float], ...]  # (name, value >= 0), in the same order in every bar

    @property
    def total(self) -> float:
        return sum(value for _, value in self.parts)


def bar_chart(bars: Sequence[Bar], text: ChartText, *, name: str) -> str:
    """HTML of a chart. `name` must be unique on the page; several parts are numbered and named below the bars."""
    if not bars:
        return f'<p class="empty">{escape(text.empty)}</p>'
    drawings = [
        _draw(bars, text, name=f"{name}-{kind}", kind=kind, width=w) for kind, w in (("wide", 560), ("narrow", 358))
    ]
    return f'<div class="chart">{"".join(drawings)}{_key(bars)}</div>'


def describe_bars(bars: Sequence[Bar]) -> str:
    """The chart in a sentence."""
    said = [f"{bar.label}: " + ", ".join(f"{part} {format_value(value)}" for part, value in bar.parts) for bar in bars]
    return "; ".join(said) + "."


def _draw(bars: Sequence[Bar], text: ChartText, *, name: str, kind: str, width: float) -> str:
    left = min(max(len(bar.label) for bar in bars) * LETTER + 10, width * 0.45)
    right, bottom = width - 34.0, 24.0 + _ROW * len(bars)
    highest = max(bar.total for bar in bars) or 1.0
    scale = (right - left) / highest
    axis = []
    ticks = nice_ticks(0.0, highest, n=3 if kind == "narrow" else 5)
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        at = left + tick * scale
        axis.append(f'<path class="grid" d="M{at:.1f} 20V{bottom:.1f}"/>')
        axis.append(f'<text x="{at:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{label}</text>')
    rows = [_bar(bar, left, 24.0 + _ROW * i, scale) for i, bar in enumerate(bars)]
    return (
        f'<svg class="{kind}" role="img" viewBox="0 0 {width:g} {bottom + 24:g}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(text.title)}</title><desc id="{name}-d">{escape(describe_bars(bars))}</desc>'
        f'<text class="axis-title" x="0" y="12">{escape(text.x_title)}</text>{"".join(axis)}{"".join(rows)}'
        f'<path class="axis" d="M{left:.1f} 20V{bottom:.1f}"/></svg>'
    )


def _bar(bar: Bar, left: float, top: float, scale: float) -> str:
    label = f'<text class="label" x="{left - 7:.1f}" y="{top + 12.5:.1f}" text-anchor="end">{escape(bar.label)}</text>'
    pieces, at = [label], left
    for i, (_, value) in enumerate(bar.parts):
        width = value * scale
        if width > _GAP:
            pieces.append(
                f'<rect class="bar {colour_class(i)}" x="{at:.1f}" y="{top:.1f}" width="{width - _GAP:.1f}" '
                f'height="{_BAR:g}"/>'
            )
            if len(bar.parts) > 1 and width >= _LEAST:
                middle = at + width / 2
                pieces.append(
                    f'<text class="label" x="{middle:.1f}" y="{top + 12.5:.1f}" text-anchor="middle">{i + 1}</text>'
                )
        at += width
    if len(bar.parts) == 1:
        pieces.append(f'<text x="{at + 6:.1f}" y="{top + 12.5:.1f}">{format_bar(bar.total)}</text>')
    return "".join(pieces)


def format_bar(value: float) -> str:
    """Counts as they are, other numbers with their decimals."""
    return f"{value:,.0f}" if value == int(value) else format_value(value)


def _key(bars: Sequence[Bar]) -> str:
    names = [part for part, _ in bars[0].parts]
    if len(names) < 2:
        return ""
    items = [
        f'<li value="{i + 1}"><svg viewBox="0 0 28 8" aria-hidden="true">'
        f'<rect class="bar {colour_class(i)}" width="28" height="8"/></svg>{escape(part)}</li>'
        for i, part in enumerate(names)
    ]
    return f'<ol class="key">{"".join(items)}</ol>'
