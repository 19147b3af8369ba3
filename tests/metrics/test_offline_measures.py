"""MRR, MAP, P@10 and the table of offline measures."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from hushrank.metrics.ndcg import mean_ndcg
from hushrank.metrics.offline import MEASURES, VARIANTS, evaluate
from hushrank.metrics.relevant import average_precision, precision, reciprocal_rank
from hushrank.streams import draw_below, draw_uniform, seed_key, stream
from hushrank.types import QuerySet


def random_queries() -> tuple[QuerySet, np.ndarray]:
    lengths = 1 + draw_below(stream(seed_key(6), 1), 25, 80)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    grades = np.maximum(draw_below(stream(seed_key(6), 2), 9, int(starts[-1])) - 6, 0).astype(np.uint8)
    queries = QuerySet(np.zeros((len(grades), 1), np.float32), grades, starts, tuple(map(str, range(80))))
    return queries, draw_uniform(stream(seed_key(6), 3), len(grades))


def test_measures_of_one_list_by_hand() -> None:
    ranked = np.array([0, 2, 0, 1])  # relevant at ranks 2 and 4
    assert reciprocal_rank(ranked) == 1 / 2
    assert average_precision(ranked) == (1 / 2 + 2 / 4) / 2
    assert precision(ranked, k=3) == pytest.approx(1 / 3)
    assert precision(ranked, k=10) == 2 / 10  # over k, although the list has four documents


def test_a_list_without_relevant_document_is_worth_nothing() -> None:
    nothing = np.zeros(3, dtype=int)
    assert reciprocal_rank(nothing) == average_precision(nothing) == precision(nothing) == 0.0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20).map(np.array))
def test_only_relevant_or_not_matters(ranked: np.ndarray) -> None:
    for measure in (reciprocal_rank, average_precision, precision):
        assert measure(ranked) == measure((ranked > 0).astype(int))
        assert 0 <= measure(ranked) <= 1


def test_evaluate_gives_every_measure_over_the_same_queries() -> None:
    queries, scores = random_queries()
    results = evaluate(queries, scores)
    assert set(results) == set(MEASURES) == set(VARIANTS)
    assert results["nDCG@10"] == mean_ndcg(queries, scores)
    assert len({(r.n_queries, r.n_skipped) for r in results.values()}) == 1


def test_evaluate_equals_trec_eval_and_ir_measures_over_the_same_queries() -> None:
    queries, scores = random_queries()
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q in range(queries.n_queries):
        rows = queries.rows(q)
        if queries.grades[rows].any():
            qrels[str(q)] = {f"d{i}": int(g) for i, g in enumerate(queries.grades[rows])}
            run[str(q)] = {f"d{i}": float(s) for i, s in enumerate(scores[rows])}
    ours = evaluate(queries, scores)
    rows_of = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank", "P.10"}).evaluate(run).values()
    for name, theirs in (("MAP", "map"), ("MRR", "recip_rank"), ("P@10", "P_10")):
        assert ours[name].value == pytest.approx(np.mean([row[theirs] for row in rows_of]), abs=1e-9)
    for name in ("MAP", "MRR", "P@10"):
        measure = ir_measures.parse_measure(VARIANTS[name])
        assert ours[name].value == pytest.approx(ir_measures.calc_aggregate([measure], qrels, run)[measure], abs=1e-9)


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        precision(np.array([1]), k=0)
