"""What commands print: JSON for programs, tables for people, and where the result is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hushrank.unlearning.record import CheckedRecord

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def print_json(value: object) -> None:
    """Exactly one JSON object on stdout."""
    typer.echo(json.dumps(value))


def print_runs(directories: Sequence[Path], *, report: Path, quiet: bool = False, is_new: bool = True) -> None:
    """The result table of finished runs, then where their report is and what to try next.

    Of runs that are not new, what was noticed is said again.
    """
    from hushrank.reports.summary import from_directory
    from hushrank.reports.terminal import result_table, result_text, warning_lines

    runs = [from_directory(directory) for directory in directories]
    print_table(result_table(runs), result_text(runs))
    if not quiet:
        for line in [] if is_new else warning_lines(runs):
            typer.echo(line, err=True)
        also = f"; compare with others: hushrank report {directories[0]} OTHER" if len(directories) == 1 else ""
        typer.echo(f"Report: {report}{also}", err=True)


def print_forgotten(directory: Path, *, quiet: bool = False) -> None:
    """What was forgotten, then where the record and the report are."""
    from hushrank.reports.forgetting import forgetting_blocks
    from hushrank.reports.summary import from_directory
    from hushrank.reports.terminal import block_table, block_text

    blocks = forgetting_blocks(from_directory(directory))
    print_table(block_table(blocks), block_text(blocks))
    if not quiet:
        record = directory / "record.json"
        typer.echo(f"Record: {record}; check it with: hushrank forget --verify {record}", err=True)
        typer.echo(f"Report: {directory / 'report.html'}", err=True)


def print_record(found: CheckedRecord, *, as_json: bool) -> None:
    """What was checked about an erasure record, and what it says."""
    record = found.record
    if as_json:
        print_json({"record": record, "signer": found.signer, "checked": found.sentence})
        return
    typer.echo(found.sentence)
    typer.echo(f"It says: {record['when']}, method {record['method']}, {len(record['clients'])} forgotten.")
    for client in record["clients"]:
        typer.echo(f"  {client}")
    typer.echo(record["statement"])


def print_table(table: RenderableType, text: str) -> None:
    """A rich table on a terminal, the same as plain text in a pipe."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(table)
    else:
        typer.echo(text)


def parse_bytes(text: str | None) -> int | None:
    """`4GB`, `500MiB` or a plain number of bytes."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if match is None:
        raise ValueError(f"the memory limit is {text!r}; write a size such as 500MB, 4GB or 2GiB.")
    return int(float(match[1]) * _UNITS[match[2]])
