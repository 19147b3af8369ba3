"""The kernel's vector pieces give what their plain twins give."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.engine.kernel import divide_mass, log_mass_left, make_vector, pull_by_logarithms
from hushrank.engine.search import (
    draw_for,
    judge_places,
    make_search,
    name_client,
    name_round,
    name_search,
    sample_places,
    show_list,
)
from hushrank.engine.vectors import (
    MOST_FOUND,
    NEAR,
    add_some_rows,
    apply_gradient,
    fill_both,
    fill_masses,
    fill_times,
    make_room,
    multiply_rows,
    pick_first,
    pull_lanes,
)
from hushrank.learners.pdgd import infer_preferences, reversal_weight, sigmoid
from hushrank.learners.pdgd import log_mass_left as plain_mass_left
from hushrank.metrics.ndcg import dcg
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_bits, draw_uniform, seed_key, stream
from hushrank.types import Array

KEY = seed_key(7)


def make_scores(length: int, spread: float, number: int) -> Array:
    return np.random.default_rng(number).normal(scale=spread, size=length).astype(np.float32)


def test_draws_are_those_of_the_streams() -> None:
    search = make_search(70, 10, 3)
    name_round(search, KEY, np.uint32(9))
    name_client(search, 5)
    for interaction in range(6):
        lane = name_search(search, interaction)
        assert search.words[0, lane] == draw_bits(stream(KEY, Purpose.QUERY, 9, 5, interaction), 1)[0]
        draw_for(search, 70, 4 + lane)
        expected = draw_uniform(stream(KEY, Purpose.SHOW, 9, 5, interaction), 70)
        np.testing.assert_array_equal(search.draws[:70], expected)


@pytest.mark.parametrize("half", [16, 32])
def test_draws_of_two_kinds_are_made_together(half: int) -> None:
    draws, keys = make_room(2 * half), [stream(KEY, purpose, 1, 2, 3) for purpose in (Purpose.CLICK, Purpose.STOP)]
    fill_both(draws, half, *((np.uint32(a), np.uint32(b)) for a, b in keys))
    np.testing.assert_array_equal(draws[: 2 * half], np.concatenate([draw_uniform(key, half) for key in keys]))


def test_a_shown_list_is_worth_its_dcg() -> None:
    search, grades = make_search(20, 10, 5), np.random.default_rng(3).integers(0, 5, 20).astype(np.uint8)
    search.places[:10] = np.random.default_rng(4).permutation(20)[:10]
    assert judge_places(search, grades, 0, 10) == pytest.approx(dcg(grades[search.places[:10]]), rel=1e-14)


def test_nothing_beyond_the_last_row_counts() -> None:
    numbers, scores, total = np.full(99, np.nan, np.float32), make_room(9), make_vector(5)
    numbers[:45] = 1
    rows = numbers[:45].reshape(9, 5)
    multiply_rows(rows, np.full(5, 2, np.float32), scores)
    assert scores[:9].tolist() == [10.0] * 9
    add_some_rows(total, np.float32(2), rows, np.array([8]), np.array([3], np.float32), 1)
    assert total.tolist() == [6.0] * 5


def test_logarithms_and_exponentials_are_right_to_a_few_units_in_the_last_place() -> None:
    words = np.concatenate([np.arange(3000), 2**23 - 1 - np.arange(3000), np.arange(0, 2**23, 997)])
    uniforms = ((words + 0.5) * 2.0**-23).astype(np.float32)
    times, ones, n = make_room(len(uniforms)), np.ones(len(uniforms) + 32, np.float32), len(uniforms)
    draws = make_room(n)
    draws[:n] = uniforms
    fill_times(draws, ones, n, times)
    np.testing.assert_allclose(times[:n], -np.log(uniforms.astype(np.float64)), rtol=2e-7)
    scores, masses = make_room(9999), make_room(9999)
    scores[:9999] = np.linspace(-39.9, 39.9, 9999)
    scores[0] = 0.0
    assert fill_masses(scores, 9999, masses)
    np.testing.assert_allclose(masses[:9999], np.exp(scores[:9999].astype(np.float64)), rtol=2e-7)
    assert not masses[9999:10000].any()


@pytest.mark.parametrize("bad", [41.0, -41.0, np.inf, -np.inf, np.nan])
def test_scores_too_far_apart_for_masses_are_noticed(bad: float) -> None:
    scores, masses = make_room(20), make_room(20)
    scores[:20] = 0
    scores[17] = bad
    assert not fill_masses(scores, 20, masses)
    assert fill_masses(scores, 17, masses)


@pytest.mark.parametrize("k", [1, 10, 16])
@pytest.mark.parametrize("length", [1, 3, 16, 17, 41, 300])
def test_the_first_of_a_race_are_picked_in_order(length: int, k: int) -> None:
    times, places, found = make_room(length), np.zeros(MOST_FOUND, np.int64), np.zeros(MOST_FOUND, np.float32)
    times[:] = np.inf
    times[:length] = np.random.default_rng(length + k).exponential(size=length)
    n_shown = pick_first(times, length, k, places, places.copy(), found)
    assert places[:n_shown].tolist() == np.argsort(times[:length])[:k].tolist()


def test_two_that_are_too_close_to_tell_are_left_to_the_plain_formula() -> None:
    times, places, found = make_room(20), np.zeros(MOST_FOUND, np.int64), np.zeros(MOST_FOUND, np.float32)
    times[:] = np.inf
    times[:20] = np.arange(1, 21)
    assert pick_first(times, 20, 10, places, places.copy(), found) == 10
    for upper in (3, 9):  # within the list, and at its end
        near = times.copy()
        near[upper + 1] = near[upper] * (1 + (NEAR - 1) / 2)
        assert pick_first(near, 20, 10, places, places.copy(), found) == 0


def count_other_lists(n: int, spread: float) -> tuple[int, int]:
    """How many of n lists are not `sample_ranking`'s, and how many the race alone decided."""
    search, other, raced = make_search(130, 10, 3), 0, 0
    name_round(search, KEY, np.uint32(1))
    for client in range(n):
        length = 1 + 7 * client % 130
        scores = make_scores(length, spread, client)
        name_client(search, client)
        search.scores[:length] = scores
        lane = name_search(search, 0)
        n_shown, _ = show_list(search, length, 10, lane)
        expected = sample_ranking(scores, draw_uniform(stream(KEY, Purpose.SHOW, 1, client, 0), length), k=10)
        other += search.places[:n_shown].tolist() != expected.tolist()
        fill_masses(search.scores, length, search.masses)
        fill_times(search.draws, search.masses, length, search.times)
        raced += pick_first(search.times, length, 10, search.places, search.candidates, search.found) > 0
    return other, raced


