"""Pieces of a query set: a run of its queries, several sets end to end, the same rows with more features."""

from __future__ import annotations

import numpy as np

from hushrank.types import QuerySet


def slice_queries(queries: QuerySet, first: int, stop: int) -> QuerySet:
    """The queries first, ..., stop - 1. Shares the memory of the whole."""
    rows = slice(int(queries.starts[first]), int(queries.starts[stop]))
    document_ids = None if queries.document_ids is None else queries.document_ids[rows]
    starts = queries.starts[first : stop + 1] - queries.starts[first]
    return QuerySet(queries.features[rows], queries.grades[rows], starts, queries.query_ids[first:stop], document_ids)


def join_queries(parts: list[QuerySet]) -> QuerySet:
    """Several sets of the same features, end to end; without document ids."""
    lengths = np.concatenate([part.lengths for part in parts])
    return QuerySet(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.grades for part in parts]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        tuple(query_id for part in parts for query_id in part.query_ids),
    )


def widen_queries(queries: QuerySet, n_features: int) -> QuerySet:
    """The same rows with zeros in the features that they lack."""
    if queries.n_features == n_features:
        return queries
    features = np.zeros((queries.n_documents, n_features), dtype=np.float32)
    features[:, : queries.n_features] = queries.features
    return QuerySet(features, queries.grades, queries.starts, queries.query_ids, queries.document_ids)
