"""Rankers trained on relevance labels, as runs: the same folds, users, metrics and report as every other recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushrank.clicks.table import TableUser
from hushrank.data.notices import notice_dataset
from hushrank.engine.checkpoint import LOOK
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options
from hushrank.extras import require_package
from hushrank.federation.seen import ONLINE, SEARCHES
from hushrank.learners.offline import PACKAGES, lambdamart, mse_ranker, ranking_svm
from hushrank.metrics.max_rr import mean_expected_max_rr
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.recipes.recipe import Recipe
from hushrank.recipes.resolve import resolve
from hushrank.runs.experiment import RunPlacement
from hushrank.runs.simulation import Simulation
from hushrank.types import Array, Fold, Notice, QuerySet, User


@dataclass(frozen=True)
class Baseline(Simulation):
    """An `Experiment` without rounds: labels are read once."""

    tell: Callable[[str], None] = lambda _: None

    def check(self, options: Options) -> RunPlacement:
        if self.recipe.recipe in PACKAGES:
            require_package(PACKAGES[self.recipe.recipe])
        platform = super().check(options).platform
        return RunPlacement(platform, self.recipe.recipe, "it is trained on labels, without searches")

    def foresee(self) -> list[Notice]:
        return notice_dataset(self.setting.dataset)

    def review(self, results: list[CellResult]) -> list[Notice]:
        del results  # without rounds nothing moves, falls or is sampled
        return []

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        return train_baseline(self.recipe.recipe, self.setting, n_threads=options.workers, tell=self.tell)


def prepare_baseline(recipe: Recipe, tell: Callable[[str], None], start: Path | None) -> Baseline:
    return Baseline(recipe, resolve(recipe, tell=tell, start=start), tell)


def train_baseline(
    name: str, setting: Setting, *, n_threads: int | None = None, tell: Callable[[str], None] = lambda _: None
) -> tuple[list[CellResult], str]:
    """One ranker per fold; every user meets the same one, because labels know no users."""
    results = []
    for fold in setting.dataset.folds:
        tell(f"fold {fold.number}: {name}")
        params, scorer = train_fold(name, fold, setting, n_threads=n_threads)
        results += [judge(setting, user, fold, params, scorer) for user in setting.users]
    order = [name for name, _ in setting.users]
    return sorted(results, key=lambda result: (order.index(result.user), result.fold)), "cpu"


def train_fold(
    name: str, fold: Fold, setting: Setting, *, n_threads: int | None = None
) -> tuple[Array, Callable[[Array], Array]]:
    """The parameters of a linear ranker (none for trees), and how documents are scored."""
    if name == "lambdamart":
        return np.zeros(0, np.float32), lambdamart(fold.train, fold.vali, seed=setting.seed, n_threads=n_threads)
    params = mse_ranker(fold.train) if name == "mse" else ranking_svm(fold.train)
    return params, lambda features: setting.method.ranker.score(params, features)


def judge(
    setting: Setting, user: tuple[str, User], fold: Fold, params: Array, scorer: Callable[[Array], Array]
) -> CellResult:
    name, person = user
    table = person.as_table(setting.method.k) if isinstance(person, TableUser) else None

    def look(queries: QuerySet) -> tuple[float, float]:
        scores = scorer(queries.features)
        max_rr = float("nan") if table is None else mean_expected_max_rr(queries, scores, table).value
        return mean_ndcg(queries, scores, k=setting.method.k).value, max_rr

    looks = {LOOK: np.zeros(1, np.int64)}
    for prefix, queries in (("offline", fold.test), ("vali", fold.vali)):
        ndcg, max_rr = look(queries)
        looks |= {f"{prefix}/nDCG@10": np.array([ndcg]), f"{prefix}/MaxRR": np.array([max_rr])}
    return CellResult(
        name,
        fold.number,
        0,
        params=params,
        shown={ONLINE: np.zeros(0, np.float32), SEARCHES: np.zeros(0, np.int32)},
        looks=looks,
        scorer=scorer,
    )
