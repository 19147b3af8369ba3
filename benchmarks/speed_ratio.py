"""How many times as fast as the published code: our side of the comparison, beside what is known of the other.

    python -m benchmarks.speed_ratio --json docs/benchmarks/speed_ratio.json
    python -m benchmarks.speed_ratio --json docs/benchmarks/speed_ratio.json --add
    python -m benchmarks.speed_ratio fpdgd-mq2007-like-10x5 --published-rate fpdgd-mq2007-like-10x5=1650

Every engine that can run a benchmark must first give the plain round's answer. Then one thread trains all benchmarks by
turns, several short times each, and CPU seconds are counted: other work on the machine disturbs them least. It does
disturb them, more from one run to the next than within one, so take several runs and keep them all (--add). The
published code is not part of hushrank. `docs/benchmarks/published_speed.json` holds its recorded speeds, which were not
taken beside ours; give the speed that you measured on this machine with --published-rate.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from hushrank.engine.choice import list_engines
from hushrank.engine.device import has_engine
from hushrank.files import read_json, write_json
from hushrank.machine.bench import (
    Benchmark,
    ReadyBenchmark,
    count_rounds,
    find_benchmark,
    prepare_benchmark,
    time_call,
)
from hushrank.recipes.resolve import resolve

PUBLISHED = Path(__file__).parents[1] / "docs" / "benchmarks" / "published_speed.json"
COMPARED = (
    "fpdgd-mq2007-like-1000x4",
    "fpdgd-mq2007-like-10x5",
    "fpdgd-mq2007-like-10x5x15",
    "foltr-es-mq2007-like-2000x4",
    "foltr-es-mq2007-like-2000x4-mlp10",
)
HERE, APART = "this machine", "a two-core machine, recorded apart"


@dataclass(frozen=True, slots=True)
class PublishedRate:
    """Interactions per CPU-second of the published code."""

    low: float
    high: float
    machine: str  # where it was measured: HERE or APART


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks; default: {', '.join(COMPARED)}")
    parser.add_argument("--repeats", type=int, default=9, help="timings of each benchmark (default: 9)")
    parser.add_argument("--seconds", type=float, default=0.5, help="about the length of a timing (default: .5)")
    parser.add_argument(
        "--published-rate",
        action="append",
        default=[],
        metavar="NAME=RATE",
        help="interactions per CPU-second of the published code, measured on this machine; repeatable",
    )
    parser.add_argument("--json", type=Path, help="where to write the run")
    parser.add_argument("--add", action="store_true", help="keep the runs that the file has")
    chosen = parser.parse_args(arguments)
    benchmarks = [find_benchmark(name) for name in chosen.names or COMPARED]
    rates = known_rates() | given_rates(chosen.published_rate)
    report = measure(benchmarks, rates, repeats=chosen.repeats, seconds=chosen.seconds)
    if chosen.json:
        before = read_json(chosen.json)["runs"] if chosen.add and chosen.json.exists() else []
        write_json(chosen.json, {"runs": [*before, report]})
    json.dump(report, sys.stdout, indent=2)
    print()
    return 0


def known_rates() -> dict[str, PublishedRate]:
    """As recorded; none of them of this machine."""
    rates = read_json(PUBLISHED)["alone"]["rates"]
    return {name: PublishedRate(low, high, APART) for name, (low, high) in rates.items()}


def given_rates(texts: Sequence[str]) -> dict[str, PublishedRate]:
    """From NAME=RATE."""
    rates = {}
    for text in texts:
        name, _, number = text.partition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = 0.0
        if not 0 < rate < float("inf"):
            raise ValueError(f"--published-rate is {text!r}, must be NAME=RATE with a rate above 0.")
        rates[find_benchmark(name).name] = PublishedRate(rate, rate, HERE)
    return rates


def measure(
    benchmarks: Sequence[Benchmark], rates: Mapping[str, PublishedRate], *, repeats: int, seconds: float
) -> dict[str, Any]:
    """First equal answers of all engines, then the fastest of each benchmark, by turns."""
    engines = {benchmark.name: prepare_engines(benchmark) for benchmark in benchmarks}
    ready = {name: made[0] for name, made in engines.items()}
    speeds = time_by_turns(ready, repeats=repeats, seconds=seconds)
    rows = [
        {
            **describe_speed(b, ready[b.name].engine, speeds[b.name]),
            "gaps_to_plain": {made.engine: float(f"{made.gap:.1e}") for made in engines[b.name]},
            "published": compare(speeds[b.name], rates.get(b.name)),
        }
        for b in benchmarks
    ]
    return {"threads": 1, "processors": os.cpu_count(), "rows": rows}


def prepare_engines(benchmark: Benchmark) -> list[ReadyBenchmark]:
    """Every fast engine that is installed and can run it, the fastest first; refuses one with another answer."""
    able = list_engines(resolve(benchmark.recipe), platform="cpu")
    fast = [name for name in able if name != "plain" and has_engine(name)]
    return [prepare_benchmark(benchmark, device="cpu", engine=name, threads=1) for name in fast or ["plain"]]


def time_by_turns(ready: Mapping[str, ReadyBenchmark], *, repeats: int, seconds: float) -> dict[str, list[float]]:
    """{benchmark: interactions per CPU-second, once a turn}. Why by turns: a busy minute disturbs all of them alike."""
    rounds = {name: count_rounds(made.advance, made.start, seconds) for name, made in ready.items()}
    speeds: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(repeats):
        for name, made in ready.items():
            speeds[name].append(time_turn(made, rounds[name], seconds))
    return speeds


def time_turn(made: ReadyBenchmark, n_rounds: int, seconds: float) -> float:
    """Interactions per CPU-second of as many calls as fill the time."""
    interactions, spent = 0, 0.0
    while spent < seconds:
        n, _, cpu = time_call(made.advance, made.start, n_rounds)
        interactions, spent = interactions + n, spent + cpu
    return interactions / spent


def describe_speed(benchmark: Benchmark, engine: str, speeds: Sequence[float]) -> dict[str, Any]:
    return {
        "name": benchmark.name,
        "about": benchmark.about,
        "engine": engine,
        "per_cpu_second": round(median(speeds)),
        "spread": [round(min(speeds)), round(max(speeds))],
        "n_timings": len(speeds),
    }


def compare(speeds: Sequence[float], published: PublishedRate | None) -> dict[str, Any] | None:
    """The ratio of our median to the published speed, and the least and the most that both ranges allow."""
    if published is None:
        return None
    middle = (published.low + published.high) / 2
    return {
        "per_cpu_second": [published.low, published.high],
        "measured_on": published.machine,
        "ratio": round(median(speeds) / middle),
        "spread": [round(min(speeds) / published.high), round(max(speeds) / published.low)],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
