"""Sets whose grades differ by what people look for: generated, carried along, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.data import cache
from hushrank.data.load import load_dataset
from hushrank.data.normalise import normalise_queries
from hushrank.data.queries import join_queries, slice_queries, widen_queries
from hushrank.data.shapes import SHAPES, shape_named
from hushrank.data.synthetic import generate_folds, generate_queries, generate_wrapped
from hushrank.types import Array, QuerySet

SMALL = "intent-change-like:n_queries=30,n_features=16"


def intents_of(queries: QuerySet) -> Array:
    assert queries.intents is not None
    return queries.intents


def overlap(queries: QuerySet) -> float:
    """Of the documents that one kind of people finds relevant, the share that another finds relevant too."""
    is_relevant = intents_of(queries) > 0
    shares = [
        (one & two).sum() / one.sum()
        for i, one in enumerate(is_relevant)
        for j, two in enumerate(is_relevant)
        if i != j
    ]
    return float(np.mean(shares))


def test_intent_change_like_has_the_size_and_the_shares_of_the_published_collection() -> None:
    queries = generate_queries(SHAPES["intent-change-like"])
    assert (queries.n_queries, queries.n_features, queries.n_intents) == (200, 105, 4)
    assert abs(queries.lengths.mean() - 500) < 5 and queries.lengths.min() >= 300 and queries.lengths.max() <= 900
    assert set(np.unique(intents_of(queries)).tolist()) == {0, 1}
    assert np.allclose(intents_of(queries).mean(axis=1), 0.04, atol=0.01)
    in_query = np.maximum.reduceat(intents_of(queries), queries.starts[:-1], axis=1)
    assert in_query.min() == 1  # every query has a relevant document for every intent


def test_the_grades_are_the_highest_of_the_intents() -> None:
    queries = generate_queries(shape_named(SMALL))
    assert np.array_equal(queries.grades, intents_of(queries).max(axis=0))


def test_twenty_kinds_of_people_can_be_asked_for() -> None:
    queries = generate_queries(shape_named(f"{SMALL},n_intents=20"))
    assert queries.n_intents == 20 and len(np.unique(intents_of(queries), axis=0)) == 20


def test_people_agree_more_the_more_they_have_in_common() -> None:
    overlaps = [overlap(generate_queries(shape_named(f"{SMALL},common={common}"))) for common in (0, 0.5, 1)]
    assert overlaps[0] < overlaps[1] - 0.05 < overlaps[2] - 0.1


def test_a_kind_of_people_has_the_same_taste_in_every_query() -> None:
    """A least-squares ranker of one kind's labels on half of the queries serves that kind best on the other half."""
    queries = generate_queries(shape_named(f"{SMALL},n_queries=60,common=0,noise=0.2"))
    middle = int(queries.starts[30])
    features = queries.features.astype(np.float64) - queries.features.mean(axis=0)
    grades = intents_of(queries).astype(np.float64)
    weights = np.linalg.lstsq(features[:middle], grades[:, :middle].T, rcond=None)[0]
    scores = features[middle:] @ weights  # [n_documents, n_intents]
    gains = np.array([[np.corrcoef(scores[:, k], grades[j, middle:])[0, 1] for j in range(4)] for k in range(4)])
    assert np.array_equal(gains.argmax(axis=1), np.arange(4))


def test_intents_go_where_their_documents_go() -> None:
    whole = generate_queries(shape_named(SMALL))
    parts = [slice_queries(whole, 0, 7), slice_queries(whole, 7, 30)]
    assert np.array_equal(intents_of(parts[1]), intents_of(whole)[:, whole.starts[7] :])
    assert np.array_equal(intents_of(join_queries(parts)), intents_of(whole))
    assert np.array_equal(intents_of(widen_queries(whole, 20)), intents_of(whole))
    assert np.array_equal(intents_of(normalise_queries(whole, "standard")), intents_of(whole))
    fold = generate_folds(generate_wrapped(shape_named(SMALL)), 5)[1]
    assert np.array_equal(fold.train.grades, intents_of(fold.train).max(axis=0)) and fold.test.n_intents == 4


def test_a_set_and_one_without_intents_become_a_set_without() -> None:
    assert join_queries([generate_queries(shape_named(s)) for s in (SMALL, "tiny:n_features=16")]).intents is None


def test_intents_come_back_from_the_cache() -> None:
    queries = generate_queries(shape_named(SMALL))
    cache.write_entry("with-intents", queries, source="test")
    kept = cache.read_entry("with-intents")
    assert kept is not None and np.array_equal(intents_of(kept), intents_of(queries))


def test_sets_without_intents_keep_their_fingerprints() -> None:
    """The digests that the package gave before sets could have intents."""
    fingerprints = [load_dataset(name, seed=3).fingerprint for name in ("tiny", "mq2008-like")]
    assert fingerprints == ["0c80c4a6e7ac1aaa0b1dcac4fc708902c101dd9a", "5136f67dde6658b4a325e5310665ca0c1effe987"]


def test_common_is_part_of_a_fingerprint() -> None:
    assert load_dataset(SMALL).fingerprint != load_dataset(f"{SMALL},common=0.25").fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [("n_intents=1", "n_intents is 1, must be 0"), ("common=1.5", "common is 1.5, must be from 0 to 1")],
)
def test_intents_that_cannot_be_are_refused(change: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shape_named(f"{SMALL},{change}")
