"""Tables of docs/findings.md about clients that are forgotten [thesis, Chapter 6].

`benchmarks/chapter6` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measured_chapter4 import claims, list_parts
from tables import USERS, Tables, make_markdown, show_spread

PARTS = {  # {part: (its name, rounds)}
    "three-grades": ("MQ2008, linear", 10_000),
    "five-grades": ("generated `mslr-like`, linear", 10_000),
}


def grid(data: Path) -> str:
    """Table 6.2: one row per data set, number of local steps and interval."""
    cells: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for part, result in list_parts(data, "chapter6", PARTS):
        for row in result["rows"] if result["number"] == "Table 6.2" else ():
            steps, interval = (str(row.get(key) or "") for key in ("local_steps", "interval"))
            place = (PARTS[part][0], row["configuration"], steps, interval)
            cells.setdefault(place, {})[row["clicks"]] = show_spread(row["ours"], row["std"])
    rows = [[*place, *(found[user] for user in USERS)] for place, found in cells.items()]
    return make_markdown(["run on", "ranker", "n'", "dt", *USERS], rows, n_words=2)


TABLES: Tables = {"chapter6-claims": partial(claims, chapter="chapter6", parts=PARTS), "chapter6-grid": grid}
