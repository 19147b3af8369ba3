"""Sums over documents, and queries made up from them. Shapes: G grades, d features.

What a client sends is a `Moments` of its own documents: for each grade the number of documents, of lists that have one
and of squared documents per list, the sum of the features [d] and two sums of outer products, each symmetric [d, d];
and how many feature values lie outside [0, 1]. These are G (3 + d + d (d + 1)) + 1 numbers, whatever the client has.
All of them add up, so that a secure sum can hide each client's. Without one the server reads them: one document alone
is then told as it is, and so is the mean of whoever is the only client with a grade.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hushrank.streams import draw_normal, draw_uniform, stream
from hushrank.types import Array, QuerySet

_PRESENT, _COUNT, _QUERY, _DOCUMENT = 1, 2, 3, 4  # what is drawn
_FARTHEST = 3.0  # standard deviations of a list's length. Why: its logarithm is normal, and a long tail costs time
_DECIMALS = 6  # of a made-up feature, as in LETOR files. Why: what libraries round differently is the same again


@dataclass(frozen=True, slots=True)
class Moments:
    """Of some clients' documents, by grade. A list is what a client has of a query."""

    documents: Array  # [G]
    lists: Array  # [G] with at least one document of the grade
    squares: Array  # [G] sum over lists of (documents of the grade)^2
    features: Array  # [G, d] sum
    products: Array  # [G, d, d] sum over documents of x x^T
    list_products: Array  # [G, d, d] sum over lists of s s^T / n: s the sum of the list's n documents of the grade
    outside: Array  # [] feature values outside [0, 1]

    @property
    def n_numbers(self) -> int:
        """That a client sends; a symmetric matrix is sent by its triangle."""
        n_grades, d = self.features.shape
        return int(n_grades * (3 + d + d * (d + 1)) + 1)


def sum_documents(queries: QuerySet, n_grades: int) -> Moments:
    """What one client sends."""
    found = [sum_grade(queries, grade) for grade in range(n_grades)]
    documents, lists, squares, features, products, list_products = map(np.array, zip(*found, strict=True))
    outside = np.array(float(np.count_nonzero((queries.features < 0) | (queries.features > 1))))
    return Moments(documents, lists, squares, features, products, list_products, outside)


def sum_grade(queries: QuerySet, grade: int) -> tuple[float, float, float, Array, Array, Array]:
    """Of the documents of one grade."""
    is_there = queries.grades == grade
    rows = queries.features[is_there].astype(np.float64)
    of_query = np.repeat(np.arange(queries.n_queries), queries.lengths)[is_there]
    counts = np.bincount(of_query, minlength=queries.n_queries)
    counts = counts[counts > 0]
    firsts = np.cumsum(counts) - counts
    sums = np.add.reduceat(rows, firsts, axis=0) if len(counts) else rows
    products, list_products = rows.T @ rows, (sums / counts[:, None]).T @ sums
    return float(len(rows)), float(len(counts)), float(counts @ counts), rows.sum(axis=0), products, list_products


def add_moments(parts: list[Moments]) -> Moments:
    return Moments(*(sum(getattr(part, field.name) for part in parts) for field in fields(Moments)))


@dataclass(frozen=True, slots=True)
class Model:
    """How made-up queries are drawn: x = mean of the grade + what the query adds + what the document adds."""

    present: Array  # [G] chance that a list has documents of the grade
    count: Array  # [G] mean of the logarithm of how many, if it has
    count_spread: Array  # [G] its standard deviation
    means: Array  # [G, d]
    query_root: Array  # [d, d] square root of the covariance of what queries add
    document_roots: Array  # [G, d, d] of what documents add
    is_bounded: bool  # whether features lie in [0, 1]


def fit_model(sums: Moments, n_queries: float) -> Model:
    """By moments: within lists the documents' covariance, between lists the queries' [searle1992]."""
    n, lists = np.maximum(sums.documents, 1.0), np.maximum(sums.lists, 1.0)
    means = sums.features / n[:, None]
    centre = n[:, None, None] * means[:, :, None] * means[:, None, :]
    freedom = np.maximum(n - lists, 1.0)
    within = (sums.products - sums.list_products) / freedom[:, None, None]
    between = (sums.list_products - centre - (lists - 1)[:, None, None] * within).sum(axis=0)
    query_covariance = between / max(float((n - sums.squares / n).sum()), 1.0)
    present = np.minimum(sums.lists / n_queries, 1.0)
    mean_count = np.maximum(sums.documents / np.maximum(n_queries * present, 1e-9), 1.0)
    spread = np.sqrt(np.log(np.maximum(sums.squares * lists / n**2, 1.0)))  # of a log-normal number
    return Model(
        present=present,
        count=np.log(mean_count) - spread**2 / 2,
        count_spread=spread,
        means=means,
        query_root=root_of(query_covariance),
        document_roots=np.stack([root_of(each) for each in within]),
        is_bounded=not sums.outside,
    )


def root_of(covariance: Array) -> Array:
    """The symmetric square root; directions whose variance came out negative have none."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def draw_queries(model: Model, n_queries: int, *, key: Array) -> QuerySet:
    """Made-up queries; one that would have no document gets one of the grade that is most often there."""
    n_grades, d = model.means.shape
    counts = draw_counts(model, n_queries, key=key)
    lengths = counts.sum(axis=1)
    grades = np.repeat(np.tile(np.arange(n_grades), n_queries), counts.ravel())
    n_documents = int(lengths.sum())
    of_query = draw_normal(stream(key, _QUERY), n_queries * d).reshape(n_queries, d) @ model.query_root
    own = draw_normal(stream(key, _DOCUMENT), n_documents * d).reshape(n_documents, d)
    features = model.means[grades] + np.repeat(of_query, lengths, axis=0)
    for grade in range(n_grades):
        features[grades == grade] += own[grades == grade] @ model.document_roots[grade]
    features = np.clip(features, 0.0, 1.0) if model.is_bounded else features
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = tuple(f"made-up-{number}" for number in range(1, n_queries + 1))
    return QuerySet(np.round(features, _DECIMALS).astype(np.float32), grades.astype(np.uint8), starts, ids)


def draw_counts(model: Model, n_queries: int, *, key: Array) -> Array:
    """[n_queries, G] documents of each grade in each list."""
    shape = (n_queries, len(model.present))
    is_present = draw_uniform(stream(key, _PRESENT), n_queries * shape[1]).reshape(shape) < model.present
    is_present[~is_present.any(axis=1), np.argmax(model.present)] = True
    normals = np.clip(draw_normal(stream(key, _COUNT), n_queries * shape[1]).reshape(shape), -_FARTHEST, _FARTHEST)
    counts = np.rint(np.exp(model.count + model.count_spread * normals)).astype(np.int64)
    return np.where(is_present, np.maximum(counts, 1), 0)
