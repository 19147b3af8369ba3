"""nDCG by hand, by property, and against trec_eval and gdeval."""

from __future__ import annotations

import shutil
from math import log2, nan

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from hushrank.metrics.ndcg import dcg, ideal_dcg, mean_ndcg, ndcg, ndcg_variant, rank_by_score
from hushrank.streams import draw_below, draw_uniform, seed_key, stream
from hushrank.types import QuerySet

grade_lists = st.lists(st.integers(0, 4), min_size=1, max_size=25).map(np.array)


def make_queries(*grades: list[int]) -> QuerySet:
    flat = np.concatenate([np.array(g, dtype=np.uint8) for g in grades])
    starts = np.concatenate([[0], np.cumsum([len(g) for g in grades])])
    return QuerySet(np.zeros((len(flat), 1), np.float32), flat, starts, tuple(str(i + 1) for i in range(len(grades))))


def random_queries(n_queries: int) -> tuple[QuerySet, np.ndarray]:
    lengths = 1 + draw_below(stream(seed_key(5), 1), 30, n_queries)
    grades = [(draw_below(stream(seed_key(5), 2, q), 5, int(n)) % 3).tolist() for q, n in enumerate(lengths)]
    queries = make_queries(*grades)
    return queries, draw_uniform(stream(seed_key(5), 3), queries.n_documents)


def test_dcg_discounts_gains_by_the_logarithm_of_the_rank() -> None:
    by_hand = (2**2 - 1) / log2(2) + (2**0 - 1) / log2(3) + (2**1 - 1) / log2(4)  # 3 + 0 + 0.5
    assert dcg(np.array([2, 0, 1])) == pytest.approx(by_hand) == 3.5
    assert ideal_dcg(np.array([0, 1, 2])) == pytest.approx(3 + 1 / log2(3))


def test_the_ideal_order_is_over_all_documents_not_over_the_shown_ones() -> None:
    assert ndcg(np.array([1]), np.array([1, 2]), k=1) == pytest.approx(1 / 3)


def test_only_the_first_k_count() -> None:
    assert ndcg(np.array([0, 1]), np.array([0, 1]), k=1) == 0.0
    assert ndcg(np.array([0, 1]), np.array([0, 1]), k=2) == pytest.approx(1 / log2(3))


def test_equal_scores_keep_the_order_of_the_file() -> None:
    assert rank_by_score(np.array([1, 3, 1, 3, 2])).tolist() == [1, 3, 4, 0, 2]
    assert rank_by_score(np.array([-0.0, 0.0, 0])).tolist() == [0, 1, 2]


def test_queries_without_relevant_document_are_skipped_and_counted() -> None:
    queries = make_queries([0, 1], [0, 0, 0], [2])
    mean = mean_ndcg(queries, np.array([2.0, 1.0, 0, 0, 0, 7]))
    assert mean.value == pytest.approx((1 / log2(3) + 1) / 2)
    assert (mean.n_queries, mean.n_skipped) == (2, 1)


def test_a_set_without_any_relevant_document_has_no_value() -> None:
    mean = mean_ndcg(make_queries([0], [0, 0]), np.zeros(3))
    assert np.isnan(mean.value) and (mean.n_queries, mean.n_skipped) == (0, 2)


@given(grade_lists)
def test_the_best_order_scores_one_and_every_order_is_within_bounds(grades: np.ndarray) -> None:
    assert 0 <= ndcg(grades, grades) <= 1 + 1e-12
    assert ndcg(np.sort(grades)[::-1], grades) == pytest.approx(1.0 if grades.any() else 0.0)


@given(grade_lists, st.integers(1, 12))
def test_documents_without_relevance_below_the_list_change_nothing(grades: np.ndarray, n_more: int) -> None:
    longer = np.concatenate([grades, np.zeros(n_more, dtype=int)])
    assert ndcg(longer, longer) == pytest.approx(ndcg(grades, grades))


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20), st.integers(1, 64), st.integers(-9, 9))
def test_scaling_and_shifting_scores_changes_no_ranking(scores: list[int], scale: int, shift: int) -> None:
    values = np.array(scores)
    assert rank_by_score(values).tolist() == rank_by_score(scale * values + shift).tolist()


@given(st.permutations(range(8)))
def test_the_order_of_the_file_does_not_matter_when_scores_differ(order: list[int]) -> None:
    grades, scores = np.array([0, 2, 1, 0, 1, 0, 2, 0], dtype=np.uint8), np.array([3.0, 1, 4, 2, 5, 9, 6, 8])
    shuffled = mean_ndcg(make_queries(grades[order].tolist()), scores[order])
    assert shuffled == mean_ndcg(make_queries(grades.tolist()), scores)


def test_equals_trec_eval_on_mapped_gains_over_the_same_queries() -> None:
    queries, scores = random_queries(120)
    qrels, run = {}, {}
    for q in range(queries.n_queries):
        grades, row_scores = queries.grades[queries.rows(q)].astype(int), scores[queries.rows(q)]
        if grades.any():
            qrels[str(q)] = {f"d{i}": int(2**g - 1) for i, g in enumerate(grades)}
            run[str(q)] = {f"d{i}": float(s) for i, s in enumerate(row_scores)}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.5,10"}).evaluate(run)
    for k in (5, 10):
        ours = mean_ndcg(queries, scores, k=k)
        assert ours.n_queries == len(theirs) and ours.n_skipped > 0
        assert ours.value == pytest.approx(np.mean([row[f"ndcg_cut_{k}"] for row in theirs.values()]), abs=1e-9)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval, the oracle behind ir-measures' exp-log2, needs perl")
def test_equals_ir_measures_under_the_name_that_we_print() -> None:
    queries, scores = random_queries(40)
    measure = ir_measures.parse_measure(ndcg_variant(10))
    qrels, run = [], []
    for q in range(queries.n_queries):
        rows = queries.rows(q)
        if queries.grades[rows].any():
            qrels += [ir_measures.Qrel(str(q), f"d{i}", int(g)) for i, g in enumerate(queries.grades[rows])]
            run += [ir_measures.ScoredDoc(str(q), f"d{i}", float(s)) for i, s in enumerate(scores[rows])]
    theirs = ir_measures.calc_aggregate([measure], qrels, run)[measure]
    assert mean_ndcg(queries, scores).value == pytest.approx(theirs, abs=1e-5)  # gdeval prints five decimals


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        ndcg(np.array([1]), np.array([1]), k=0)
    with pytest.raises(ValueError, match="scores hold NaN"):
        mean_ndcg(make_queries([1, 0]), np.array([nan, 1.0]))
    with pytest.raises(ValueError, match="one per document"):
        mean_ndcg(make_queries([1, 0]), np.zeros(3))
