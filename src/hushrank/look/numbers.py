"""Numbers as a person writes them: with their uncertainty, and with no more digits than they have."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

NOT_KNOWN = "–"
FIGURE_SPACE = "\u2007"  # as wide as a digit


def format_value(value: float | None, *, decimals: int | None = None) -> str:
    """A number without known uncertainty: three decimals below 10, fewer above; no zero before the point."""
    if value is None or not isfinite(value):
        return NOT_KNOWN
    if decimals is None:
        decimals = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def format_signed(value: float | None, *, decimals: int | None = None) -> str:
    """A difference: + or a true minus sign in front, nothing in front of 0."""
    text = format_value(value, decimals=decimals)
    if text == NOT_KNOWN or not any(digit in text for digit in "123456789"):
        return text
    return text.replace("-", "\u2212") if text.startswith("-") else f"+{text}"


def spread_decimals(spread: float) -> int:
    """Decimals that a spread justifies: two significant digits from 1.00 to 3.54, one from 3.55 to 9.49.

    Why: the Particle Data Group's rounding rule, after which a rounded spread is off by a seventh at most.
    """
    if not spread > 0 or not isfinite(spread):
        return 3
    exponent = floor(log10(spread))
    leading = round(spread / 10.0**exponent, 2)
    if leading >= 9.5:
        exponent, leading = exponent + 1, 1.0
    return min(6, max(0, (1 if leading < 3.55 else 0) - exponent))


def format_spread(mean: float | None, std: float | None) -> str:
    """A mean with its standard deviation, `.702 ± .004`; the mean alone where there is no spread."""
    if mean is None or not isfinite(mean):
        return NOT_KNOWN
    if std is None or not isfinite(std):
        return format_value(mean)
    decimals = spread_decimals(std)
    return f"{format_value(mean, decimals=decimals)} ± {format_value(std, decimals=decimals)}"


def align_spreads(texts: Sequence[str], *, pad: str = FIGURE_SPACE) -> list[str]:
    """Texts of `format_spread`, padded so that in a right-aligned column the points stand below each other."""
    parts = [text.split(" ± ") for text in texts if text != NOT_KNOWN]
    widest = max((_n_decimals(part[0]) for part in parts), default=0)
    has_spread = any(len(part) > 1 for part in parts)
    blank = pad * (len(" ± .") + widest) if has_spread else ""
    padded = (
        part[0]
        + pad * (widest - _n_decimals(part[0]))
        + (f" ± {part[1]}{pad * (widest - _n_decimals(part[1]))}" if len(part) > 1 else blank)
        for part in parts
    )
    return [text if text == NOT_KNOWN else next(padded) for text in texts]


def _n_decimals(text: str) -> int:
    """Characters after and including the point, less one; a text without a point is as wide as its missing point."""
    return len(text) - text.index(".") - 1 if "." in text else -1


def format_p(p: float) -> str:
    """A p value: three decimals where it matters, never 0."""
    if p < 0.001:
        return "< .001"
    return format_value(p, decimals=3 if p < 0.1 else 2) if p < 0.995 else "1"


def format_count(value: float | None) -> str:
    """A whole number with commas: 400,000."""
    return NOT_KNOWN if value is None or not isfinite(value) else f"{value:,.0f}"


def format_short(value: float) -> str:
    """A number for an axis: 400k, 1.2M, .25."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.6g}{sign}"
    text = f"{value:.6g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def format_seconds(value: float | None) -> str:
    """A duration: .8 s, 42 s, 3 min 12 s, 2 h 5 min."""
    if value is None or not isfinite(value):
        return NOT_KNOWN
    if value < 10:
        return f"{format_value(value, decimals=1)} s"
    seconds = round(value)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def format_duration(seconds: float) -> str:
    """A duration that is only estimated: 45 s, 3 min, 2 h 10 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def format_bytes(value: float | None) -> str:
    """A size: 184 B, 1.5 kB, 2.3 MB (thousands, not 1024s)."""
    if value is None or not isfinite(value):
        return NOT_KNOWN
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f} B"
