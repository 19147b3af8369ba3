"""Tables of docs/findings.md about personalised search [fedps].

`benchmarks/fedps` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measured_chapter4 import claims, list_parts
from tables import Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_p, format_signed, format_value

PARTS = {  # {part: (its name, rounds of ten clients in a step)}; Differs: HTPS has twice as many, weeks 14
    "aol-like": ("generated `aol-like`, 300 users", 24),
    "commercial-like": ("generated `commercial-like`, 300 users", 72),
}
_METHODS = {
    "original-order": "the search engine's own order",
    "knrm": "KNRM, not personal",
    "central": "all logs in one place",
    "fedps": "federated, flat",
    "group-user": "in one place, ids shared by 100 users",
    "cover-query": "in one place, cover queries mixed in",
    "fedps-flat": "federated, flat, a tenth late",
    "fedps-proxy": "federated, proxies, a tenth late",
}


def quality(data: Path) -> str:
    """MAP of Table 3, and of the same users with lists of one length."""
    columns = {("aol-like", False): 0, ("aol-like", True): 1, ("commercial-like", False): 2}
    cells: dict[tuple[str, str], list[str]] = {}
    for part, result in list_parts(data, "fedps", PARTS):
        for row in result["rows"] if result["number"] == "Table 3" else ():
            if row["metric"] != "offline/MAP" or row["ours"] is None:
                continue
            found = cells.setdefault((_METHODS[row["method"]], (row.get("ranker") or "").upper()), ["–"] * 3)
            found[columns[part, "variant" in row]] = show_spread(row["ours"], row["std"])
    header = ["training", "model", "`aol-like`", "`aol-like`, lists of 10 throughout", "`commercial-like`"]
    return make_markdown(header, [[*place, *found] for place, found in cells.items()], n_words=2)


def weeks(data: Path) -> str:
    """MAP above the engine's order after each stage of Figure 4."""
    result = next(result for _, result in list_parts(data, "fedps", PARTS) if result["number"] == "Figure 4")
    rows: dict[tuple[str, str], list[str]] = {}
    for row in result["rows"]:
        rows.setdefault((_METHODS[row["method"]], row["updating"]), []).append(format_signed(row["ours"], decimals=3))
    longer = read(data, "fedps_weeks")
    name = f"{_METHODS['central']}, {longer['rounds']} rounds a week instead of 2"
    rows[name, "retrain"] = [format_signed(gain, decimals=3) for gain in longer["gains"]]
    n_stages = max(map(len, rows.values()))
    header = ["training", "updating", *(f"week {stage}" for stage in range(1, n_stages + 1))]
    return make_markdown(header, [[*place, *found] for place, found in rows.items()], n_words=2)


def curve(data: Path) -> str:
    """MAP after each of some rounds of one training in one place."""
    found = read(data, "fedps_curve")
    shown = [i for i, round in enumerate(found["rounds"]) if round in (1, 2, 4, 8, 12, 16)]
    header = ["after round", *(str(found["rounds"][i]) for i in shown)]
    names = {"vali/MAP": "validation searches, lists of 5", "offline/MAP": "test searches, lists of 50"}
    rows = [[words, *(format_value(found[name][i]) for i in shown)] for name, words in names.items()]
    return make_markdown(header, rows)


def late(data: Path) -> str:
    """FedPSFlat and FedPSProxy where some clients are late, on populations of their own."""
    rows = [
        [
            f"{row['late']:.0%}",
            f"{len(row['populations'])} x {found_users(row)}",
            format_value(row["flat"]),
            format_value(row["proxy"]),
            f"{format_signed(row['difference'])} ± {format_value(row['standard_error'])}",
            format_p(row["not_below"]["p"]),
            format_p(row["above"]["p"]),
        ]
        for row in read(data, "late_clients")["rows"]
    ]
    header = ["late", "populations x users", "flat", "proxies", "difference for a user", "p: not below", "p: differs"]
    return make_markdown(header, rows, n_words=1)


def found_users(row: Row) -> int:
    """Users of a population who searched in the test week, on average."""
    return round(row["n_users"] / len(row["populations"]))


TABLES: Tables = {
    "fedps-late": late,
    "fedps-claims": partial(claims, chapter="fedps", parts=PARTS),
    "fedps-quality": quality,
    "fedps-curve": curve,
    "fedps-weeks": weeks,
}
