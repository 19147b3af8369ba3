"""Attacks of one line: the sign, the length, noise; and when they happen."""

from __future__ import annotations

import numpy as np
import pytest
from liars import KEY, honest_updates, send, tiny_federation, view_of

from hushrank.attacks.named import Target, attack_updates, find_attack
from hushrank.attacks.tactics import Tactics, use_tactics
from hushrank.engine.simulate import Options, simulate
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import attack_of
from hushrank.types import Array


def lengths(updates: Array) -> Array:
    return np.asarray(np.linalg.norm(updates, axis=-1))


def test_signs_and_lengths_by_hand() -> None:
    updates = np.array([[1.0, -2.0], [3.0, 4.0], [5.0, 6.0]])
    assert send("sign-flip", updates, 1).tolist() == [[-1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert send("sign-flip", updates, 1, scale=3.0)[0].tolist() == [-3.0, 6.0]
    assert send("scaled", updates, 1)[0].tolist() == [10.0, -20.0]


def test_lies_that_no_number_can_hold_are_infinite_without_a_warning() -> None:
    updates, attack = np.ones((3, 2), np.float32), find_attack("opposite-model", z=1e30)
    assert attack is not None
    target = Target(np.float32(1e30) * updates[0], 1, KEY)
    received = attack_updates(attack, updates, np.arange(3) < 1, target)
    assert received.tolist() == [[-np.inf, -np.inf], [1, 1], [1, 1]]  # -1e30 - (1e30 + 1) * 1e30


def test_noise_is_as_long_as_what_the_liars_learnt() -> None:
    updates = honest_updates(0, n=10, p=4000)
    sent = send("gaussian", updates, 4, scale=2.0)[:4]
    np.testing.assert_allclose(lengths(sent), 2 * lengths(updates[:4]).mean(), rtol=0.05)  # 4 / sqrt(2 * 4000)
    assert np.abs(np.corrcoef(np.concatenate([sent, updates]))[:4, 4:]).max() < 0.08  # 5 / sqrt(4000)


@pytest.mark.parametrize("knowledge", ["partial", "full"])
def test_at_the_bound_all_send_the_known_mean_backwards(knowledge: str) -> None:
    updates = honest_updates(1)
    sent = send("at-bound", updates, 3, bound=2.5, knowledge=knowledge)[:3]
    mean = (updates if knowledge == "full" else updates[:3]).mean(axis=0)
    np.testing.assert_allclose(lengths(sent), 2.5, rtol=1e-6)
    np.testing.assert_allclose(sent @ mean / (2.5 * lengths(mean)), -1.0, rtol=1e-6)


def step_aside(updates: Array, round: int, **settings: object) -> Array:
    """[p] what three liars add to what they learnt, the same for all; the ranker is the last update."""
    attack, liars = find_attack("sidestep", **settings), np.arange(len(updates)) < 3
    assert attack is not None
    added = attack_updates(attack, updates, liars, Target(updates[-1], round, KEY)) - updates
    np.testing.assert_allclose(added[:3], np.tile(added[0], (3, 1)), atol=1e-5)
    assert not added[3:].any()
    return np.asarray(added[0])


def test_liars_who_step_aside_neither_oppose_the_ranker_nor_grow_loud() -> None:
    updates = honest_updates(4, p=40)
    step = step_aside(updates, 1, scale=2.0)
    assert abs(step @ updates[-1]) < 1e-3
    np.testing.assert_allclose(lengths(step), 2 * lengths(updates[:3]).mean(), rtol=1e-5)


def test_liars_who_step_aside_turn_together_every_so_often() -> None:
    steps = [step_aside(honest_updates(4, p=40), round, turn_every=5) for round in (5, 9, 10)]
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-5)
    assert steps[0] @ steps[2] < 0.5 * steps[0] @ steps[0]  # 40 numbers drawn anew have a cosine of about .16


def test_liars_who_frame_others_copy_them_at_first_and_every_so_often() -> None:
    updates, attack, liars = honest_updates(5), find_attack("framing", first_copies=2, copy_every=4), np.arange(10) < 4
    assert attack is not None
    for round in range(1, 10):
        sent = attack_updates(attack, updates, liars, Target(updates[0], round, KEY))
        is_framing = [(sent[i] == updates[4 + i]).all() for i in range(4)]
        assert is_framing == [round in (1, 2, 4, 8)] * 2 + [False] * 2  # two and two they frame are below half of ten
        assert (sent[4:] == updates[4:]).all()


def test_liars_who_frame_push_the_mean_back_and_no_two_alike() -> None:
    updates = honest_updates(5)
    sent = send("framing", updates, 3, first_copies=0, scale=3.0)[:3]
    back = sent.mean(axis=0)  # what each adds of its own is nothing in all
    np.testing.assert_allclose(lengths(back), 3 * lengths(updates[3:]).mean(), rtol=1e-5)
    np.testing.assert_allclose(
        back @ updates[3:].mean(axis=0), -lengths(back) * lengths(updates[3:].mean(axis=0)), 1e-5
    )
    np.testing.assert_allclose(sent[0] - sent[1], updates[0] - updates[1], atol=1e-5)


def test_liars_who_are_alone_have_nobody_to_frame() -> None:
    own, attack = honest_updates(5), find_attack("framing")
    assert attack is not None
    assert (attack(view_of(own[:3], own[:0]), key=KEY) == -own[:3]).all()


def send_in_turn(updates: Array, round: int, n_malicious: int = 3, **settings: object) -> Array:
    """[n, p] what the server receives in a round from liars who lie, pay and rest."""
    attack = find_attack("cycle", **settings)
    assert attack is not None
    return attack_updates(attack, updates, np.arange(len(updates)) < n_malicious, Target(updates[0], round, KEY))


@pytest.mark.parametrize("knowledge", ["partial", "full"])
def test_liars_in_turn_push_the_mean_back_and_half_as_far_forward_and_are_honest(knowledge: str) -> None:
    updates = honest_updates(5, p=40)
    known = updates if knowledge == "full" else updates[:3]
    mean, median = known.mean(axis=0), np.median(lengths(known))
    for round, times in ((1, 2.0), (3, -5.0), (4, 2.0), (6, -5.0)):
        sent = send_in_turn(updates, round, backwards=5.0, forwards=2.0, knowledge=knowledge)
        np.testing.assert_allclose(lengths(sent[:3]), abs(times) * median, rtol=1e-5)
        cosines = sent[:3] @ mean / (lengths(sent[:3]) * lengths(mean))
        np.testing.assert_allclose(cosines, np.sign(times) / np.sqrt(1 + 0.35**2), rtol=1e-5)
        assert (sent[3:] == updates[3:]).all()
    assert all((send_in_turn(updates, round, knowledge=knowledge) == updates).all() for round in (2, 5, 8))


def test_liars_in_turn_send_no_copies_and_turn_anew_in_every_round() -> None:
    updates = honest_updates(5, p=400)
    sent = send_in_turn(updates, 3, 4)[:4].astype(np.float64)
    cosines = sent @ sent.T / np.outer(lengths(sent), lengths(sent))
    np.testing.assert_allclose(cosines[np.triu_indices(4, 1)], 1 / (1 + 0.35**2), atol=0.03)  # .11 x 4 / sqrt(400)
    attack, view = find_attack("cycle"), view_of(updates[:2], updates[2:])
    assert attack is not None
    one, other = (attack(view, key=key) for key in (KEY, KEY + 1))
    assert (one != other).any() and (one == attack(view, key=KEY)).all()


def test_liars_in_turn_where_nobody_learnt_anything_send_nothing() -> None:
    assert not any(send_in_turn(np.zeros((5, 3), np.float32), round, 2).any() for round in (1, 2, 3))
    assert send_in_turn(np.array([[1.0], [1.0], [3.0]]), 3, 1)[0].tolist() == [-9.5]  # one number has no side


def forge_opposite(own: Array, params: Array, **settings: object) -> Array:
    attack = find_attack("opposite-model", **settings)
    assert attack is not None
    return attack(view_of(own, params=params), key=KEY)


def test_the_opposite_model_by_hand() -> None:
    """Learnt (1, -2) at (10, 20): the model is (11, 18), what is sent leads to (-22, -36), or with z = 1 (-11, -18)."""
    params, own = np.array([10.0, 20.0]), np.array([[1.0, -2.0]])
    assert forge_opposite(own, params).tolist() == [[-32.0, -56.0]]
    assert forge_opposite(own, params, z=1)[0].tolist() == [-21.0, -38.0]


def test_the_opposite_model_of_a_new_ranker_is_the_update_turned_round() -> None:
    updates = honest_updates(2)
    sent, flipped = send("opposite-model", updates, 3, z=2.0), send("sign-flip", updates, 3, scale=2.0)
    assert sent.tobytes() == flipped.tobytes() and sent.dtype == np.float32


@pytest.mark.parametrize("z", [0, -1])
def test_an_opposite_needs_a_length(z: int) -> None:
    with pytest.raises(ValueError, match=f"z is {z}.0, must be > 0"):
        recipe_of(attack="opposite-model", z=z)


def recipe_of(**changes: object) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {"n_clients": 10, "interactions": 5, "n_malicious": 2, **changes})


