"""One round of 10^3 to 10^6 clients x 1 interaction: how time and memory grow.

    python -m benchmarks.scale --json docs/benchmarks/scale.json

Prints a Markdown table. Each size is measured in a process of its own, after compilation; its memory is the largest
resident size of the whole process, data and libraries included. Ends with 1 when 10^6 clients need 4 GB or more, or
when ten times the clients take much more than ten times the time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fresh import run_fresh
from hushrank.engine.inputs import initial_state
from hushrank.engine.plan import make_plans
from hushrank.engine.simulate import Options, load_engine, name_engine
from hushrank.files import write_json
from hushrank.machine.bench import finish, peak_memory
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve

SIZES = (10**3, 10**4, 10**5, 10**6)
MOST_BYTES = 4e9
_TIMINGS = 7
_SECONDS = 1.0
_TOLERANCE = 1.2  # Why: another tenant of the machine easily takes a fifth
_HEADER = (
    "| clients | engine | seconds | lowest to highest | interactions per second | memory of the process |\n"
    "| ---: | --- | ---: | ---: | ---: | ---: |"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=["numba", "xla"], help="default: both")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--one", type=int, help="measure this number of clients in this process")
    arguments = parser.parse_args()
    engines = arguments.engine or ["numba", "xla"]
    if arguments.one:
        json.dump(measure_round(arguments.one, engines[0]), sys.stdout)
        return 0
    measure = "benchmarks.scale"
    rows = [run_fresh(measure, "--one", str(size), "--engine", engine) for engine in engines for size in SIZES]
    if arguments.json:
        write_json(arguments.json, {"scale": rows})
    print(format_table(rows))
    problems = find_problems(rows)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


def measure_round(n_clients: int, engine: str) -> dict[str, Any]:
    """One row: the first round of `n_clients`, several times from the same ranker."""
    changes = {"data": "mq2007-like", "folds": [1], "n_clients": n_clients, "interactions": 1, "rounds": 1}
    setting = resolve(change_recipe(NAMED["fpdgd"], changes))
    plan = make_plans(setting, platform="cpu")[0]
    name = name_engine(setting, Options(engine=engine), "cpu")
    advance = load_engine(name, "cpu", threads=os.cpu_count() or 1)(setting, plan)
    start, before = initial_state(setting, plan), peak_memory()
    finish(advance(start, 1, 1))
    seconds = list(time_rounds(lambda: finish(advance(start, 1, 1))))
    return {
        "n_clients": n_clients,
        "engine": name,
        "seconds": float(f"{median(seconds):.3g}"),
        "spread_seconds": [float(f"{pick(seconds):.3g}") for pick in (min, max)],
        "n_timings": _TIMINGS,
        "interactions_per_second": round(n_clients / median(seconds)),
        "peak_memory_mb": round(peak_memory() / 1e6),
        "peak_memory_before_mb": round(before / 1e6),
        "processors": os.cpu_count(),
    }


def time_rounds(run: Callable[[], object]) -> Iterator[float]:
    """Seconds of a round, several times; each timing repeats short rounds for about a second."""
    began = time.perf_counter()
    run()
    n_rounds = max(1, int(_SECONDS / (time.perf_counter() - began)))
    for _ in range(_TIMINGS):
        began = time.perf_counter()
        for _ in range(n_rounds):
            run()
        yield (time.perf_counter() - began) / n_rounds


def find_problems(rows: list[dict[str, Any]]) -> list[str]:
    """What breaks the promise: bounded memory, and growth no faster than linear."""
    problems = [
        f"{row['n_clients']:,} clients ({row['engine']}) need {row['peak_memory_mb']:,} MB"
        for row in rows
        if row["peak_memory_mb"] * 1e6 >= MOST_BYTES
    ]
    for small, large in pairwise(rows):
        growth, factor = large["n_clients"] / small["n_clients"], large["seconds"] / small["seconds"]
        if small["engine"] == large["engine"] and factor > _TOLERANCE * growth:
            problems.append(f"{growth:.0f} times the clients take {factor:.1f} times the time ({large['engine']})")
    return problems


def format_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"| {row['n_clients']:,} | `{row['engine']}` | {row['seconds']:.4g} | "
        f"{row['spread_seconds'][0]:.4g} to {row['spread_seconds'][1]:.4g} | {row['interactions_per_second']:,} | "
        f"{row['peak_memory_mb']:,} MB |"
        for row in rows
    ]
    return "\n".join([_HEADER, *lines])


if __name__ == "__main__":
    sys.exit(main())
