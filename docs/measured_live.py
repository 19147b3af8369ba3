"""Tables of docs/live.md: what one client can do to a federation, strangers to its server, and chance to all."""

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
        [
            row["attack"],
            format_count(round(row["most_mb"])),
            f"{row['longest_health_s']:.2f}",
            f"{row['health_within_1_s']} of {row['health_asked']}",
        ]
        for row in read(data, "hostile")
    ]
    header = ["attack", "memory of the server, MB", "longest answer of /v1/health, s", "answered or refused within 1 s"]
    return make_markdown(header, lines)


def chaos(data: Path) -> str:
    """What a federation bore, for each method."""
    runs = read(data, "chaos")["runs"]

    def pair(name: str, *keys: str) -> list[str]:
        return [", ".join(f"{run[name].get(key, 0):,}" for key in keys) for run in runs]

    rows = {
        "killed: server, clients": pair("killed", "server", "clients"),
        "old files put in place, and recognised": [f"{run['restored']}" for run in runs],
        "copied homes stopped: as a clone, by the ledger": pair("clones_stopped_by", "clone", "ledger"),
        "wall clocks that jumped: server, clients": pair("clock_jumps", "server", "clients"),
        "updates accepted": [f"{run['updates_accepted']:,}" for run in runs],
        "acknowledged and lost, counted twice": [f"{run['acknowledged_lost']}, {run['counted_twice']}" for run in runs],
        "rounds closed, below their quorum": [f"{run['rounds_closed']}, {run['rounds_abandoned']}" for run in runs],
        "rankers equal to the replay, bit for bit": [f"{run['rankers_equal_bit_for_bit']}" for run in runs],
    }
    return make_markdown(["", *(run["method"] for run in runs)], [[name, *cells] for name, cells in rows.items()])


def live_poison(data: Path) -> str:
    """What one poisoner at the norm bound costs with each rule, and whether the operator sees who it is."""
    measured = read(data, "live_poison")
    found, telling = measured["means"], {row["rule"] for row in measured["runs"] if row["gives_trust"]}
    rules = dict.fromkeys(row["rule"] for row in found)
    lies = [lie for lie in dict.fromkeys(row["lie"] for row in found) if lie != "none"]
    cells = {(row["rule"], row["lie"]): row for row in found}
    lines = []
    for rule in rules:
        attacked = [cells.get((rule, lie)) for lie in lies]  # None: not run
        named = [show_named(row) if rule in telling else "gives no trust" for row in attacked]
        qualities = [format_value(row and row["ndcg"]) for row in (cells[rule, "none"], *attacked)]
        lines.append([f"`{rule}`", *qualities, *named])
    header = ["rule", "nobody lies", *(f"`{lie}`" for lie in lies), *(f"named, `{lie}`" for lie in lies)]
    return make_markdown(header, lines)


def show_named(row: Row | None) -> str:
    return "–" if row is None else f"{row['named_alone']} of {row['n']}"


TABLES: Tables = {"poisoner": poisoner, "live_poison": live_poison, "hostile": hostile, "chaos": chaos}
