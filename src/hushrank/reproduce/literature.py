"""The tables and figures of the papers as data: what they print and what their texts claim, one file per paper.

A row names its cell by the recipe's words where there is one (data, clicks, ranker, n_clients, interactions, batch).
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hushrank.files import Json, JsonObject

FOLDER = Path(__file__).parent / "published"
NEEDS = (  # beyond training FPDGD or PDGD without noise
    *("foltr-es", "privacy=paper", "offline-baselines", "non-iid", "fedprox", "fedper", "data-sharing"),
    *("attacks", "robust-aggregation", "unlearning", "fedps"),
    *("proxies", "group-users", "cover-queries"),
)
_NAME = re.compile(r"[a-z-]+\.(table|figure)\d+(\.\d+)?")
_CELL_KEY = re.compile(r"[a-z][a-z0-9_]*")
_RESULT = {"name": str, "shows": str, "data": list, "metric": str, "needs": list, "finding": list}
_FINDING = {"id": str, "claim": str, "where": str}


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One printed number."""

    cell: Mapping[str, str | int | float]  # what names it: {"data": "mq2007", "clicks": "perfect", ...}
    published: float
    where: str | None  # where it was found, when not in the table itself
    metric: str  # the result's, unless the row has its own


@dataclass(frozen=True, slots=True)
class Claim:
    """What a text says about a result, in words that can be tested."""

    id: str  # unique within the result
    claim: str
    where: str  # the section that says so


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One table or figure."""

    name: str  # <paper>.<table|figure><number>
    paper: str  # its key in papers.bib
    aliases: tuple[str, ...]  # the same result in another paper
    shows: str  # what a reader learns from it
    data: tuple[str, ...]  # catalogue names; empty where no data set is needed
    metric: str
    needs: tuple[str, ...]  # words of NEEDS
    note: str  # what is open or wrong in the text
    rows: tuple[PublishedRow, ...]  # empty where the paper prints no number
    findings: tuple[Claim, ...]


@cache
def published_results() -> dict[str, PublishedResult]:
    """Every result of every paper by its name."""
    return read_results(sorted(FOLDER.glob("*.toml")))


def find_result(name: str) -> PublishedResult:
    """A result by its name, or by the name that it has in another paper."""
    known = {each: result for result in published_results().values() for each in (result.name, *result.aliases)}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "hushrank reproduce --list shows all names."
    raise ValueError(f"no published result is called {name!r}; {hint}")


def read_results(paths: Iterable[Path]) -> dict[str, PublishedResult]:
    """Read files; refuse what is unknown, missing, named twice or not a finite number."""
    results: dict[str, PublishedResult] = {}
    names: list[str] = []
    for path in paths:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path.name} is not a TOML file: {error}.") from error
        check_keys(content, {"paper": str, "result": list}, at=path.name)
        for table in content["result"]:
            at = f"{path.name}, {table.get('name', 'a result without name')}"
            result = read_result(table, paper=content["paper"], at=at)
            names += [result.name, *result.aliases]
            check_unique(names, at=at)
            results[result.name] = result
    return results


def read_result(table: JsonObject, *, paper: str, at: str) -> PublishedResult:
    check_keys(table, _RESULT, {"aliases": list, "note": str, "row": list}, at=at)
    names = (table["name"], *table.get("aliases", ()))
    if not all(map(_NAME.fullmatch, names)) or not table["name"].startswith(f"{paper}."):
        raise ValueError(f"{at}: {', '.join(names)} must be <paper>.<table|figure><number>, the first of {paper}.")
    if unknown := set(table["needs"]) - set(NEEDS):
        raise ValueError(f"{at}: needs {', '.join(sorted(unknown))}, must be among {', '.join(NEEDS)}.")
    for finding in table["finding"]:
        check_keys(finding, _FINDING, at=f"{at}, a finding")
    findings = tuple(Claim(**finding) for finding in table["finding"])
    rows = tuple(read_row(row, metric=table["metric"], at=at) for row in table.get("row", ()))
    check_unique([finding.id for finding in findings], at=at)
    check_unique([f"{row.metric} of {dict(sorted(row.cell.items()))}" for row in rows], at=at)
    rest: Json = {key: table.get(key, "") for key in ("name", "shows", "metric", "note")}
    rest |= {key: tuple(table.get(key, ())) for key in ("aliases", "data", "needs")}
    return PublishedResult(paper=paper, rows=rows, findings=findings, **rest)


def read_row(table: JsonObject, *, metric: str, at: str) -> PublishedRow:
    """`published`, perhaps `where` and `metric`; every other key names the cell."""
    cell = {key: value for key, value in table.items() if key not in ("published", "where", "metric")}
    named = dict.fromkeys(filter(_CELL_KEY.fullmatch, cell), (str, int, float))
    check_keys(table, {"published": (int, float)}, {"where": str, "metric": str, **named}, at=f"{at}, row {cell}")
    return PublishedRow(cell, float(table["published"]), table.get("where"), table.get("metric", metric))


def check_keys(table: JsonObject, required: JsonObject, optional: JsonObject | None = None, *, at: str) -> None:
    """Refuse unknown keys, missing keys and values that are of another kind or not finite."""
    kinds = {**required, **(optional or {})}
    if unknown := table.keys() - kinds.keys():
        raise ValueError(f"{at}: unknown key {min(unknown)!r}; known: {', '.join(kinds)}.")
    if missing := required.keys() - table.keys():
        raise ValueError(f"{at}: the key {min(missing)!r} is missing.")
    for key, value in table.items():
        is_number = isinstance(value, int | float)
        if not isinstance(value, kinds[key]) or (is_number and not math.isfinite(value)):
            raise ValueError(f"{at}: {key} is {value!r}, which is of a wrong kind or not a finite number.")


def check_unique(names: list[str], *, at: str) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{at}: {twice[0]!r} stands there twice.")
