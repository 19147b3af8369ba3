"""Named benchmarks of the simulator: first equal answers, then time.

Each one trains on generated data, checks one round against the plain round, warms up, and times calls of whole rounds:
draws, lists, clicks, learning, aggregation and online nDCG are timed; evaluation and checkpoints are not.
"""

from __future__ import annotations

import difflib
import os
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from hushrank.engine.device import choose_platform, describe_platform
from hushrank.engine.inputs import PARAMS, Advance, cell_key, initial_memory, initial_params, initial_state
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import CHUNK, Cell, Plan, make_plans
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, load_engine, name_engine
from hushrank.federation.round import run_round
from hushrank.federation.seen import SEARCHES
from hushrank.files import Json
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.types import Array, NamedArrays

_TIMINGS = 7  # Why: a median of seven shrugs off a noisy neighbour
_SECONDS = 1.0  # Why: about the length of one timing, long against the clock's and the call's own cost
_TOLERANCE = 2e-5  # Why: float32 sums of some thousand terms in another order

_MSLR = "mslr-like:n_queries=2500"  # Why: 1,500 training lists are 100 MB, far beyond every cache, and quickly made


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named measurement."""

    name: str
    recipe: Recipe
    about: str


def _bench(name: str, about: str, **changes: object) -> Benchmark:
    """The recipe is the one whose name begins the benchmark's."""
    same = {"data": "mq2007-like", "folds": [1], "rounds": 100}
    recipe = next(recipe for known, recipe in NAMED.items() if name.startswith(known))
    return Benchmark(name, change_recipe(recipe, same | changes), about)


BENCHMARKS = {
    made.name: made
    for made in (
        _bench("fpdgd-mq2007-like-1000x4", "linear, 1,000 clients x 4 interactions"),
        _bench("fpdgd-mq2007-like-10x5", "linear, 10 clients x 5, one run", n_clients=10, interactions=5),
        _bench(
            "fpdgd-mq2007-like-10x5x15",
            "linear, 10 clients x 5, 15 runs in one program",
            n_clients=10,
            interactions=5,
            repeats=15,
        ),
        _bench("fpdgd-mslr-like-1000x2", "linear, 1,000 clients x 2, lists of 1 to 900", data=_MSLR, interactions=2),
        _bench("fpdgd-mq2007-like-1000x4-mlp64", "network of 64, 1,000 clients x 4", ranker="mlp"),
        _bench(
            "fpdgd-mslr-like-5x5x1200-mlp64",
            "network of 64, one grade per client, 5 x 5, lists of 1 to 900, 1,200 runs",
            data=_MSLR,
            ranker="mlp",
            partition="labels-1",
            n_clients=5,
            interactions=5,
            clicks=["perfect", "navigational", "informational"],
            repeats=400,
        ),
        _bench("fpdgd-mq2007-like-10000x4", "linear, 10,000 clients x 4", n_clients=10_000),
        _bench("foltr-es-mq2007-like-2000x4", "evolution strategies, linear, 2,000 clients x 4"),
        _bench("foltr-es-mq2007-like-2000x4-mlp10", "evolution strategies, network of 10, 2,000 x 4", ranker="mlp"),
    )
}


@dataclass(frozen=True, slots=True)
class ReadyBenchmark:
    """Compiled, and equal to the plain round."""

    engine: str  # numba, xla or plain
    platform: str  # cpu or gpu
    advance: Advance
    start: NamedArrays  # before the first round
    compile_s: float  # until the first round was done
    gap: float  # the largest difference of a parameter from the plain round's


def find_benchmark(name: str) -> Benchmark:
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    near = difflib.get_close_matches(name, BENCHMARKS, n=1)
    raise ValueError(
        f"no benchmark is called {name!r}; "
        + (f"did you mean {near[0]!r}?" if near else f"known: {', '.join(BENCHMARKS)}.")
    )


