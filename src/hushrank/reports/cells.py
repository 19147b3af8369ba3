"""Numbers as cells of a table: shown with the digits that they have, sorted and copied exactly."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from hushrank.look.numbers import align_spreads, format_count, format_spread
from hushrank.reports.markup import TableCell

VALUES_NOTE = "Values are those of folds and repeats; ± is their standard deviation, where there are several."


def spread_cells(found: Sequence[tuple[float | None, float | None]]) -> list[TableCell]:
    """A column of means with their standard deviations, points below each other."""
    texts = align_spreads([format_spread(mean, std) for mean, std in found])
    return [
        TableCell(text, value=known(mean), std=known(std) if known(mean) is not None else None, style="number")
        for text, (mean, std) in zip(texts, found, strict=True)
    ]


def count_cell(n: float | None) -> TableCell:
    """A whole number."""
    return TableCell(format_count(n), value=n, style="number")


def known(number: float | None) -> float | None:
    """The number if it is finite."""
    return number if number is not None and isfinite(number) else None
