"""What a device keeps of its answers, and what it answers when a round forgets."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_learning import gradients_of, learning_of

from hushrank.live.device import database
from hushrank.live.device.impressions import Impression
from hushrank.live.device.learning import find_length, learn_update
from hushrank.live.device.outbox import Answer
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.wire.news import ForgetNews
from hushrank.types import Array, DenseUpdate

CANDIDATE = KeptRanker(30, np.array([0.4, 0.1], np.float32), seed=None)
ASKED = ForgetNews(step=2, steps=3, round=21, searches=2)
PAPER = {"privacy": "paper", "epsilon": 4.5, "sensitivity": 5.0, "n_clients": 2}
SOUND = {"privacy": "sound", "noise_multiplier": 2.0, "n_clients": 2}


def shown(round: int, clicked: int = 0) -> Impression:
    """Three candidates, two of them shown, one of these clicked."""
    features = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], np.float32)
    return Impression(round, features, np.arange(3, dtype=np.float32), np.array([1, 0]), np.arange(2) == clicked)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Interactions]:
    with Interactions(tmp_path / "client.sqlite") as opened:
        yield opened


def answer(store: Interactions, round: int, *, n: int = 3, length: float | None = None) -> None:
    """One that was learnt from n lists."""
    used = [store.add(shown(round, clicked=i % 2)) for i in range(n)]
    store.outbox.commit(Answer(round, b"", 1.0, ""), used, length=length)


def length_of(update: object) -> float:
    assert isinstance(update, DenseUpdate)
    return float(np.linalg.norm(update.delta))


@pytest.mark.parametrize(("round", "is_kept"), [(1, True), (2, False), (5, False), (6, True)])
def test_the_length_of_an_update_is_kept_every_so_many_rounds(store: Interactions, round: int, is_kept: bool) -> None:
    learning = learning_of(keep_every=5)
    store.add(shown(round))
    draft = learning.draft(store, KeptRanker(round, CANDIDATE.params, None), is_last_call=True)
    assert draft is not None and (draft.length is not None) == is_kept
    assert not is_kept or draft.length == pytest.approx(length_of(draft.raw))


@pytest.mark.parametrize(
    "settings", [{}, {"forget_method": "fresh"}, {"keep_every": 5, "forget_method": "fresh"}], ids=str
)
def test_a_federation_that_needs_no_lengths_keeps_none(store: Interactions, settings: dict[str, Any]) -> None:
    store.add(shown(1))
    draft = learning_of(**settings).draft(store, KeptRanker(1, CANDIDATE.params, None), is_last_call=True)
    assert draft is not None and draft.length is None


def test_what_is_kept_is_the_length_after_clipping(store: Interactions) -> None:
    store.add(shown(1))
    learning = learning_of(keep_every=5, update_norm=0.001)
    draft = learning.draft(store, KeptRanker(1, CANDIDATE.params, None), is_last_call=True)
    assert draft is not None and draft.length == pytest.approx(0.001) and length_of(draft.raw) > 0.002


def test_a_replay_has_the_new_direction_and_the_old_length(store: Interactions) -> None:
    learning = gradients_of(keep_every=5)
    answer(store, 21, length=0.7)
    answer(store, 26, length=0.2)
    found = learning.replay(store, CANDIDATE, ASKED)
    assert found is not None and (found.n_lists, found.is_filled, found.draft.used) == (2, False, ())
    new = learn_update(learning, CANDIDATE.params, store.find_used(21, limit=2))  # the first two of three
    assert isinstance(found.draft.raw, DenseUpdate)
    np.testing.assert_allclose(found.draft.raw.delta, 0.7 * new.delta / np.linalg.norm(new.delta), rtol=1e-6)


def test_a_missing_length_is_the_nearest_earlier_one_else_the_nearest_later_one() -> None:
    assert find_length({1: 0.1, 6: 0.6}, 6) == (0.6, False)
    assert find_length({1: 0.1, 6: 0.6, 16: 1.6}, 11) == (0.6, True)
    assert find_length({11: 1.1, 16: 1.6}, 6) == (1.1, True)
    length, is_filled = find_length({}, 6)
    assert math.isnan(length) and is_filled


def test_without_any_length_the_update_stays_as_it_is(store: Interactions) -> None:
    learning = gradients_of(keep_every=5)
    answer(store, 21)
    found = learning.replay(store, CANDIDATE, ASKED)
    new = learn_update(learning, CANDIDATE.params, store.find_used(21, limit=2))
    assert found is not None and found.is_filled and isinstance(found.draft.raw, DenseUpdate)
    np.testing.assert_array_equal(found.draft.raw.delta, new.delta)


def test_fresh_replays_keep_their_own_length(store: Interactions) -> None:
    answer(store, 21)
    found = gradients_of().replay(store, CANDIDATE, ASKED)
    assert found is not None and not found.is_filled and length_of(found.draft.raw) > 0


def replayed(store: Interactions, **settings: Any) -> Array:
    found = gradients_of(keep_every=5, **settings).replay(store, CANDIDATE, ASKED)
    assert found is not None and isinstance(found.draft.raw, DenseUpdate)
    return found.draft.raw.delta


def test_no_stored_length_lifts_an_update_above_what_was_agreed(store: Interactions) -> None:
    answer(store, 21, length=1e6)
    assert np.linalg.norm(replayed(store, **SOUND, clip_norm=0.5)) <= 0.5
    assert np.linalg.norm(replayed(store, update_norm=0.25)) <= 0.25 * (1 + 1e-6)
    paper = gradients_of(**PAPER).exchange.protection.clipping.weight_norm
    assert np.linalg.norm(CANDIDATE.params + replayed(store, **PAPER)) <= paper * (1 + 1e-5)


def test_who_has_nothing_of_the_round_answers_only_where_everybody_must(store: Interactions) -> None:
    answer(store, 16, length=0.3)
    assert gradients_of(keep_every=5).replay(store, CANDIDATE, ASKED) is None
    assert not replayed(store, **SOUND).any()  # zeros, and no length is asked for
    assert learning_of(method="foltr-es").replay(store, CANDIDATE, ASKED) is None


def test_lists_of_an_answer_that_did_not_count_are_not_replayed(store: Interactions) -> None:
    for frees in (True, False):
        round = 21 + frees
        answer(store, round, length=0.7)
        store.outbox.refuse(round, "norm", frees=frees)
        assert store.find_used(round, limit=9) == []
    assert store.lengths() == {}


def test_lengths_go_with_the_lists_that_they_are_of(store: Interactions) -> None:
    for round in (1, 6, 11):
        answer(store, round, length=0.1 * round)
    store.forget_before(6)
    assert list(store.lengths()) == [6, 11] and not store.find_used(1, limit=9)
    store.forget_lengths()
    assert store.lengths() == {} and len(store.find_used(6, limit=9)) == 3


def test_a_home_of_an_older_version_has_lists_and_no_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "client.sqlite"
    with monkeypatch.context() as older:
        older.setattr(database, "MIGRATIONS", database.MIGRATIONS[:4])
        with Interactions(path) as store:
            used = [store.add(shown(21))]
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE impressions SET used_in = 21 WHERE number = ?", used)
        file.commit()
    with Interactions(path) as store:
        found = gradients_of(keep_every=5).replay(store, CANDIDATE, ASKED)
        assert found is not None and found.is_filled and found.n_lists == 1
