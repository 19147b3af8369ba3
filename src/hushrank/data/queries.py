"""Pieces of a query set: a run of its queries, some of them, several sets as one, the same rows with more features."""

from __future__ import annotations

import dataclasses

import numpy as np

from hushrank.types import Array, QuerySet


def slice_queries(queries: QuerySet, first: int, stop: int) -> QuerySet:
    """The queries first, ..., stop - 1. Shares the memory of the whole."""
    rows = slice(int(queries.starts[first]), int(queries.starts[stop]))
    document_ids = None if queries.document_ids is None else queries.document_ids[rows]
    intents = None if queries.intents is None else queries.intents[:, rows]
    starts, ids = queries.starts[first : stop + 1] - queries.starts[first], queries.query_ids[first:stop]
    return QuerySet(queries.features[rows], queries.grades[rows], starts, ids, document_ids, intents)


def take_queries(queries: QuerySet, chosen: Array) -> QuerySet:
    """The chosen queries, in that order; without document ids and intents."""
    lengths = queries.lengths[chosen]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(starts[-1]) + np.repeat(queries.starts[:-1][chosen] - starts[:-1], lengths)
    ids = tuple(queries.query_ids[query] for query in np.asarray(chosen).tolist())
    return QuerySet(queries.features[rows], queries.grades[rows], starts, ids)


def join_queries(parts: list[QuerySet]) -> QuerySet:
    """Several sets of the same features, end to end; without document ids."""
    lengths = np.concatenate([part.lengths for part in parts])
    intents = [part.intents for part in parts if part.intents is not None]
    return QuerySet(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.grades for part in parts]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        tuple(query_id for part in parts for query_id in part.query_ids),
        intents=np.concatenate(intents, axis=1) if len(intents) == len(parts) else None,
    )


def widen_queries(queries: QuerySet, n_features: int) -> QuerySet:
    """The same rows with zeros in the features that they lack."""
    if queries.n_features == n_features:
        return queries
    features = np.zeros((queries.n_documents, n_features), dtype=np.float32)
    features[:, : queries.n_features] = queries.features
    return dataclasses.replace(queries, features=features)