def test_lists_are_those_of_the_plain_round_but_for_near_ties() -> None:
    other, raced = count_other_lists(3000, 1.0)
    assert other <= 3  # fewer than 1 in 1,000
    assert raced > 2900


def test_lists_of_scores_far_apart_are_those_of_the_plain_round() -> None:
    assert count_other_lists(300, 60.0)[0] == 0


@pytest.mark.parametrize("n_features", [1, 5, 16, 46, 136])
def test_scores_gradients_and_steps_are_sums_of_products(n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    documents = rng.normal(size=(37, n_features)).astype(np.float32)
    params, scores, gradient = rng.normal(size=n_features).astype(np.float32), make_room(37), make_vector(n_features)
    multiply_rows(documents, params, scores)
    np.testing.assert_allclose(scores[:37], documents @ params, atol=2e-5)
    gradient[:], pulls, places = params, rng.normal(size=16).astype(np.float32), np.array([3, 36, 0, 7])
    add_some_rows(gradient, np.float32(1), documents, places, pulls, 4)
    expected = params + pulls[:4] @ documents[places]
    np.testing.assert_allclose(gradient, expected, atol=2e-5)
    local = make_vector(n_features)
    local[:] = params
    apply_gradient(local, gradient, np.float32(0.5))
    np.testing.assert_allclose(local, params + 0.5 * expected, atol=2e-5)
    assert not gradient.any()


@pytest.mark.parametrize(("length", "n_shown", "spread"), [(40, 10, 1.0), (10, 10, 4.0), (2, 2, 1.0), (60, 16, 8.0)])
def test_pulls_are_rho_times_the_pair_gradient(length: int, n_shown: int, spread: float) -> None:
    search = make_search(length, n_shown, 3)
    scores = make_scores(length, spread, length)
    is_clicked = np.random.default_rng(1).random(n_shown) < 0.4
    is_clicked[0], is_clicked[1] = True, False
    ranking = np.random.default_rng(2).permutation(length)[:n_shown]
    search.scores[:length], search.places[:n_shown], search.is_clicked[:] = scores, ranking, is_clicked
    expected, shown, left = np.zeros(n_shown), scores[ranking].astype(np.float64), plain_mass_left(scores, ranking)
    for k, l in infer_preferences(is_clicked):
        pull = reversal_weight(shown, left, k, l) * sigmoid(shown[k] - shown[l]) * sigmoid(shown[l] - shown[k])
        expected[k] += pull
        expected[l] -= pull
    seen = min(int(np.flatnonzero(is_clicked)[-1]) + 2, n_shown)
    assert fill_masses(search.scores, length, search.masses)
    divide_mass(search, length, n_shown)
    pull_lanes(search.shown, search.left, search.is_clicked, seen, search.pulls)
    np.testing.assert_allclose(search.pulls[:n_shown], expected, atol=1e-6)
    log_mass_left(search, length, n_shown)
    pull_by_logarithms(search, n_shown, seen)
    np.testing.assert_allclose(search.pulls[:n_shown], expected, atol=1e-6)


def test_a_list_longer_than_a_register_is_drawn_by_the_plain_formula() -> None:
    search, scores = make_search(50, 20, 3), make_scores(50, 1.0, 0)
    name_round(search, KEY, np.uint32(1))
    name_client(search, 0)
    search.scores[:50] = scores
    n_shown, is_close = show_list(search, 50, 20, name_search(search, 0))
    assert (n_shown, is_close) == (20, False)
    draws = draw_uniform(stream(KEY, Purpose.SHOW, 1, 0, 0), 50)
    assert search.places[:20].tolist() == sample_ranking(scores, draws, k=20).tolist()
    assert sample_places(scores, draws, 50, 20, search.places) == 20
