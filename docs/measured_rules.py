"""The table of docs/aggregation.md: what each rule costs."""

from __future__ import annotations

from pathlib import Path

from tables import Row, Tables, make_markdown, read

from hushrank.look.numbers import format_bytes, format_count


def cost(data: Path) -> str:
    """CPU time of a round and memory beside the updates, by the size of the round."""
    found = read(data, "rules")["rules"]
    sizes = list(dict.fromkeys((row["n_clients"], row["n_params"]) for row in found))
    cells = {(name_row(row), row["n_clients"], row["n_params"]): describe_cost(row) for row in found}
    header = ["`aggregation`", *(f"{format_count(n)} x {format_count(p)}" for n, p in sizes)]
    rules = dict.fromkeys(name_row(row) for row in found)
    return make_markdown(header, [[rule, *(cells[rule, *size] for size in sizes)] for rule in rules])


def name_row(row: Row) -> str:
    return f"`{row['rule']}`" + (f", {row['case']}" if "case" in row else "")


def describe_cost(row: Row) -> str:
    memory = format_bytes(row["peak_bytes"]) if row["peak_bytes"] > 1e6 else "< 1 MB"
    return f"{show_time(row['cpu_seconds'])}, {memory}"


def show_time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


TABLES: Tables = {"rules-cost": cost}