def test_the_bound_is_that_of_a_live_server_unless_said() -> None:
    bounds = [
        attack_of(recipe_of(attack="at-bound", **changes)).bound  # type: ignore[union-attr]
        for changes in ({}, {"update_norm": 0.5}, {"update_norm": 0.5, "bound": 3})
    ]
    assert bounds == [2.5 * 0.1 * 5, 0.5, 3.0]


def test_sleepers_lie_from_their_round_on_and_every_so_often() -> None:
    attack = attack_of(recipe_of(attack="sign-flip", attack_from=4, attack_every=3))
    assert isinstance(attack, Tactics)
    updates, liars = honest_updates(0), np.arange(10) < 2
    lied = [
        round
        for round in range(1, 12)
        if attack_updates(attack, updates, liars, Target(updates[0], round, KEY)) is not updates
    ]
    assert lied == [4, 7, 10]


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
def test_sleepers_who_never_wake_are_honest_on_every_engine(engine: str) -> None:
    asleep = use_tactics(find_attack("sign-flip"), first=99, every=1)
    honest, lied_to = [
        simulate(tiny_federation(**liars), Options(engine=engine))[0][0].params
        for liars in ({}, {"attack": asleep, "n_malicious": 3})
    ]
    np.testing.assert_allclose(honest, lied_to, atol=1e-6)  # added up in another order


