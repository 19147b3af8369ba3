"""Rules over all updates of a round: first the answer of a naive version, then time and peak memory.

    python -m benchmarks.rules --json docs/benchmarks/rules.json [--rules watchful]

Each measurement runs in a process of its own, because peak memory is a process's. The updates themselves (float32) are
not counted. A tenth of the clients is assumed malicious; a tenth sends updates five times as long. `watchful:copies` is
the worst case of `watchful`: just below half of the clients have sent near copies of one update for seven rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from hushrank.aggregation.named import RULES, CheckedRule, find_rule
from hushrank.files import Json, read_json, write_json
from hushrank.types import Array, Gathered

SHAPES = ((10, 46), (1_000, 136), (10_000, 1_000))  # clients, parameters
_CHECKED = (23, 9)  # where a naive version is quick enough
_ENOUGH_S = 1.0  # of repeated calls
_BEFORE = {"detector": 2, "watchful": 6}  # rounds before the measured one; Why: without memory they do little
COPIES = "watchful:copies"
_APART = 0.3  # of a length; Why: then a near copy has a cosine of .958 with what it copies and of .917 with the others


def draw_round(n: int, p: int) -> Gathered:
    generator = np.random.default_rng((n, p))
    updates = generator.standard_normal((n, p), dtype=np.float32)
    updates[: n // 10] *= 5
    return Gathered(updates, np.full(n, 5, np.float32), np.arange(n), np.zeros(p, np.float32), 1)


def draw_copies(n: int, p: int) -> Gathered:
    """Fewer than half are one update and near copies of it; no two copies are near each other, so that none speaks for
    another and each is compared with all. Why fewer than half: otherwise copies count as usual, and are forgiven."""
    round = draw_round(n, p)
    aside = np.random.default_rng((n, p, 1)).standard_normal(((n - 3) // 2, p))
    copied = round.updates[-1] / np.linalg.norm(round.updates[-1])
    aside -= (aside @ copied)[:, None] * copied
    aside /= np.linalg.norm(aside, axis=1)[:, None]
    round.updates[-len(aside) - 1 : -1] = np.sqrt(p) * (copied + _APART * aside)
    return round


def count_assumed(n: int) -> int:
    return n // 10


def naive_krum(updates: Array, m: int) -> Array:
    scores = [sum(sorted(float(np.linalg.norm(a - b)) for b in updates)[1 : len(updates) - m - 1]) for a in updates]
    return np.argsort(scores, kind="stable")


def naive_bulyan(updates: Array, m: int) -> Array:
    left, chosen = list(updates), []
    for _ in range(len(updates) - 2 * m):
        chosen.append(left.pop(int(naive_krum(np.array(left), m)[0])))
    rows = np.array(chosen)
    nearest = np.argsort(np.abs(rows - np.median(rows, axis=0)), axis=0)[: len(updates) - 4 * m]
    return np.asarray(np.take_along_axis(rows, nearest, axis=0).mean(axis=0))


def naive_mixing(updates: Array, m: int) -> Array:
    def mix(row: Array) -> Array:
        nearest = np.argsort(np.linalg.norm(updates - row, axis=1))[: len(updates) - m]
        return np.asarray(updates[nearest].mean(axis=0))

    return naive_trim(np.array([mix(row) for row in updates]), m)


def naive_trim(updates: Array, m: int) -> Array:
    return np.asarray(np.sort(updates, axis=0)[m : len(updates) - m].mean(axis=0))


def naive_geometric_median(updates: Array, _: int) -> Array:
    point = updates.mean(axis=0)
    for _step in range(5000):
        pulls = 1 / np.linalg.norm(updates - point, axis=1)
        point = pulls @ updates / pulls.sum()
    return np.asarray(point)


def naive_norm_bound(updates: Array, _: int, *, factor: float = 1.0) -> Array:
    norms = np.linalg.norm(updates, axis=1)
    return np.asarray((updates * np.minimum(1, factor * np.median(norms) / norms)[:, None]).mean(axis=0))


# {rule: a version without blocks, shortcuts or memory, of updates [n, p] and the malicious clients assumed}
NAIVE: dict[str, Callable[[Array, int], Array]] = {
    "krum": lambda updates, m: updates[naive_krum(updates, m)[0]],
    "multi-krum": lambda updates, m: updates[naive_krum(updates, m)[: len(updates) - m]].mean(axis=0),
    "trimmed-mean": naive_trim,
    "median": lambda updates, _: np.median(updates, axis=0),
    "bulyan": naive_bulyan,
    "geometric-median": naive_geometric_median,
    "norm-bound": naive_norm_bound,
    "centred-clipping": naive_norm_bound,  # in the first round, around zero
    "mixing": naive_mixing,
    "detector": lambda updates, _: updates.mean(axis=0),  # in the first round
    "watchful": partial(naive_norm_bound, factor=5.0),  # likewise, while nobody is doubted
}


def measure_gap(name: str) -> float:
    """The largest difference to the naive version."""
    round = draw_round(*_CHECKED)
    m = count_assumed(_CHECKED[0])
    expected = NAIVE[name](round.updates.astype(np.float64), m)
    return float(np.abs(make_rule(name, m)(round).update - expected).max())


def make_rule(name: str, m: int) -> CheckedRule:
    rule = find_rule(name, assumed_malicious=m)
    assert rule is not None
    return rule


def measure(what: str, n: int, p: int) -> Json:
    """In this process: time of a call, and how far the peak of memory rose."""
    name, _, case = what.partition(":")
    rule, round = make_rule(name, count_assumed(n)), (draw_copies if what == COPIES else draw_round)(n, p)
    before = peak_bytes()
    for number in range(2, 2 + _BEFORE.get(name, 0)):
        combined, params = rule(round), round.params + 0.1 * number
        updates = np.roll(round.updates, 1, axis=1)
        round = replace(round, round=number, memory=combined.memory, params=params, updates=updates)
    times = [time_call(rule, round)]
    peak = peak_bytes() - before
    while sum(wall for wall, _ in times) < _ENOUGH_S:
        times.append(time_call(rule, round))
    wall, cpu = (median(each) for each in zip(*times, strict=True))
    sizes = {"n_clients": n, "n_params": p}
    return {
        "rule": name,
        **({"case": case} if case else {}),
        **sizes,
        "seconds": wall,
        "cpu_seconds": cpu,
        "peak_bytes": peak,
    }


def time_call(rule: CheckedRule, round: Gathered) -> tuple[float, float]:
    """(wall, CPU) seconds; threads of the matrix product count in the latter."""
    start = time.perf_counter(), time.process_time()
    rule(round)
    return time.perf_counter() - start[0], time.process_time() - start[1]


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument(
        "--rules", nargs="+", choices=[*NAIVE, COPIES], help="only these; the file keeps its other rows"
    )
    parser.add_argument("--one", nargs=3, metavar=("RULE", "CLIENTS", "PARAMETERS"), help="measure only this")
    asked = parser.parse_args(arguments)
    if asked.one is not None:
        print(json.dumps(measure(asked.one[0], int(asked.one[1]), int(asked.one[2]))))
        return 0
    wanted = asked.rules or [*NAIVE, COPIES]
    rows = read_others(asked.json, wanted)
    for name in [name for name in (*RULES, COPIES) if name in wanted]:
        gap = measure_gap(name.partition(":")[0])
        if not gap < 1e-5:  # Why: the geometric median ends within its own tolerance
            raise SystemExit(f"{name} differs from the naive version by {gap:.1e}; not timed.")
        for n, p in SHAPES:
            command = [sys.executable, "-m", "benchmarks.rules", "--one", name, str(n), str(p)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({**json.loads(done.stdout), "gap_to_naive": float(f"{gap:.1e}")})
            time_and_memory = f"{rows[-1]['cpu_seconds']:12.6f} CPU s {rows[-1]['peak_bytes']:>14,} bytes"
            print(f"{name:18} {n:>6,} x {p:>5,} {time_and_memory}", flush=True)
    if asked.json is not None:
        write_json(asked.json, {"rules": rows})
    return 0


def read_others(path: Path | None, wanted: Sequence[str]) -> list[Json]:
    """Rows of an earlier measurement that is not repeated."""
    kept = [] if path is None or not path.exists() else read_json(path)["rules"]
    return [row for row in kept if name_row(row) not in wanted]


def name_row(row: Json) -> str:
    """RULE or RULE:CASE"""
    return ":".join(str(row[part]) for part in ("rule", "case") if part in row)


if __name__ == "__main__":
    sys.exit(main())
