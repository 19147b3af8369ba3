"""Rankers trained on relevance labels, which no federation has: the scale on which its numbers are read.

MSE and RankingSVM are the baselines of [foltr-es, section 5], LambdaMART [burges2010] is a ceiling. All take the same
`QuerySet`s as every learner here. Shapes: n documents, p features.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from hushrank.types import Array, QuerySet

PACKAGES = {"mse": "sklearn", "lambdamart": "lightgbm"}  # {ranker: what must be installed for it}
_NEWTON_STEPS = 100
_FEW_VALUES = 5_000_000  # features x documents. Why: below, a tree takes less time than threads to meet at its nodes
_WAITING = "OMP_WAIT_POLICY"
_COLUMNS = 16  # of the features at a time. Why: the matrix of all would be copied several times


def mse_ranker(train: QuerySet) -> Array:
    """[p] float32 parameters of a linear ranker: least squares of grades on features, all documents alike.

    The intercept is fitted and dropped: it changes no order. Differs: MQ2008 has constant and collinear features, so
    the published code, which asks for a ridge of 0, divides by singular values that are rounding errors; here those
    directions get the smallest weights. That is about .008 of MaxRR better on its training queries.
    """
    from sklearn.linear_model import LinearRegression

    _check_labels(train)
    fitted = LinearRegression().fit(train.features.astype(np.float64), train.grades.astype(np.float64))
    return np.asarray(fitted.coef_, dtype=np.float32)


def ranking_svm(train: QuerySet, *, C: float = 1e3, tolerance: float = 1e-8) -> Array:  # noqa: N803 - its name everywhere
    """[p] float32 parameters of a linear ranker that keeps better documents one score above worse ones.

    min over w of |w|^2 / 2 + C / n_queries * sum of max(0, 1 - w . (x_i - x_j))^2 over pairs of one query with
    grade i > grade j [joachims2006]. C is divided by the number of queries, as in SVMrank.
    Differs: SVMrank's hinge is not squared. On MQ2008 that moves MaxRR by less than .001.
    """
    if not C > 0:
        raise ValueError(f"C is {C}, must be > 0: it weighs errors against the length of the weights.")
    _check_labels(train)
    features, cost = train.features.astype(np.float64), C / train.n_queries
    state = _evaluate(train, np.zeros(train.n_features), np.zeros(train.n_documents), cost)
    for _ in range(_NEWTON_STEPS):
        gradient = state.weights + cost * (features.T @ state.pairs.gradient())
        step = -_solve(np.eye(len(gradient)) + cost * state.pairs.hessian(features), gradient)
        decrease = -float(gradient @ step)
        better = _search_line(train, state, step, features @ step, cost, decrease)
        if better is None or decrease <= tolerance * state.loss:
            break
        state = better
    return np.asarray(state.weights, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class _State:
    """Where Newton's method stands."""

    weights: Array  # [p]
    scores: Array  # [n]
    pairs: OrderedPairs
    loss: float


def _evaluate(train: QuerySet, weights: Array, scores: Array, cost: float) -> _State:
    pairs = order_pairs(train, scores)
    return _State(weights, scores, pairs, float(weights @ weights) / 2 + cost * pairs.loss())


def _search_line(
    train: QuerySet, state: _State, step: Array, moved: Array, cost: float, decrease: float
) -> _State | None:
    """The first of the steps 1, 1/2, 1/4, ... that lowers the loss as it should; None below the limit of rounding."""
    for rate in 0.5 ** np.arange(30):
        tried = _evaluate(train, state.weights + rate * step, state.scores + rate * moved, cost)
        if tried.loss <= state.loss - 1e-4 * rate * decrease:
            return tried
    return None


def lambdamart(
    train: QuerySet, vali: QuerySet, *, seed: int = 0, n_trees: int = 1000, n_threads: int | None = None
) -> Callable[[Array], Array]:
    """A scorer of features [n, p]: gradient-boosted trees on nDCG@10, as many as are best on `vali` [burges2010].

    `n_threads`: one per processor by default, and one where the data are few; the trees are the same.
    """
    _check_labels(train)
    lightgbm, threads = import_lightgbm(), choose_threads(train, n_threads)
    settings = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_data_in_leaf": 20,
        "label_gain": [2**grade - 1 for grade in range(32)],
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": threads,
        "verbosity": -1,
    }
    sets = [lightgbm.Dataset(q.features, q.grades, group=q.lengths, free_raw_data=False) for q in (train, vali)]
    quietly = lightgbm.early_stopping(50, verbose=False)
    trees = lightgbm.train(settings, sets[0], n_trees, valid_sets=sets[1:], callbacks=[quietly])

    def score(features: Array) -> Array:
        return np.asarray(trees.predict(features, num_threads=threads))

    return score


def choose_threads(train: QuerySet, n_threads: int | None = None) -> int:
    """LightGBM's `num_threads`; its 0 is one per processor, or as many as OMP_NUM_THREADS says."""
    return 1 if train.n_documents * train.n_features < _FEW_VALUES else n_threads or 0


