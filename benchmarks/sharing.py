"""What sharing data brings, and what it betrays: data-sharing and synthetic sharing on clients with one grade each.

    python -m benchmarks.sharing --data DIR/MQ2008 --json docs/benchmarks/sharing.json

FPDGD with a client for each grade (`partition=labels-1`), five searches of each in a round, three users, all folds.
nDCG@10 of the last ranker on the test queries; pairs are trainings of the same fold and seed. All trainings share the
queries of five folds, so the tests are more certain than they deserve.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.files import write_json
from hushrank.leaks.closeness import measure_closeness, measure_sums
from hushrank.metrics.significance import bonferroni, paired_t_test
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.remedies.moments import sum_documents
from hushrank.types import Array, QuerySet

USERS = ["perfect", "navigational", "informational"]
MANY = "synthetic-sharing, 500 queries"
REAL, SYNTHETIC = {"remedy": "data-sharing"}, {"remedy": "synthetic-sharing"}
ARMS: dict[str, dict[str, Any]] = {
    "none": {},
    "data-sharing": REAL,
    "data-sharing, warm-up alone": {**REAL, "alpha": 0.0},
    "data-sharing, no warm-up": {**REAL, "warm_up": 0},
    "synthetic-sharing": SYNTHETIC,
    "synthetic-sharing, warm-up alone": {**SYNTHETIC, "alpha": 0.0},
    "synthetic-sharing, no warm-up": {**SYNTHETIC, "warm_up": 0},
    MANY: {**SYNTHETIC, "synthetic_queries": 500},
    "clients alike": {"control": True},
}
PAIRS = (
    ("data-sharing", "none"),
    ("synthetic-sharing", "none"),
    ("synthetic-sharing", "data-sharing"),
    (MANY, "synthetic-sharing"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    began = time.process_time()
    same = {"data": arguments.data, "rounds": arguments.rounds, "repeats": arguments.seeds}
    found = {name: run_arm({**same, **changes}) for name, changes in ARMS.items()}
    result = {
        "setting": {**same, "data": Path(arguments.data).name, "partition": "labels-1", "interactions": 5},
        "quality": [describe(user, name, values[user]) for user in USERS for name, values in found.items()],
        "differences": compare_all(found),
        "leaks": measure_leaks(*(make({**same, **ARMS[name]}) for name in ("data-sharing", "synthetic-sharing", MANY))),
        "cpu_seconds": round(time.process_time() - began),
    }
    if arguments.json is not None:
        write_json(arguments.json, result)
    json.dump(result, sys.stdout, indent=2)


def make(changes: dict[str, Any]) -> Setting:
    return resolve(recipe_of(changes))


def recipe_of(changes: dict[str, Any]) -> Recipe:
    sizes = {"n_clients": 3, "interactions": 5, "partition": "labels-1", "clicks": USERS}
    return change_recipe(NAMED["fpdgd"], {**sizes, **changes})


def run_arm(changes: dict[str, Any]) -> dict[str, Array]:
    """{user: test nDCG@10 of every fold and seed}"""
    results: list[CellResult] = simulate(make(changes), Options(engine="numba", device="cpu"))[0]
    return {user: np.array([r.test[-1] for r in results if r.user == user]) for user in USERS}


def describe(user: str, arm: str, values: Array) -> dict[str, Any]:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return {"user": user, "arm": arm, "mean": round(float(values.mean()), 4), "error": round(float(error), 4)}


def compare_all(found: dict[str, dict[str, Array]]) -> list[dict[str, Any]]:
    """p is Bonferroni's, over all rows."""
    rows = [(user, ours, theirs) for user in USERS for ours, theirs in PAIRS]
    tests = [paired_t_test(found[ours][user].tolist(), found[theirs][user].tolist()) for user, ours, theirs in rows]
    corrected = bonferroni([test.p for test in tests])
    return [
        {
            "user": user,
            "ours": ours,
            "theirs": theirs,
            "difference": round(test.mean_difference, 4),
            "interval": [round(bound, 4) for bound in test.interval],
            "n": test.n,
            "p": p,
        }
        for (user, ours, theirs), test, p in zip(rows, tests, corrected, strict=True)
    ]


def common_sets(setting: Setting) -> list[tuple[int, int, QuerySet]]:
    """(fold, repeat, the global set)"""
    assert setting.warm_up is not None
    places = [(fold, repeat) for fold in range(len(setting.dataset.folds)) for repeat in range(setting.repeats)]
    return [(*place, setting.warm_up.groups_of(*place)[0].train) for place in places]


def measure_leaks(real: Setting, synthetic: Setting, many: Setting) -> dict[str, Any]:
    """Of real queries all is known; of synthetic ones, what an observer of distances makes of them."""
    known: list[list[float]] = []
    sums: list[list[float]] = []
    rows: dict[str, list[Any]] = {
        "data-sharing": [],
        "synthetic-sharing": [],
        MANY: [],
        "synthetic-sharing, highest grade": [],
    }
    top = real.dataset.n_grades - 1
    sets = zip(*map(common_sets, (real, synthetic, many)), strict=True)
    for (fold, _, shared), (*_, made_up), (*_, more) in sets:
        train, test = real.dataset.folds[fold].train, real.dataset.folds[fold].test
        sums.append(read_sums(real, fold))
        known.append(share_known(shared, train, top + 1))
        rows["data-sharing"].append(measure_closeness(shared.features, train.features, test.features))
        rows["synthetic-sharing"].append(measure_closeness(made_up.features, train.features, test.features))
        rows[MANY].append(measure_closeness(more.features, train.features, test.features))
        highest = [queries.features[queries.grades == top] for queries in (made_up, train, test)]
        rows["synthetic-sharing, highest grade"].append(measure_closeness(*highest))
    return {
        "known_share_by_client": np.round(np.mean(known, axis=0), 4).tolist(),
        "numbers_sent": sum_documents(real.dataset.folds[0].train, top + 1).n_numbers,
        "auc_of_sums_by_client": np.round(np.mean(sums, axis=0), 4).tolist(),
        "documents_by_client": np.bincount(real.dataset.folds[0].train.grades).tolist(),
        "documents": round(float(np.mean([shared.n_documents for *_, shared in common_sets(real)]))),
        "synthetic_documents": round(float(np.mean([each.n_documents for *_, each in common_sets(synthetic)]))),
        "observer": {name: summarise(each) for name, each in rows.items()},
    }


def read_sums(setting: Setting, fold: int) -> list[float]:
    """[n_grades] what the server learns from each client's own sums; validation documents are its reference."""
    chosen, splits = setting.dataset.folds[fold], ("train", "vali", "test")
    return [
        measure_sums(*(getattr(chosen, split).features[getattr(chosen, split).grades == grade] for split in splits))
        for grade in range(setting.dataset.n_grades)
    ]


def share_known(shared: QuerySet, train: QuerySet, n_grades: int) -> list[float]:
    """[n_grades] of each client's documents: client g has those of grade g."""
    names = set(shared.query_ids)
    is_known = np.repeat([name in names for name in train.query_ids], train.lengths)
    return [float(is_known[train.grades == grade].mean()) for grade in range(n_grades)]


def summarise(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """{measure: [mean, standard deviation over folds and seeds]}"""
    return {
        name: [round(float(np.mean([r[name] for r in rows])), 4), round(float(np.std([r[name] for r in rows])), 4)]
        for name in rows[0]
    }


if __name__ == "__main__":
    main()
