"""Evolution strategies: noise from a seed, antithetic halves, a client's round, the gradient from messages alone."""

from __future__ import annotations

from itertools import product
from math import cos, inf, log, nan, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_settings import N_FEATURES, random_queries

from hushrank.aggregation.server_step import ServerStep
from hushrank.clicks.named import named_user
from hushrank.learners.es import (
    EsConfig,
    directions,
    es_add,
    es_aggregate,
    es_finish,
    es_init,
    es_learn,
    perturbation,
)
from hushrank.metrics.ndcg import ndcg
from hushrank.metrics.rewards import finite_reward
from hushrank.privacy.randomised_response import privatise_reward
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.policy import sort_ranking
from hushrank.streams import Purpose, draw_below, draw_bits, draw_uniform, seed_key, stream
from hushrank.types import Array, Client, PrivateReward

KEY = seed_key(9)


def make_config(*, user: str = "navigational", sigma: float = 0.01, antithetic: bool = True) -> EsConfig:
    return EsConfig(
        LinearRanker(N_FEATURES),
        named_user(user, n_grades=3),
        random_queries(4),
        finite_reward("MaxRR"),
        ndcg,
        sigma=sigma,
        antithetic=antithetic,
    )


def message(seed: int, *rewards: float) -> PrivateReward:
    return PrivateReward(seed, rewards, "made by hand")


def test_the_noise_of_a_seed_is_pinned() -> None:
    """Golden: part of the wire version. Whoever changes these lines makes every sent seed unreadable."""
    assert draw_bits(stream(seed_key(7), Purpose.PERTURB), 4).tolist() == [
        0x1BF5DEBA,
        0xBAC4156D,
        0x3CF1899D,
        0x39728023,
    ]
    assert perturbation(0, 5, sigma=1.0).tolist() == pytest.approx(
        [0.65537876, -0.6407628, -1.0437493, -0.58390355, -0.45161644], rel=2e-7
    )


def test_noise_is_two_normal_numbers_of_each_pair_of_draws() -> None:
    u = draw_uniform(stream(seed_key(3), Purpose.PERTURB), 4).tolist()
    pairs = [(sqrt(-2 * log(u[i])), 2 * pi * u[i + 1]) for i in (0, 2)]
    by_hand = [0.5 * radius * f(angle) for radius, angle in pairs for f in (cos, sin)]
    noise = perturbation(3, 4, sigma=0.5)
    assert noise.dtype == np.float32
    assert noise.tolist() == pytest.approx(by_hand, rel=1e-6)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 5))
def test_noise_depends_on_the_seed_and_the_place_alone(seeds: list[int], n: int, more: int) -> None:
    together = perturbation(np.array(seeds), n + more, sigma=0.1)
    assert together.shape == (len(seeds), n + more)
    assert together[:, :n].tolist() == [perturbation(seed, n, sigma=0.1).tolist() for seed in seeds]


def test_noise_is_normal() -> None:
    noise = perturbation(np.arange(2_000), 46, sigma=0.01).astype(np.float64) / 0.01
    assert noise.mean() == pytest.approx(0, abs=4 / sqrt(noise.size))
    assert noise.var() == pytest.approx(1, abs=4 * sqrt(2 / noise.size))
    assert (np.abs(noise) < 1).mean() == pytest.approx(0.682689, abs=4 * sqrt(0.25 / noise.size))
    spread = np.cov(noise.T) - np.eye(46)
    assert np.abs(spread).max() < 6 / sqrt(2_000)  # 46 * 46 cells, neighbours made of one pair among them


def test_the_first_half_goes_up_and_the_second_down() -> None:
    assert directions(4, antithetic=True).tolist() == [1, 1, -1, -1]
    assert directions(3, antithetic=False).tolist() == [1, 1, 1]


