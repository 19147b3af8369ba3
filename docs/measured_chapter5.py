"""Tables of docs/findings.md about clients that lie [thesis, Chapter 5].

`benchmarks/chapter5` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

from functools import partial

from measured_chapter4 import claims
from tables import Tables

PARTS = {  # {part: (its name, rounds)}
    "mslr-like-2000": ("generated `mslr-like`, 500 queries, linear", 2_000),
    "mslr-like-2000-network": ("generated `mslr-like`, 500 queries, network", 2_000),
    "mslr-like-4000": ("generated `mslr-like`, 500 queries, linear", 4_000),
    "three-grades-1000": ("MQ2008, linear", 1_000),
    "short-lists-1000": ("generated `mq2007-like`, linear", 1_000),
}
TABLES: Tables = {"chapter5-claims": partial(claims, chapter="chapter5", parts=PARTS)}
