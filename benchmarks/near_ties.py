"""How many lists of the fused loop are not the plain round's, and how close the two documents were that changed places.

    python -m benchmarks.near_ties --searches 100000

The loop sums a score in another order than NumPy, so two documents whose score plus Gumbel draw differ by about the
last bit of float32 may be exchanged. Rankers are drawn at random, queries are those of a benchmark.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushrank.engine.inputs import join_queries
from hushrank.engine.search import draw_for, make_search, name_client, name_round, name_search, show_list
from hushrank.engine.vectors import multiply_rows
from hushrank.machine.bench import find_benchmark
from hushrank.rankers.policy import sample_ranking
from hushrank.recipes.resolve import resolve
from hushrank.streams import seed_key
from hushrank.types import Array

COMPARED = ("fpdgd-mq2007-like-1000x4", "fpdgd-mslr-like-1000x2")
K, SHOW = 10, 4  # SHOW: the first of the lanes whose keys draw lists


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks; default: {', '.join(COMPARED)}")
    parser.add_argument("--searches", type=int, default=100_000, help="of each benchmark (default: 100,000)")
    chosen = parser.parse_args(arguments)
    print(json.dumps([count_near_ties(name, chosen.searches) for name in chosen.names or COMPARED], indent=2))
    return 0


def count_near_ties(name: str, n: int) -> dict[str, Any]:
    train = resolve(find_benchmark(name).recipe).groups_of(0, 0)[0].train
    queries, generator = join_queries([train], K), np.random.default_rng(1)
    search, gaps = make_search(int(np.max(queries.lengths)), K, 5), list[float]()
    name_round(search, np.asarray(seed_key(1)), np.uint32(1))
    params = np.zeros(train.features.shape[1], np.float32)
    for client in range(n):
        if client % 4_000 == 0:
            params = generator.normal(size=len(params)).astype(np.float32)
        gaps += compare_lists(search, params, train.features[train.rows(client % train.n_queries)], client)
    return {"name": name, "searches": n, "other_lists": len(gaps), "largest_gap": max(gaps, default=0.0)}


def compare_lists(search: Any, params: Array, documents: Array, client: int) -> list[float]:
    """Nothing, or how far apart the two documents are, in float64, that the first different place has."""
    length = len(documents)
    name_client(search, client)
    lane = name_search(search, 0)
    draw_for(search, length, SHOW + lane)
    draws = search.draws[:length].copy()
    expected = sample_ranking(documents @ params, draws, k=K)
    multiply_rows(documents, params, search.scores)
    n_shown, _ = show_list(search, length, K, lane)
    differ = np.flatnonzero(search.places[:n_shown] != expected)
    if not len(differ):
        return []
    exact = documents.astype(np.float64) @ params - np.log(-np.log(draws.astype(np.float64)))
    return [float(abs(exact[search.places[differ[0]]] - exact[expected[differ[0]]]))]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
