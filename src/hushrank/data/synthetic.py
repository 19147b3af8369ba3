"""Generated data sets with the shape of the real ones, and relevance that a linear ranker finds only in part.

Features look like LETOR's: scaled to [0, 1] within each query, correlated in groups of four, some skewed, some mostly
0, some in steps, some constant within a query. A document's latent score is a weighted sum of its features, plus
products and distances of features that have no linear trend, plus noise; a grade is the number of thresholds below
the score. In a set with intents each kind of people adds a weighted sum of its own to what all of them share, and has
noise of its own; the grades are the highest of its intents.

Every draw belongs to the set, a query or a document, so the blocks in which the work is done change nothing. Features
use only integer and correctly rounded operations: the same bits on every machine. Shapes: n_rows documents and n
queries of one block; `owner` [n_rows] is each document's query within the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from hushrank.data.normalise import query_minmax
from hushrank.data.queries import join_queries, slice_queries
from hushrank.data.shapes import SyntheticShape
from hushrank.streams import Purpose, draw_bits, draw_uniform, fold_in, seed_key, stream
from hushrank.types import Array, Fold, QuerySet

GENERATOR = 1  # raise it when the same shape and seed would give other data
_OF_SET, _OF_QUERIES, _EMPTY = 1, 2, 3  # what a stream of Purpose.SYNTHETIC belongs to
_BELL, _SKEWED, _SPARSE, _STEPPED = range(4)
_KINDS = (_BELL, _BELL, _SKEWED, _BELL, _SPARSE, _BELL, _STEPPED, _BELL)
_GROUP = 4  # features that share a factor
_LOADING = np.float32(0.7)  # of the factor; features of a group correlate by its square
_OWN = np.float32(0.71414284)  # sqrt(1 - .7^2)
_FLAT_SHARE = 0.08  # of the features of a query: constant, as when no document has an anchor text
_DIFFICULTY = 0.5  # standard deviation between queries, beside 1 between documents
_BLOCK_ROWS = 4096


@dataclass(frozen=True, slots=True)
class _World:
    """What is the same for every query of a set."""

    kinds: Array  # [n_features] how each feature is spread
    groups: Array  # [n_features] the factor that it shares
    weights: Array  # [n_features] float64, the linear part
    first: Array  # [n_terms] features of the non-linear part: first * second, or the distance of first from the middle
    second: Array  # [n_terms]
    signs: Array  # [n_terms] 1 or -1
    thresholds: Array  # [n_grades - 1] float64
    tastes: Array  # [n_intents, n_features] float64, what each kind of people likes beside that


def generate_folds(whole: QuerySet, n_parts: int) -> tuple[Fold, ...]:
    """Fold i trains on the parts i, i + 1, ..., validates on the next, tests on the one after that, as LETOR's do.

    `whole` comes from `generate_wrapped`, so that the training parts always stand together: nothing is copied.
    """
    n_queries = _count_unwrapped(whole.n_queries, n_parts)
    bounds = _part_bounds(n_queries, n_parts)
    ends = np.concatenate([bounds, n_queries + bounds[1:]])
    folds = []
    for i in range(n_parts):
        vali, test = (i + n_parts - 2) % n_parts, (i + n_parts - 1) % n_parts
        train = slice_queries(whole, int(ends[i]), int(ends[i + n_parts - 2]))
        others = (slice_queries(whole, int(bounds[part]), int(bounds[part + 1])) for part in (vali, test))
        folds.append(Fold(i + 1, train, *others))
    return tuple(folds)


def generate_wrapped(shape: SyntheticShape, *, seed: int = 0) -> QuerySet:
    """The set with its first n_parts - 3 parts once more at the end."""
    whole = generate_queries(shape, seed=seed)
    n_again = int(_part_bounds(shape.n_queries, shape.n_parts)[shape.n_parts - 3])
    return join_queries([whole, slice_queries(whole, 0, n_again)]) if n_again else whole


def generate_queries(shape: SyntheticShape, *, seed: int = 0) -> QuerySet:
    """All queries of a set, the parts S1, S2, ... end to end."""
    key = stream(seed_key(seed), Purpose.SYNTHETIC)
    world = _make_world(shape, stream(key, _OF_SET))
    starts = np.concatenate([[0], np.cumsum(draw_lengths(shape, seed=seed))]).astype(np.int64)
    is_empty = _choose_empty(shape, stream(key, _EMPTY))
    query_keys = fold_in(stream(key, _OF_QUERIES), np.arange(shape.n_queries))
    features = np.empty((int(starts[-1]), shape.n_features), dtype=np.float32)
    grades = np.empty((max(shape.n_intents, 1), len(features)), dtype=np.uint8)
    for first, stop in _blocks(starts):
        rows = slice(int(starts[first]), int(starts[stop]))
        block = _make_block(shape, world, query_keys[first:stop], starts[first : stop + 1] - starts[first])
        features[rows], grades[:, rows] = block[0], np.where(np.repeat(is_empty[first:stop], block[2]), 0, block[1])
    ids = tuple(str(q + 1) for q in range(shape.n_queries))
    return QuerySet(features, grades.max(axis=0), starts, ids, intents=grades if shape.n_intents else None)


def draw_lengths(shape: SyntheticShape, *, seed: int = 0) -> Array:
    """[n_queries] list lengths: the quantiles of a log-logistic law between the bounds, in shuffled order.

    Why: quantiles, not draws, so that shortest, mean and longest are as asked for at any seed.
    """
    levels = (np.arange(shape.n_queries) + 0.5) / shape.n_queries
    tails = (levels / (1 - levels)) ** shape.skew
    low, high = 0.0, float(shape.longest)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _cut(shape, middle * tails).mean() > shape.mean_length else (middle, high)
    lengths: Array = _cut(shape, high * tails)
    lengths[0], lengths[-1] = shape.shortest, shape.longest
    order = np.argsort(draw_uniform(stream(seed_key(seed), Purpose.SHUFFLE), shape.n_queries), kind="stable")
    return np.asarray(lengths[order])


def _cut(shape: SyntheticShape, tails: Array) -> Array:
    return np.asarray(np.minimum(np.rint(shape.shortest + tails), shape.longest), dtype=np.int64)


def _choose_empty(shape: SyntheticShape, key: Array) -> Array:
    """[n_queries] True for the asked share of queries, which get no relevant document."""
    order = np.argsort(draw_uniform(key, shape.n_queries), kind="stable")
    is_empty = np.zeros(shape.n_queries, dtype=bool)
    is_empty[order[: round(shape.empty_share * shape.n_queries)]] = True
    return is_empty


def _make_world(shape: SyntheticShape, key: Array) -> _World:
    places = np.arange(shape.n_features)
    kinds = np.array(_KINDS)[places % len(_KINDS)]
    weights = np.maximum(draw_uniform(stream(key, 1), shape.n_features).astype(np.float64) * 1.4 - 0.4, -0.1)
    bells = np.flatnonzero(kinds == _BELL)
    n_terms = max(2, len(bells) // 4)
    first = bells[np.argsort(draw_uniform(stream(key, 2), len(bells)), kind="stable")]
    signs = np.where(draw_uniform(stream(key, 3), n_terms) < 0.5, -1.0, 1.0)
    # Why: every third term has the same feature twice, a distance from the middle.
    second = np.where(np.arange(n_terms) % 3 == 2, first[:n_terms], np.roll(first, -n_terms)[:n_terms])
    tastes = _to_bell(draw_bits(fold_in(stream(key, 4), np.arange(shape.n_intents)), shape.n_features))
    thresholds = _find_thresholds(shape)
    return _World(kinds, places // _GROUP, weights, first[:n_terms], second, signs, thresholds, tastes)


def _find_thresholds(shape: SyntheticShape) -> Array:
    """Where a normal score must be cut so that the documents of non-empty queries make up the asked shares."""
    above = np.cumsum(shape.grade_shares[::-1])[::-1][1:] / (1 - shape.empty_share)
    spread = NormalDist(0, (1 + _DIFFICULTY**2) ** 0.5)
    return np.array([spread.inv_cdf(1 - float(np.clip(share, 1e-6, 1 - 1e-6))) for share in above])


def _make_block(shape: SyntheticShape, world: _World, query_keys: Array, starts: Array) -> tuple[Array, Array, Array]:
    """Features, grades by intent (as if no query were empty) and list lengths of a run of queries."""
    lengths = np.diff(starts)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    row_keys = fold_in(query_keys[owner], np.arange(len(owner)) - starts[owner])
    n_groups, n_told = int(world.groups[-1]) + 1, int(world.groups[-1]) + 1 + shape.n_features
    bells = _to_bell(draw_bits(row_keys, n_told + max(shape.n_intents, 1)))
    of_query = draw_bits(fold_in(query_keys, np.full(len(lengths), 2**32)), shape.n_features + 1)
    raw = _LOADING * bells[:, world.groups] + _OWN * bells[:, n_groups:n_told]
    raw = _spread(raw, world.kinds)
    raw[(of_query[:, 1:] < np.uint32(int(_FLAT_SHARE * 2**32)))[owner]] = 0
    # Why: six decimals, as LETOR's files have, so that writing and reading changes nothing.
    features = np.rint(query_minmax(raw, starts) * np.float32(1e6)) / np.float32(1e6)
    difficulty = _DIFFICULTY * _to_bell(of_query[:, 0])[owner]
    scores = [score + difficulty for score in _score_intents(shape, world, features, starts, bells[:, n_told:].T)]
    return features, np.stack([_grade(score, world.thresholds, starts) for score in scores]), lengths


def _to_bell(bits: Array) -> Array:
    """float32 of mean 0 and deviation 1, nearly normal: the sum of a word's four bytes."""
    pairs = (bits & np.uint32(0x00FF00FF)) + ((bits >> np.uint32(8)) & np.uint32(0x00FF00FF))
    total = (pairs & np.uint32(0xFFFF)) + (pairs >> np.uint32(16))
    return (total.astype(np.float32) - np.float32(510)) / np.float32(147.8)