def run_benchmark(benchmark: Benchmark, *, device: str = "auto", engine: str = "auto") -> Json:
    """One row of the benchmark's JSON."""
    ready = prepare_benchmark(benchmark, device=device, engine=engine, threads=os.cpu_count() or 1)
    timings = list(time_calls(ready.advance, ready.start))
    return {
        "name": benchmark.name,
        "about": benchmark.about,
        "interactions_per_cpu_second": round(median(n / cpu for n, _, cpu in timings)),
        "interactions_per_second": round(median(n / wall for n, wall, _ in timings)),
        "spread_per_second": [round(pick(n / wall for n, wall, _ in timings)) for pick in (min, max)],
        "n_timings": len(timings),
        "compile_s": round(ready.compile_s, 2),
        "gap_to_plain": float(f"{ready.gap:.1e}"),
        "peak_memory_mb": round(peak_memory() / 1e6),
        "engine": ready.engine,
        "device": describe_platform(ready.platform),
        "processors": os.cpu_count(),
    }


def prepare_benchmark(benchmark: Benchmark, *, device: str, engine: str, threads: int) -> ReadyBenchmark:
    """Compile it, run one round and the same round plainly; refuses an engine that gives another answer."""
    setting, platform = resolve(benchmark.recipe), choose_platform(device)
    plan = make_plans(setting, platform=platform)[0]
    named = name_engine(setting, Options(engine=engine), platform)
    start = initial_state(setting, plan)
    began = time.perf_counter()
    advance = load_engine(named, platform, threads=threads)(setting, plan)
    state, _ = advance(start, 1, 1)
    compile_s = time.perf_counter() - began
    gap = compare_with_plain(setting, plan, np.asarray(state[PARAMS]))
    if not gap < _TOLERANCE:
        raise ValueError(f"{benchmark.name}: the fast round differs from the plain one by {gap:.1e}; not timed.")
    return ReadyBenchmark(named, platform, advance, start, compile_s, gap)


def compare_with_plain(setting: Setting, plan: Plan, params: Array) -> float:
    """The largest difference of a parameter after one round, over the first and the last cell."""
    ends = {0, len(plan.cells) - 1}
    return max(float(np.abs(params[i] - plain_round(setting, plan.cells[i])).max()) for i in ends)


def time_calls(advance: Advance, start: NamedArrays) -> Iterator[tuple[int, float, float]]:
    """(interactions, seconds, processor seconds) of each timing, after a warm-up."""
    n_rounds = count_rounds(advance, start, _SECONDS)
    for _ in range(_TIMINGS):
        yield time_call(advance, start, n_rounds)


def count_rounds(advance: Advance, start: NamedArrays, seconds: float) -> int:
    """Rounds in a timing of about so long; two rounds of warm-up say how many."""
    began = time.perf_counter()
    finish(advance(start, 1, 2))
    return min(CHUNK, max(1, int(2 * seconds / (time.perf_counter() - began))))


def time_call(advance: Advance, start: NamedArrays, n_rounds: int) -> tuple[int, float, float]:
    """(interactions, seconds, processor seconds) of these rounds."""
    wall, cpu = time.perf_counter(), time.process_time()
    seen = finish(advance(start, 1, n_rounds))
    return int(seen[SEARCHES].sum()), time.perf_counter() - wall, time.process_time() - cpu


def finish(done: tuple[NamedArrays, NamedArrays]) -> NamedArrays:
    """Wait for the device: reading the parameters does."""
    np.asarray(done[0][PARAMS])
    return done[1]


def plain_round(setting: Setting, cell: Cell) -> Any:
    """[n_params] after the first round, plainly."""
    params = initial_params(setting, cell)
    state = initial_memory(setting, params)
    return run_round(make_federation(setting, cell), state, params, key=cell_key(setting, cell), round=1)[1]


def peak_memory() -> float:
    """Bytes of this process's largest resident size so far."""
    unit = 1 if sys.platform == "darwin" else 1024  # Why: macOS counts bytes, Linux kilobytes
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
