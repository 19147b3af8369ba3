"""Ways to forget clients beside each other: quality, distance to the ranker retrained without them, and work.

    python -m benchmarks.forgetting --data DIR/MQ2008 --json docs/benchmarks/forgetting.json [--cases CASE ...]

Of every case a run is trained once, and some of its clients are forgotten in every way, with the settings that
`hushrank forget` has by default. Quality is nDCG@10 of the last ranker on test queries, of every training. Distances
are to `retrain`: of parameters, in lengths of its own, and of rankings, by rank-biased overlap and Kendall's tau. Work
is that of the clients who stay, and processor seconds. Writes JSON after every case; killed, it continues.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.seen import SEARCHES
from hushrank.files import Json, read_json, write_json
from hushrank.metrics.distances import compare_rankings, cosine_similarity, relative_distance
from hushrank.metrics.offline import evaluate
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.runs.forget_methods import METHODS, Forgetting, RunMemory, plan_forgetting, subtract_sums
from hushrank.runs.simulation import count_bytes

USERS = ("perfect", "navigational", "informational")
_TEN: Json = {"n_clients": 10, "interactions": 5, "rounds": 10_000, "keep_every": 10}
_MANY: Json = {"n_clients": 1000, "interactions": 4, "rounds": 200, "keep_every": 10}
_LEAVER: Json = {"attack": "opposite-model", "n_malicious": 1}
# {case: recipe keys, clients that leave}
CASES: dict[str, tuple[Json, tuple[int, ...]]] = {
    "1 of 10, who sent -2 times its ranker": ({**_TEN, **_LEAVER}, (0,)),
    "1 of 10": (_TEN, (0,)),
    "3 of 10": (_TEN, (1, 4, 7)),
    "50 of 1,000": (_MANY, tuple(range(0, 1000, 20))),
    "50 of 1,000, sound, epsilon 4": ({**_MANY, "privacy": "sound", "epsilon": 4.0}, tuple(range(0, 1000, 20))),
    "1 of 10 under median": ({**_TEN, **_LEAVER, "aggregation": "median", "rounds": 1000}, (0,)),
    "1 of 10 under multi-krum": ({**_TEN, **_LEAVER, "aggregation": "multi-krum", "rounds": 1000}, (0,)),
}
_OPTIONS = Options(workers=2)


def run_case(data: str, name: str, changes: Json) -> Json:
    """Every way to forget the leavers of a case."""
    keys, leavers = CASES[name]
    recipe = change_recipe(NAMED["fpdgd"], {"data": data, "clicks": list(USERS), **keys, **changes})
    recipe = change_recipe(recipe, {"eval_every": recipe.rounds})
    setting = resolve(recipe)
    run, seconds = train(setting)
    memory = remember(setting, run)
    alone = Forgetting(leavers, "retrain")
    retrained, again = forget(setting, alone, memory)
    found: Json = {
        "before": describe(setting, setting, run, retrained, seconds),
        "retrain": describe(setting, plan_forgetting(setting, alone, memory), retrained, retrained, again),
    }
    for method in METHODS:
        if method == "retrain":
            continue
        if METHODS[method].subtracts and setting.method.protection.has_noise:
            found[method] = {"refused": "the difference of two rankers would be the leavers' updates without noise"}
            continue
        try:
            how = Forgetting(leavers, method)
            planned = plan_forgetting(setting, how, memory)
            results, seconds = forget(setting, how, memory)
        except ValueError as refusal:
            found[method] = {"refused": str(refusal)}
            continue
        found[method] = {**describe(setting, planned, results, retrained, seconds)}
        print(name, method, {user: round(float(np.mean(v)), 4) for user, v in found[method]["test"].items()})
    shown = {key: value for key, value in keys.items() if key != "data"}
    return {"keys": {**shown, **changes}, "n_leavers": len(leavers), "ways": found}


def train(setting: Setting) -> tuple[list[CellResult], float]:
    """All trainings, and the processor seconds that they took."""
    began = time.process_time()
    results, _ = simulate(setting, _OPTIONS)
    return results, time.process_time() - began


def remember(setting: Setting, run: Sequence[CellResult]) -> RunMemory:
    """What the trainings of a run have left; they come by user, fold and repeat."""
    cells = (len(setting.users), len(setting.dataset.folds), setting.repeats)
    rankers, lengths = (np.stack(each) for each in ([r.params for r in run], [r.kept["lengths"] for r in run]))
    return RunMemory(rankers.reshape(*cells, -1), lengths.reshape(*cells, *lengths.shape[1:]))


def forget(setting: Setting, how: Forgetting, memory: RunMemory) -> tuple[list[CellResult], float]:
    results, seconds = train(plan_forgetting(setting, how, memory))
    if METHODS[how.method].subtracts:
        results = [replace(r, params=subtract_sums(r.params, r.kept["sums"], how.clients)) for r in results]
    return results, seconds


def describe(
    setting: Setting, planned: Setting, results: Sequence[CellResult], retrained: Sequence[CellResult], seconds: float
) -> Json:
    """Quality by user, distances to the retrained rankers (means over trainings), and work."""
    ranker, folds = setting.method.ranker, {fold.number: fold for fold in setting.dataset.folds}
    quality: dict[str, dict[str, list[float]]] = {split: {user: [] for user in USERS} for split in ("test", "vali")}
    apart: list[list[float]] = []
    for result, reference in zip(results, retrained, strict=True):
        fold = folds[result.fold]
        for split in quality:
            queries = getattr(fold, split)
            found = evaluate(queries, ranker.score(result.params, queries.features))
            quality[split][result.user].append(round(found["nDCG@10"].value, 5))
        scores = [ranker.score(each.params, fold.test.features) for each in (result, reference)]
        lists, both = compare_rankings(fold.test, *scores), (result.params, reference.params)
        apart.append([relative_distance(*both), cosine_similarity(*both), lists.rbo, lists.tau])
    l2, cosine, rbo, tau = np.mean(apart, axis=0).round(4).tolist()
    rounds = planned.rounds
    return {
        **quality,
        "distance": {"l2": l2, "cosine": cosine, "rbo": rbo, "tau": tau},
        "rounds": rounds,
        "searches": int(np.sum(results[0].shown[SEARCHES])),
        "bytes": rounds * planned.method.population.cohort_size * count_bytes(planned.method),
        "cpu_s": round(seconds, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--rounds", type=int, help="of every run, for a try")
    parser.add_argument("--folds", help="such as 1,2; default: all")
    chosen = parser.parse_args()
    changes: Json = {} if chosen.rounds is None else {"rounds": chosen.rounds}
    changes |= {} if chosen.folds is None else {"folds": [int(fold) for fold in chosen.folds.split(",")]}
    nothing: Json = {"data": Path(chosen.data).name.lower(), "cases": {}}
    done: Json = read_json(chosen.json) if chosen.json.exists() else nothing
    for name in chosen.cases:
        if name not in done["cases"]:
            done["cases"][name] = run_case(chosen.data, name, changes)
            write_json(chosen.json, done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
