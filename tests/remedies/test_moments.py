"""Sums over documents by hand, the model that they give, and queries drawn from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.data.queries import slice_queries
from hushrank.remedies.moments import Moments, add_moments, draw_counts, draw_queries, fit_model, sum_documents
from hushrank.streams import seed_key
from hushrank.types import Array, QuerySet

KEY = seed_key(3)


def queries(features: list[list[float]], grades: list[int], lengths: list[int]) -> QuerySet:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.array(features, np.float32)
    return QuerySet(rows, np.array(grades, np.uint8), starts, tuple(map(str, range(len(lengths)))))


def test_sums_by_hand() -> None:
    """One feature. Query 0: 1 and 3 of grade 0, 5 of grade 1. Query 1: 2 of grade 0."""
    found = sum_documents(queries([[1], [3], [5], [2]], [0, 0, 1, 0], [3, 1]), 3)
    assert found.documents.tolist() == [3, 1, 0]
    assert found.lists.tolist() == [2, 1, 0]
    assert found.squares.tolist() == [2**2 + 1**2, 1, 0]
    assert found.features[:, 0].tolist() == [1 + 3 + 2, 5, 0]
    assert found.products[:, 0, 0].tolist() == [1 + 9 + 4, 25, 0]
    assert found.list_products[:, 0, 0].tolist() == [(1 + 3) ** 2 / 2 + 2**2 / 1, 25, 0]
    assert found.outside == 3  # 3, 5 and 2
    assert found.n_numbers == 3 * (3 + 1 + 1 * 2) + 1


def test_numbers_sent_of_mq2008() -> None:
    empty = sum_documents(queries([[0.0] * 46], [0], [1]), 3)
    assert empty.n_numbers == 3 * (3 + 46 + 46 * 47) + 1 == 6634


@given(st.integers(1, 5))
def test_sums_of_clients_add_up_to_the_sums_of_all(n_first: int) -> None:
    whole = made_up_truth(6, 4)
    parts = [slice_queries(whole, 0, n_first), slice_queries(whole, n_first, 6)]
    together = add_moments([sum_documents(part, 2) for part in parts])
    for name in Moments.__slots__:
        np.testing.assert_allclose(getattr(together, name), getattr(sum_documents(whole, 2), name), rtol=1e-9)


QUERY = np.array([[0.5, 0.3], [0.3, 0.4]])  # covariance of what queries add
DOCUMENT = np.array([[[0.2, -0.1], [-0.1, 0.3]], [[0.1, 0.0], [0.0, 0.1]]])  # of what documents add, by grade
MEANS = np.array([[1.0, 2.0], [3.0, -1.0]])


def made_up_truth(n_queries: int, length: int) -> QuerySet:
    """Half of each list is of grade 0."""
    generator = np.random.default_rng(8)
    grades = np.tile(np.arange(length) % 2, n_queries)
    of_query = np.repeat(generator.multivariate_normal([0, 0], QUERY, n_queries), length, axis=0)
    own = np.stack([generator.multivariate_normal([0, 0], DOCUMENT[grade]) for grade in grades])
    return queries((MEANS[grades] + of_query + own).tolist(), grades.tolist(), [length] * n_queries)


def test_the_model_finds_means_and_both_covariances() -> None:
    """2,000 lists of four: standard errors of at most .02, where documents within a list would add .1 to queries."""
    model = fit_model(sum_documents(made_up_truth(2000, 4), 2), 2000)
    np.testing.assert_allclose(model.means, MEANS, atol=0.08)
    np.testing.assert_allclose(model.query_root @ model.query_root, QUERY, atol=0.06)
    np.testing.assert_allclose(model.document_roots @ model.document_roots, DOCUMENT, atol=0.03)
    assert model.present.tolist() == [1, 1] and np.allclose(np.exp(model.count), 2) and not model.is_bounded


def test_drawn_queries_have_the_moments_that_they_were_drawn_from() -> None:
    """4,000 queries: the same bounds as above, and lists of exactly five documents of each grade."""
    drawn = draw_queries(fit_model(sum_documents(made_up_truth(2000, 10), 2), 2000), 4000, key=KEY)
    assert set(drawn.lengths.tolist()) == {10}
    again = fit_model(sum_documents(drawn, 2), 4000)
    np.testing.assert_allclose(again.means, MEANS, atol=0.1)
    np.testing.assert_allclose(again.query_root @ again.query_root, QUERY, atol=0.1)
    np.testing.assert_allclose(again.document_roots @ again.document_roots, DOCUMENT, atol=0.04)


def test_list_lengths_follow_the_sums() -> None:
    """Grade 0: 8 documents in every list. Grade 1: 2 or 6, in half of the lists, so 4 +/- 2 there."""
    grades = ([0] * 8 + [1] * 2 + [0] * 8 + [0] * 8 + [1] * 6 + [0] * 8) * 10
    truth = queries([[0.5]] * len(grades), grades, [10, 8, 14, 8] * 10)
    counts = draw_counts(fit_model(sum_documents(truth, 2), 40), 4000, key=KEY)
    assert (counts[:, 0] == 8).all()
    some = counts[:, 1][counts[:, 1] > 0]
    assert abs(len(some) / 4000 - 0.5) < 0.03  # error .008
    assert abs(some.mean() - 4) < 0.15 and abs(some.std() - 2) < 0.2  # error .045; a log-normal number, cut at 3


def test_features_stay_where_all_real_ones_are_and_nowhere_else() -> None:
    inside = queries([[0.0, 0.9], [1.0, 0.8], [0.0, 1.0], [1.0, 0.1]], [0, 0, 0, 0], [2, 2])
    drawn = draw_queries(fit_model(sum_documents(inside, 1), 2), 50, key=KEY).features
    assert drawn.min() == 0 and drawn.max() == 1
    outside = queries([[0.0, 0.9], [1.5, 0.8], [0.0, 1.0], [1.0, 0.1]], [0, 0, 0, 0], [2, 2])
    assert draw_queries(fit_model(sum_documents(outside, 1), 2), 50, key=KEY).features.min() < 0


@pytest.mark.parametrize("n", [1, 7])
def test_every_list_has_a_document_and_draws_do_not_depend_on_how_many_there_are(n: int) -> None:
    rare: Array = np.zeros((40, 1))
    model = fit_model(sum_documents(queries(rare.tolist(), [0] * 40, [1] * 40), 2), 400)  # one list in ten has any
    drawn = draw_queries(model, n, key=KEY)
    assert (drawn.lengths >= 1).all() and drawn.n_queries == n
    assert drawn.lengths.tolist() == draw_queries(model, 9, key=KEY).lengths[:n].tolist()
