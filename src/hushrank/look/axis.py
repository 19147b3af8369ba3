"""Round numbers for axes."""

from __future__ import annotations

from math import ceil, floor, isfinite, log10

from hushrank.look.numbers import format_value


def nice_ticks(low: float, high: float, *, n: int = 5) -> tuple[float, ...]:
    """About n round numbers (1, 2, 2.5 or 5 times a power of ten apart) inside [low, high]."""
    if not (isfinite(low) and isfinite(high) and low < high):
        return (low,) if isfinite(low) else ()
    step = _nice_step(high - low, n)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return tuple(round(i * step, 12) for i in range(first, last + 1))


def format_ticks(ticks: tuple[float, ...]) -> list[str]:
    """The ticks' texts, all with the decimals that their distance needs."""
    if len(ticks) < 2:
        return [format_value(tick) for tick in ticks]
    step = ticks[1] - ticks[0]
    decimals = next((d for d in range(9) if abs(round(step, d) - step) < step * 1e-6), 9)
    return [format_value(tick, decimals=decimals) for tick in ticks]


def padded_range(values: list[float]) -> tuple[float, float]:
    """A range a little wider than the finite values; (0, 1) without any."""
    finite = [value for value in values if isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - margin, high + margin


def _nice_step(width: float, n: int) -> float:
    """The round distance whose number of steps in the width is nearest to n."""
    power = 10.0 ** floor(log10(width / n))
    return min((factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0)), key=lambda step: abs(width / step - n))
