"""Rules that see all updates at once: first the plain round's ranker, then time.

    python -m benchmarks.gathered --json docs/benchmarks/gathered.json

A coordinate-wise median in plain NumPy on the fused loop: 15 runs of 10 clients x 5 searches in one batch, and 1,000
clients x 4. Also the mean of the same cohort, streamed and under an attack, which has to gather.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from hushrank.aggregation.named import CheckedRule, Stateless
from hushrank.attacks.named import find_attack
from hushrank.engine.inputs import PARAMS, initial_state
from hushrank.engine.plan import make_plans
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import load_engine
from hushrank.files import Json, write_json
from hushrank.machine.bench import BENCHMARKS, compare_with_plain, time_calls
from hushrank.recipes.resolve import resolve
from hushrank.types import Array

WORKLOADS = ("fpdgd-mq2007-like-10x5x15", "fpdgd-mq2007-like-1000x4")
_TOLERANCE = 2e-5  # Why: float32 sums of some thousand terms in another order


def coordinate_median(updates: Array, weights: Array) -> Array:
    return np.asarray(np.median(updates[weights > 0], axis=0))


def variants(setting: Setting) -> dict[str, Setting]:
    median_rule, lying = CheckedRule("median", Stateless(coordinate_median)), find_attack("sign-flip")
    method = setting.method
    return {
        "mean, streamed": setting,
        "mean under sign-flip": replace(setting, method=replace(method, attack=lying, n_malicious=2)),
        "median": replace(setting, method=replace(method, rule=median_rule)),
    }


def measure(name: str, label: str, setting: Setting) -> Json:
    plan = make_plans(setting, platform="cpu")[0]
    start = initial_state(setting, plan)
    advance = load_engine("numba", "cpu", threads=os.cpu_count() or 1)(setting, plan)
    gap = compare_with_plain(setting, plan, np.asarray(advance(start, 1, 1)[0][PARAMS]))
    if not gap < _TOLERANCE:
        raise SystemExit(f"{name}, {label}: the fast round differs from the plain one by {gap:.1e}; not timed.")
    timings = list(time_calls(advance, start))
    return {
        "name": name,
        "rule": label,
        "interactions_per_cpu_second": round(median(n / cpu for n, _, cpu in timings)),
        "interactions_per_second": round(median(n / wall for n, wall, _ in timings)),
        "gap_to_plain": float(f"{gap:.1e}"),
        "processors": os.cpu_count(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file to write")
    asked = parser.parse_args(arguments)
    rows = []
    for name in WORKLOADS:
        for label, setting in variants(resolve(BENCHMARKS[name].recipe)).items():
            rows.append(measure(name, label, setting))
            print(f"{name:28} {label:22} {rows[-1]['interactions_per_cpu_second']:>9,} per CPU-second", flush=True)
    if asked.json is not None:
        write_json(asked.json, {"benchmarks": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
