"""Rows of a result: ours beside the published numbers of the same cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushrank.files import Json, JsonObject
from hushrank.reproduce.literature import PublishedRow
from hushrank.reproduce.reproduction import POPULATION, PUBLISHED_CODE, Reproduction
from hushrank.reproduce.verdicts import Cell, Finished
from hushrank.runs.result import spread

_NUMBERS = ("ours", "std", "n", "by_population", "published", "difference")  # of a row


def is_meant(row: PublishedRow, cell: Cell, metric: str, metrics: Mapping[str, Cell]) -> bool:
    """Whether a published number is that of a cell and metric; of one that we call otherwise, the cell decides.

    Variants of our own have none.
    """
    if cell.get("variant") not in (None, PUBLISHED_CODE):
        return False
    is_other = row.metric in metrics and row.metric != metric
    return not is_other and all(cell.get(key) == value for key, value in row.cell.items())


def measure(reproduction: Reproduction, trial: Finished, user: str, name: str) -> JsonObject | None:
    """{"mean", "std", "values"} of a metric of ours; None where such data have none."""
    if reproduction.read is None:
        return trial.metric(user, name)
    values = [{"value": value} for value in reproduction.read(trial, user, name).values()]
    return spread(values) if values else None


def beside(metric: JsonObject | None, published: float | None) -> Json:
    ours = None if metric is None else metric["mean"]
    return {
        "ours": ours,
        "std": None if metric is None else metric["std"],
        "n": 0 if metric is None else len(metric["values"]),
        "published": published,
        "difference": subtract(ours, published),
    }


def subtract(ours: float | None, published: float | None) -> float | None:
    return None if ours is None or published is None else ours - published


def name_row(row: Json, but: str) -> frozenset[tuple[str, str]]:
    """What a row is about, one key apart."""
    return frozenset((key, str(value)) for key, value in row.items() if key not in (*_NUMBERS, but))


def join_populations(rows: Sequence[Json]) -> list[Json]:
    """One row for all generated populations: the mean of theirs, and their spread."""
    groups: dict[frozenset[tuple[str, str]], list[Json]] = {}
    for row in rows:
        if POPULATION in row:
            groups.setdefault(name_row(row, POPULATION), []).append(row)
    joined = {id(group[0]): join_group(group) for group in groups.values()}
    return [joined.get(id(row), row) for row in rows if POPULATION not in row or id(row) in joined]


def join_group(group: Sequence[Json]) -> Json:
    first = {key: value for key, value in group[0].items() if key != POPULATION}
    if len(group) == 1:
        return first
    each = {str(row[POPULATION]): row["ours"] for row in group}
    together = beside(spread([{"value": value} for value in each.values()]), first["published"])
    return {**first, **together, "by_population": each}


def join_variants(rows: Sequence[Json]) -> list[Json]:
    """The published code's variant beside ours, not below it."""
    as_published = {name_row(row, "variant"): row for row in rows if row.get("variant") == PUBLISHED_CODE}
    ours = [row for row in rows if row.get("variant") != PUBLISHED_CODE]
    found = [(row, None if "variant" in row else as_published.get(name_row(row, "variant"))) for row in ours]
    return [
        row if code is None else {**row, "as_published": code["ours"], "as_published_std": code["std"]}
        for row, code in found
    ]
