"""What this processor could do at most, and where the time of an interaction goes.

    python -m benchmarks.limits --json docs/benchmarks/limits.json

One thread, in CPU seconds. Measures a copy (memory bandwidth), a chain of dependent operations (the clock), and the
parts of the fused loop one after another on the same random queries of `mq2007-like`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numba import njit

from hushrank.engine.inputs import initial_params, initial_state
from hushrank.engine.large_pages import use_large_pages
from hushrank.engine.plan import make_plans
from hushrank.engine.search import make_search
from hushrank.engine.simulate import load_engine
from hushrank.engine.vectors import fill_masses, fill_times, fill_uniform, multiply_rows, pick_first
from hushrank.files import write_json
from hushrank.machine.bench import finish
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.types import Array

_TIMINGS = 7
_COPIED = 512 << 20  # bytes; Why: far beyond every cache
_STEPS = 50_000_000
_SEARCHES = 200_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write the result")
    arguments = parser.parse_args()
    found = {"copy_gb_per_second": measure_copy(), "clock_ghz": measure_clock(), **measure_parts()}
    if arguments.json:
        write_json(arguments.json, found)
    json.dump(found, sys.stdout, indent=2)


def time_call(call: Callable[[], object]) -> float:
    """Median CPU seconds, after a warm-up."""
    call()
    seconds = []
    for _ in range(_TIMINGS):
        began = time.thread_time()
        call()
        seconds.append(time.thread_time() - began)
    return median(seconds)


def time_in_turn(calls: list[Callable[[], object]]) -> Array:
    """[n_timings, n_calls] CPU seconds. Why in turn: clock and neighbours drift, differences within a row less."""
    for call in calls:
        call()
    marks = np.zeros((_TIMINGS, len(calls)))
    for row in marks:
        for i, call in enumerate(calls):
            began = time.thread_time()
            call()
            row[i] = time.thread_time() - began
    return marks


def measure_copy() -> float:
    """GB per second, reading and writing counted."""
    source = np.ones(_COPIED // 8)
    target = np.zeros_like(source)
    return round(2 * _COPIED / time_call(lambda: np.copyto(target, source)) / 1e9, 1)


def _chain(n: int, word: int) -> int:
    for _ in range(n):
        word ^= word << 13
        word ^= word >> 7
        word ^= word << 17
    return word


def measure_clock() -> float:
    """GHz, from shifts and exclusive ors that must wait for each other: six cycles a step."""
    chain = njit(_chain)
    return round(6 * _STEPS / time_call(lambda: chain(_STEPS, np.uint64(88172645463325252))) / 1e9, 2)


def measure_parts() -> dict[str, Any]:
    """Nanoseconds of an interaction, by part: each is the difference of two loops."""
    changes = {"data": "mq2007-like", "folds": [1], "n_clients": _SEARCHES, "interactions": 1, "rounds": 1}
    setting = resolve(change_recipe(NAMED["fpdgd"], changes))
    plan = make_plans(setting, platform="cpu")[0]
    train, params = setting.dataset.folds[0].train, initial_params(setting, plan.cells[0])
    chosen = np.random.default_rng(0).integers(train.n_queries, size=_SEARCHES)
    search = njit(nogil=True)(_search)
    queries = (use_large_pages(train.features), train.starts[:-1].copy(), train.lengths)
    advance, start = load_engine("numba", "cpu", threads=1)(setting, plan), initial_state(setting, plan)
    loops = [partial(search, depth, params, *queries, chosen) for depth in range(4)]
    marks = time_in_turn([*loops, lambda: finish(advance(start, 1, 1))])
    parts = np.median(np.diff(marks, axis=1), axis=0) / _SEARCHES * 1e9
    names = ("scores", "draws", "list", "clicks_and_learning")
    return {
        "mean_length": round(float(train.lengths[chosen].mean()), 1),
        "n_features": train.n_features,
        "features_mb": round(train.features.nbytes / 1e6, 1),
        "parts_ns": {name: round(float(part)) for name, part in zip(names, parts, strict=True)},
    }


def _search(depth: int, params: Array, features: Array, starts: Array, lengths: Array, chosen: Array) -> float:
    """Depth 1 scores, 2 also draws, 3 also samples a list."""
    search, total = make_search(np.max(lengths), 10, 1), 0.0
    search.scores[:], search.draws[:] = 1, 0.5
    for i in range(len(chosen)):
        begin, length = starts[chosen[i]], lengths[chosen[i]]
        if depth > 0:
            multiply_rows(features[begin : begin + length], params, search.scores)
        if depth > 1:
            fill_uniform(search.draws, length, (np.uint32(i), np.uint32(7)))
        if depth > 2 and fill_masses(search.scores, length, search.masses):
            fill_times(search.draws, search.masses, length, search.times)
            pick_first(search.times, length, 10, search.places, search.candidates, search.found)
        total += search.scores[0] + search.draws[0]
    return total


if __name__ == "__main__":
    main()
