"""What an application calls: a list by the newest ranker, written down before it is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushrank.learners.es import perturbation
from hushrank.live.device.impressions import SAMPLED, SORTED
from hushrank.live.device.learning import Learning
from hushrank.live.device.named import make_learning
from hushrank.live.device.outbox import Answer
from hushrank.live.device.search import open_home, show_list
from hushrank.live.device.store import STORE, Interactions, KeptRanker, Membership
from hushrank.live.wire.agreement import as_json, make_agreement

FEATURES = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
PARAMS = np.array([1.0, 0.5], np.float32)  # scores .5, 2, 1.5


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Interactions]:
    with Interactions(tmp_path / "client.sqlite") as opened:
        yield opened


def learning_of(**settings: Any) -> Learning:
    return make_learning(make_agreement("test", n_features=2, **{"k": 2} | settings))


def test_a_home_opens_once_it_has_joined(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has not joined a federation: run hushrank client"):
        open_home(tmp_path)
    agreement = make_agreement("test", n_features=2)
    with Interactions(tmp_path / STORE) as store:
        store.keep_membership(Membership("http://a", json.dumps(as_json(agreement)), "secret", "member"))
    learning, store = open_home(tmp_path)
    assert learning.agreement == agreement and store.newest_ranker() is None
    store.close()


def test_before_the_first_ranker_there_is_nothing_to_show_by(store: Interactions) -> None:
    with pytest.raises(ValueError, match="holds no ranker yet: run hushrank client"):
        show_list(learning_of(), store, FEATURES)


def test_a_sampled_list_is_written_down_with_its_scores_and_waits_for_clicks(store: Interactions) -> None:
    store.keep_ranker(KeptRanker(3, PARAMS, None))
    shown = show_list(learning_of(), store, FEATURES)
    assert store.find_free(policy=SAMPLED, oldest_round=0, limit=1) == []
    assert store.click(shown.number, 1)
    store.finish(shown.number)
    ((number, found),) = store.find_free(policy=SAMPLED, oldest_round=0, limit=1)
    assert number == shown.number and found.ranking.tolist() == shown.ranking.tolist()
    assert found.scores.tolist() == [0.5, 2.0, 1.5] and found.is_clicked.tolist() == [False, True]
    assert found.round == 3


def test_lists_are_drawn_by_the_scores(store: Interactions) -> None:
    store.keep_ranker(KeptRanker(3, PARAMS, None))
    n, mass = 300, np.exp([0.5, 2.0, 1.5])
    firsts = Counter(int(show_list(learning_of(), store, FEATURES).ranking[0]) for _ in range(n))
    for document, share in enumerate(mass / mass.sum()):
        assert firsts[document] / n == pytest.approx(share, abs=6 * np.sqrt(share * (1 - share) / n))  # six errors


def test_trials_alternate_between_the_directions(store: Interactions) -> None:
    learning = learning_of(method="foltr-es", interactions=4, sigma=3.0)
    ranker = store.keep_ranker(KeptRanker(3, PARAMS, seed=77))
    noise = perturbation(77, 2, sigma=3.0)
    for direction in (1, -1, 1, -1):
        shown = show_list(learning, store, FEATURES)
        scores = FEATURES.astype(np.float32) @ (PARAMS + direction * noise)
        assert shown.ranking.tolist() == np.argsort(-scores)[:2].tolist()
        store.finish(shown.number)
    assert learning.draft(store, ranker, is_last_call=False) is not None
    store.outbox.commit(Answer(3, b"", 1.0, ""), [])
    after = show_list(learning, store, FEATURES)  # the round has its answer: by the ranker itself from now on
    store.finish(after.number)
    assert after.ranking.tolist() == [1, 2]
    assert [n for n, _ in store.find_free(policy=SORTED, oldest_round=0, limit=1)] == [after.number]