def _spread(raw: Array, kinds: Array) -> Array:
    """Give each feature its kind: a bell, a cube with a long tail, mostly 0, or in steps."""
    skewed, sparse, stepped = (np.flatnonzero(kinds == kind) for kind in (_SKEWED, _SPARSE, _STEPPED))
    lifted = raw[:, skewed] + np.float32(3.5)
    raw[:, skewed] = lifted * lifted * lifted
    raw[:, sparse] = np.maximum(raw[:, sparse] - np.float32(0.5), 0)
    raw[:, stepped] = np.rint(raw[:, stepped] + raw[:, stepped])
    return raw


def _score_intents(shape: SyntheticShape, world: _World, features: Array, starts: Array, noise: Array) -> list[Array]:
    """[n_rows] for each intent, or for everybody: mean 0 and deviation about 1 within each query.

    told = sqrt(common) (what all kinds share) + sqrt(1 - common) (the kind's own taste)
    """
    shared = _score_shared(shape, world, features, starts)
    told = [
        np.sqrt(shape.common) * shared + np.sqrt(1 - shape.common) * _standardise(features @ taste, starts)
        for taste in world.tastes
    ] or [shared]
    return [(one + shape.noise * own) / np.sqrt(1 + shape.noise**2) for one, own in zip(told, noise, strict=True)]


