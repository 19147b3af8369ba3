"""Does a ranker still remember a client that left? A membership test over many leavers, for every way to forget.

    python -m benchmarks.membership --data DIR/MQ2008 --json docs/benchmarks/membership.json [--repeats 10]

In every training client 0 leaves. The attacker has that client's impressions, the ranker under test, a reference that
was retrained without the client, with another seed, and as a control impressions of the same client from a training
with yet another seed, which no tested ranker has seen (`leaks/membership.py`). Positives are the rankers of one way,
negatives rankers retrained without the client, with two further seeds. An area of .5 under the ROC curve is chance.
Every leaver has a training of its own.

Then the client comes back, in every ranker, and it is counted after how many rounds the ranker prefers what the client
clicked as much as the ranker that was not forgotten does (`leaks/relearning.py`). Each way stands beside `retrain` and
beside its twin. Retrained with another seed, a ranker has nothing of the client either: its difference is chance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks.forgetting import forget, remember, train
from hushrank.data.clicklog import ClickLog
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult
from hushrank.files import Json, write_json
from hushrank.leaks.membership import (
    Preferences,
    describe_membership,
    find_preferences,
    measure_membership,
    score_membership,
)
from hushrank.leaks.relearning import (
    Relearning,
    describe_relearning,
    first_rankers,
    follow_training,
    measure_relearning,
    record_client,
)
from hushrank.metrics.offline import evaluate
from hushrank.metrics.roc import MeasuredRoc
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.reports.membership import write_memberships
from hushrank.runs.environment import now
from hushrank.runs.forget_methods import METHODS, Forgetting, RunMemory
from hushrank.types import Array, QuerySet

LEAVER = 0
LEAD = "Does a ranker still prefer what somebody clicked who has left? Each way to forget, beside not forgetting."
REFERENCE, NEGATIVES, CONTROL = 1, (2, 3), 4  # seeds, beside that of the run
ANOTHER = "retrain, another seed"
RELEARN = 40  # rounds within which a leaver is learnt again, or not
_SMALL: Json = {"n_clients": 5, "interactions": 5, "rounds": 40, "keep_every": 4}
CASES: dict[str, Json] = {
    "5 clients": _SMALL,
    "10 clients": {**_SMALL, "n_clients": 10},
    "5 clients, sound, epsilon 4": {**_SMALL, "privacy": "sound", "epsilon": 4.0},
}


def setting_of(data: str, case: str, repeats: int, user: str) -> Setting:
    keys = {"data": data, "clicks": user, "repeats": repeats, "eval_every": 40, **CASES[case]}
    return resolve(change_recipe(NAMED["fpdgd"], keys))


def read_clicks(setting: Setting) -> list[ClickLog]:
    """What the leaver saw and clicked in each training."""
    rankers = follow_training(setting, first_rankers(setting), range(1, setting.rounds + 1))
    return [record_client(setting, Cell(0, *place), rankers[:, 0, *place], LEAVER) for place in places_of(setting)]


def places_of(setting: Setting) -> list[tuple[int, int]]:
    """Fold and repeat of every training."""
    return list(np.ndindex(len(setting.dataset.folds), setting.repeats))


def queries_of(setting: Setting, place: tuple[int, int]) -> QuerySet:
    """The leaver's."""
    return setting.groups_of(*place)[setting.method.population.groups[LEAVER]].train


class Measured(NamedTuple):
    """What was found about one way to forget."""

    roc: MeasuredRoc
    quality: float  # nDCG@10 on test queries
    relearning: Relearning
    others: dict[str, Relearning]  # that it is compared with

    def as_json(self) -> Json:
        numbers = {**describe_membership(self.roc), "offline/nDCG@10": self.quality}
        return {**numbers, **describe_relearning(self.relearning, self.others)}


