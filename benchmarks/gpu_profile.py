"""What a GPU does in a round: each benchmark is timed, then a few of its rounds are run under JAX's profiler.

    python -m benchmarks.gpu_profile --json profile.json
    python -m benchmarks.gpu_profile fpdgd-mslr-like-1000x2 --tiles 32,4,1,0 --tiles 64,2,1,0

First every benchmark must give the plain round's answer, with XLA's kernels and with one kernel for a client's round.
Both are then timed by turns, without the profiler, and with rounds that XLA records as one graph. --tiles times the
kernel with other sizes than `gpu_kernel.choose_tiles` chooses; a variant that the GPU refuses is kept with the reason.
The profiled rounds are compiled again with nothing recorded, because the profiler counts the kernels of a recorded loop
once, however often it turns. So the share of time in which nothing runs on the device compares the kernels' own time in
such a round with the time of a recorded round without the profiler.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

from hushrank.engine import gpu_kernel, program
from hushrank.engine.device import describe_platform, import_jax
from hushrank.engine.inputs import PARAMS, Advance
from hushrank.engine.plan import make_plans, without_kernel
from hushrank.files import Json, write_json
from hushrank.machine.bench import (
    ReadyBenchmark,
    compare_with_plain,
    find_benchmark,
    finish,
    prepare_benchmark,
    time_call,
)
from hushrank.recipes.resolve import resolve

PROFILED = (
    "fpdgd-mq2007-like-1000x4",
    "fpdgd-mq2007-like-10000x4",
    "fpdgd-mslr-like-1000x2",
    "fpdgd-mq2007-like-1000x4-mlp64",
    "fpdgd-mq2007-like-10x5x15",
)
TIMED = 256  # rounds of one timing
TIMINGS = 5
SHOWN = 10  # kernels


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benchmarks; default: {', '.join(PROFILED)}")
    parser.add_argument("--rounds", type=int, default=16, help="under the profiler (default: 16)")
    parser.add_argument("--device", default="auto", help="auto, cpu or gpu")
    parser.add_argument(
        "--tiles",
        action="append",
        default=[],
        metavar="W,WARPS,AHEAD,HELD",
        help="also with these: documents of a tile, warps, 1 to read ahead, tiles held at once (0: merged)",
    )
    parser.add_argument("--json", type=Path, help="where to write the result")
    chosen = parser.parse_args(arguments)
    found: Json = {"profiles": [], "variants": []}
    for name in chosen.names or PROFILED:
        for tiles in (None, *chosen.tiles):
            row = (
                profile(name, chosen.rounds, chosen.device) if tiles is None else try_tiles(name, tiles, chosen.device)
            )
            found["profiles" if tiles is None else "variants"].append(row)
            print(json.dumps(row), flush=True)
            if chosen.json:  # Why after each: what is measured stays when a later one fails
                write_json(chosen.json, found)
    return 0


def profile(name: str, n_rounds: int, device: str) -> Json:
    """One benchmark's speed without, and its kernels under the profiler."""
    began = time.perf_counter()
    ready = prepare_benchmark(find_benchmark(name), device=device, engine="xla", threads=1)
    before, gap_before = compile_before(name, ready)
    sides = {"before": before, "now": ready.advance}
    timings = time_by_turns(sides, ready)
    advance = compile_unrecorded(name, ready.platform)
    finish(advance(ready.start, 1, n_rounds))
    with tempfile.TemporaryDirectory() as folder:
        with import_jax().profiler.trace(folder):
            finish(advance(ready.start, 1, n_rounds))
        traces = sorted(Path(folder).rglob("*.trace.json.gz"))
        events = [event for trace in traces for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]]
    round_us = median(wall for _, wall, _ in timings["now"]) / TIMED * 1e6
    speeds = {side: sorted(n / wall for n, wall, _ in each) for side, each in timings.items()}
    found = summarise(events, n_rounds)
    return {
        "name": name,
        "device": describe_platform(ready.platform),
        "gap_to_plain": {"before": float(f"{gap_before:.1e}"), "now": float(f"{ready.gap:.1e}")},
        "compile_s": round(ready.compile_s, 2),
        "interactions_per_second": {side: round(median(each)) for side, each in speeds.items()},
        "spread_per_second": {side: [round(each[0]), round(each[-1])] for side, each in speeds.items()},
        "times": round(median(speeds["now"]) / median(speeds["before"]), 2),
        "microseconds_per_round": round(round_us, 1),
        "idle_share": round(max(0.0, 1.0 - found["busy_microseconds_per_round"] / round_us), 3),
        **found,
        "took_s": round(time.perf_counter() - began, 1),
    }


