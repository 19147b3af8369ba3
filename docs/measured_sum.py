"""Tables of docs/secure_sum.md: what a secure sum costs, and what a lying server got in fuzzed runs."""

from __future__ import annotations

from pathlib import Path

from tables import Row, Tables, make_markdown, read

from hushrank.look.numbers import format_count

PHASES = ("advertise", "share", "mask", "sign", "reveal")


def cost(data: Path) -> str:
    """Of one client, and of the server."""
    header = [
        "clients x numbers (silent)",
        "shares with",
        "client, s",
        "client sends, kB",
        "client receives, kB",
        "server, s",
    ]
    return make_markdown(header, [describe_cost(row) for row in read(data, "secure_sum")["secure_sum"]], n_words=2)


def describe_cost(row: Row) -> list[str]:
    sizes = [format_count(row[name]) for name in ("n_clients", "n_entries", "n_silent")]
    total, is_full = row["total"], row["n_neighbours"] == row["n_clients"] - 1
    return [
        "{} x {} ({})".format(*sizes),
        "all" if is_full else f"{row['n_neighbours']} neighbours",
        f"{total['client_ms'] / 1e3:.2f}",
        *(format_count(round(total[name] / 1e3)) for name in ("bytes_sent", "bytes_received")),
        f"{total['server_ms'] / 1e3:.1f}",
    ]


def phases(data: Path) -> str:
    """Of one client among 1,000, with neighbours and with all."""
    rows = [row for row in read(data, "secure_sum")["secure_sum"] if row["n_clients"] == 1000]
    header = [
        "phase",
        *(f"{name}, {graph}" for graph in ("neighbours", "all") for name in ("ms", "kB sent", "kB received")),
    ]
    lines = [[phase, *(cell for row in rows for cell in describe_phase(row["phases"][phase]))] for phase in PHASES]
    return make_markdown(header, lines)


def describe_phase(row: Row) -> list[str]:
    return [f"{row['client_ms']:.0f}", f"{row['bytes_sent'] / 1e3:.1f}", f"{row['bytes_received'] / 1e3:.1f}"]


def fuzzed(data: Path) -> str:
    """What the server got in all runs."""
    found = read(data, "secure_sum_fuzz")
    rows = [
        ["runs, of these with neighbours", f"{found['runs']:,}, {found['runs_with_neighbours']:,}"],
        ["messages that honest clients answered, and refused", f"{found['answered']:,}, {found['refused']:,}"],
        ["sums over enough honest clients that came out all the same", f"{found['sums']:,}"],
        ["honest clients whose two secrets the server held", f"{found['both secrets']:,}"],
        ["sums over fewer honest clients than agreed", f"{found['sums too small']:,}"],
        [
            "other sums, differences or single updates that were free of masks",
            f"{found['opened by combining']:,}",
        ],
        ["clients that revealed twice", f"{found['revealed twice']:,}"],
        [
            "older states or second beginnings that went through",
            f"{found['older state accepted'] + found['begun twice']:,}",
        ],
    ]
    return make_markdown(["what was counted", "number"], rows)


TABLES: Tables = {"secure-sum-cost": cost, "secure-sum-phases": phases, "secure-sum-fuzz": fuzzed}
