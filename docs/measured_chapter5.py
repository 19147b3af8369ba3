"""Tables of docs/findings.md about clients that lie [thesis, Chapter 5].

`benchmarks/chapter5` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measured_chapter4 import claims, list_parts
from tables import Tables, make_markdown

from hushrank.look.numbers import format_count
from hushrank.reproduce.listing import list_results

PARTS = {  # {part: (its name, rounds)}
    "mslr-like-2000": ("generated `mslr-like`, 500 queries, linear", 2_000),
    "mslr-like-2000-network": ("generated `mslr-like`, 500 queries, network", 2_000),
    "mslr-like-4000": ("generated `mslr-like`, 500 queries, linear", 4_000),
    "three-grades-1000": ("MQ2008, linear", 1_000),
    "short-lists-1000": ("generated `mq2007-like`, linear", 1_000),
}
_PUBLISHED = 10_000  # rounds


def times(data: Path) -> str:
    """Seconds of every kept command, and the published rounds at the same pace."""
    rows = []
    for part, result in list_parts(data, "chapter5", PARTS):
        name, rounds = PARTS[part]
        whole = result["seconds"] * _PUBLISHED / rounds / 60
        rows.append([result["number"], name, format_count(rounds), f"{result['seconds']:.0f}", f"{whole:.0f}"])
    header = ["figure", "run on", "rounds", "seconds", f"minutes for {_PUBLISHED:,} rounds at that pace"]
    return make_markdown(header, rows, n_words=2)


def estimated_times(data: Path) -> str:
    """What is said of the whole figures before anything is run, beside what the parts took."""
    told = {result["name"]: result["seconds"] / 60 for result in list_results(cores=2)}
    figures: dict[str, float] = {}
    for part, result in list_parts(data, "chapter5", PARTS):
        if part.startswith("mslr-like"):
            at_pace = result["seconds"] * _PUBLISHED / PARTS[part][1] / 60
            figures[result["name"]] = figures.get(result["name"], 0.0) + at_pace
    said = "; ".join(
        f"Figure {name.removeprefix('thesis.figure')} {told[name]:.0f} minutes ({found:.0f} by this table)"
        for name, found in figures.items()
    )
    return (
        f"For all of MSLR-WEB10K `hushrank reproduce --list` estimates, on two idle cores: {said}. It counts searches "
        "and looks, and not what attacks, and rules other than the mean, add. Figure 5.3 has most of both: take the "
        "longer time."
    )


TABLES: Tables = {
    "chapter5-claims": partial(claims, chapter="chapter5", parts=PARTS),
    "chapter5-times": times,
    "chapter5-times-estimated": estimated_times,
}
