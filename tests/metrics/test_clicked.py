"""AP, MRR, P@1 and P-Improve over clicked candidates."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval
from seeds import pick_seed

from hushrank.metrics.clicked import PairChanges, count_changes, measure_clicked
from hushrank.types import Array


def as_rows(*clicks: str) -> tuple[Array, Array]:
    """c clicked, u unclicked, . padding."""
    marks = np.array([list(row) for row in clicks])
    return marks == "c", marks != "."


def test_two_clicks_by_hand() -> None:
    is_clicked, is_document = as_rows("ucuc.")
    found = measure_clicked(np.array([[4.0, 3.0, 2.0, 1.0, 9.0]]), is_clicked, is_document)
    assert found.average_precision.tolist() == [(1 / 2 + 2 / 4) / 2]
    assert found.reciprocal_rank.tolist() == [1 / 2] and found.first_is_clicked.tolist() == [0.0]


def test_equal_scores_keep_the_original_order() -> None:
    is_clicked, is_document = as_rows("uuc", "cuu")
    assert measure_clicked(np.zeros((2, 3)), is_clicked, is_document).reciprocal_rank.tolist() == [1 / 3, 1.0]
    assert count_changes(np.zeros((2, 3)), is_clicked, is_document) == PairChanges(0, 0, 3)


def test_searches_without_a_click_are_skipped_and_counted() -> None:
    is_clicked, is_document = as_rows("uu", "uc", "..")
    found = measure_clicked(np.array([[1.0, 2.0]] * 3), is_clicked, is_document)
    assert found.n_skipped == 2 and found.average_precision.tolist() == [1.0]


@pytest.mark.randomised
def test_the_measures_are_those_of_trec_eval() -> None:
    rng = np.random.default_rng(pick_seed(5))
    lengths = rng.integers(1, 13, 200)
    is_document = np.arange(12) < lengths[:, None]
    is_clicked, scores = is_document & (rng.random((200, 12)) < 0.3), rng.normal(size=(200, 12))
    names = [(f"q{q}", [f"d{d}" for d in range(n)]) for q, n in enumerate(lengths)]
    judged = {
        q: {d: int(c) for d, c in zip(docs, row, strict=False)}
        for (q, docs), row in zip(names, is_clicked, strict=True)
    }
    run = {
        q: {d: float(s) for d, s in zip(docs, row, strict=False)} for (q, docs), row in zip(names, scores, strict=True)
    }
    oracle = pytrec_eval.RelevanceEvaluator(judged, {"map", "recip_rank", "P_1"}).evaluate(run)
    found = measure_clicked(scores, is_clicked, is_document)
    kept = [oracle[q] for (q, _), row in zip(names, is_clicked, strict=True) if row.any()]
    for name, ours in {
        "map": found.average_precision,
        "recip_rank": found.reciprocal_rank,
        "P_1": found.first_is_clicked,
    }.items():
        np.testing.assert_allclose(ours, [values[name] for values in kept], rtol=1e-12)


def test_p_improve_by_hand() -> None:
    is_clicked, is_document = as_rows("uucuu", "cuu..")
    # First list: pairs (3,1), (3,2) above and (3,4) below. The clicked one passes 2, not 1, and 4 passes it.
    # Second list: one pair, the next below; the last candidate passes, but nobody looked at it.
    scores = np.array([[5.0, 1.0, 2.0, 3.0, 0.0], [2.0, 1.0, 9.0, 0.0, 0.0]])
    found = count_changes(scores, is_clicked, is_document)
    assert found == PairChanges(n_up=1, n_down=1, n_pairs=4) and found.p_improve == 0.0
    assert (found + PairChanges(2, 0, 4)).p_improve == 2 / 8


def test_two_clicks_that_stand_together_have_no_pair_between_them() -> None:
    is_clicked, is_document = as_rows("ccu")
    assert count_changes(np.array([[1.0, 2.0, 3.0]]), is_clicked, is_document) == PairChanges(0, 1, 1)


def test_without_a_pair_there_is_no_p_improve() -> None:
    assert np.isnan(PairChanges(0, 0, 0).p_improve)


def test_what_cannot_be_ranked_is_refused() -> None:
    is_clicked, is_document = as_rows("cu")
    with pytest.raises(ValueError, match="NaN"):
        measure_clicked(np.array([[np.nan, 1.0]]), is_clicked, is_document)
    with pytest.raises(ValueError, match="must be the same"):
        count_changes(np.zeros((1, 3)), is_clicked, is_document)
