"""Simulated federations and central training, as an experiment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hushrank.clicks.table import TableUser
from hushrank.data.notices import notice_dataset
from hushrank.data.source import digest_file
from hushrank.engine.batch import STANDARD
from hushrank.engine.checkpoint import LOOK
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Method, Setting
from hushrank.engine.simulate import CellResult, Options, prepare, simulate
from hushrank.federation.cohort import count_lost
from hushrank.files import Json
from hushrank.metrics.max_rr import mean_expected_max_rr
from hushrank.metrics.ndcg import ndcg_variant
from hushrank.metrics.offline import evaluate
from hushrank.metrics.online import discounted_sum
from hushrank.partitions.mixture import mean_skews
from hushrank.recipes.disclosure import who_learns
from hushrank.recipes.guarantee import explain_guarantee
from hushrank.recipes.population import partition_of
from hushrank.recipes.recipe import Recipe
from hushrank.recipes.resolve import resolve
from hushrank.runs.experiment import RunPlacement
from hushrank.runs.liars import foresee_liars
from hushrank.runs.review import estimate_slowness, foresee_clicks, foresee_rule, review_results
from hushrank.types import Array, Fold, Notice, QuerySet
from hushrank.unlearning.lengths import LENGTH_BYTES


@dataclass(frozen=True)
class Simulation:
    """An `Experiment`."""

    recipe: Recipe
    setting: Setting

    @property
    def identity(self) -> str:
        fingerprint = self.setting.dataset.fingerprint
        return "-".join((fingerprint, hash_start(self.setting.start), hash_log(self.recipe.log)))

    def check(self, options: Options) -> RunPlacement:
        if self.setting.warm_up is not None:
            prepare(self.setting.warm_up, options)
        prepared = prepare(self.setting, options)
        choice = prepared.choice
        return RunPlacement(prepared.platform, choice.name, choice.reason, choice.is_fallback)

    def estimate(self, placed: RunPlacement) -> Notice | None:
        return estimate_slowness(self.setting) if placed.is_fallback else None

    def foresee(self) -> list[Notice]:
        n_asked = self.setting.method.population.cohort_size
        of_liars = [*foresee_rule(self.setting), *foresee_liars(self.recipe, n_asked=n_asked)]
        return [*notice_dataset(self.setting.dataset), *of_liars, *foresee_clicks(self.setting)]

    def review(self, results: list[CellResult]) -> list[Notice]:
        return review_results(self.setting, results)

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        return simulate(self.setting, options)

    def measure(self, result: CellResult) -> dict[str, float]:
        return measure_cell(self.setting, result)

    def describe(self) -> Json:
        return describe_setting(self.recipe, self.setting)


def prepare_simulation(recipe: Recipe, tell: Callable[[str], None], start: Path | None) -> Simulation:
    setting = resolve(recipe, tell=tell, start=start)
    if recipe.log is not None and not recipe.is_central:
        recipe = replace(recipe, n_clients=setting.method.population.n_clients)  # the log says who there is
    return Simulation(recipe, setting)


def hash_start(start: tuple[float, ...] | None) -> str:
    return "fresh" if start is None else hashlib.sha256(repr(start).encode()).hexdigest()[:8]


def hash_log(path: str | None) -> str:
    return "simulated" if path is None else digest_file(Path(path))[:8]


def measure_cell(setting: Setting, result: CellResult) -> dict[str, float]:
    """Every metric of one training; of groups that differ too."""
    fold = next(fold for fold in setting.dataset.folds if fold.number == result.fold)
    found = evaluate(fold.test, score_all(setting, result, fold.test))
    others = {f"offline/{name}": mean.value for name, mean in found.items() if name != "nDCG@10"}
    online = {"online/nDCG@10": discounted_sum(result.online)} if len(result.online) else {}
    return {
        "offline/nDCG@10": float(result.test[-1]),
        "vali/nDCG@10": float(result.vali[-1]),
        **online,
        **others,
        **measure_experience(setting, result, fold),
        **{name: float(v[-1]) for name, v in result.looks.items() if is_special(name) and np.isfinite(v[-1])},
    }


def is_special(name: str) -> bool:
    """Whether a look is of a group, of clients' own rankers, of an attack's aim or of what a remedy found."""
    return name not in (*STANDARD, LOOK)


def score_all(setting: Setting, result: CellResult, queries: QuerySet) -> Array:
    """[n_documents] by the last ranker."""
    if result.scorer is not None:
        return result.scorer(queries.features)
    return setting.method.ranker.score(result.params, queries.features)


def measure_experience(setting: Setting, result: CellResult, fold: Fold) -> dict[str, float]:
    """Expected MaxRR of the person that the ranker was trained with; nothing for one without a click table."""
    user = dict(setting.users)[result.user]
    if not isinstance(user, TableUser):
        return {}
    table, k = user.as_table(setting.method.k), setting.method.k
    train = mean_expected_max_rr(fold.train, score_all(setting, result, fold.train), table, k=k)
    return {
        "offline/MaxRR": float(result.looks["offline/MaxRR"][-1]),
        "vali/MaxRR": float(result.looks["vali/MaxRR"][-1]),
        "train/MaxRR": train.value,
    }


def describe_setting(recipe: Recipe, setting: Setting) -> Json:
    """What the run's JSON says beside recipe, device, time and metrics."""
    dataset, learning = setting.dataset, who_learns(recipe, setting.method)
    return {
        "data": {
            "name": dataset.name,
            "normalise": dataset.normalise,
            "fingerprint": dataset.fingerprint,
            "n_features": dataset.n_features,
            "n_test_queries": sum(fold.test.n_queries for fold in dataset.folds),
            "n_queries_skipped": sum(count_skipped(setting, fold) for fold in range(len(dataset.folds))),
        },
        "nDCG@10": f"{ndcg_variant(10)}; ties in the file's order; online: sum over rounds of .9995^(t - 1) nDCG",
        "bytes_per_client_round": 0 if recipe.is_central or recipe.is_offline else count_bytes(setting.method),
        "kept_bytes_per_client": LENGTH_BYTES * setting.n_kept,
        "rounds_lost": count_lost_rounds(setting),
        "searches_per_client_round": list(setting.method.population.interactions),
        "skew": describe_skews(recipe, setting),
        "privacy": learning.promise,
        "who_learns_what": [{"who": who, "learns": learns} for who, learns in learning.lines],
        "guarantee": explain_guarantee(recipe, setting.method),
    }


