"""Does a ranker still remember a client that left? A membership test over many leavers, for every way to forget.

    python -m benchmarks.membership --data DIR/MQ2008 --json docs/benchmarks/membership.json [--repeats 10]

In every training client 0 leaves. The attacker has that client's impressions, the ranker under test, a reference that
was retrained without the client, with another seed, and as a control impressions of the same client from a training
with yet another seed, which no tested ranker has seen (`leaks/membership.py`). Positives are the rankers of one way,
negatives rankers retrained without the client, with two further seeds. An area of .5 under the ROC curve is chance.
Every leaver has a training of its own, by the plain round, which records what was seen: this takes a while.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.forgetting import forget, remember, train
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult
from hushrank.files import Json, write_json
from hushrank.leaks.membership import (
    Preferences,
    describe_membership,
    find_preferences,
    measure_membership,
    record_training,
    score_membership,
)
from hushrank.metrics.offline import evaluate
from hushrank.metrics.roc import MeasuredRoc
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.reports.membership import write_memberships
from hushrank.runs.environment import now
from hushrank.runs.forget_methods import METHODS, Forgetting
from hushrank.types import QuerySet

LEAVER = 0
LEAD = "Does a ranker still prefer what somebody clicked who has left? Each way to forget, beside not forgetting."
REFERENCE, NEGATIVES, CONTROL = 1, (2, 3), 4  # seeds, beside that of the run
_SMALL: Json = {"n_clients": 5, "interactions": 5, "rounds": 40, "keep_every": 4}
CASES: dict[str, Json] = {
    "5 clients": _SMALL,
    "10 clients": {**_SMALL, "n_clients": 10},
    "5 clients, sound, epsilon 4": {**_SMALL, "privacy": "sound", "epsilon": 4.0},
}


def setting_of(data: str, case: str, repeats: int, user: str) -> Setting:
    keys = {"data": data, "clicks": user, "repeats": repeats, "eval_every": 40, **CASES[case]}
    return resolve(change_recipe(NAMED["fpdgd"], keys))


def read_clicks(setting: Setting, place: tuple[int, int]) -> tuple[Preferences, Preferences] | None:
    """What the leaver's clicks in a training say, and in another; None: in one of them it clicked nothing."""
    seeds = (setting.seed, setting.seed + CONTROL)
    logs = [record_training(replace(setting, seed=seed), Cell(0, *place))[1] for seed in seeds]
    if not all(log.is_clicked[np.repeat(log.clients, np.diff(log.starts)) == LEAVER].any() for log in logs):
        return None
    leaver, control = (find_preferences(log, queries_of(setting, place), LEAVER) for log in logs)
    return leaver, control


def queries_of(setting: Setting, place: tuple[int, int]) -> QuerySet:
    """The leaver's."""
    return setting.groups_of(*place)[setting.method.population.groups[LEAVER]].train


def measure_case(data: str, case: str, repeats: int, user: str, jobs: int) -> dict[str, tuple[MeasuredRoc, float]]:
    """{way: what the test found, and nDCG@10 on test queries}"""
    setting = setting_of(data, case, repeats, user)
    places = list(np.ndindex(len(setting.dataset.folds), repeats))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        read = pool.map(partial(read_place, data, case, repeats, user), places)
        clicks = {n: each for n, each in enumerate(read) if each is not None}
    run, _ = train(setting)
    memory, alone = remember(setting, run), Forgetting((LEAVER,), "retrain")

    def retrain(seed: int) -> list[CellResult]:
        return forget(replace(setting, seed=setting.seed + seed), alone, memory)[0]

    reference, others = retrain(REFERENCE), [retrain(seed) for seed in NEGATIVES]
    ways = {"not forgotten": run}
    for method in METHODS:
        ways[method] = forget(setting, Forgetting((LEAVER,), method), memory)[0]

    def score(results: Sequence[CellResult], n: int) -> float:
        features = queries_of(setting, places[n]).features
        tested, known = (setting.method.ranker.score(each[n].params, features) for each in (results, reference))
        leaver, control = clicks[n]
        return score_membership(leaver, tested, known, control)

    negatives = {n: [score(each, n) for each in others] for n in clicks}
    found = {}
    for way, results in ways.items():
        roc = measure_membership({n: [score(results, n)] for n in clicks}, negatives)
        found[way] = (roc, fmean(measure(setting, result) for result in results))
        print(f"{case}, {user}, {way}: area {roc.area:.3f}", file=sys.stderr)
    return found


def measure(setting: Setting, result: CellResult) -> float:
    """nDCG@10 on test queries; of the parameters as they are, from which something may have been subtracted."""
    test = next(fold for fold in setting.dataset.folds if fold.number == result.fold).test
    return evaluate(test, setting.method.ranker.score(result.params, test.features))["nDCG@10"].value


def read_place(
    data: str, case: str, repeats: int, user: str, place: tuple[int, int]
) -> tuple[Preferences, Preferences] | None:
    return read_clicks(setting_of(data, case, repeats, user), place)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--html", type=Path, help="the page with the curves; default: beside the JSON")
    parser.add_argument("--repeats", type=int, default=20, help="of every fold; each is a leaver")
    parser.add_argument("--users", nargs="+", default=["perfect", "informational"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    done: Json = {"data": Path(chosen.data).name.lower(), "repeats": chosen.repeats, "when": now(), "cases": {}}
    curves: dict[str, dict[str, MeasuredRoc]] = {}
    for case in chosen.cases:
        done["cases"][case] = {"keys": CASES[case], "users": {}}
        for user in chosen.users:
            found = measure_case(chosen.data, case, chosen.repeats, user, chosen.jobs)
            numbers = {way: describe_membership(roc) | {"offline/nDCG@10": q} for way, (roc, q) in found.items()}
            done["cases"][case]["users"][user] = numbers
            curves[f"{case}, {user} users"] = {way: roc for way, (roc, _) in found.items()}
            write_json(chosen.json, done)
            write_memberships(curves, chosen.html or chosen.json.with_suffix(".html"), when=done["when"], lead=LEAD)
    return 0


if __name__ == "__main__":
    sys.exit(main())
