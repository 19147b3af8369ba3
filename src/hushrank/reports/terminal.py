"""Results for a terminal, and as plain lines for a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from hushrank.look.numbers import align_spreads, format_count, format_spread
from hushrank.reports.budgets import explain_budgets, find_footing, tabulate_budgets
from hushrank.reports.skew import skew_lines
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import (
    OFFLINE,
    ONLINE,
    PER_SEARCH,
    PERSONAL,
    VALI,
    Measures,
    click_models,
    measures_of,
    n_values_text,
    run_labels,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType
    from rich.table import Table

_READABLE = 20  # characters; Why: narrower columns of sentences become ladders of single words


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    heading: str
    is_number: bool = False  # right-aligned and never broken over lines


_MEASURES = {
    OFFLINE: "offline nDCG@10",
    VALI: "vali nDCG@10",
    ONLINE: "online nDCG@10",
    PER_SEARCH: "online nDCG@10 per search",
    PERSONAL: "personal nDCG@10",
}
_SUMS = (OFFLINE, VALI, ONLINE)  # of runs of equal length
_FAIR = (OFFLINE, VALI, PER_SEARCH)  # at equal numbers of searches
_ENDS = (OFFLINE, VALI)  # of runs of unequal length, whose sums say who ran longer


def list_columns(measures: Measures, usual: Sequence[str]) -> dict[str, str]:
    """{metric: heading}: these, of runs that are judged by nDCG; of others what they are judged by."""
    if measures.is_usual:
        return {name: _MEASURES[name] for name in usual}
    return {name: name.replace("/", " ") for name in measures.words}


@dataclass(frozen=True, slots=True)
class Block:
    """A table with what is said before it."""

    sentences: tuple[str, ...]
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


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


def result_table(runs: Sequence[RunSummary]) -> Group:
    """Tables of run x click model; of runs with unequal budgets these come first."""
    return block_table(result_blocks(runs))


def result_text(runs: Sequence[RunSummary]) -> str:
    """The same as aligned plain text."""
    return block_text(result_blocks(runs))


def block_table(blocks: Sequence[Block]) -> Group:
    """Sentences and tables, for a terminal."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for block in blocks:
        parts += [Text(sentence) for sentence in block.sentences] + [FittedTable(block.columns, block.rows)]
    return Group(*parts)


def block_text(blocks: Sequence[Block]) -> str:
    """The same as aligned plain text."""
    return "\n\n".join("\n".join([*block.sentences, plain_table(block.columns, block.rows)]) for block in blocks)


def result_blocks(runs: Sequence[RunSummary]) -> list[Block]:
    """One table of results; before it the budgets where they differ, and the results at equal numbers of searches."""
    labels, footing = run_labels(runs), find_footing(runs)
    sentences = explain_budgets(runs, labels)
    budgets = [_budget_block(runs, labels, sentences)] if sentences else []
    skews = tuple(skew_lines(runs, labels))
    if footing is None:
        return [*budgets, _result_block(skews, runs, _SUMS)]
    fair = _result_block((f"Up to {footing.searches:,} searches:",), footing.runs, _FAIR)
    ends = _result_block((*skews, "Where each run ended:"), runs, _ENDS)
    return [*budgets, *([fair] if footing.searches else []), ends]


def result_rows(runs: Sequence[RunSummary], *, names: Sequence[str] = _SUMS) -> list[tuple[str, ...]]:
    """The cells of the table, one row per run and click model."""
    labels = run_labels(runs)
    rows = [
        (label, click, run.metrics[click])
        for click in click_models(runs)
        for run, label in zip(runs, labels, strict=True)
        if click in run.metrics
    ]
    columns = []
    for name in names:
        metrics = [named.get(name) for _, _, named in rows]
        columns.append(spread_column([(m.mean, m.std) if m else (None, None) for m in metrics]))
    return [
        (label, click, *(column[i] for column in columns), n_values_text(next(iter(named.values()), None)))
        for i, (label, click, named) in enumerate(rows)
    ]


def warning_lines(runs: Sequence[RunSummary]) -> list[str]:
    """What was noticed in each run, one line each."""
    labels = run_labels(runs)
    return [f"{label}: {one.kind}: {one.text}" for run, label in zip(runs, labels, strict=True) for one in run.warnings]


def _result_block(sentences: Sequence[str], runs: Sequence[RunSummary], names: Sequence[str]) -> Block:
    """These measures, and that of clients' own rankers where a run has it."""
    has_own = any(PERSONAL in named for run in runs for named in run.metrics.values())
    listed = list_columns(measures_of(runs), (*names, PERSONAL) if has_own else names)
    measures = [Column(heading, is_number=True) for heading in listed.values()]
    columns = [Column("run"), Column("user"), *measures, Column("over")]
    return Block(tuple(sentences), columns, result_rows(runs, names=tuple(listed)))


def _budget_block(runs: Sequence[RunSummary], labels: Sequence[str], sentences: Sequence[str]) -> Block:
    headings, rows = tabulate_budgets(runs)
    cells = [
        [label, *(cell if isinstance(cell, str) else format_count(cell) for cell in row)]
        for label, row in zip(labels, rows, strict=True)
    ]
    return Block(tuple(sentences), [Column("run"), *(Column(text, is_number=True) for text in headings)], cells)


def spread_column(found: Sequence[tuple[float | None, float | None]]) -> list[str]:
    """Means with their standard deviations, points below each other."""
    return align_spreads([format_spread(mean, std) for mean, std in found], pad=" ")
