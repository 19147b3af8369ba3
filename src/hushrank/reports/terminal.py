"""Results for a terminal, and as plain lines for a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hushrank.look.numbers import align_spreads, format_spread
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import OFFLINE, ONLINE, VALI, click_models, n_values_text, run_labels

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

_READABLE = 20  # characters; Why: narrower columns of sentences become ladders of single words


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


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table for a terminal of any width: as it is where there is room, below headings or as paragraphs where not."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        width = options.max_width
        if sum(map(self.least_width, range(len(self.columns)))) + 3 * len(self.columns) - 1 <= width:
            yield rich_table(self.columns, self.rows)
        elif n := self.find_groups(width):
            yield from self.render_groups(n)
        else:
            yield Records(self.columns, self.rows)

    def least_width(self, at: int) -> int:
        """What a column needs to be read: words may break over lines, but not words themselves."""
        cells = [self.columns[at].heading, *(row[at] for row in self.rows)]
        widest = max(map(len, cells))
        if self.columns[at].is_number:
            return widest
        return min(widest, max(_READABLE, *(len(word) for cell in cells for word in cell.split() or [""])))

    def find_groups(self, width: int) -> int:
        """How many of the first columns must become headings above their rows; 0 where that does not help."""
        first_number = next((i for i, column in enumerate(self.columns) if column.is_number), 0)
        for n in range(1, first_number):
            lines = plain_table(self.columns[n:], [row[n:] for row in self.rows]).split("\n")
            if max(map(len, lines)) <= width and 2 * len({tuple(row[:n]) for row in self.rows}) <= len(self.rows):
                return n
        return 0

    def render_groups(self, n: int) -> Iterator[RenderableType]:
        from rich.text import Text

        heading, *lines = plain_table(self.columns[n:], [row[n:] for row in self.rows]).split("\n")
        yield Text(f"\n{heading}", style="dim")
        for names, group in groupby(zip(self.rows, lines, strict=True), key=lambda pair: tuple(pair[0][:n])):
            yield Text("\n".join(["", _join_cells(names), *(line for _, line in group)]))
        yield Text()


@dataclass(frozen=True, slots=True)
class Records:
    """The rows as paragraphs: the words before the first number, or the first cell, then the other cells by heading."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.padding import Padding
        from rich.text import Text

        n = next((i for i, column in enumerate(self.columns) if column.is_number), 1)
        for row in self.rows:
            rest = [
                (column.heading, " ".join(cell.split()))
                for column, cell in zip(self.columns[n:], row[n:], strict=True)
                if cell.strip()
            ]
            yield Text(_join_cells(row[:n]))
            yield Padding(Text("; ".join(f"{heading}: {cell}" for heading, cell in rest), style="dim"), (0, 0, 0, 2))


def _join_cells(cells: Sequence[str]) -> str:
    return ", ".join(filter(None, (cell.strip() for cell in cells)))


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


def result_table(runs: Sequence[RunSummary]) -> FittedTable:
    """A table of run x click model."""
    return FittedTable(_RESULT, result_rows(runs))


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
