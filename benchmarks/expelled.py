"""What `watchful` costs where clients differ and nobody lies: its rankers beside FedAvg's, and whom it left out.

    python -m benchmarks.expelled --data DIR/MQ2008 --json docs/benchmarks/expelled.json [--rounds 1000] [--repeats 2]
    python -m benchmarks.expelled --data DIR/MQ2008 --json docs/benchmarks/expelled.json --cases quantity --repeats 10

Thesis' sizes (three to five clients) and three times as many. FedAvg is the mean of all updates at once (`trimmed-mean`
that trims nobody), which gives the same bits as `watchful` while that leaves nobody out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.files import Json, read_json, write_json
from hushrank.metrics.significance import equivalence_test
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.types import Array

USERS = ("perfect", "navigational", "informational")
MARGIN = 0.003
_INTENTS = "intent-change-like:n_queries=100"
CASES: dict[str, Json] = {
    "alike": {"n_clients": 10},
    "labels-1": {"partition": "labels-1", "n_clients": 3},
    "labels-1, 9 clients": {"partition": "labels-1", "n_clients": 9},
    "labels-2": {"partition": "labels-2", "n_clients": 3},
    "labels-2, 9 clients": {"partition": "labels-2", "n_clients": 9},
    "intents, carry 0": {"data": _INTENTS, "partition": "intents", "carry": 0.0, "n_clients": 4},
    "intents, carry 1": {"data": _INTENTS, "partition": "intents", "carry": 1.0, "n_clients": 4},
    "intents, carry .5, 12 clients": {"data": _INTENTS, "partition": "intents", "carry": 0.5, "n_clients": 12},
    "clicks (ccm)": {"partition": "clicks", "behaviour": "ccm", "n_clients": 3, "clicks": "perfect"},
    "clicks (pbm)": {"partition": "clicks", "behaviour": "pbm", "n_clients": 5, "clicks": "perfect"},
    "clicks (ccm), 9 clients": {"partition": "clicks", "behaviour": "ccm", "n_clients": 9, "clicks": "perfect"},
    "quantity": {"partition": "quantity", "n_clients": 5},
    "quantity, 10 clients": {"partition": "quantity", "n_clients": 10},
    "labels-2+quantity, 9 clients": {"partition": "labels-2+quantity", "n_clients": 9},
    "dirichlet, 10 clients": {"partition": "dirichlet", "n_clients": 10},
    "queries, 10 clients": {"partition": "queries", "n_clients": 10},
}
RULES: dict[str, Json] = {
    "mean": {"aggregation": "trimmed-mean", "assumed_malicious": 0},
    "watchful": {"aggregation": "watchful"},
}


def train(data: str, case: str, rule: str, rounds: int, repeats: int) -> dict[str, list[CellResult]]:
    """{user: the trainings of every fold and repeat}"""
    size = {"data": data, "rounds": rounds, "repeats": repeats, "clicks": list(USERS), "eval_every": rounds}
    searches = {} if "quantity" in CASES[case].get("partition", "") else {"interactions": 5}
    recipe = change_recipe(NAMED["fpdgd"], {**size, **searches, **RULES[rule], **CASES[case]})
    results, _ = simulate(resolve(recipe), Options(workers=1))
    return {user: [result for result in results if result.user == user] for user in recipe.users}


def measure(task: tuple[str, str, int, int]) -> list[Json]:
    """A row for each user."""
    data, case, rounds, repeats = task
    alike, watched = (train(data, case, rule, rounds, repeats) for rule in RULES)
    rows = []
    for user, trainings in watched.items():
        ours, theirs = (np.array([t.test[-1] for t in found]) for found in (trainings, alike[user]))
        left_out = float(np.mean([np.nanmean(t.shown["evidence/wronged"]) for t in trainings]))
        rows.append({"case": case, "user": user, **compare(ours, theirs), "left_out": round(left_out, 4)})
    return rows


def compare(ours: Array, theirs: Array) -> Json:
    gaps = ours - theirs
    p = 0.0 if not gaps.any() else float(equivalence_test(ours.tolist(), theirs.tolist(), margin=MARGIN).p)
    spread = float(gaps.std(ddof=1) / np.sqrt(len(gaps)))
    mean, gap = float(theirs.mean()), float(gaps.mean())
    return {"n": len(gaps), "mean": round(mean, 4), "gap": round(gap, 4), "error": round(spread, 4), "p": p}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), help="the others stay as kept")
    asked = parser.parse_args(arguments)
    tasks = [(asked.data, case, asked.rounds, asked.repeats) for case in asked.cases]
    kept = read_json(asked.json)["rows"] if asked.json is not None and asked.json.exists() else []
    rows: list[Json] = [row for row in kept if row["case"] not in asked.cases]
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for found in pool.map(measure, tasks):
            rows += found
            for row in found:
                print(f"{row['case']:30} {row['user']:14} {row['mean']:.4f} {row['gap']:+.4f} {row['left_out']:.3f}")
            sys.stdout.flush()
    if asked.json is not None:
        order = list(CASES)
        rows.sort(key=lambda row: order.index(row["case"]))
        write_json(asked.json, {"about": {"rounds": asked.rounds, "margin": MARGIN}, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
