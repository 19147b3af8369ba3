"""A line chart with a band for spread, as SVG, drawn twice: for wide screens and, with letters as large, for phones.

Colours are CSS variables of `look.css` (`--series-1` ...), so that one drawing serves light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import isfinite, log10
from statistics import fmean

from hushrank.look.axis import format_ticks, nice_ticks, padded_range
from hushrank.look.numbers import format_short, format_value

N_COLOURS = 6
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
LETTER = 6.5  # width of an average letter of the chart's 12 pixel type, generously
_LINE_GAP = 15.0  # between the baselines of two labels
_TICK_GAP = 12.0  # between the texts of two ticks


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart. A value that is not finite leaves a gap."""

    label: str
    x: tuple[float, ...]  # [n] increasing
    y: tuple[float, ...]  # [n]
    spread: tuple[float, ...] | None = None  # [n] half height of the band
    has_dots: bool = False  # a dot at each point, for the few settings of a sweep


@dataclass(frozen=True, slots=True)
class Reference:
    """A published value to stand beside ours: a thin line across the chart."""

    label: str
    y: float


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A horizontal axis with ticks of its own: the settings that were tried."""

    ticks: tuple[float, ...]  # increasing; one too near to the one before stays without text
    is_log: bool = False  # all x are > 0 and ten times one is as far away everywhere
    texts: tuple[str, ...] | None = None  # of the ticks; default: their numbers


@dataclass(frozen=True, slots=True)
class ChartText:
    """The words of a chart."""

    title: str  # what it shows, for those who cannot see it
    x_title: str  # with unit
    y_title: str  # with unit
    empty: str = "No measurements yet."  # said instead of the chart when there is nothing to draw


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the data lie in the drawing, in pixels."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    is_single: bool  # all points have the same x, which stands in the middle
    is_log: bool  # x is drawn by its logarithm

    def x(self, value: float) -> float:
        low, high = self.x_range
        if self.is_log:
            low, high, value = log10(low), log10(high), log10(value)
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)


def line_chart(
    lines: Sequence[Line],
    text: ChartText,
    *,
    name: str,
    references: Sequence[Reference] = (),
    scale: AxisScale | None = None,
) -> str:
    """HTML of a chart. `name` must be unique on the page; `look.css` shows the drawing that fits the screen."""
    if not any(isfinite(value) for line in lines for value in line.y):
        return f'<p class="empty">{escape(text.empty)}</p>'
    if scale is not None and scale.is_log and any(x <= 0 for line in lines for x in line.x):
        raise ValueError("a logarithmic axis has no place for x <= 0. Draw this chart with is_log=False.")
    wide = _draw(lines, references, text, scale, name=f"{name}-wide", width=560, height=300, label_space=170)
    narrow = _draw(lines, references, text, scale, name=f"{name}-narrow", width=358, height=270, label_space=92)
    return f'<div class="chart">{wide}{narrow}</div>'


def _draw(
    lines: Sequence[Line],
    references: Sequence[Reference],
    text: ChartText,
    scale: AxisScale | None,
    *,
    name: str,
    width: float,
    height: float,
    label_space: float,
) -> str:
    labels = [line.label for line in lines] + [reference.label for reference in references]
    is_numbered = max(len(label) for label in labels) * LETTER + 14 > label_space
    ends = [str(i + 1) for i in range(len(labels))] if is_numbered else labels
    room = max(len(label) for label in ends) * LETTER + 14
    frame = _frame(lines, references, scale, width=width, height=height, right=width - room)
    kind = "narrow" if width < 400 else "wide"
    svg = (
        f'<svg class="{kind}" role="img" viewBox="0 0 {width:g} {height:g}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(text.title)}</title><desc id="{name}-d">{escape(describe(lines))}</desc>'
        + _axes(frame, text, _x_ticks(frame, scale, n=3 if kind == "narrow" else 5))
        + "".join(_reference(frame, reference) for reference in references)
        + "".join(_band(frame, line, i) for i, line in enumerate(lines))
        + "".join(_stroke(frame, line, i) for i, line in enumerate(lines))
        + _end_labels(frame, lines, references, ends)
        + "</svg>"
    )
    return svg + (_key(lines, references, kind) if is_numbered else "")


def describe(lines: Sequence[Line]) -> str:
    """The chart in a sentence: where each line starts and ends."""
    parts = []
    for line in lines:
        finite = [value for value in line.y if isfinite(value)]
        if finite:
            parts.append(f"{line.label}: from {format_value(finite[0])} to {format_value(finite[-1])}")
    return "; ".join(parts) + "."


def place_labels(wanted: Sequence[float], *, low: float, high: float, gap: float = _LINE_GAP) -> list[float]:
    """Heights near the wanted ones, at least `gap` apart and inside [low, high] if there is room; order is kept."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[list[float]] = []  # labels that touch share the mean of what they want, less their place in the pile
    for place, i in enumerate(order):
        groups.append([wanted[i] - gap * place])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    settled = [fmean(group) for group in groups for _ in group]
    highest = max(low, high - gap * (len(wanted) - 1))
    placed = [0.0] * len(wanted)
    for place, i in enumerate(order):
        placed[i] = min(max(settled[place], low), highest) + gap * place
    return placed


