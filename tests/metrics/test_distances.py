"""How far two rankers are apart, in parameters and in lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from seeds import pick_seed

from hushrank.metrics.distances import (
    compare_rankings,
    cosine_similarity,
    count_inversions,
    kendall_taus,
    rank_biased_overlaps,
    relative_distance,
)
from hushrank.types import Array, QuerySet


def make_queries(*lengths: int) -> QuerySet:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(starts[-1])
    return QuerySet(np.zeros((n, 1), np.float32), np.zeros(n, np.uint8), starts, tuple(map(str, range(len(lengths)))))


def overlap_slowly(ours: list[int], theirs: list[int], p: float) -> float:
    """RBO_ext from its definition: documents in ranked order, agreement at every depth, by sets."""
    n, total = len(ours), 0.0
    for depth in range(1, n + 1):
        total += len(set(ours[:depth]) & set(theirs[:depth])) / depth * p**depth
    return len(set(ours) & set(theirs)) / n * p**n + (1 - p) / p * total


def draw_places(seed: int, lengths: list[int]) -> tuple[Array, Array]:
    generator = np.random.default_rng(pick_seed(seed))
    ours, theirs = (np.concatenate([generator.permutation(n) for n in lengths]) for _ in range(2))
    return ours, theirs


def test_parameters_by_hand() -> None:
    """(3, 4) against (0, 5): apart by (3, -1), sqrt(10) in lengths of 5; cosine 20 / 25."""
    ours, theirs = np.array([3.0, 4.0], np.float32), np.array([0.0, 5.0], np.float32)
    assert relative_distance(ours, theirs) == pytest.approx(np.sqrt(10) / 5)
    assert cosine_similarity(ours, theirs) == pytest.approx(20 / 25)
    assert relative_distance(theirs, theirs) == 0 and cosine_similarity(theirs, theirs) == 1
    assert cosine_similarity(np.zeros(2), theirs) == 0 and relative_distance(np.zeros(2), theirs) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (np.ones(3), np.ones(4), r"shapes \(3,\) and \(4,\)"),
        (np.ones((2, 2)), np.ones((2, 2)), "two flat vectors"),
        (np.array([1.0, np.nan]), np.ones(2), "not finite"),
        (np.ones(2), np.zeros(2), "length 0"),
    ],
)
def test_parameters_that_cannot_be_compared_are_refused(ours: Array, theirs: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        relative_distance(ours, theirs)


def test_lists_by_hand() -> None:
    """Ours: a b c, theirs: b a c, p = .9. X = 0, 2, 3: RBO_ext = .9^3 + .1 / .9 (0 + .9^2 + .9^3); 1 of 3 pairs."""
    found = compare_rankings(make_queries(3), np.array([3.0, 2.0, 1.0]), np.array([2.0, 3.0, 1.0]))
    assert found.rbo == pytest.approx(0.729 + 0.1 / 0.9 * (0.81 + 0.729))  # = .9
    assert found.tau == pytest.approx(1 - 2 / 3)


def test_the_same_lists_are_at_1_and_a_reversed_one_has_tau_minus_1() -> None:
    queries, scores = make_queries(2, 7, 40), np.random.default_rng(2).normal(size=49)
    same = compare_rankings(queries, scores, 3 * scores - 1)
    assert same.rbo == pytest.approx(1, abs=1e-12) and same.tau == 1
    assert compare_rankings(queries, scores, -scores).tau == -1


@given(st.lists(st.integers(2, 70), min_size=1, max_size=5), st.integers(0, 10**6), st.floats(0.05, 0.99))
def test_overlaps_and_taus_equal_slow_ones_and_scipys(lengths: list[int], seed: int, p: float) -> None:
    ours, theirs = draw_places(seed, lengths)
    pairs = list(zip(*(np.split(places, np.cumsum(lengths)[:-1]) for places in (ours, theirs)), strict=True))
    overlaps = rank_biased_overlaps(ours, theirs, np.array(lengths), p=p)
    slow = [overlap_slowly(np.argsort(a).tolist(), np.argsort(b).tolist(), p) for a, b in pairs]
    assert overlaps.tolist() == pytest.approx(slow)
    taus = kendall_taus(ours, theirs, np.array(lengths))
    assert taus.tolist() == pytest.approx([kendalltau(a, b, variant="b").statistic for a, b in pairs])


@pytest.mark.randomised
def test_long_lists_are_counted_right() -> None:
    ours, theirs = draw_places(3, [1000, 2, 1024, 1025])
    slow = []
    for a, b in zip(*(np.split(places, [1000, 1002, 2026]) for places in (ours, theirs)), strict=True):
        read = a[np.argsort(b)]
        slow.append(int(np.count_nonzero(np.triu(read[:, None] > read[None, :]))))
    assert count_inversions(ours, theirs, np.array([1000, 2, 1024, 1025])).tolist() == slow


def test_equal_scores_keep_the_order_of_the_file() -> None:
    """All equal: a b c, as with falling scores; two rankers that tell nothing apart show the same lists."""
    queries, falling = make_queries(3), np.array([3.0, 2.0, 1.0])
    assert compare_rankings(queries, np.zeros(3), falling).tau == 1
    assert compare_rankings(queries, np.zeros(3), np.zeros(3)).tau == 1


def test_queries_with_one_document_are_skipped_and_counted() -> None:
    scores, reference = np.array([1.0, 5.0, 2.0, 3.0]), np.array([1.0, 2.0, 5.0, 3.0])
    found = compare_rankings(make_queries(1, 2, 1), scores, reference)
    assert (found.tau, found.n_queries, found.n_skipped) == (-1, 1, 2)
    alone = compare_rankings(make_queries(1, 1), scores[:2], reference[:2])
    assert np.isnan(alone.rbo) and np.isnan(alone.tau) and alone.n_queries == 0


def test_scores_that_do_not_fit_and_a_p_outside_its_range_are_refused() -> None:
    queries, scores = make_queries(3), np.arange(3.0)
    with pytest.raises(ValueError, match=r"scores have shape \(2,\)"):
        compare_rankings(queries, scores, scores[:2])
    with pytest.raises(ValueError, match="scores hold NaN"):
        compare_rankings(queries, scores, np.full(3, np.nan))
    with pytest.raises(ValueError, match="p is 1, must be between 0 and 1"):
        compare_rankings(queries, scores, scores, p=1)