def describe_skews(recipe: Recipe, setting: Setting) -> list[Json]:
    """How much clients differ, by part of the partition: the mean over folds, of the first repeat."""
    partition, dataset = partition_of(recipe), setting.dataset
    sizes = {"n_clients": setting.method.population.n_clients, "n_grades": dataset.n_grades}
    found = [partition.measure(partition.whole_of(fold, 0, **sizes)) for fold in dataset.folds]
    return [
        {
            "name": skew.name,
            "value": skew.value,
            "measure": skew.measure,
            "unit": skew.unit,
            "rows": [{"clients": name, "values": dict(values)} for name, values in skew.rows],
        }
        for skew in mean_skews(found)
    ]


def count_skipped(setting: Setting, fold: int) -> int:
    """Test queries without a relevant document."""
    test = setting.dataset.folds[fold].test
    return int(sum(not test.grades[test.rows(query)].any() for query in range(test.n_queries)))


def count_bytes(method: Method) -> int:
    """What a client sends in a round: its message, or all messages of a secure sum."""
    n_numbers = method.n_sent - method.n_personal  # Why: what a client keeps for itself is not sent
    message, n_clients = method.exchange.count_bytes(n_numbers), method.population.cohort_size
    return method.summation.count_bytes(message, n_clients=n_clients, n_params=n_numbers)


def count_lost_rounds(setting: Setting) -> int:
    """Over all trainings: rounds with less noise than promised, too small a sum, or too few answers for the rule."""
    method = setting.method
    if method.quorum.least < 2 or (method.rule is not None and method.population.is_complete):
        return 0
    keys = [
        cell_key(setting, Cell(0, fold, n))
        for fold in range(len(setting.dataset.folds))
        for n in range(setting.repeats)
    ]
    rounds = [method.round_of(step) for step in range(1, setting.rounds + 1)]
    lost = sum(count_lost(method.population, method.quorum, key, rounds) for key in keys)
    return len(setting.users) * lost