def import_lightgbm() -> ModuleType:
    """LightGBM with threads that sleep while they wait.

    Why: OpenMP reads this once, when it is loaded. Its threads spin otherwise, and beside another busy process a
    training on MQ2008 took 22 s instead of .8 s.
    """
    known = os.environ.get(_WAITING)
    os.environ.setdefault(_WAITING, "PASSIVE")
    try:
        import lightgbm
    finally:
        if known is None:
            del os.environ[_WAITING]
    return lightgbm


@dataclass(frozen=True, slots=True)
class PairLevel:
    """Documents of one grade against all worse ones of their query, sorted so that a pair's error is an order.

    Why: with t = s_j + 1 for the worse and s_i for the better document, a pair has a loss exactly when t_j stands after
    s_i. After sorting, all pairs of a document are a run at the end or at the start of its query, and running
    sums take the place of pairs: n log n instead of n^2.
    """

    rows: Array  # [m] documents by query, then by t or s
    values: Array  # [m] t of worse, s of better documents
    is_worse: Array  # [m]
    first: Array  # [m] where the document's query begins
    last: Array  # [m] where it ends (exclusive)

    def pull(self, payload: Array) -> Array:
        """[m, ...] for a better i the sum of (payload_i - payload_j), for a worse j of (payload_j - payload_i), over
        the pairs with a loss."""
        worse = _running_sum(payload, self.is_worse)
        better = _running_sum(payload, ~self.is_worse)
        n_worse, n_better = (_running_sum(np.ones(len(self.rows)), mask) for mask in (self.is_worse, ~self.is_worse))
        here = np.arange(len(self.rows))
        mine = self.is_worse.reshape(-1, *(1,) * (payload.ndim - 1))
        others = np.where(mine, better[here] - better[self.first], worse[self.last] - worse[here])
        n_others = np.where(self.is_worse, n_better[here] - n_better[self.first], n_worse[self.last] - n_worse[here])
        return n_others.reshape(mine.shape) * payload - others


@dataclass(frozen=True, slots=True)
class OrderedPairs:
    """All pairs of a query set at given scores, by the grade of the better document."""

    levels: tuple[PairLevel, ...]
    n_documents: int

    def loss(self) -> float:
        """Sum of (t_j - s_i)^2 over the pairs with a loss: each document's value times its pull."""
        return float(sum(level.values @ level.pull(level.values) for level in self.levels))

    def gradient(self) -> Array:
        """[n] of the loss by the scores."""
        return self._scatter([2.0 * level.pull(level.values) for level in self.levels])

    def hessian(self, features: Array) -> Array:
        """[p, p] of the loss by the weights: features^T (second derivative by the scores) features."""
        parts = []
        for start in range(0, features.shape[1], _COLUMNS):
            some = features[:, start : start + _COLUMNS]
            parts.append(features.T @ self._scatter([2.0 * level.pull(some[level.rows]) for level in self.levels]))
        return np.concatenate(parts, axis=1)

    def _scatter(self, parts: list[Array]) -> Array:
        total = np.zeros((self.n_documents, *parts[0].shape[1:]))
        for level, part in zip(self.levels, parts, strict=True):
            total[level.rows] += part
        return total


def order_pairs(queries: QuerySet, scores: Array) -> OrderedPairs:
    """Sort the documents for every grade that is better than another."""
    owner = np.repeat(np.arange(queries.n_queries), queries.lengths)
    levels = []
    for grade in np.unique(queries.grades)[1:]:
        rows = np.flatnonzero(queries.grades <= grade)
        is_worse = queries.grades[rows] < grade
        values = scores[rows] + is_worse
        order = np.lexsort((values, owner[rows]))
        rows, values, is_worse = rows[order], values[order], is_worse[order]
        ends = np.searchsorted(owner[rows], np.arange(queries.n_queries + 1))
        levels.append(PairLevel(rows, values, is_worse, ends[owner[rows]], ends[owner[rows] + 1]))
    return OrderedPairs(tuple(levels), queries.n_documents)


def _running_sum(payload: Array, mask: Array) -> Array:
    """[m + 1, ...] sums of the first 0, 1, ..., m masked rows."""
    masked = payload * mask.reshape(-1, *(1,) * (payload.ndim - 1))
    return np.concatenate([np.zeros((1, *payload.shape[1:])), np.cumsum(masked, axis=0)])


def _solve(matrix: Array, vector: Array) -> Array:
    """matrix^-1 vector, scaled first: raw features differ by many powers of ten."""
    scale = 1.0 / np.sqrt(np.diag(matrix))
    return np.asarray(scale * np.linalg.solve(scale[:, None] * matrix * scale, scale * vector))


def _check_labels(train: QuerySet) -> None:
    if len(np.unique(train.grades)) < 2:
        raise ValueError("all documents have the same grade, so there is nothing to learn from the labels.")
