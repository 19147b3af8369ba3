"""Tables of docs/live.md: what one client can do to a federation, and strangers to its server."""

from __future__ import annotations

from pathlib import Path

from tables import Row, Tables, make_markdown, read

from hushrank.look.numbers import format_count, format_value


def poisoner(data: Path) -> str:
    """How far one poisoner moves test nDCG@10 in one round."""
    found = read(data, "poisoner")
    rounds = sorted({row["round"] for row in found["falls"]})
    falls = {(row["norm"], row["round"]): row for row in found["falls"]}
    norms = sorted({row["norm"] for row in found["falls"]})
    lines = [[f"{norm:g}", *(describe_fall(falls[norm, round]) for round in rounds)] for norm in norms]
    return make_markdown(["longest update", *(f"round {round}" for round in rounds)], lines)


def describe_fall(row: Row) -> str:
    return f"{format_value(row['mean_fall'])} ({format_value(row['largest_fall'])})"


def hostile(data: Path) -> str:
    """What strangers cost a server."""
    lines = [
        [row["attack"], format_count(round(row["most_mb"])), f"{row['longest_health_s']:.2f}"]
        for row in read(data, "hostile")
    ]
    return make_markdown(["attack", "memory of the server, MB", "longest answer of /v1/health, s"], lines)


TABLES: Tables = {"poisoner": poisoner, "hostile": hostile}