def _frame(
    lines: Sequence[Line],
    references: Sequence[Reference],
    scale: AxisScale | None,
    *,
    width: float,
    height: float,
    right: float,
) -> _Frame:
    heights = [reference.y for reference in references]
    for line in lines:
        spread = line.spread or (0.0,) * len(line.y)
        for value, half in zip(line.y, spread, strict=True):
            reach = half if isfinite(half) else 0.0
            heights += [value - reach, value + reach]
    xs = [x for line in lines for x in line.x]
    low, high = min(xs), max(xs)
    x_range = (low, high) if low < high else (low - 1.0, low + 1.0)
    left = 36.0 if width < 400 else 40.0
    is_log = scale is not None and scale.is_log and low < high
    return _Frame(width, height, left, right, 30.0, height - 44.0, x_range, padded_range(heights), low == high, is_log)


def _x_ticks(frame: _Frame, scale: AxisScale | None, *, n: int) -> list[tuple[float, str]]:
    """About n round numbers, or the scale's own ticks, less those whose texts would touch: each with its text."""
    if frame.is_single:
        middle = sum(frame.x_range) / 2
        return [(middle, format_short(middle))]
    if scale is None:
        return [(tick, format_short(tick)) for tick in nice_ticks(*frame.x_range, n=n)]
    kept: list[tuple[float, str]] = []
    edge = frame.left - 50  # where the text before ends
    for tick, text in zip(scale.ticks, scale.texts or map(format_short, scale.ticks), strict=True):
        half = len(text) * LETTER / 2
        if frame.x_range[0] <= tick <= frame.x_range[1] and frame.x(tick) - half >= edge + _TICK_GAP:
            kept.append((tick, text))
            edge = frame.x(tick) + half
    return kept


def _axes(frame: _Frame, text: ChartText, xs: Sequence[tuple[float, str]]) -> str:
    ys = nice_ticks(*frame.y_range, n=5)
    parts = [f'<text class="axis-title" x="0" y="12">{escape(text.y_title)}</text>']
    for y, label in zip(ys, format_ticks(ys), strict=True):
        at = frame.y(y)
        parts.append(f'<path class="grid" d="M{frame.left:.1f} {at:.1f}H{frame.right:.1f}"/>')
        parts.append(f'<text x="{frame.left - 7:.1f}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    parts.append(f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>')
    for x, label in xs:
        at = frame.x(x)
        parts.append(f'<path class="axis" d="M{at:.1f} {frame.bottom:.1f}v4"/>')
        parts.append(f'<text x="{at:.1f}" y="{frame.bottom + 18:.1f}" text-anchor="middle">{escape(label)}</text>')
    parts.append(
        f'<text class="axis-title" x="{frame.left:.1f}" y="{frame.height - 6:.1f}">{escape(text.x_title)}</text>'
    )
    return "".join(parts)


def _reference(frame: _Frame, reference: Reference) -> str:
    return f'<path class="reference" d="M{frame.left:.1f} {frame.y(reference.y):.1f}H{frame.right:.1f}"/>'


