"""Tables of docs/findings.md about clients that differ [thesis, Chapter 4].

`benchmarks/chapter4` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shortened import is_in_part, shorten_test, tell_verdict
from tables import Row, Tables, make_markdown, show_spread

from hushrank.look.numbers import format_count, format_signed

PARTS = {  # {part: (its name, rounds)} in the order of the page
    "three-grades": ("MQ2008, linear", 10_000),
    "three-grades-network": ("MQ2008, network", 10_000),
    "three-grades-network-short": ("MQ2008, network", 200),
    "mslr-like": ("generated `mslr-like`, linear", 10_000),
    "intents": ("generated `intent-change-like`, linear", 10_000),
}
TYPES = {"thesis.figure4.3": "1", "thesis.figure4.6": "2", "thesis.figure4.8": "3", "thesis.figure4.9": "4"}
MEASURES = {"offline/nDCG@10": "", "personal/nDCG@10": ", own labels"}


def list_parts(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(part, result), table by table."""
    found = [(file.name.partition(".")[0], json.loads(file.read_text())) for file in (data / "chapter4").glob("*.json")]
    order = list(PARTS)
    yield from sorted(found, key=lambda pair: (pair[1]["number"].split()[1], pair[1]["name"], order.index(pair[0])))


def claims(data: Path) -> str:
    """Every claim that was judged, on everything that it was run on."""
    rows: dict[str, list[list[str]]] = {}
    for part, result in list_parts(data):
        name, rounds = PARTS[part]
        ran = f"{name}; {format_count(rounds)} rounds, {max(row['n'] for row in result['rows'])} trainings"
        for claim in (claim for claim in result["findings"] if claim["holds"] is not None or is_in_part(claim)):
            cells = [claim["claim"], ran, tell_verdict(claim), shorten_test(claim)]
            rows.setdefault(f"**`{result['name']}`** {result['shows']}.", []).append(cells)
    header = ["claim", "run on", "verdict", "how it was tested"]
    return "\n\n".join(text for name, cells in rows.items() for text in (name, make_markdown(header, cells, n_words=4)))


def gaps(data: Path) -> str:
    """nDCG@10 of the last ranker: the control, clients that differ, and their difference."""
    header = ["type", "run on", "user", "control", "clients that differ", "difference"]
    rows = []
    for part, result in list_parts(data):
        if result["name"] in TYPES:
            for words, control, other in match_controls(result["rows"]):
                cells = [show_spread(row["ours"], row["std"]) for row in (control, other)]
                first = f"{TYPES[result['name']]}{words}"
                loss = format_signed(other["ours"] - control["ours"])
                rows.append([first, PARTS[part][0], control["clicks"], *cells, loss])
    return make_markdown(header, rows, n_words=3)


def match_controls(rows: list[Row]) -> Iterator[tuple[str, Row, Row]]:
    """(what differs in words, control, clients that differ) of every user and measure."""
    ours = [row for row in rows if row["ours"] is not None and row["metric"] in MEASURES]
    for row in (row for row in ours if row["distribution"] == "non-iid"):
        same = ("clicks", "metric", "ranker", "behaviour")
        near = [r for r in ours if r["distribution"] == "iid" and all(r.get(k) == row.get(k) for k in same)]
        name = str(row.get("partition") or row.get("behaviour") or "")
        exact = [r for r in near if r.get("partition") == row.get("partition")]
        for control in (exact or near)[:1] if exact or not name.startswith("labels-1") else ():
            yield f"{', ' * bool(name)}{name}{MEASURES[row['metric']]}", control, row


TABLES: Tables = {"chapter4-claims": claims, "chapter4-gaps": gaps}
