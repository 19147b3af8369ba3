"""What forgetting clients of a run reached and took: a section of the report, and blocks for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from hushrank.files import JsonObject
from hushrank.look.numbers import format_bytes, format_count, format_seconds, format_spread, format_value
from hushrank.reports.markup import TableCell, definition_list, paragraph, section, table
from hushrank.reports.summary import RunSummary
from hushrank.reports.terminal import Block, Column
from hushrank.reports.wording import OFFLINE, count_text, some_of

_QUALITY = {f"before/{OFFLINE}": "before", OFFLINE: "after", f"retrained/{OFFLINE}": "retrained"}
_DISTANCES = {
    "distance/l2": "L2",
    "distance/cosine": "cosine",
    "distance/rbo": "RBO",
    "distance/tau": "Kendall's tau",
}
_WORK = {"searches": format_count, "rounds": format_count, "bytes": format_bytes, "seconds": format_seconds}
_COLUMNS = {"run": "the run", "forgetting": "forgetting", "repeated": "of it, repeating", "retrained": "retraining"}


class _Grid(NamedTuple):
    """A table, wherever it is shown."""

    name: str  # stands above it
    columns: tuple[str, ...]  # the first holds words, the others numbers
    rows: tuple[tuple[str, ...], ...]


def forgetting_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Who was forgotten in each run that did so, and how well."""
    parts = []
    for run, label in zip(runs, labels, strict=True):
        if run.forgetting:
            heading = [paragraph(f"{label}:")] if len(runs) > 1 else []
            tables = [_table(grid) for grid in _grids(run)]
            said = [paragraph(text) for text in forgetting_sentences(run)]
            record = "<h3>Record</h3>" + definition_list(_facts(run.forgetting))
            parts += [*heading, *said, *tables, record]
    note = paragraph(_NOTE, style="note")
    return section("What was forgotten", *parts, note) if parts else ""


def forgetting_blocks(run: RunSummary) -> list[Block]:
    """The same for a terminal."""
    first, *others = _grids(run)
    grids = [((*forgetting_sentences(run), "", first.name), first), *(((grid.name,), grid) for grid in others)]
    return [
        Block(
            tuple(sentences), [Column(grid.columns[0]), *(Column(text, True) for text in grid.columns[1:])], grid.rows
        )
        for sentences, grid in grids
    ]


def forgetting_sentences(run: RunSummary) -> tuple[str, ...]:
    """Who, how, what of them may be left, and what it costs those who stay."""
    about = run.forgetting
    clients, how = about["newly"], about["method"]
    many = f"{len(clients):,} clients ({some_of([*map(str, clients)])}) were"
    who = f"Client {clients[0]} was" if len(clients) == 1 else many
    staying = run.recipe["n_clients"] - len(about["clients"])
    verb = "stays" if staying == 1 else "stay"
    first = f"{who} forgotten by method {how}; {count_text(staying, 'client')} {verb}. {about['statement']}"
    spent = about["privacy_spent"]
    if spent is None:
        return (first,)
    rounds = " + ".join(f"{each:,}" for each in spent["rounds"])
    charged = (
        f"Privacy of those who stay: epsilon {spent['run_epsilon']:.4g} for the run alone, {spent['epsilon']:.4g} for "
        f"{rounds} rounds together ({', '.join(spent['trainings'])})."
    )
    return first, charged


def _grids(run: RunSummary) -> list[_Grid]:
    quality = _metric_grid(run, "Test nDCG@10", _QUALITY)
    distances = _metric_grid(run, "Distance to the retrained ranker", _DISTANCES)
    return [quality, *([distances] if len(distances.columns) > 1 else []), _work_grid(run.forgetting["work"])]


def _metric_grid(run: RunSummary, name: str, wanted: dict[str, str]) -> _Grid:
    known = {key: text for key, text in wanted.items() if any(key in named for named in run.metrics.values())}
    rows = [
        (user, *(format_spread(named[key].mean, named[key].std) if key in named else "" for key in known))
        for user, named in run.metrics.items()
    ]
    return _Grid(name, ("user", *known.values()), tuple(rows))


def _work_grid(work: JsonObject) -> _Grid:
    known = {key: text for key, text in _COLUMNS.items() if key in work["rounds"]}
    rows = [
        (name, *(write(work[name][key]) for key in known), _ratio_text(work[name]["ratio"]))
        for name, write in _WORK.items()
    ]
    return _Grid("Work", ("what", *known.values(), "run / forgetting"), tuple(rows))


def _ratio_text(ratio: float | None) -> str:
    return "" if ratio is None else f"{format_value(ratio, decimals=1)}×"


def _table(grid: _Grid) -> str:
    headings = [TableCell(grid.columns[0]), *(TableCell(text, style="number") for text in grid.columns[1:])]
    rows = [[TableCell(row[0]), *(TableCell(cell, style="number") for cell in row[1:])] for row in grid.rows]
    return f"<h3>{escape(grid.name)}</h3>" + table(headings, rows, label=grid.name)


def _facts(about: JsonObject) -> list[tuple[str, str]]:
    record = about["record"]
    return [
        ("pseudonyms", ", ".join(record["clients"])),
        ("when", record["when"]),
        ("ranker before", record["from"]),
        ("ranker after", record["to"]),
        ("signed by", record["public_key"]),
        ("check it", "hushrank forget --verify record.json"),
    ]


_NOTE = (
    "Rounds are of one training; searches and bytes are of all users, folds and repeats. Seconds were measured, on "
    "whatever machine each training ran. L2 is the distance in parameters, in lengths of the retrained ranker; cosine, "
    "RBO (rank-biased overlap, p = .9, test queries) and Kendall's tau are 1 where both are the same."
)