def play(config: EsConfig, params: Array, client: Client, *, round: int) -> list[tuple[float, float]]:
    """The client's interactions spelt out: (reward, nDCG) of each."""
    noise = perturbation(int(draw_bits(stream(KEY, Purpose.SEED, round, client.id), 1)[0]), len(params), sigma=0.01)
    played = []
    for i in range(client.n_interactions):
        names = (round, client.id, i)
        query = int(draw_below(stream(KEY, Purpose.QUERY, *names), config.queries.n_queries, 1)[0])
        grades = config.queries.grades[config.queries.rows(query)]
        tried = params - noise if config.antithetic and i >= client.n_interactions // 2 else params + noise
        shown = grades[sort_ranking(config.queries.features[config.queries.rows(query)] @ tried)]
        draws = [draw_uniform(stream(KEY, purpose, *names), len(shown)) for purpose in (Purpose.CLICK, Purpose.STOP)]
        clicked = np.flatnonzero(config.user(shown, *draws))
        played.append((1 / (1 + clicked[0]) if len(clicked) else 0.0, ndcg(shown, grades)))
    return played


@pytest.mark.parametrize("antithetic", [True, False])
def test_a_client_does_what_the_paper_says(antithetic: bool) -> None:
    config, params = make_config(antithetic=antithetic), np.linspace(-1, 1, N_FEATURES, dtype=np.float32)
    for id, round in product((0, 7), (1, 5)):
        client = Client(id, 6)
        raw, quality = es_learn(config, params, client, key=KEY, round=round)
        played = play(config, params, client, round=round)
        assert raw.rewards.shape == ((2, 3) if antithetic else (1, 6))
        assert raw.rewards.ravel().tolist() == [reward for reward, _ in played]
        assert quality == pytest.approx(np.mean([quality for _, quality in played]))


def test_a_client_draws_another_seed_in_every_round() -> None:
    params = np.zeros(N_FEATURES, np.float32)
    drawn = [es_learn(make_config(), params, Client(c, 2), key=KEY, round=r)[0] for c in range(5) for r in range(5)]
    seeds = [raw.seed for raw in drawn]
    assert len(set(seeds)) == 25 and all(0 <= seed < 2**32 for seed in seeds)


def test_the_estimate_of_one_message_by_hand() -> None:
    noise = perturbation(11, 3, sigma=0.1).astype(np.float64)
    both = es_aggregate([message(11, 0.75, 0.25)], n_params=3, sigma=0.1)
    assert both == pytest.approx(noise * (0.75 - 0.25) / (2 * 0.1**2))
    assert es_aggregate([message(11, 0.5)], n_params=3, sigma=0.1) == pytest.approx(noise * 0.5 / 0.1**2)


def test_the_estimate_is_the_mean_over_clients_in_any_portions() -> None:
    messages = [message(seed, seed % 7 / 7, seed % 5 / 5) for seed in range(600)]
    one_by_one = es_init(4)
    for each in messages:
        one_by_one = es_add(one_by_one, [each], sigma=0.01)
    singles = [es_aggregate([each], n_params=4, sigma=0.01) for each in messages]
    assert es_aggregate(iter(messages), n_params=4, sigma=0.01) == pytest.approx(np.mean(singles, axis=0))
    assert es_finish(one_by_one) == pytest.approx(np.mean(singles, axis=0))
    assert es_aggregate([], n_params=4, sigma=0.01).tolist() == [0, 0, 0, 0]


def test_equal_rewards_in_both_directions_move_nothing() -> None:
    assert es_aggregate([message(5, 0.3, 0.3)], n_params=4, sigma=0.01).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("antithetic", [True, False])
