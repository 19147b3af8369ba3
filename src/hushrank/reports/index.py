"""Every table and figure that can be reproduced, as a page and for the terminal: what was run, and what held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hushrank.files import JsonObject
from hushrank.reports.cells import count_cell
from hushrank.reports.markup import TableCell, grouped_table, paragraph, relative_link, section
from hushrank.reports.reproduction_summary import MARKS, FindingCounts, findings_text
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.terminal import Column, FittedTable, plain_table
from hushrank.reports.wording import date_text


@dataclass(frozen=True, slots=True)
class IndexLine:
    """One table or figure."""

    name: str  # what a user types
    paper: str
    number: str
    shows: str
    data: tuple[str, ...]
    is_run: bool
    counts: FindingCounts
    why: str  # why it was not run, or what was done otherwise than published
    page: str | None  # address of its page, from the index
    is_stand_in: bool
    is_quick: bool
    when: str | None  # ISO time

    @property
    def data_text(self) -> str:
        return ", ".join(self.data)

    @property
    def state(self) -> str:
        if self.is_run:
            words = ("run", "quick" * self.is_quick, "stand-in data" * self.is_stand_in, self.why)
            return ", ".join(filter(None, words))
        return f"not run: {self.why}" if self.why else "not run"


def render_index(lines: Sequence[JsonObject], papers: Mapping[str, str] | None = None) -> str:
    """HTML of the list, grouped by paper; `papers` gives each paper's title."""
    found = [_read(line) for line in lines]
    title = "Tables and figures, run again"
    if not found:
        text = "Tables and figures of the papers would be listed here. Run one with: hushrank reproduce NAME"
        return render_page(title, section("Nothing yet", paragraph(text, style="empty")), kind="reproductions")
    titles = papers or {}
    order = [*titles, *(line.paper for line in found)]
    groups = [
        (titles.get(paper, paper), [_cells(line) for line in found if line.paper == paper])
        for paper in dict.fromkeys(order)
    ]
    listed = grouped_table(
        _HEADINGS, [group for group in groups if group[1]], label="Tables and figures", has_tools=True
    )
    return render_page(title, section("By paper", listed, _note(found)), kind="reproductions", lead=outcome(found))


def write_index(lines: Sequence[JsonObject], path: Path, papers: Mapping[str, str] | None = None) -> Path:
    """Write the list to a file and say where it is."""
    return write_page(render_index(lines, papers), path)


def index_table(lines: Sequence[JsonObject]) -> FittedTable:
    """A rich table, one line per table or figure."""
    return FittedTable(_COLUMNS, _rows(lines))


def index_text(lines: Sequence[JsonObject]) -> str:
    """The same as aligned plain text, for pipes and logs."""
    return plain_table(_COLUMNS, _rows(lines))


def outcome(lines: Sequence[IndexLine]) -> str:
    """How far the reproductions have come, in a sentence or two."""
    ran = [line for line in lines if line.is_run]
    if not ran:
        first = lines[0].name if lines else "NAME"
        return f"None of {len(lines)} has been run yet. Begin with: hushrank reproduce {first} --quick"
    counts = FindingCounts(*(sum(each) for each in zip(*(line.counts for line in ran), strict=True)))
    text = f"{len(ran)} of {len(lines)} tables and figures {'has' if len(ran) == 1 else 'have'} been run."
    if sum(counts):
        text += f" {findings_text(counts)}"
    stand_ins, quick = sum(line.is_stand_in for line in ran), sum(line.is_quick for line in ran)
    if stand_ins == quick == len(ran):
        return f"{text} {_how_many(quick, len(ran))} in the quick version, on stand-in data instead of the real sets."
    text += f" {_how_many(stand_ins, len(ran))} on stand-in data instead of the real sets." if stand_ins else ""
    return text + (f" {_how_many(quick, len(ran))} in the quick version." if quick else "")


_HEADINGS = (
    TableCell("result"),
    *(TableCell(verdict, style="number slim") for verdict in MARKS),
    TableCell("what it shows"),
    TableCell("data"),
    TableCell("state"),
    TableCell("when"),
)
_COLUMNS = (
    Column("name"),
    Column("shows"),
    Column("data"),
    *(Column(verdict, is_number=True) for verdict in MARKS),
    Column("state"),
)


def _cells(line: IndexLine) -> list[TableCell]:
    return [
        TableCell(line.number, note=line.name, copy=line.name, href=relative_link(line.page) if line.page else ""),
        *(count_cell(count) for count in _counts(line)),
        TableCell(line.shows),
        TableCell(line.data_text),
        TableCell(line.state),
        _when(line),
    ]


def _counts(line: IndexLine) -> tuple[int | None, ...]:
    return tuple(line.counts) if line.is_run else (None,) * len(line.counts)


def _when(line: IndexLine) -> TableCell:
    """Sorted by time; the exact one without the script, and on hover with it."""
    if not line.when:
        return TableCell("")
    try:
        moment = datetime.fromisoformat(line.when)
    except ValueError:
        return TableCell(line.when)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    iso = moment.isoformat(timespec="seconds")
    return TableCell(date_text(iso), value=moment.timestamp(), moment=iso, copy=iso)


def _note(lines: Sequence[IndexLine]) -> str:
    text = "Counts are findings: what the paper claims, tested. "
    return paragraph(
        text + "A result's name leads to its page." if any(line.page for line in lines) else text, style="note"
    )


def _how_many(n: int, of: int) -> str:
    return ("It is" if of == 1 else "All are") if n == of else f"{n} {'is' if n == 1 else 'are'}"


def _rows(lines: Sequence[JsonObject]) -> list[list[str]]:
    found = [_read(line) for line in lines]
    return [
        [line.name, line.shows, line.data_text, *(count_cell(count).text for count in _counts(line)), line.state]
        for line in found
    ]


def _read(line: JsonObject) -> IndexLine:
    try:
        return IndexLine(
            name=str(line["name"]),
            paper=str(line["paper"]),
            number=str(line["number"]),
            shows=str(line.get("shows") or ""),
            data=tuple(str(name) for name in line.get("data") or ()),
            is_run=line["state"] == "run",
            counts=FindingCounts(*(int(line.get(name) or 0) for name in FindingCounts._fields)),
            why=" ".join(str(line.get("why") or "").split()),
            page=line.get("page"),
            is_stand_in=bool(line.get("is_stand_in")),
            is_quick=bool(line.get("quick")),
            when=line.get("when"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"a line of the list of reproductions is damaged ({error!r}).") from error
