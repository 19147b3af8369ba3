"""Results for a terminal, and as plain lines for a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushrank.look.numbers import align_spreads, format_spread
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import OFFLINE, ONLINE, VALI, click_models, n_values_text, run_labels

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    heading: str
    is_number: bool = False  # right-aligned and never broken over lines


_RESULT = (
    Column("run"),
    Column("user"),
    Column("offline nDCG@10", is_number=True),
    Column("vali nDCG@10", is_number=True),
    Column("online nDCG@10", is_number=True),
    Column("over"),
)


def rich_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    """A table for a terminal; names are taken literally."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for column in columns:
        found.add_column(
            column.heading, justify="right" if column.is_number else "left", no_wrap=column.is_number, overflow="fold"
        )
    for row in rows:
        found.add_row(*(Text(cell) for cell in row))
    return found


def plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """The same as aligned plain text, for pipes and logs: one line per row, whatever the cells hold."""
    lines = [[" ".join(cell.split()) if "\n" in cell else cell for cell in row] for row in rows]
    cells = [[column.heading for column in columns], *lines]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ).rstrip()
        for row in cells
    )


def result_table(runs: Sequence[RunSummary]) -> Table:
    """A rich table of run x click model."""
    return rich_table(_RESULT, result_rows(runs))


def result_text(runs: Sequence[RunSummary]) -> str:
    """The same as aligned plain text."""
    return plain_table(_RESULT, result_rows(runs))


def result_rows(runs: Sequence[RunSummary]) -> list[tuple[str, ...]]:
    """The cells of the table, one row per run and click model."""
    labels = run_labels(runs)
    rows = [
        (label, click, run.metrics[click])
        for click in click_models(runs)
        for run, label in zip(runs, labels, strict=True)
        if click in run.metrics
    ]
    columns = []
    for name in (OFFLINE, VALI, ONLINE):
        metrics = [named.get(name) for _, _, named in rows]
        columns.append(spread_column([(m.mean, m.std) if m else (None, None) for m in metrics]))
    return [
        (label, click, *(column[i] for column in columns), n_values_text(next(iter(named.values()), None)))
        for i, (label, click, named) in enumerate(rows)
    ]


def spread_column(found: Sequence[tuple[float | None, float | None]]) -> list[str]:
    """Means with their standard deviations, points below each other."""
    return align_spreads([format_spread(mean, std) for mean, std in found], pad=" ")
