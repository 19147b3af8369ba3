"""Rankers from labels: against scikit-learn, against all pairs written out, and against one another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC
from tiny_settings import N_FEATURES, random_queries

from hushrank.clicks.named import cascade_user
from hushrank.data.load import load_dataset
from hushrank.learners import offline
from hushrank.learners.offline import choose_threads, lambdamart, mse_ranker, order_pairs, ranking_svm
from hushrank.metrics.max_rr import mean_expected_max_rr
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.reproduce.literature import find_result
from hushrank.types import Array, QuerySet

QUERIES = random_queries(1)
ARCHIVE = Path(__file__).parents[3] / "shared" / "data" / "MQ2008.tar.xz"


def all_pairs(queries: QuerySet) -> Array:
    """[n_pairs, 2] (better, worse) documents of one query: the quadratic way."""
    grades = queries.grades.astype(int)
    owner = np.repeat(np.arange(queries.n_queries), queries.lengths)
    return np.argwhere((grades[:, None] > grades) & (owner[:, None] == owner))


def make_queries(features: Array, grades: list[int], *lengths: int) -> QuerySet:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return QuerySet(features.astype(np.float32), np.array(grades, np.uint8), starts, tuple(map(str, lengths)))


def test_least_squares_by_hand() -> None:
    # grades 0, 1, 2 at features 1, 2, 3: slope 1; the intercept of -1 is dropped
    queries = make_queries(np.array([[1.0], [2.0], [3.0]]), [0, 1, 2], 3)
    assert mse_ranker(queries).tolist() == pytest.approx([1.0], rel=1e-6)


def test_least_squares_gives_constant_and_equal_features_the_smallest_weights() -> None:
    column = np.array([1.0, 2.0, 3.0, 5.0])
    queries = make_queries(np.stack([column, column, np.ones(4)], axis=1), [0, 1, 2, 2], 4)
    slope = np.polyfit(column, [0, 1, 2, 2], 1)[0]
    assert mse_ranker(queries).tolist() == pytest.approx([slope / 2, slope / 2, 0], abs=1e-6)


@settings(deadline=None)
@given(st.integers(0, 50), st.floats(0.1, 5))
def test_running_sums_are_the_pairs_written_out(seed: int, spread: float) -> None:
    queries = random_queries(seed, 5)
    generator = np.random.default_rng(seed)
    scores, features = generator.normal(0, spread, queries.n_documents), queries.features.astype(np.float64)
    better, worse = all_pairs(queries).T
    errors = np.maximum(0, 1 - (scores[better] - scores[worse]))
    gradient = np.zeros(queries.n_documents)
    np.add.at(gradient, better, -2 * errors)
    np.add.at(gradient, worse, 2 * errors)
    difference = (features[better] - features[worse])[errors > 0]
    pairs = order_pairs(queries, scores)
    assert pairs.loss() == pytest.approx(np.sum(errors**2))
    assert pairs.gradient() == pytest.approx(gradient, abs=1e-8)
    assert pairs.hessian(features) == pytest.approx(2 * difference.T @ difference, abs=1e-8)


@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
def test_ranking_svm_is_a_linear_svm_on_differences(cost: float) -> None:
    better, worse = all_pairs(QUERIES).T
    signs = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    differences = (QUERIES.features[better] - QUERIES.features[worse]).astype(np.float64)
    svm = LinearSVC(C=cost, loss="squared_hinge", fit_intercept=False, dual=False, tol=1e-10, max_iter=10_000)
    theirs = svm.fit(differences * signs[:, None], signs).coef_[0]
    ours = ranking_svm(QUERIES, C=cost * QUERIES.n_queries)
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-3, abs=1e-4)


def test_ranking_svm_does_not_mind_the_order_of_documents() -> None:
    whole = ranking_svm(QUERIES)
    shuffled = np.concatenate(
        [
            QUERIES.starts[q] + np.random.default_rng(q).permutation(int(QUERIES.lengths[q]))
            for q in range(QUERIES.n_queries)
        ]
    )
    moved = QuerySet(QUERIES.features[shuffled], QUERIES.grades[shuffled], QUERIES.starts, QUERIES.query_ids)
    assert ranking_svm(moved).tolist() == pytest.approx(whole.tolist(), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_ranking_svm_copes_with_raw_features(scale: float) -> None:
    scales = np.where(np.arange(N_FEATURES) % 2, scale, 1.0).astype(np.float32)
    raw = QuerySet(QUERIES.features * scales, QUERIES.grades, QUERIES.starts, QUERIES.query_ids)
    good = mean_ndcg(QUERIES, QUERIES.features @ ranking_svm(QUERIES)).value
    assert mean_ndcg(raw, raw.features @ ranking_svm(raw, C=1e9)).value == pytest.approx(good, abs=0.02)


def test_labels_teach_every_one_of_them() -> None:
    train, vali = random_queries(2, 60), random_queries(3, 30)
    before = mean_ndcg(train, np.zeros(train.n_documents)).value
    trees = lambdamart(train, vali, n_trees=30)
    for scores in (train.features @ mse_ranker(train), train.features @ ranking_svm(train), trees(train.features)):
        assert mean_ndcg(train, scores).value > before + 0.1


def test_lambdamart_grows_the_same_trees_again() -> None:
    train, vali = random_queries(2, 60), random_queries(3, 30)
    both = [lambdamart(train, vali, n_trees=10)(vali.features) for _ in range(2)]
    assert both[0].tolist() == both[1].tolist()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_lambdamart_grows_the_same_trees_on_any_number_of_threads(
    n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, vali = random_queries(2, 60), random_queries(3, 30)
    alone = lambdamart(train, vali, n_trees=10)(vali.features)
    monkeypatch.setattr(offline, "_FEW_VALUES", 0)
    assert lambdamart(train, vali, n_trees=10, n_threads=n_threads)(vali.features).tolist() == alone.tolist()


def test_few_documents_are_trained_on_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    import lightgbm

    seen: list[int] = []
    train_really = lightgbm.train

    def train(settings: dict[str, Any], *words: Any, **more: Any) -> lightgbm.Booster:
        seen.append(settings.get("num_threads", 0))
        return train_really(settings, *words, **more)

    monkeypatch.setattr(lightgbm, "train", train)
    lambdamart(random_queries(2, 60), random_queries(3, 30), n_trees=2)
    monkeypatch.setattr(offline, "_FEW_VALUES", 0)
    lambdamart(random_queries(2, 60), random_queries(3, 30), n_trees=2, n_threads=2)
    assert seen == [1, 2] and choose_threads(random_queries(2, 60)) == 0  # 0: as OpenMP has it


def test_threads_sleep_while_they_wait_and_the_environment_is_left_as_it_was() -> None:
    code = (
        "import os; from hushrank.learners.offline import import_lightgbm; import_lightgbm(); "
        "assert 'OMP_WAIT_POLICY' not in os.environ"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "OMP_DISPLAY_ENV": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search("OMP_WAIT_POLICY.*PASSIVE", told.stderr)


@pytest.mark.parametrize("method", ["mse", "ranking-svm"])
def test_the_real_mq2008_gives_the_numbers_of_the_paper(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table 3 of [foltr-es], train and test of five folds, three users: within .01, over all queries."""
    if not ARCHIVE.is_file():
        pytest.skip("the real MQ2008 is not beside the repository (../shared/data/MQ2008.tar.xz)")
    monkeypatch.setenv("HUSHRANK_DATA", str(tmp_path / "data-root"))
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    folds = load_dataset(str(next(tmp_path.rglob("Fold1")).parent)).folds
    learn = {"mse": mse_ranker, "ranking-svm": ranking_svm}[method]
    params = [learn(fold.train) for fold in folds]
    wanted = {"data": "mq2008", "method": method}.items()
    rows = [row for row in find_result("foltr-es.table3").rows if wanted <= row.cell.items()]
    assert len(rows) == 6
    for row in rows:
        sets = [getattr(fold, str(row.cell["split"])) for fold in folds]
        user = cascade_user(str(row.cell["clicks"]), 3).as_table(10)
        means = [mean_expected_max_rr(s, s.features @ w, user).value for s, w in zip(sets, params, strict=True)]
        assert np.mean(means) == pytest.approx(row.published, abs=0.01)


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="C is 0, must be > 0"):
        ranking_svm(QUERIES, C=0)
    flat = make_queries(np.array([[1.0], [2.0]]), [1, 1], 2)
    for learn in (mse_ranker, ranking_svm):
        with pytest.raises(ValueError, match="all documents have the same grade"):
            learn(flat)
