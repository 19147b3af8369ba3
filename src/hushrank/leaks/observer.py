"""An observer who guesses query and clicks from one upload of linear PDGD, knowing ranker and candidate lists.

One interaction adds learning_rate * sum_i a_i x_i to the weights: x_i are the features of one query's documents, a_i is
positive where clicked, negative where passed over, 0 where not shown, and all a_i add up to 0. So an upload lies in the
span of the differences of *one* query's shown documents, a small part of feature space. The attack:

1. *Query.* Before it sees anything, the observer holds a to be normal with mean 0, the wider the likelier a document is
   shown: A_q = diag(pi) - pi pi' / sum(pi). Then an upload of query q is normal with covariance tau S_q + noise, where
   S_q = learning_rate^2 X_q' A_q X_q, and queries are ranked by how likely they make the upload. Without noise this is
   the residual outside the span, long lists (which span everything) being charged for what else they could explain.
   Each other interaction in the same upload adds the mean of all S_q. Where clients scale their weights down to a norm,
   an upload holds an unknown multiple of the weights w that everybody knows: that adds w w'.
2. *Noise.* The observer knows the mechanism, so it tries it on small updates of its own. If the noise has about one
   size, it is taken as normal. If it is mostly tiny and seldom large, as a share of Gamma noise is, each coordinate
   gets a size of its own out of those seen, by expectation and maximisation for each query.
3. *Clicks.* The a_i of the guessed query by sparse Bayesian regression [tipping2001]; those clearly above 0 are clicks.

Shapes: Q queries, p parameters (= features), n documents of one query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushrank.streams import draw_normal, fold_in, stream
from hushrank.types import Array, DenseUpdate, QuerySet, Ranker

_TAU = 0.1  # about how large a^2 is
_TAUS = _TAU * np.array([1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0])  # all are tried where it is cheap: clipping shrinks a
_MOST_BYTES = 4 * 10**9
_UNEVEN = 2.0  # noise of more than this many times its typical size on average is not of one size (Laplace: 1.4)
_N_SIZES, _N_STEPS = 24, 16  # sizes of uneven noise, and steps until they fit
_SPARSE_STEPS = 25
_SMALL = 1e-5  # numbers of an update that no mechanism clips


class HasDelta(Protocol):
    """What an observer sees of an upload: a `DenseUpdate`, a `PrivateUpdate`, or a sum of them."""

    @property
    def delta(self) -> Array: ...


@dataclass(frozen=True, slots=True)
class Noise:
    """How large the noise of a coordinate is: one of these sizes, with these chances."""

    sizes: Array  # [K] standard deviations, ascending; 0: none but that of float32
    chances: Array  # [K]


NO_NOISE = Noise(np.zeros(1), np.ones(1))


@dataclass(frozen=True, slots=True)
class Observer:
    """What is worked out once for a ranker, whatever is then uploaded."""

    queries: QuerySet
    n_others: int  # interactions in an upload besides the one that is guessed
    largest: float  # of the parameters; what float32 loses is in proportion to it
    covariances: Array  # [Q, p, p] S_q, the other interactions included
    sizes: Array  # [Q, p] their eigenvalues
    axes: Array  # [Q, p, p] their eigenvectors, as rows
    rest: Array  # [p, p] what the other interactions and the scaling of weights add to each
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Guess:
    """What the observer makes of an upload."""

    queries: Array  # [Q] all queries, the likeliest first; empty for an upload of zeros, which says "no preference"
    clicked: Array  # document rows of the likeliest query that were clicked
    told: Array  # the same of the query that the observer was told, if it was


def prepare_observer(
    queries: QuerySet,
    params: Array,
    *,
    learning_rate: float = 0.1,
    n_interactions: int = 1,
    k: int = 10,
    are_scaled: bool = False,
) -> Observer:
    """n_interactions: in an upload, over all clients where it is a sum. are_scaled: weights are clipped to a norm."""
    n_bytes = 3 * 8 * queries.n_queries * queries.n_features**2
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"{queries.n_queries} queries x {queries.n_features}^2 features need {n_bytes / 1e9:.1f} GB, at most "
            f"{_MOST_BYTES / 1e9:g} GB are allowed: measure on fewer queries."
        )
    own = np.stack([_expected_square(queries.features[queries.rows(q)], params, k) for q in range(queries.n_queries)])
    own *= learning_rate**2
    rest = (n_interactions - 1) * own.mean(axis=0)
    rest += np.outer(params, params).astype(np.float64) if are_scaled else 0.0
    values, vectors = np.linalg.eigh(own + rest)
    largest = float(np.abs(params).max())
    axes = np.ascontiguousarray(np.swapaxes(vectors, 1, 2))
    sizes = np.maximum(values, 0.0)
    return Observer(queries, n_interactions - 1, largest, own + rest, sizes, axes, rest, learning_rate)


def _expected_square(features: Array, params: Array, k: int) -> Array:
    """[p, p] X' (diag(pi) - pi pi' / sum(pi)) X."""
    rows = features.astype(np.float64)
    shown = chance_shown(rows @ params.astype(np.float64), k)
    centred = rows - shown @ rows / shown.sum()
    return np.asarray((centred * shown[:, None]).T @ centred)


def chance_shown(scores: Array, k: int) -> Array:
    """[n] about how likely each document is on a page of k that a Plackett-Luce ranker shows.

    Such a page is the first k of a race in which document i arrives at an exponential time of rate e^s_i. With t the
    time of the k-th arrival taken as fixed, pi_i = 1 - e^(-t e^s_i), and t follows from sum(pi) = k.
    """
    if len(scores) <= k:
        return np.ones(len(scores))
    logs = scores - scores.max()
    low, high = -50.0, 50.0 - float(logs.min())  # of ln t
    for _ in range(60):
        middle = (low + high) / 2
        arrived = -np.expm1(-np.exp(np.minimum(middle + logs, 50.0)))
        low, high = (middle, high) if arrived.sum() < k else (low, middle)
    return np.asarray(np.clip(arrived, 1e-6, 1.0))


def try_mechanism(
    protect: Callable[..., HasDelta], n_params: int, *, n_clients: int = 1, n_interactions: int = 1, key: Array
) -> Noise:
    """What the mechanism adds to the sum of n_clients, noise and rounding, found by running it on small updates."""
    drawn = np.zeros((max(4, 64 // n_clients), n_params))
    for place, total in enumerate(drawn):
        keys = fold_in(stream(key, place), np.arange(n_clients))
        small = (_SMALL * draw_normal(keys, n_params)).astype(np.float32)
        for own, delta in zip(keys, small, strict=True):
            total += protect(DenseUpdate(delta, n_interactions), key=own).delta - delta
    return describe_noise(drawn)


def describe_noise(drawn: Array) -> Noise:
    """One size if the draws are about as large as each other, else some sizes and how often each was seen."""
    size = np.abs(drawn).ravel()
    average, typical = float(np.sqrt(np.mean(size**2))), float(np.median(size)) / 0.6745  # of a normal number, both 1
    if average == 0 or average < _UNEVEN * typical:
        return Noise(np.array([average]), np.ones(1))
    smallest = 1e-9 * size.max()
    edges = np.geomspace(smallest * 0.99, size.max() * 1.01, _N_SIZES + 1)
    counts = np.histogram(np.maximum(size, smallest), edges)[0] + 0.5  # Why: fitting needs the sizes in between
    return Noise(np.sqrt(edges[1:] * edges[:-1]), counts / counts.sum())


def guess(observer: Observer, upload: Array, noise: Noise = NO_NOISE, *, told: int | None = None) -> Guess:
    """Query and clicked documents, from upload [p]; told: a query whose clicks are guessed as well."""
    nothing = np.empty(0, np.int64)
    if not np.any(upload):
        return Guess(nothing, nothing, nothing)
    evidence, variances = weigh_queries(observer, upload, noise)
    ranked = np.argsort(-evidence, kind="stable")
    clicked, of_told = (
        nothing if query is None else _clicked(observer, upload, query, variances[query])
        for query in (int(ranked[0]), told)
    )
    return Guess(ranked, clicked, of_told)


def weigh_queries(observer: Observer, upload: Array, noise: Noise) -> tuple[Array, Array]:
    """[Q] ln P(upload | query) up to a constant, and [Q, p] the noise's variance in each coordinate."""
    sizes = np.maximum(noise.sizes, 2.0**-23 * max(observer.largest, float(np.abs(upload).max())))
    if len(np.unique(sizes)) > 1:
        return _weigh_uneven(observer, upload, Noise(sizes, noise.chances))
    squares = (observer.axes @ upload.astype(np.float64)) ** 2  # [Q, p]
    by_tau = []
    for tau in _TAUS:
        variances = tau * observer.sizes + sizes[0] ** 2
        by_tau.append(-0.5 * np.sum(squares / variances + np.log(variances), axis=-1))
    return np.logaddexp.reduce(by_tau, axis=0), np.full(observer.sizes.shape, sizes[0] ** 2)


