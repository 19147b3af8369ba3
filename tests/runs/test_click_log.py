"""Simulated click logs: the draws of a run whose ranker never learns, written so that they can be read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hushrank.clicks.named import named_user
from hushrank.data.clicklog import ClickLog, read_click_log
from hushrank.data.load import load_dataset
from hushrank.learners.logged import log_propensities, logged_pdgd_gradient
from hushrank.metrics.offline import evaluate
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.named import write_ranker
from hushrank.rankers.policy import sample_ranking
from hushrank.runs.click_log import LogRequest, make_log, simulate_log
from hushrank.streams import Purpose, draw_below, draw_normal, draw_uniform, seed_key, stream
from hushrank.types import Array, QuerySet

TINY = LogRequest("tiny", n_impressions=300, n_clients=7, seed=3)
QUERIES = load_dataset("tiny", folds=[1]).folds[0].train


def simulate(request: LogRequest, scores: Array | None = None, queries: QuerySet = QUERIES) -> ClickLog:
    user = named_user(request.clicks, n_grades=3)
    scores = np.zeros(queries.n_documents) if scores is None else scores
    return simulate_log(queries, scores, user, request=request, key=stream(seed_key(request.seed), 0, request.fold))


def test_an_impression_is_made_of_the_plain_stages_with_the_draws_of_its_round_and_client() -> None:
    scores = draw_normal(seed_key(5), QUERIES.n_documents)
    log, key = simulate(TINY, scores), stream(seed_key(3), 0, 1)
    for impression in (0, 6, 7, 255, 256, 299):
        names = (1 + impression // 7, impression % 7, 0)  # round, client, interaction
        query = int(draw_below(stream(key, Purpose.QUERY, *names), QUERIES.n_queries, 1)[0])
        rows, places = QUERIES.rows(query), log.places(impression)
        uniforms = draw_uniform(stream(key, Purpose.SHOW, *names), rows.stop - rows.start)
        ranking = sample_ranking(scores[rows], uniforms)
        draws = (draw_uniform(stream(key, purpose, *names), len(ranking)) for purpose in (Purpose.CLICK, Purpose.STOP))
        is_clicked = named_user("navigational", n_grades=3)(QUERIES.grades[rows][ranking], *draws)
        assert (log.queries[impression], log.clients[impression]) == (query, impression % 7)
        assert np.array_equal(log.shown[places], ranking) and np.array_equal(log.is_clicked[places], is_clicked)
        assert np.array_equal(log.propensities[places], log_propensities(scores[rows], ranking))


def test_more_impressions_change_none_of_the_first() -> None:
    few, many = simulate(TINY), simulate(replace(TINY, n_impressions=600))
    for name in ("clients", "queries", "shown", "is_clicked", "propensities"):
        first = getattr(few, name)
        assert np.array_equal(getattr(many, name)[: len(first)], first)


def test_the_same_seed_writes_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        make_log(replace(TINY, seed=seed), tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c


def test_what_is_written_is_what_was_counted(tmp_path: Path) -> None:
    heard: list[int] = []
    about = make_log(TINY, tmp_path / "log.jsonl", progress=heard.append)
    log = read_click_log(tmp_path / "log.jsonl", QUERIES)
    assert heard == [256, 300] and log.client_names == tuple(f"u{i}" for i in range(7))
    assert about["n_impressions"] == log.n_impressions == 300 and about["n_clicks"] == log.is_clicked.sum() > 100


def test_without_a_ranker_all_lists_are_equally_likely() -> None:
    log = simulate(TINY)
    for impression in range(20):
        p = log.propensities[log.places(impression)]
        n = QUERIES.lengths[log.queries[impression]]
        np.testing.assert_allclose(p, 1 / (n - np.arange(len(p))))


def test_an_exported_ranker_shows_its_own_lists(tmp_path: Path) -> None:
    params = draw_normal(seed_key(1), 8)
    write_ranker(tmp_path / "own.safetensors", LinearRanker(8), params, origin={})
    make_log(replace(TINY, ranker=tmp_path / "own.safetensors"), tmp_path / "log.jsonl")
    log = read_click_log(tmp_path / "log.jsonl", QUERIES)
    scores = QUERIES.features @ params.astype(np.float32)
    expected = simulate(TINY, scores)
    assert np.array_equal(log.shown, expected.shown) and np.array_equal(log.propensities, expected.propensities)


def test_the_exported_ranker_brings_its_normalisation(tmp_path: Path) -> None:
    origin = {"data": {"normalise": "standard"}}
    write_ranker(tmp_path / "own.safetensors", LinearRanker(8), np.ones(8), origin=origin)
    about = make_log(replace(TINY, ranker=tmp_path / "own.safetensors"), tmp_path / "log.jsonl")
    assert about["normalise"] == "standard"


def test_a_ranker_learns_from_a_log() -> None:
    """Replay of 2,000 impressions of a ranker that knew nothing: quality rises well above its random order."""
    log, ranker, params = simulate(replace(TINY, n_impressions=2000, clicks="perfect")), LinearRanker(8), np.zeros(8)
    for impression in range(log.n_impressions):
        features, places = QUERIES.features[QUERIES.rows(int(log.queries[impression]))], log.places(impression)
        logged = log.shown[places], log.is_clicked[places], log.propensities[places]
        params = params + 0.1 * logged_pdgd_gradient(ranker, params, features, *logged)
    before, after = (
        evaluate(QUERIES, ranker.score(p, QUERIES.features))["nDCG@10"].value for p in (0 * params, params)
    )
    assert after > before + 0.1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_impressions": 0}, "n_impressions is 0"),
        ({"n_clients": 0}, "n_clients is 0"),
        ({"clicks": "perfct"}, "did you mean 'perfect'"),
        ({"fold": 9}, "no fold 9"),
        ({"data": "nowhere"}, "nowhere"),
    ],
)
def test_misuse_is_refused_and_writes_nothing(tmp_path: Path, changes: dict[str, int | str], said: str) -> None:
    with pytest.raises((ValueError, OSError), match=said):
        make_log(replace(TINY, **changes), tmp_path / "log.jsonl")  # type: ignore[arg-type] # Why: each is of its field
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("precious")
    with pytest.raises(FileExistsError, match="exists already"):
        make_log(TINY, tmp_path / "log.jsonl")
    with pytest.raises(FileNotFoundError, match="no directory"):
        make_log(TINY, tmp_path / "nowhere" / "log.jsonl")
    assert (tmp_path / "log.jsonl").read_text() == "precious"


def test_a_ranker_of_other_features_is_refused(tmp_path: Path) -> None:
    write_ranker(tmp_path / "own.safetensors", LinearRanker(5), np.ones(5), origin={})
    with pytest.raises(ValueError, match="trained on 5 features, tiny has 8"):
        make_log(replace(TINY, ranker=tmp_path / "own.safetensors"), tmp_path / "log.jsonl")