def test_sleepers_who_would_sleep_through_the_whole_run_are_refused() -> None:
    assert recipe_of(attack="sign-flip", attack_from=20, rounds=20).attack_from == 20
    with pytest.raises(ValueError, match="attack_from is 21, but the run has 20 rounds, so that nobody would ever lie"):
        recipe_of(attack="sign-flip", attack_from=21, rounds=20)


def test_clicks_have_no_times() -> None:
    with pytest.raises(ValueError, match="lies in every round: leave attack_from and attack_every out"):
        recipe_of(attack="poisoned-clicks", attack_from=5)


def test_disguised_liars_send_nothing_alike_and_move_the_mean_as_before() -> None:
    updates = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    liars, target = np.array([True, True, False]), Target(np.zeros(2), 1, np.zeros(2, np.uint32))
    attack = find_attack("min-max", knowledge="full")
    assert attack is not None
    alike = attack_updates(attack, updates, liars, target)
    apart = attack_updates(Tactics(attack, is_disguised=True), updates, liars, target)
    assert (alike[0] == alike[1]).all() and apart[2].tolist() == [3.0, 3.0]
    np.testing.assert_allclose(apart[0] - apart[1], updates[0] - updates[1])  # what they learnt sets them apart
    np.testing.assert_allclose(apart[:2].mean(axis=0), alike[:2].mean(axis=0))


def test_poisoned_clicks_need_no_disguise() -> None:
    lies = {"attack": "poisoned-clicks", "n_malicious": 1, "attack_disguise": True}
    with pytest.raises(ValueError, match="changes no update: leave attack_disguise out"):
        change_recipe(NAMED["fpdgd"], lies)
