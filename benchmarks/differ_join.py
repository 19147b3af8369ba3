"""Parts of `benchmarks.differ` that ran side by side, as one file.

    python -m benchmarks.differ_join PART.json ... --json docs/benchmarks/differ.json [--least 5]

A part has the rows of one or more data sets (`benchmarks.differ --json PART.json`). Of each setting and user those data
sets are kept that every remedy has; a remedy with fewer than --least of them is left out, and so is a row with fewer
than two remedies: then what the file had stays. A row that has fewer data sets, or lacks a remedy, of the file's is
refused. Prints how many data sets each setting has.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.differ import join_rows, name_cell, refuse_less
from hushrank.files import Json, read_json, write_json


def join_parts(parts: Sequence[Sequence[Json]], *, least: int) -> list[Json]:
    """Rows whose remedies all have the same data sets, at least so many."""
    rows: list[Json] = []
    for part in parts:
        rows = join_rows(rows, part)
    return [row for row in (keep_common(row, least=least) for row in rows) if row["remedies"]]


def keep_common(row: Json, *, least: int) -> Json:
    """Without remedies that have too few data sets, and without data sets that another remedy does not have."""
    enough = {name: each["values"] for name, each in row["remedies"].items() if len(each["values"]) >= least}
    common = set.intersection(*(set(values) for values in enough.values())) if enough else set[str]()
    if len(common) < least or len(enough) < 2:
        return {**row, "remedies": {}}
    order = sorted(common, key=int)
    return {**row, "remedies": {name: {"values": {one: v[one] for one in order}} for name, v in enough.items()}}


def put_rows(kept: Sequence[Json], rows: Sequence[Json]) -> list[Json]:
    """New rows instead of those of the same cell, which may not have had more.

    Why not added to them: numbers of two versions of the code are not mixed.
    """
    new = {name_cell(row): row for row in rows}
    found = [new.pop(name_cell(row), row) for row in kept]
    refuse_less(kept, found)
    return [*found, *new.values()]


def describe(rows: Sequence[Json]) -> list[str]:
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = {name: len(each["values"]) for name, each in row["remedies"].items()}
        found.setdefault(row["setting"], counts)
    return [f"{setting}: {', '.join(f'{k} {n}' for k, n in counts.items())}" for setting, counts in found.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--least", type=int, default=5, help="data sets of a remedy")
    chosen = parser.parse_args(arguments)
    rows = join_parts([read_json(part)["rows"] for part in chosen.parts], least=chosen.least)
    print("\n".join(describe(rows)))
    kept: Json = (
        read_json(chosen.json) if chosen.json.exists() else {"about": "python -m benchmarks.differ", "rows": []}
    )
    write_json(chosen.json, {**kept, "rows": put_rows(kept["rows"], rows)})


if __name__ == "__main__":
    main()