def _pieces(line: Line) -> list[list[tuple[float, float, float]]]:
    """Runs of neighbouring points (x, y, spread) between the gaps."""
    spread = line.spread or (0.0,) * len(line.y)
    points = [(x, y, s if isfinite(s) and s > 0 else 0.0) for x, y, s in zip(line.x, line.y, spread, strict=True)]
    return [list(group) for is_there, group in groupby(points, key=lambda point: isfinite(point[1])) if is_there]


def _band(frame: _Frame, line: Line, index: int) -> str:
    parts = []
    for piece in _pieces(line):
        if len(piece) > 1 and any(s for _, _, s in piece):
            upper = [f"{frame.x(x):.1f} {frame.y(y + s):.1f}" for x, y, s in piece]
            lower = [f"{frame.x(x):.1f} {frame.y(y - s):.1f}" for x, y, s in reversed(piece)]
            parts.append(f'<path class="band {colour_class(index)}" d="M{"L".join(upper + lower)}Z"/>')
    return "".join(parts)


def _stroke(frame: _Frame, line: Line, index: int) -> str:
    colour, parts = colour_class(index), []
    for piece in _pieces(line):
        if len(piece) == 1:
            (x, y, s), *_ = piece
            bar = f'<path class="line {colour}" d="M{frame.x(x):.1f} {frame.y(y - s):.1f}V{frame.y(y + s):.1f}"/>'
            dot = f'<circle class="dot {colour}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3.5"/>'
            parts.append((bar if s else "") + dot)
        else:
            path = "L".join(f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y, _ in piece)
            parts.append(f'<path class="line {colour}"{_dash(index)} d="M{path}"/>')
            dots = [
                f'<circle class="dot {colour}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3"/>' for x, y, _ in piece
            ]
            parts += dots if line.has_dots else []
    return "".join(parts)


def _end_labels(frame: _Frame, lines: Sequence[Line], references: Sequence[Reference], labels: list[str]) -> str:
    """Each line's name beside its end; names that would overlap move apart, and a thin leader shows whose they are."""
    ends: list[tuple[float, float, str, str]] = []  # x, y, colour class, label
    for i, line in enumerate(lines):
        pieces = _pieces(line)
        if pieces:
            x, y, _ = pieces[-1][-1]
            ends.append((frame.x(x), frame.y(y), colour_class(i), labels[i]))
    for reference, label in zip(references, labels[len(lines) :], strict=True):
        ends.append((frame.right, frame.y(reference.y), "plain", label))
    heights = place_labels([y for _, y, _, _ in ends], low=frame.top - 4, high=frame.bottom)
    parts = []
    for (x, y, colour, label), at in zip(ends, heights, strict=True):
        beside = frame.right if x > frame.right - 24 else x  # a line that ends early is named where it ends
        parts.append(f'<path class="leader {colour}" d="M{x + 2:.1f} {y:.1f}L{beside + 8:.1f} {at:.1f}"/>')
        parts.append(f'<text class="label" x="{beside + 11:.1f}" y="{at + 4:.1f}">{escape(label)}</text>')
    return "".join(parts)


def _key(lines: Sequence[Line], references: Sequence[Reference], kind: str) -> str:
    """What the numbers at the ends mean, for names too long to stand there."""
    marks = [
        (i, line.label, f'class="line {colour_class(i)}"{_dash(i)}') for i, line in enumerate(lines) if _pieces(line)
    ]
    marks += [(len(lines) + i, reference.label, 'class="reference"') for i, reference in enumerate(references)]
    items = [
        f'<li value="{i + 1}"><svg viewBox="0 0 28 8" aria-hidden="true"><path {mark} d="M0 4H28"/></svg>'
        f"{escape(label)}</li>"
        for i, label, mark in marks
    ]
    return f'<ol class="key {kind}">{"".join(items)}</ol>'


def colour_class(index: int) -> str:
    return f"series-{index % N_COLOURS + 1}"


def _dash(index: int) -> str:
    dash = _DASHES[(index + index // N_COLOURS) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""