class Case(NamedTuple):
    """The trainings of a case, with what the leaver's clicks in each say, and those of a training with another seed."""

    setting: Setting
    clicks: dict[int, tuple[Preferences, Preferences]]  # by training; without those in which it clicked nothing

    def score(self, n: int, tested: Array, known: Array, *, controls: bool = True) -> float:
        """How much more the tested ranker prefers what the leaver clicked than the known one; parameters of both."""
        features, ranker = queries_of(self.setting, places_of(self.setting)[n]).features, self.setting.method.ranker
        (leaver, control), both = self.clicks[n], (ranker.score(tested, features), ranker.score(known, features))
        return score_membership(leaver, *both, control if controls else None)

    def relearn(self, results: Sequence[CellResult], run: Sequence[CellResult]) -> Relearning:
        """The leaver comes back to these rankers."""
        shape = (1, len(self.setting.dataset.folds), self.setting.repeats, -1)
        starts = np.stack([each.params for each in results]).reshape(shape)
        method = self.setting.method
        noise = RELEARN if method.protection.has_noise else None  # Why: the run's own noise would lead back to it
        setting = replace(self.setting, method=replace(method, noise_number=noise))
        rankers = follow_training(setting, starts, range(1, RELEARN + 1)).reshape(RELEARN + 1, len(run), -1)
        return measure_relearning(
            [[self.score(n, each, run[n].params, controls=False) for each in rankers[:, n]] for n in self.clicks]
        )


def prepare_case(setting: Setting) -> Case:
    seeds, found = (setting.seed, setting.seed + CONTROL), {}
    logs = [read_clicks(replace(setting, seed=seed)) for seed in seeds]
    for n, (place, *both) in enumerate(zip(places_of(setting), *logs, strict=True)):
        if all(log.is_clicked.any() for log in both):
            leaver, control = (find_preferences(log, queries_of(setting, place), LEAVER) for log in both)
            found[n] = (leaver, control)
    return Case(setting, found)


def measure_case(setting: Setting, name: str) -> dict[str, Measured]:
    """{way: what was found}"""
    case, (run, _) = prepare_case(setting), train(setting)
    memory = remember(setting, run)

    def leave(method: str, seed: int = 0, memory: RunMemory = memory) -> list[CellResult]:
        return forget(replace(setting, seed=setting.seed + seed), Forgetting((LEAVER,), method), memory)[0]

    reference, others = leave("retrain", REFERENCE), [leave("retrain", seed) for seed in NEGATIVES]
    ways = {"not forgotten": run, **{way: leave(way) for way in METHODS}, ANOTHER: others[0]}
    never = ways["retrain"]  # the run that the leaver never joined
    negatives = {n: [case.score(n, each[n].params, reference[n].params) for each in others] for n in case.clicks}
    again = {way: case.relearn(results, run) for way, results in ways.items()}
    twins = {"not forgotten": again["retrain"], "subtract": again["retrain"]}
    for way in ("eraser", "continue"):
        twins[way] = case.relearn(leave(way, memory=remember(setting, never)), run)
    found = {}
    for way, results in ways.items():
        positives = {n: [case.score(n, results[n].params, reference[n].params)] for n in case.clicks}
        roc, quality = measure_membership(positives, negatives), fmean(measure(setting, each) for each in results)
        compared = {"retrained": again["retrain"], **({"twin": twins[way]} if way in twins else {})}
        found[way] = Measured(roc, quality, again[way], compared)
        print(f"{name}, {way}: area {roc.area:.3f}, {fmean(again[way].rounds):.1f} rounds", file=sys.stderr)
    return found


def measure(setting: Setting, result: CellResult) -> float:
    """nDCG@10 on test queries; of the parameters as they are, from which something may have been subtracted."""
    test = next(fold for fold in setting.dataset.folds if fold.number == result.fold).test
    return evaluate(test, setting.method.ranker.score(result.params, test.features))["nDCG@10"].value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--html", type=Path, help="the page with the curves; default: beside the JSON")
    parser.add_argument("--repeats", type=int, default=20, help="of every fold; each is a leaver")
    parser.add_argument("--users", nargs="+", default=["perfect", "informational"])
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE")
    chosen = parser.parse_args()
    done: Json = {"data": Path(chosen.data).name.lower(), "repeats": chosen.repeats, "when": now(), "cases": {}}
    curves: dict[str, dict[str, MeasuredRoc]] = {}
    for case in chosen.cases:
        done["cases"][case] = {"keys": CASES[case], "relearn_limit": RELEARN, "users": {}}
        for user in chosen.users:
            found = measure_case(setting_of(chosen.data, case, chosen.repeats, user), f"{case}, {user}")
            done["cases"][case]["users"][user] = {way: each.as_json() for way, each in found.items()}
            curves[f"{case}, {user} users"] = {way: each.roc for way, each in found.items() if way != ANOTHER}
            write_json(chosen.json, done)
            write_memberships(curves, chosen.html or chosen.json.with_suffix(".html"), when=done["when"], lead=LEAD)
    return 0


if __name__ == "__main__":
    sys.exit(main())
