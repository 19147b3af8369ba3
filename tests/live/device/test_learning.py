"""From the store to an answer: which lists are used, what is learnt from them, what it costs, and what leaves."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_learning import gradients_of, learning_of

from hushrank.learners.logged import rescored_pdgd_gradient
from hushrank.live.device.impressions import SORTED, Impression
from hushrank.live.device.learning import (
    MAX_AGE,
    MAX_WEIGHT,
    learn_update,
)
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.wire.terms import SEEDED
from hushrank.privacy.renyi import Spend
from hushrank.rankers.linear import LinearRanker
from hushrank.streams import ENTROPY
from hushrank.types import Array, DenseUpdate, SeedReward

PARAMS = np.array([0.2, -0.1], np.float32)
RANKER = KeptRanker(20, PARAMS, seed=None)
PAPER = {"privacy": "paper", "epsilon": 4.5, "sensitivity": 5.0, "n_clients": 2}
SOUND = {"privacy": "sound", "noise_multiplier": 2.0, "n_clients": 2}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Interactions]:
    with Interactions(tmp_path / "client.sqlite") as opened:
        yield opened


def shown(round: int = 20, clicked: int = 0, **changes: Any) -> Impression:
    """Three candidates, two of them shown, one of these clicked; made by scores 0, 1 and 2."""
    values: dict[str, Any] = {
        "features": np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], np.float32),
        "scores": np.array([0.0, 1.0, 2.0], np.float32),
        "ranking": np.array([1, 0]),
        "is_clicked": np.arange(2) == clicked,
    }
    return Impression(round, **(values | changes))


def trial(direction: int, clicked: int, *, seed: int = 9, round: int = 20) -> Impression:
    return shown(round, clicked, policy=SORTED, seed=seed, direction=direction)


def test_one_list_moves_the_weights_by_the_learning_rate_times_its_logged_gradient() -> None:
    one = shown()
    gradient = rescored_pdgd_gradient(
        LinearRanker(2), PARAMS, one.features, one.scores, one.ranking, one.is_clicked, max_weight=MAX_WEIGHT
    )
    update = learn_update(gradients_of(learning_rate=0.5), PARAMS, [one])
    np.testing.assert_allclose(update.delta, 0.5 * gradient, atol=1e-7)
    assert update.n_interactions == 1 and update.delta.any()


def test_the_second_step_starts_where_the_first_ended() -> None:
    learning, lists = gradients_of(), [shown(clicked=0), shown(clicked=1)]
    first = learn_update(learning, PARAMS, lists[:1]).delta
    second = learn_update(learning, PARAMS + first, lists[1:]).delta
    both = learn_update(learning, PARAMS, lists)
    np.testing.assert_allclose(both.delta, first + second, atol=1e-7)
    assert both.n_interactions == 2


def test_the_published_noise_clips_the_weights_after_every_step() -> None:
    learning = gradients_of(**(PAPER | {"sensitivity": 0.1}), learning_rate=1.0)
    update = learn_update(learning, np.zeros(2, np.float32), [shown()])
    assert np.linalg.norm(update.delta) == pytest.approx(0.05)  # Delta / 2


def test_the_newest_lists_are_used_at_most_as_many_as_agreed_and_none_that_is_too_old(store: Interactions) -> None:
    numbers = [store.add(shown(round)) for round in (20 - MAX_AGE - 1, 20 - MAX_AGE, 20, 20)]
    draft = learning_of().draft(store, RANKER, is_last_call=False)
    assert draft is not None and draft.used == tuple(numbers[1:])
    more = [store.add(shown(20)) for _ in range(4)]
    draft = learning_of().draft(store, RANKER, is_last_call=False)
    assert draft is not None and draft.used == tuple(more)
    assert isinstance(draft.raw, DenseUpdate) and draft.raw.n_interactions == 4


def test_without_protection_who_saw_nothing_is_silent(store: Interactions) -> None:
    store.add(shown(policy=SORTED))  # no list that PDGD can learn from
    assert learning_of().draft(store, RANKER, is_last_call=True) is None


@pytest.mark.parametrize("settings", [PAPER, SOUND])
def test_under_protection_who_saw_nothing_answers_with_nothing(store: Interactions, settings: dict[str, Any]) -> None:
    learning = learning_of(**settings)
    draft = learning.draft(store, RANKER, is_last_call=False)
    assert draft is not None and isinstance(draft.raw, DenseUpdate)
    assert not draft.raw.delta.any() and draft.used == () and draft.price == learning.price
    assert learning.seal(draft, key=ENTROPY).weight == 1.0


def test_the_price_of_published_noise_covers_everything_that_a_client_can_send() -> None:
    """Two answers of one client move the sum by their difference, weights included. Laplace noise of scale s on every
    number then costs |difference|_1 / s. The ranker is outside the ball that weights are clipped to."""
    settings = {"privacy": "paper", "epsilon": 1.2, "sensitivity": 3.0, "n_clients": 2, "learning_rate": 9.0}
    learning, scale = gradients_of(**settings), 3.0 / 1.2
    params, sums = np.array([4.0, -3.0], np.float32), list[Array]()
    for lists in ([], [shown(clicked=0)], [shown(clicked=0)] * 4, [shown(clicked=1)] * 4):
        update = learn_update(learning, params, lists)
        assert np.linalg.norm(params + update.delta) <= 3.0 / 2 * (1 + 1e-6)  # clipped, also where nothing was seen
        sums.append(learning.exchange.privatise(update, key=ENTROPY).weight * update.delta)
    worst = max(np.abs(a - b).sum() / scale for a in sums for b in sums)
    price = learning.price
    assert price is not None and price.times == 2 and 0.8 < worst <= price.ratio * price.times * (1 + 1e-6)
    assert price.ratio * price.times == pytest.approx(1.2 * np.sqrt(2))  # L2 norm 3 is at most L1 norm 3 sqrt(2)


def test_every_weight_of_published_noise_is_1_and_no_other_is_taken(store: Interactions) -> None:
    learning = learning_of(**PAPER)
    for _ in range(4):
        store.add(shown())
    draft = learning.draft(store, RANKER, is_last_call=False)
    assert draft is not None and isinstance(draft.raw, DenseUpdate) and draft.raw.n_interactions == 4
    assert learning.seal(draft, key=ENTROPY).weight == 1.0 and learning.body.most_weight == 1
    assert learning.body.decode(learning.seal(draft, key=ENTROPY).body, weight=4.0).weight == 1.0  # of an older client


def test_an_answer_under_a_seed_says_that_nothing_is_promised(store: Interactions) -> None:
    for settings in (PAPER, SOUND, {"method": "foltr-es"}):
        learning = learning_of(**settings, seed=3)
        for direction in (1, -1):
            store.add(trial(direction, 0))
        draft = learning.draft(store, KeptRanker(20, PARAMS, seed=9), is_last_call=True)
        assert draft is not None and draft.price is None
        assert learning.seal(draft, key=ENTROPY).guarantee == SEEDED


def test_rewards_are_read_by_direction_in_the_order_of_the_lists(store: Interactions) -> None:
    learning = learning_of(method="foltr-es")
    ranker = KeptRanker(20, PARAMS, seed=9)
    numbers = [store.add(trial(*of)) for of in ((-1, 0), (1, 1), (1, 0), (-1, 5))]  # clicked at 1, 2, 1 and not at all
    draft = learning.draft(store, ranker, is_last_call=False)
    assert draft is not None and isinstance(draft.raw, SeedReward)
    assert draft.raw.rewards.tolist() == [[1 / 2, 1], [1, 0]]  # MaxRR
    assert draft.used == (numbers[1], numbers[2], numbers[0], numbers[3])
    assert draft.raw.seed == 9 and draft.price == learning.price


def test_lists_of_another_round_or_perturbation_say_nothing_of_this_one(store: Interactions) -> None:
    learning, ranker = learning_of(method="foltr-es"), KeptRanker(20, PARAMS, seed=9)
    for direction in (1, 1, -1, -1):
        store.add(trial(direction, 0, seed=8))
        store.add(trial(direction, 0, round=19))
    assert learning.draft(store, ranker, is_last_call=True) is None


def test_fewer_trials_than_agreed_answer_at_the_last_call_and_cost_less(store: Interactions) -> None:
    learning, ranker = learning_of(method="foltr-es", p=0.5), KeptRanker(20, PARAMS, seed=9)
    numbers = [store.add(trial(direction, 0)) for direction in (1, 1, -1)]
    assert learning.draft(store, ranker, is_last_call=False) is None
    draft = learning.draft(store, ranker, is_last_call=True)
    assert draft is not None and draft.used == (numbers[0], numbers[2])  # as many of each
    assert learning.price == Spend("pure", np.log(0.5 * 10 / 0.5), times=4)  # epsilon = ln(p (n - 1) / (1 - p)), n = 11
    assert draft.price == Spend("pure", np.log(0.5 * 10 / 0.5), times=2)


def test_what_leaves_is_the_update_in_float32_or_a_seed_and_rewards(store: Interactions) -> None:
    store.add(shown())
    openly = learning_of()
    draft = openly.draft(store, RANKER, is_last_call=False)
    assert draft is not None and isinstance(draft.raw, DenseUpdate)
    answer = openly.seal(draft, key=ENTROPY)
    assert answer.body == draft.raw.delta.astype("<f4").tobytes() and answer.weight == 1.0
    assert answer.guarantee.startswith("no guarantee")
    for direction in (1, -1):
        store.add(trial(direction, 0 if direction == 1 else 5))
    tries = learning_of(method="foltr-es", privacy="none")
    draft = tries.draft(store, KeptRanker(20, PARAMS, seed=9), is_last_call=True)
    assert draft is not None
    assert tries.seal(draft, key=ENTROPY).body == struct.pack("<Iff", 9, 1.0, 0.0)


def test_live_noise_is_new_every_time(store: Interactions) -> None:
    learning = learning_of(**PAPER)
    draft = learning.draft(store, RANKER, is_last_call=False)
    assert draft is not None
    assert len({learning.seal(draft, key=ENTROPY).body for _ in range(5)}) == 5