def test_the_mean_estimate_is_the_gradient_of_a_smooth_metric(antithetic: bool) -> None:
    """f(theta) = sum of sin(w theta); smoothed by the noise its gradient is w cos(w theta) e^(-(sigma w)^2 / 2)."""
    n, sigma, w, theta = 20_000, 0.3, np.array([1.0, 2.0, 3.0]), np.array([0.2, -0.5, 1.0])
    noise = perturbation(np.arange(n), 3, sigma=sigma).astype(np.float64)
    up, down = (np.sin(w * (theta + sign * noise)).sum(axis=1) for sign in (1, -1))
    rewards = zip(up, down, strict=True) if antithetic else zip(up, strict=True)
    messages = [message(seed, *map(float, reward)) for seed, reward in enumerate(rewards)]
    gain = (up - down) / 2 if antithetic else up
    error = (gain[:, None] * noise / sigma**2).std(axis=0) / sqrt(n)
    gradient = w * np.cos(w * theta) * np.exp(-((sigma * w) ** 2) / 2)
    assert np.all(np.abs(es_aggregate(messages, n_params=3, sigma=sigma) - gradient) < 4 * error)


def test_antithetic_messages_estimate_with_less_spread() -> None:
    sigma = 0.1
    noise = perturbation(np.arange(500), 3, sigma=sigma)
    up, down = (1 + np.sin(sign * noise).sum(axis=1) for sign in (1, -1))
    one = np.array([es_aggregate([message(s, float(u))], n_params=3, sigma=sigma) for s, u in enumerate(up)])
    two = np.array(
        [es_aggregate([message(s, float(up[s]), float(down[s]))], n_params=3, sigma=sigma) for s in range(500)]
    )
    assert (two.std(axis=0) < one.std(axis=0) / 3).all()


def test_a_few_rounds_make_people_happier() -> None:
    config, values = make_config(user="perfect"), finite_reward("MaxRR").values
    params, step = np.zeros(N_FEATURES, np.float32), ServerStep("adam", 0.1)
    state, seen = step.init(params), []
    for round in range(4):
        learnt = [es_learn(config, params, Client(c, 4), key=KEY, round=round) for c in range(40)]
        draws = [draw_bits(stream(KEY, Purpose.PRIVATISE, round, c), 8).reshape(2, 2, 2) for c in range(40)]
        sent = [privatise_reward(raw, values, p=0.9, draws=d) for (raw, _), d in zip(learnt, draws, strict=True)]
        update = es_aggregate(sent, n_params=len(params), sigma=config.sigma).astype(np.float32)
        state, params = step(state, params, update)
        seen.append(np.mean([quality for _, quality in learnt]))
    assert seen[-1] > seen[0] + 0.1


@pytest.mark.parametrize("sigma", [0.0, -0.1, nan, inf])
def test_a_sigma_without_noise_is_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match=r"sigma is .*, must be a number > 0"):
        make_config(sigma=sigma)
    with pytest.raises(ValueError, match=r"sigma is .*, must be a number > 0"):
        es_aggregate([message(1, 0.5)], n_params=2, sigma=sigma)


def test_unequal_halves_are_refused() -> None:
    with pytest.raises(ValueError, match="interactions is 3, must be even: antithetic halves are equally large"):
        es_learn(make_config(), np.zeros(N_FEATURES), Client(0, 3), key=KEY, round=0)
    with pytest.raises(ValueError, match="interactions is 0, must be at least 1"):
        directions(0, antithetic=False)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5])
def test_a_seed_that_does_not_fit_four_bytes_is_refused(seed: int) -> None:
    for seeds in (seed, np.array([0, seed, 2**32 - 1])):  # alone, and among good ones
        with pytest.raises(ValueError, match=r"a seed must be a whole number from 0 to 2\^32 - 1"):
            perturbation(seeds, 3, sigma=0.1)


@pytest.mark.parametrize("rewards", [(), (1.0, 2.0, 3.0), (nan,), (0.5, inf)])
def test_a_message_that_cannot_be_right_is_refused_and_spoils_nothing(rewards: tuple[float, ...]) -> None:
    state = es_add(es_init(3), [message(1, 0.5)], sigma=0.1)
    before = state.total.copy()
    with pytest.raises(ValueError, match="must be one or two, finite"):
        es_add(state, [message(2, *rewards)], sigma=0.1)
    assert state.n_messages == 1 and (state.total == before).all()