def compile_before(name: str, ready: ReadyBenchmark) -> tuple[Advance, float]:
    """The same rounds with XLA's kernels, and how far the first is from the plain one."""
    setting = resolve(find_benchmark(name).recipe)
    plan = without_kernel(setting, make_plans(setting, platform=ready.platform)[0], ready.platform)
    advance = program.compile_rounds(setting, plan, platform=ready.platform)
    return advance, compare_with_plain(setting, plan, np.asarray(advance(ready.start, 1, 1)[0][PARAMS]))


def time_by_turns(sides: Mapping[str, Advance], ready: ReadyBenchmark) -> dict[str, list[tuple[int, float, float]]]:
    """After a warm-up of each."""
    for advance in sides.values():
        time_call(advance, ready.start, TIMED)
    turns = [{side: time_call(advance, ready.start, TIMED) for side, advance in sides.items()} for _ in range(TIMINGS)]
    return {side: [turn[side] for turn in turns] for side in sides}


def try_tiles(name: str, tiles: str, device: str) -> Json:
    """The kernel's speed with other sizes."""
    width, warps, ahead, held = map(int, tiles.split(","))
    row: Json = {"name": name, "tile": width, "warps": warps, "reads_ahead": bool(ahead), "tiles_held": held}
    try:
        with mock.patch.object(gpu_kernel, "choose_tiles", return_value=(width, warps, bool(ahead), held)):
            program._PROGRAMS.clear()  # Why: their names do not say which tiles they have
            ready = prepare_benchmark(find_benchmark(name), device=device, engine="xla", threads=1)
            found = time_by_turns({"now": ready.advance}, ready)["now"]
    except Exception as error:  # Why any: what a GPU refuses has many names
        return row | {"refused": str(error).splitlines()[0][:200]}
    return row | {"interactions_per_second": round(median(n / wall for n, wall, _ in found))}


def compile_unrecorded(name: str, platform: str) -> Advance:
    """The benchmark's rounds, every kernel launched by itself."""
    setting = resolve(find_benchmark(name).recipe)
    recorded, program.RECORDED = program.RECORDED, ""
    try:
        return program.compile_rounds(setting, make_plans(setting, platform=platform)[0], platform=platform)
    finally:
        program.RECORDED = recorded


def summarise(events: Sequence[dict[str, Any]], n_rounds: int) -> dict[str, Any]:
    """Of a Chrome trace: how many kernels and copies a round has, which take longest, and how long any runs."""
    kernels = sorted(on_device(events), key=lambda event: float(event["ts"]))
    by_name: dict[str, list[float]] = defaultdict(list)
    busy, end = 0.0, 0.0
    for event in kernels:
        begin, length = float(event["ts"]), float(event.get("dur", 0.0))
        by_name[event["name"]].append(length)
        busy += max(0.0, begin + length - max(begin, end))  # Why: kernels of several streams may overlap
        end = max(end, begin + length)
    longest = sorted(by_name.items(), key=lambda item: -sum(item[1]))
    return {
        "kernels_per_round": round(len(kernels) / n_rounds, 1),
        "busy_microseconds_per_round": round(busy / n_rounds, 2),
        "kernels": [
            {
                "name": name[:80],
                "per_round": round(len(lengths) / n_rounds, 2),
                "microseconds_per_round": round(sum(lengths) / n_rounds, 2),
            }
            for name, lengths in longest[:SHOWN]
        ],
    }


def on_device(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events of the GPU's streams; other lines of a trace repeat them under other names."""
    named = {(event["name"], event["pid"], event.get("tid")): event for event in events if event.get("ph") == "M"}
    devices = {pid for (what, pid, _), event in named.items() if what == "process_name" and "GPU" in _named(event)}
    streams = {
        (pid, tid) for (what, pid, tid), event in named.items() if what == "thread_name" and "Stream" in _named(event)
    }
    return [
        event
        for event in events
        if event.get("ph") == "X" and event["pid"] in devices and (event["pid"], event.get("tid")) in streams
    ]


def _named(event: dict[str, Any]) -> str:
    return str(event.get("args", {}).get("name", ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
