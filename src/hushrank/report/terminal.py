"""The result for a terminal, and as plain lines for a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hushrank.look.numbers import NOT_KNOWN, align_spreads, format_spread
from hushrank.report.summary import RunSummary
from hushrank.report.wording import OFFLINE, ONLINE, VALI, click_models, n_values_text, run_labels

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("run", "user", "offline nDCG@10", "vali nDCG@10", "online nDCG@10", "over")
_N_TEXT_FIRST = 2  # columns of words before those of numbers


def result_table(runs: Sequence[RunSummary]) -> Table:
    """A rich table of run x click model."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for i, heading in enumerate(_COLUMNS):
        is_number = _N_TEXT_FIRST <= i < len(_COLUMNS) - 1
        found.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number)
    for row in result_rows(runs):
        found.add_row(*(Text(cell) for cell in row))
    return found


def result_text(runs: Sequence[RunSummary]) -> str:
    """The same as aligned plain text, for pipes and logs."""
    rows = [_COLUMNS, *result_rows(runs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if _N_TEXT_FIRST <= i < len(_COLUMNS) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


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
        columns.append(align_spreads([format_spread(m.mean, m.std) if m else NOT_KNOWN for m in metrics], pad=" "))
    return [
        (label, click, *(column[i] for column in columns), n_values_text(next(iter(named.values()), None)))
        for i, (label, click, named) in enumerate(rows)
    ]
