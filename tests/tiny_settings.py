"""Tiny settings for the engine's tests: one data set, a linear and a network ranker: few programs to compile."""

from __future__ import annotations

from functools import cache

import numpy as np

from hushrank.aggregation.server_step import ServerStep
from hushrank.clicks.named import named_user
from hushrank.engine.inputs import cell_key, initial_memory, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Method, Setting
from hushrank.federation.cohort import Population
from hushrank.federation.round import run_round
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import Array, Dataset, Fold, NamedArrays, QuerySet

USERS = ("perfect", "navigational", "informational")
N_FEATURES = 6
UNEQUAL = Population(10, (1, 3, 2), cohort=7, dropout=0.3)  # sampled clients, unequal interactions, dropouts


def random_queries(seed: int, n_queries: int = 30) -> QuerySet:
    """Lists of 1 to 30 documents: shorter and longer than a page, some without a relevant document."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 31, n_queries)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    grades = generator.choice(3, starts[-1], p=[0.7, 0.2, 0.1]).astype(np.uint8)
    features = generator.random((starts[-1], N_FEATURES), dtype=np.float32) + 0.3 * grades[:, None].astype(np.float32)
    return QuerySet(features.astype(np.float32), grades, starts, tuple(map(str, range(n_queries))))


@cache
def tiny_dataset(n_folds: int = 2) -> Dataset:
    folds = [
        Fold(i + 1, random_queries(3 * i), random_queries(3 * i + 1, 8), random_queries(3 * i + 2, 8))
        for i in range(n_folds)
    ]
    return Dataset("random", tuple(folds), "none", "random")


def tiny_setting(
    *,
    ranker: str = "linear",
    population: Population = UNEQUAL,
    batch: int | None = None,
    server_step: ServerStep | None = None,
    users: tuple[str, ...] = USERS,
    rounds: int = 4,
    repeats: int = 1,
    n_folds: int = 2,
) -> Setting:
    made = LinearRanker(N_FEATURES) if ranker == "linear" else MlpRanker(N_FEATURES, 5)
    return Setting(
        dataset=tiny_dataset(n_folds),
        users=tuple((name, named_user(name, n_grades=3)) for name in users),
        method=Method(made, population, batch=batch, server_step=server_step or ServerStep()),
        rounds=rounds,
        repeats=repeats,
        seed=5,
        eval_every=2,
    )


def run_plainly(setting: Setting, cell: Cell, n_rounds: int) -> tuple[Array, list[float]]:
    """The last parameters of a cell and each round's online nDCG, by `round.run_round`."""
    federation = make_federation(setting, cell)
    params = initial_params(setting, cell)
    state: NamedArrays = initial_memory(setting, params)
    online = []
    for round in range(1, n_rounds + 1):
        state, params, seen = run_round(federation, state, params, key=cell_key(setting, cell), round=round)
        online.append(seen["online"])
    return params, online