def _weigh_uneven(observer: Observer, upload: Array, noise: Noise) -> tuple[Array, Array]:
    """[Q] evidence and [Q, p] variances where each coordinate has noise of a size of its own.

    For each query: given variances v, the residual is v C^-1 u with C = tau S + diag(v); given residuals, 1 / v is the
    mean of 1 / size^2 over the sizes, weighed by how likely each makes the residual.
    """
    u, place = upload.astype(np.float64), np.arange(len(upload))
    variances = np.full(observer.sizes.shape, max(0.1 * float(np.median(u**2)), float(noise.sizes[0] ** 2)))

    def add_up(variances: Array) -> Array:
        covariances = _TAU * observer.covariances
        covariances[:, place, place] += variances
        return covariances

    for _ in range(_N_STEPS):
        inverse = np.linalg.inv(add_up(variances))
        residuals = variances * (inverse @ u)
        unsure = np.maximum(variances - variances**2 * inverse[:, place, place], 0.0)
        variances = _mix(residuals**2 + unsure, noise)[0]
    covariances = add_up(variances)
    solved = np.linalg.solve(covariances, np.broadcast_to(u, variances.shape)[..., None])[..., 0]
    normal = -0.5 * (solved @ u) - 0.5 * np.linalg.slogdet(covariances)[1]
    squares = (variances * solved) ** 2
    swap = _mix(squares, noise)[1] + 0.5 * squares / variances + 0.5 * np.log(variances)  # the mixture for the normal
    return normal + swap.sum(axis=-1), variances


