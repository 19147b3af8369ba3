"""Tables of docs/findings.md about personalised search [fedps].

`benchmarks/fedps` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measured_chapter4 import claims, list_parts
from tables import Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_value

PARTS = {"aol-like": ("generated `aol-like`, 300 users", 24)}  # {part: (its name, rounds of ten clients in a step)}
_METHODS = {
    "original-order": "the search engine's own order",
    "knrm": "KNRM, not personal",
    "central": "all logs in one place",
    "fedps": "federated, flat",
    "fedps-flat": "federated, flat, a tenth late",
    "fedps-proxy": "federated, proxies, a tenth late",
}


def quality(data: Path) -> str:
    """MAP of Table 3, and of the same users with lists of one length."""
    cells: dict[tuple[str, str], list[str]] = {}
    for _, result in list_parts(data, "fedps", PARTS):
        for row in result["rows"] if result["number"] == "Table 3" else ():
            if row["metric"] != "offline/MAP" or row["ours"] is None:
                continue
            found = cells.setdefault((_METHODS[row["method"]], (row.get("ranker") or "").upper()), ["–", "–"])
            found["variant" in row] = show_spread(row["ours"], row["std"])
    header = ["training", "model", "lists of 5, test lists of 50", "lists of 10 throughout"]
    return make_markdown(header, [[*place, *found] for place, found in cells.items()], n_words=2)


def curve(data: Path) -> str:
    """MAP after each of some rounds of one training in one place."""
    found = read(data, "fedps_curve")
    shown = [i for i, round in enumerate(found["rounds"]) if round in (1, 2, 4, 8, 12, 16)]
    header = ["after round", *(str(found["rounds"][i]) for i in shown)]
    names = {"vali/MAP": "validation searches, lists of 5", "offline/MAP": "test searches, lists of 50"}
    rows = [[words, *(format_value(found[name][i]) for i in shown)] for name, words in names.items()]
    return make_markdown(header, rows)


TABLES: Tables = {
    "fedps-claims": partial(claims, chapter="fedps", parts=PARTS),
    "fedps-quality": quality,
    "fedps-curve": curve,
}