def _score_shared(shape: SyntheticShape, world: _World, features: Array, starts: Array) -> Array:
    """[n_rows] what everybody likes."""
    linear = _standardise(features @ world.weights, starts)
    middle = features - 0.5
    products = middle[:, world.first] * middle[:, world.second]
    scales = np.where(world.first == world.second, 2.0, 1.0) * world.signs
    nonlinear = _standardise(products @ scales, starts)
    return np.asarray(np.sqrt(1 - shape.nonlinear_share) * linear + np.sqrt(shape.nonlinear_share) * nonlinear)


def _standardise(values: Array, starts: Array) -> Array:
    """Mean 0 and deviation 1 within each query; 0 where all values are equal."""
    lengths = np.diff(starts)
    centred = values - np.repeat(np.add.reduceat(values, starts[:-1]) / lengths, lengths)
    deviation = np.sqrt(np.add.reduceat(centred**2, starts[:-1]) / lengths)
    return np.asarray(centred / np.repeat(np.where(deviation > 1e-9, deviation, np.inf), lengths))


def _grade(score: Array, thresholds: Array, starts: Array) -> Array:
    """[n_rows] how many thresholds lie below the score; the best document of a query has at least grade 1."""
    grades = np.searchsorted(thresholds, score).astype(np.uint8)
    is_best = score == np.repeat(np.maximum.reduceat(score, starts[:-1]), np.diff(starts))
    return np.where(is_best, np.maximum(grades, 1), grades)


def _blocks(starts: Array) -> list[tuple[int, int]]:
    """Runs of whole queries that begin in the same stretch of `_BLOCK_ROWS` documents."""
    changes = np.flatnonzero(np.diff(starts[:-1] // _BLOCK_ROWS)) + 1
    edges = [0, *changes.tolist(), len(starts) - 1]
    return list(pairwise(edges))


def _part_bounds(n_queries: int, n_parts: int) -> Array:
    """[n_parts + 1] part p has the queries bounds[p], ..., bounds[p + 1] - 1."""
    return np.arange(n_parts + 1) * n_queries // n_parts


def _count_unwrapped(n_wrapped: int, n_parts: int) -> int:
    """The number of queries n for which n plus the repeated parts is n_wrapped."""
    n = n_wrapped * n_parts // (2 * n_parts - 3)
    while n + int(_part_bounds(n, n_parts)[n_parts - 3]) < n_wrapped:
        n += 1
    return n
