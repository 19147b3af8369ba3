"""How many times as fast the fused loop is as the compiled program, on one processor and for the same benchmark.

    python -m benchmarks.engine_ratio --json docs/benchmarks/engine_ratio.json

Both engines must first give the plain round's answer. Then they train by turns, one thread each, several short times,
and CPU seconds are counted. Other work on the machine slows both, so the best turn of each is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.speed_ratio import prepare_engines, time_by_turns
from hushrank.files import Json, write_json
from hushrank.machine.bench import Benchmark, find_benchmark

COMPARED = ("fpdgd-mq2007-like-1000x4-mlp64",)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks; default: {', '.join(COMPARED)}")
    parser.add_argument("--repeats", type=int, default=15, help="turns of each engine (default: 15)")
    parser.add_argument("--seconds", type=float, default=0.5, help="about the length of a turn (default: .5)")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    chosen = parser.parse_args(arguments)
    benchmarks = [find_benchmark(name) for name in chosen.names or COMPARED]
    rows = [compare_engines(each, repeats=chosen.repeats, seconds=chosen.seconds) for each in benchmarks]
    report = {"threads": 1, "processors": os.cpu_count(), "rows": rows}
    if chosen.json:
        write_json(chosen.json, report)
    json.dump(report, sys.stdout, indent=2)
    print()
    return 0


def compare_engines(benchmark: Benchmark, *, repeats: int, seconds: float) -> Json:
    """The best turn of each engine, in interactions per CPU-second, and how far each is from the plain round."""
    ready = {made.engine: made for made in prepare_engines(benchmark)}
    speeds = {name: max(turns) for name, turns in time_by_turns(ready, repeats=repeats, seconds=seconds).items()}
    return {
        "name": benchmark.name,
        "per_cpu_second": {name: round(speed) for name, speed in speeds.items()},
        "gaps_to_plain": {name: float(f"{made.gap:.1e}") for name, made in ready.items()},
        "times": round(speeds["numba"] / speeds["xla"], 2),
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