def _mix(squares: Array, noise: Noise) -> tuple[Array, Array]:
    """For squared residuals [..., p]: the variance that stands for the mixture of sizes, and ln of its density."""
    likely = np.log(noise.chances / noise.sizes) - 0.5 * squares[..., None] / noise.sizes**2
    total = np.logaddexp.reduce(likely, axis=-1, keepdims=True)
    return 1.0 / (np.exp(likely - total) @ (1.0 / noise.sizes**2)), total[..., 0]


def _clicked(observer: Observer, upload: Array, query: int, variances: Array) -> Array:
    """Document rows with a weight clearly above 0: twice what it could be off, a twentieth of the largest."""
    rows = observer.queries.rows(query)
    covariance = np.diag(variances) + _TAU * observer.rest
    features = observer.queries.features[rows]
    weights, deviations = fit_weights(features, upload, covariance, learning_rate=observer.learning_rate)
    largest = weights.max()
    is_clicked = (weights > 0.05 * largest) & ((weights > 2 * deviations) | (weights == largest)) & (weights > 0)
    return rows.start + np.flatnonzero(is_clicked)


def fit_weights(features: Array, upload: Array, covariance: Array, *, learning_rate: float) -> tuple[Array, Array]:
    """[n] weights a (times the learning rate) that explain the upload with few documents, and how far off they may be.

    Each weight has a variance of its own, set again and again to its expected square [tipping2001]: the variances of
    documents that are not needed shrink to 0. The last row says that all weights add up to 0.
    """
    rows = features.astype(np.float64)
    values, vectors = np.linalg.eigh(covariance)
    whiten = vectors.T / np.sqrt(np.maximum(values, 1e-15 * values.max()))[:, None]  # Why: rounding makes some negative
    seen = np.append(whiten @ upload.astype(np.float64), 0.0)
    explain = np.vstack([whiten @ (rows - rows.mean(axis=0)).T, np.full((1, len(rows)), 1e4 / learning_rate)])
    own = np.full(len(rows), (0.3 * learning_rate) ** 2)
    for _ in range(_SPARSE_STEPS):
        root = np.sqrt(own)
        left, singular, right = np.linalg.svd(explain * root, full_matrices=False)
        kept = singular**2 / (singular**2 + 1.0)
        weights = root * (right.T @ (singular / (singular**2 + 1.0) * (left.T @ seen)))
        variances = np.maximum(own * (1.0 - kept @ right**2), 0.0)
        own = weights**2 + variances + 1e-16
    return weights, np.sqrt(variances)


def check_linear(ranker: Ranker, n_features: int) -> None:
    """The attack is on w . x: the upload of another ranker is no sum of features."""
    if [part.shape for part in ranker.parameters] != [(n_features,)]:
        raise ValueError("the attack knows linear rankers only: choose ranker=linear.")
