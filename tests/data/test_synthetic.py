"""Generated data: shaped as asked, the same for the same seed, and in part beyond a linear ranker."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.data import synthetic
from hushrank.data.shapes import SHAPES, shape_named
from hushrank.data.synthetic import draw_lengths, generate_folds, generate_queries, generate_wrapped
from hushrank.types import QuerySet

TINY = SHAPES["tiny"]


def mean_ndcg(queries: QuerySet, scores: np.ndarray) -> float:
    """nDCG@10 over the queries with a relevant document."""
    discounts = 1 / np.log2(np.arange(2, 12))
    values = []
    for q in range(queries.n_queries):
        gains = 2.0 ** queries.grades[queries.rows(q)] - 1
        shown, ideal = gains[np.argsort(-scores[queries.rows(q)], kind="stable")][:10], np.sort(gains)[::-1][:10]
        if gains.any():
            values.append(shown @ discounts[: len(shown)] / (ideal @ discounts[: len(ideal)]))
    return float(np.mean(values))


def fit_and_score(train: QuerySet, test: QuerySet, *, is_quadratic: bool) -> np.ndarray:
    """Scores of the least-squares ranker on the features, or on them and all their products."""

    def expand(queries: QuerySet) -> np.ndarray:
        features = queries.features.astype(np.float64) - 0.5
        i, j = np.triu_indices(features.shape[1])
        return np.hstack([features, features[:, i] * features[:, j]]) if is_quadratic else features

    def centre(values: np.ndarray) -> np.ndarray:
        means = np.add.reduceat(values, train.starts[:-1], axis=0) / train.lengths[:, None]
        return np.asarray(values - np.repeat(means, train.lengths, axis=0))

    inputs, grades = centre(expand(train)), centre(train.grades[:, None].astype(np.float64))
    weights = np.linalg.solve(inputs.T @ inputs + 10 * np.eye(inputs.shape[1]), inputs.T @ grades)
    return np.asarray(expand(test) @ weights)[:, 0]


@pytest.mark.parametrize("name", SHAPES)
def test_list_lengths_are_as_the_shape_says(name: str) -> None:
    shape = SHAPES[name]
    lengths = draw_lengths(shape, seed=3)
    assert (len(lengths), lengths.min(), lengths.max()) == (shape.n_queries, shape.shortest, shape.longest)
    assert abs(lengths.mean() / shape.mean_length - 1) < 0.01


def test_mq2007_like_is_the_size_of_mq2007() -> None:
    queries = generate_queries(SHAPES["mq2007-like"])
    assert (queries.n_queries, queries.n_features, queries.grades.max()) == (1692, 46, 2)
    assert abs(queries.n_documents - 69_623) < 100
    assert (queries.lengths.min(), queries.lengths.max()) == (6, 147)


def test_grades_and_empty_queries_have_the_asked_shares() -> None:
    shape = shape_named("mq2008-like:n_queries=2000")
    queries = generate_queries(shape)
    is_empty = np.maximum.reduceat(queries.grades, queries.starts[:-1]) == 0
    assert is_empty.mean() == shape.empty_share  # 560 of 2,000
    assert np.allclose(np.bincount(queries.grades) / queries.n_documents, shape.grade_shares, atol=0.02)


def test_features_look_like_letors() -> None:
    queries = generate_queries(shape_named("mq2007-like:n_queries=200"))
    low, high = (ufunc.reduceat(queries.features, queries.starts[:-1], axis=0) for ufunc in (np.minimum, np.maximum))
    is_flat = high == low
    assert queries.features.dtype == np.float32 and not low.any() and set(np.unique(high)) == {0, 1}
    assert 0.05 < is_flat.mean() < 0.12 and 0.1 < (queries.features == 0).mean() < 0.4
    correlations = np.corrcoef(queries.features[:, :8].T)
    assert correlations[0, 1] > 0.3 and abs(correlations[0, 5]) < 0.1  # the same group of four, and another


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    one, same, other = (generate_queries(TINY, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.features, same.features) and np.array_equal(one.grades, same.grades)
    assert not np.array_equal(one.grades[:100], other.grades[:100])


def test_the_size_of_the_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generate_queries(TINY)
    monkeypatch.setattr(synthetic, "_BLOCK_ROWS", 50)
    parts = generate_queries(TINY)
    assert np.array_equal(whole.features, parts.features) and np.array_equal(whole.grades, parts.grades)


@pytest.mark.parametrize(("n_queries", "n_parts"), [(60, 5), (63, 5), (10, 3), (11, 4), (29, 10)])
def test_folds_rotate_as_letors_do(n_queries: int, n_parts: int) -> None:
    shape = shape_named(f"tiny:n_queries={n_queries},n_parts={n_parts}")
    parts = np.array_split(
        np.array([str(q + 1) for q in range(n_queries)]), [q * n_queries // n_parts for q in range(1, n_parts)]
    )
    folds = generate_folds(generate_wrapped(shape), n_parts)
    for i, fold in enumerate(folds):
        turned = parts[i:] + parts[:i]
        assert fold.number == i + 1 and list(fold.train.query_ids) == list(np.concatenate(turned[:-2]))
        assert list(fold.vali.query_ids) == list(turned[-2]) and list(fold.test.query_ids) == list(turned[-1])


def test_folds_share_the_memory_of_the_set() -> None:
    whole = generate_wrapped(TINY)
    assert all(np.shares_memory(whole.features, fold.train.features) for fold in generate_folds(whole, 5))


def test_lists_of_one_document_and_two_grades_are_possible() -> None:
    queries = generate_queries(shape_named("tiny:shortest=1,mean_length=1,longest=1,grade_shares=.5/.5,empty_share=0"))
    assert queries.n_documents == 60 and not queries.features.any() and set(queries.grades.tolist()) == {1}


def test_a_nonlinear_ranker_beats_the_best_linear_one_by_five_points() -> None:
    fold = generate_folds(generate_wrapped(shape_named("mq2007-like:n_queries=1000,n_features=16")), 5)[0]
    linear, quadratic = (
        mean_ndcg(fold.test, fit_and_score(fold.train, fold.test, is_quadratic=is_quadratic))
        for is_quadratic in (False, True)
    )
    assert 0.6 < linear < 0.8 and quadratic > linear + 0.05


def test_without_a_nonlinear_part_products_of_features_do_not_help() -> None:
    fold = generate_folds(
        generate_wrapped(shape_named("mq2007-like:n_queries=1000,n_features=16,nonlinear_share=0")), 5
    )[0]
    linear, quadratic = (
        mean_ndcg(fold.test, fit_and_score(fold.train, fold.test, is_quadratic=is_quadratic))
        for is_quadratic in (False, True)
    )
    assert abs(quadratic - linear) < 0.02


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mq2007-lik", "Did you mean mq2007-like"),
        ("tiny:n_querys=5", "Did you mean n_queries=...?"),
        ("tiny:n_queries", "Did you mean n_queries=...?"),
        ("tiny:n_queries=many", "n_queries is 'many', must be a whole number"),
        ("tiny:n_queries=4", "n_queries is 4, must be at least n_parts = 5"),
        ("tiny:n_parts=2", "n_parts is 2, must be at least 3"),
        ("tiny:shortest=30", "must ascend from 1"),
        ("tiny:grade_shares=.5/.4", "add up to 1"),
        ("tiny:empty_share=1", "empty_share is 1.0, must be from 0 to .99"),
        ("tiny:noise=nan", "noise is nan, must be from 0"),
        ("tiny:nonlinear_share=2", "nonlinear_share is 2.0, must be from 0 to 1"),
        ("tiny:seed=-1", "seed is -1, must be a whole number from 0"),
        ("tiny:seed=1,noise=0.2,seed=2", "tiny has 2 seeds, 1 and 2: name one"),
        ("tiny:n_features=3", "n_features is 3, must be at least 4"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # Why: the message is matched below, as plain text
        shape_named(text)
    assert message in str(caught.value)
