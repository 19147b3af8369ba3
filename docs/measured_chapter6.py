"""Tables of docs/findings.md about clients that are forgotten [thesis, Chapter 6].

`benchmarks/chapter6` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measured_chapter4 import claims, list_parts
from tables import USERS, Tables, make_markdown, show_spread

PARTS = {"three-grades": ("MQ2008, linear", 10_000)}  # {part: (its name, rounds)}


def grid(data: Path) -> str:
    """Table 6.2: one row per number of local steps and interval."""
    (result,) = (result for _, result in list_parts(data, "chapter6", PARTS) if result["number"] == "Table 6.2")
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in result["rows"]:
        place = (row["configuration"], str(row.get("local_steps") or ""), str(row.get("interval") or ""))
        cells.setdefault(place, {})[row["clicks"]] = show_spread(row["ours"], row["std"])
    rows = [[*place, *(found[user] for user in USERS)] for place, found in cells.items()]
    return make_markdown(["ranker", "n'", "dt", *USERS], rows)


TABLES: Tables = {"chapter6-claims": partial(claims, chapter="chapter6", parts=PARTS), "chapter6-grid": grid}
