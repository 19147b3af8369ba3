"""The observer names queries and clicks where nothing protects them, and is at a loss where something does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.clicks.named import named_user
from hushrank.federation.cohort import Population
from hushrank.federation.evolution import Evolution, evolve
from hushrank.federation.exchange import protect
from hushrank.federation.local import learn
from hushrank.federation.round import Federation
from hushrank.leaks.observer import (
    Guess,
    Noise,
    chance_shown,
    describe_noise,
    fit_weights,
    guess,
    prepare_observer,
    try_mechanism,
)
from hushrank.leaks.reconstruction import (
    Attempt,
    Truth,
    Watched,
    count_success,
    draw_round,
    leak_curve,
    measure_leak,
    measure_reward_leak,
    measure_watched,
    reconstruct,
    watch_client,
    watch_es_client,
    watch_rounds,
)
from hushrank.leaks.reward_observer import consistent_tuples
from hushrank.privacy.clipping import clip_weights
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.none import send_openly
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import draw_normal, draw_uniform, fold_in, seed_key
from hushrank.types import Array, Client, DenseUpdate, QuerySet

N_FEATURES, N_QUERIES = 20, 40
KEY = seed_key(3)


@cache
def federation() -> Federation:
    """40 queries with 3 to 15 documents of 20 features: most lists span a part of feature space only."""
    generator = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(generator.integers(3, 16, N_QUERIES))])
    features = generator.random((starts[-1], N_FEATURES), dtype=np.float32)
    grades = generator.choice(3, starts[-1], p=[0.6, 0.2, 0.2]).astype(np.uint8)
    queries = QuerySet(features, grades, starts, tuple(map(str, range(N_QUERIES))))
    return Federation(LinearRanker(N_FEATURES), named_user("navigational", n_grades=3), queries, Population(5))


PARAMS = np.random.default_rng(2).normal(0, 0.5, N_FEATURES).astype(np.float32)


def gaussian(deviation: float) -> Any:
    def add_noise(update: DenseUpdate, *, key: Array) -> DenseUpdate:
        return replace(update, delta=update.delta + deviation * draw_normal(key, len(update.delta)))

    return add_noise


def spiky(update: DenseUpdate, *, key: Array) -> DenseUpdate:
    """A coordinate in twenty with large noise, the others with none: a share of noise that protects only sums."""
    is_hit = draw_uniform(key, len(update.delta)) < 0.05
    return replace(update, delta=update.delta + np.where(is_hit, draw_normal(key, len(update.delta)), 0.0))


def test_the_weights_of_documents_worked_by_hand() -> None:
    # At equal scores each pair weighs 1/2 * 1/4 = 1/8 [fpdgd, Eq. 5 and 6]; one click against two others, rate .1:
    # + .1 * 2/8 for the clicked, - .1 * 1/8 for the others, nothing for the fourth, which was not seen.
    wanted = np.array([-0.0125, 0.025, -0.0125, 0.0])
    features = np.random.default_rng(0).random((4, 6))
    weights, deviations = fit_weights(features, wanted @ features, 1e-14 * np.eye(6), learning_rate=0.1)
    assert np.allclose(weights, wanted, atol=1e-6) and np.all(deviations < 1e-4)


def test_one_upload_names_its_query_and_its_clicks() -> None:
    setting = federation()
    draws = draw_round(setting, 20, 1, key=KEY, round=1)
    done = [watch_client(setting, PARAMS, draws, client) for client in range(20)]
    update, truth = next(pair for pair in done if pair[1].has_learnt)
    found = reconstruct(update, setting.queries, PARAMS)
    assert found.queries[0] == truth.queries[0]
    assert set(found.clicked.tolist()) == truth.clicked


def test_an_upload_of_zeros_says_nothing() -> None:
    found = reconstruct(DenseUpdate(np.zeros(N_FEATURES), 1), federation().queries, PARAMS)
    assert len(found.queries) == len(found.clicked) == len(found.told) == 0


@pytest.mark.parametrize("params", [PARAMS, 0 * PARAMS], ids=["trained", "start"])
def test_without_protection_nearly_everything_is_found(params: Array) -> None:
    found = measure_leak(federation(), params, n_trials=60, key=KEY)
    assert found["query_top1_if_learnt"] > 0.95 and found["query_top1_chance"] < 0.1
    assert found["clicked_precision"] > 0.9 and found["told_query_f1"] > 0.9
    assert found["clicked_f1_chance"] < 0.1 and 0 < found["silent"] < 0.7


def test_several_interactions_are_harder_but_not_safe() -> None:
    found = measure_leak(federation(), PARAMS, n_interactions=3, n_trials=40, key=KEY)
    assert found["query_top1"] > 0.3 and found["query_top1_chance"] < 0.25
    assert found["query_recall"] < 0.9


def test_heavy_noise_leaves_chance() -> None:
    found = measure_leak(federation(), PARAMS, protect=gaussian(3.0), n_trials=100, key=KEY)
    # 1 of 40 queries by chance: more than 10 of 100 happen once in 4000 times.
    assert found["query_top1"] <= 0.1 and found["clicked_f1"] < 0.1


def test_more_noise_leaks_less() -> None:
    points = [("none", None, send_openly), ("some", 4.0, gaussian(0.03)), ("much", 1.0, gaussian(0.5))]
    rows = leak_curve(watched(), points, key=KEY)
    assert [(row["label"], row["epsilon"]) for row in rows] == [("none", None), ("some", 4.0), ("much", 1.0)]
    assert rows[0]["query_top1"] > rows[1]["query_top1"] > rows[2]["query_top1"]
    assert len({row["silent"] for row in rows}) == 1  # the same clients


def test_noise_on_few_coordinates_protects_little() -> None:
    found = measure_leak(federation(), PARAMS, protect=spiky, n_trials=30, key=KEY)
    assert found["query_top1_if_learnt"] > 0.6 and found["clicked_precision"] > 0.5


def test_a_sum_of_many_hides_each() -> None:
    found = measure_leak(federation(), PARAMS, n_summed=30, n_trials=10, key=KEY)
    assert found["query_top1"] < 0.15 and found["clicked_f1"] < 0.15


@cache
def watched() -> Watched:
    return watch_rounds(federation(), PARAMS, n_trials=60, key=KEY)


def test_noise_that_the_server_adds_hides_nothing_from_the_server() -> None:
    found = measure_watched(watched(), SoundGaussian(0.1, 26.39).privatise, key=KEY)  # epsilon 1 over 50 rounds
    assert found["query_top1_if_learnt"] > 0.95 and found["clicked_f1"] > 0.9


def test_shares_of_noise_hide_the_more_the_smaller_epsilon_is() -> None:
    noise = (0.0, 3.537, 6.907, 26.39)  # epsilon none, 10, 4.5 and 1 of 50 rounds, delta 1e-5; 1,000 clients
    points = [(f"{z}", None, SoundGaussian(0.1, z, "clients", 1000).privatise) for z in noise]
    rows = leak_curve(watched(), points, key=KEY)
    open_, weak, middle, strong = (row["query_top1"] for row in rows)
    assert open_ > 0.85 and weak < open_ - 0.3 and middle < weak - 0.1 and strong < 0.1
    assert rows[0]["clicked_f1"] > 0.9 and rows[-1]["clicked_f1"] < 0.1
    assert rows[0]["told_query_f1"] - 0.3 > rows[-1]["told_query_f1"]


def test_published_shares_of_noise_hide_hardly_anything() -> None:
    setting = protect(federation(), PaperNoise(1.2, 3.0, 1000))
    found = measure_leak(setting, PARAMS, protect=setting.privatise, n_trials=15, key=KEY)
    assert found["query_top1_if_learnt"] > 0.8 and found["clicked_f1"] > 0.6


def test_weights_that_are_scaled_to_a_norm_are_no_disguise() -> None:
    setting = replace(
        federation(), limit_weights=partial(clip_weights, norm=0.5)
    )  # a quarter of the parameters' own: every upload is mostly scaling
    found = measure_leak(setting, PARAMS, n_trials=30, key=KEY)
    assert found["query_top1_if_learnt"] > 0.9 and found["clicked_f1"] > 0.9


def test_the_less_truth_rewards_tell_the_less_clicks_are_found() -> None:
    rows = [
        measure_reward_leak(federation(), Evolution(p=p), PARAMS, n_trials=60, knows_grades=True, key=KEY)
        for p in (1.0, 0.5, 0.25)
    ]
    clicks, rewards = ([row[name] for row in rows] for name in ("told_query_f1", "rewards_right"))
    assert clicks[0] > 0.7 and clicks[0] - 0.2 > clicks[1] and clicks[1] - 0.1 > clicks[2]
    assert rewards[0] == 1.0 and rewards[0] - 0.3 > rewards[1] and rewards[1] - 0.1 > rewards[2]
    assert all(row["query_top1"] < 0.25 for row in rows)  # two of 40 queries were issued


def test_the_same_key_gives_the_same_numbers() -> None:
    one, again, other = (
        measure_leak(federation(), PARAMS, protect=gaussian(0.05), n_trials=15, key=key)
        for key in (KEY, KEY, seed_key(4))
    )
    assert one == again != other


@pytest.mark.parametrize("weight_norm", [None, 1.5])  # the parameters have a norm of 1.97
@pytest.mark.parametrize("n_interactions", [1, 3])
def test_the_watched_client_learns_as_in_a_round(n_interactions: int, weight_norm: float | None) -> None:
    limit = None if weight_norm is None else partial(clip_weights, norm=weight_norm)
    setting = replace(federation(), limit_weights=limit)
    draws = draw_round(setting, 3, n_interactions, key=KEY, round=2)
    for client in range(3):
        seen, truth = watch_client(setting, PARAMS, draws, client)
        plain, _ = learn(setting, PARAMS, Client(client, n_interactions), key=KEY, round=2)
        assert np.array_equal(seen.delta, plain.delta) and seen.n_interactions == plain.n_interactions
        assert len(truth.queries) == n_interactions


def test_the_watched_client_of_an_evolution_strategy_sees_the_same() -> None:
    evolution = Evolution(sigma=0.1)
    setting = evolve(federation(), evolution)
    plain, _ = evolution.study(setting, PARAMS, Client(1, 4), key=KEY, round=2)
    draws = draw_round(setting, 2, 4, key=KEY, round=2)
    seen, truth = watch_es_client(setting, evolution, PARAMS, draws, 1, seed=plain.seed)
    assert np.array_equal(seen.rewards, plain.rewards) and len(truth.queries) == 4


def test_a_reward_tells_itself_but_hardly_a_query() -> None:
    for knows_grades in (False, True):
        found = measure_reward_leak(federation(), Evolution(), PARAMS, n_trials=60, knows_grades=knows_grades, key=KEY)
        assert found["rewards_right"] == 1.0 > found["rewards_right_chance"]
        assert found["query_top1"] < 0.25  # two of 40 queries were issued


def test_randomised_rewards_are_read_as_often_as_they_are_true() -> None:
    found = measure_reward_leak(federation(), Evolution(p=0.5), PARAMS, n_trials=100, key=KEY)
    assert abs(found["rewards_right"] - 0.5) < 0.12  # 200 coins: 3.4 standard deviations


def test_means_are_read_as_the_values_that_can_make_them() -> None:
    values = np.array([0.0, 0.25, 0.5, 1.0])
    assert sorted(map(sorted, consistent_tuples(values, 0.625, m=2).tolist())) == [[1, 3], [1, 3]]
    assert consistent_tuples(values, 0.3, m=1).tolist() == [[1]]


def test_how_often_documents_are_shown() -> None:
    scores = np.linspace(-1.5, 1.5, 14)
    draws = draw_uniform(fold_in(KEY, np.arange(2000)), len(scores))
    shown = np.zeros(len(scores))
    for drawn in draws:
        shown[sample_ranking(scores, drawn, k=10)] += 1 / 2000
    assert np.abs(chance_shown(scores, 10) - shown).max() < 0.05
    assert chance_shown(scores, 14).tolist() == [1.0] * 14
    assert chance_shown(scores * 300, 10).sum() == pytest.approx(10, abs=1e-3)


def test_what_noise_looks_like() -> None:
    normal = describe_noise(0.2 * np.random.default_rng(0).standard_normal((50, 20)))
    assert len(normal.sizes) == 1 and abs(normal.sizes[0] - 0.2) < 0.02
    uneven = try_mechanism(spiky, N_FEATURES, key=KEY)
    assert len(uneven.sizes) > 1 and uneven.chances[0] > 0.9 and uneven.chances.sum() == pytest.approx(1.0)
    assert try_mechanism(send_openly, N_FEATURES, key=KEY).sizes.tolist() == [0.0]
    assert try_mechanism(gaussian(0.1), N_FEATURES, n_clients=16, key=KEY).sizes[0] == pytest.approx(0.4, rel=0.2)


@given(st.integers(0, N_QUERIES - 1), st.floats(0.05, 1.5))
@settings(max_examples=15, deadline=None)
def test_clipping_hides_no_query(query: int, factor: float) -> None:
    rows = federation().queries.rows(query)
    weights = np.zeros(rows.stop - rows.start)
    weights[:3] = (0.025, -0.0125, -0.0125)
    upload = factor * (weights @ federation().queries.features[rows])
    found = guess(prepared(), upload, Noise(np.array([1e-6]), np.ones(1)))
    assert found.queries[0] == query and found.clicked[0] == rows.start


@cache
def prepared() -> Any:
    return prepare_observer(federation().queries, PARAMS)


def test_no_attempt_counts_as_nothing_found() -> None:
    setting = federation()
    always_silent = replace(setting, user=named_user("perfect", n_grades=3), queries=without_relevance(setting.queries))
    found = measure_leak(always_silent, PARAMS, n_trials=5, key=KEY)
    assert found["silent"] == 1.0 and found["query_top1"] == found["query_top1_if_learnt"] == found["clicked_f1"] == 0.0


def without_relevance(queries: QuerySet) -> QuerySet:
    return replace(queries, grades=np.zeros_like(queries.grades))


def test_misuse_is_refused() -> None:
    setting = federation()
    with pytest.raises(ValueError, match="linear rankers only"):
        measure_leak(replace(setting, ranker=MlpRanker(N_FEATURES, 4)), PARAMS, key=KEY)
    with pytest.raises(ValueError, match="n_trials is 1, must be at least 2"):
        measure_leak(setting, PARAMS, n_trials=1, key=KEY)
    with pytest.raises(ValueError, match="n_summed is 0"):
        measure_leak(setting, PARAMS, n_summed=0, key=KEY)
    with pytest.raises(ValueError, match="the attack reads MaxRR of 1 to 4 lists"):
        measure_reward_leak(setting, Evolution(reward="nDCG"), PARAMS, key=KEY)
    wide = replace(setting.queries, features=np.broadcast_to(np.float32(0), (setting.queries.n_documents, 4000)))
    with pytest.raises(ValueError, match=r"need 15\.4 GB, at most 4 GB are allowed"):
        prepare_observer(wide, np.zeros(4000))


def test_a_small_sum_hides_who_asked_but_not_what_was_asked() -> None:
    found = measure_leak(federation(), PARAMS, n_summed=4, n_trials=20, key=KEY)
    assert found["query_top1"] < 0.4 and found["query_of_anyone"] > 0.5
    assert found["query_of_anyone_chance"] < 0.25  # four of 40 queries were issued: 3 standard deviations above .1


def test_success_is_counted_over_all_clients_of_a_sum() -> None:
    def attempt(first_guess: int, *issued: int) -> Attempt:
        nothing = np.empty(0, np.int64)
        truths = tuple(Truth((query,), frozenset(), has_learnt=True) for query in issued)
        return Attempt(Guess(np.array([first_guess]), nothing, nothing), truths, frozenset(), nothing)

    found = count_success([attempt(7, 7, 1), attempt(2, 3, 4), attempt(5, 5, 5)], n_interactions=1)
    assert found["query_top1"] == 3 / 6 and found["query_of_anyone"] == 2 / 3
    # Held against the next round's: 7 in (3, 4), 2 in (5, 5), 5 in (7, 1).
    assert found["query_of_anyone_chance"] == found["query_top1_chance"] == 0.0
