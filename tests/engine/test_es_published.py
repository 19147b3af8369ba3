"""FOLtR-ES with the published seeds: the old generator's words, both engines alike, and what sharing a seed does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tiny_settings import random_queries

from hushrank.clicks.named import named_user
from hushrank.engine.es_published_kernel import next_below, next_uniform, start
from hushrank.engine.setting import Method, Setting
from hushrank.engine.simulate import simulate
from hushrank.federation.cohort import Population
from hushrank.federation.evolution import Evolution
from hushrank.learners.es_published import published_order, published_perturbation
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import Dataset, Fold

N_FEATURES = 46
PLAUSIBLE, IMPOSSIBLE = 90.5, 121.5  # chi-square on 46 degrees of freedom is above them with 1e-4 and 1e-8


def test_the_kernel_has_the_words_of_the_old_generator() -> None:
    state, reference = np.empty(625, np.uint32), np.random.RandomState(2**32 - 5)
    start(state, np.uint32(2**32 - 5))
    for bound in [*range(1, 40), 470, 2**20] * 20:  # past the end of the state, more than once
        assert next_below(state, bound) == reference.randint(bound)
        assert next_uniform(state) == reference.uniform()


def test_noise_is_the_old_generators_and_has_the_stated_spread() -> None:
    seeds, order = np.arange(400), published_order(LinearRanker(46).parameters)
    noise = published_perturbation(seeds, 46, sigma=0.01, order=order)
    np.testing.assert_array_equal(noise[7], np.float32(0.01 * np.random.RandomState(7).randn(46)))
    assert abs(noise.std() / 0.01 - 1) < 4 / np.sqrt(2 * noise.size)  # four standard errors


def test_a_networks_noise_is_drawn_unit_by_unit_as_the_published_one_keeps_its_weights() -> None:
    ranker = MlpRanker(3, 2)  # ours: [feature, unit], biases, outputs; published: [unit, feature], biases, outputs
    assert published_order(ranker.parameters).tolist() == [0, 3, 1, 4, 2, 5, 6, 7, 8, 9]


def make_null_setting(variant: str) -> Setting:
    """A world in which every document has the same grade: no list is better than another, and the gradient is 0."""
    splits = [random_queries(seed, n_queries) for seed, n_queries in ((0, 470), (1, 8), (2, 8))]
    wide = [
        replace(split, features=np.random.default_rng(4).random((split.n_documents, N_FEATURES), np.float32))
        for split in splits
    ]
    train = replace(wide[0], grades=np.zeros_like(wide[0].grades))
    dataset = Dataset("null", (Fold(1, train, *wide[1:]),), "none", "null")
    method = Method(LinearRanker(N_FEATURES), Population(50, (4,)), exchange=Evolution(variant=variant))
    users = (("informational", named_user("informational", n_grades=3)),)
    return Setting(dataset, users, method, rounds=1, repeats=300, seed=3, start=(0.0,) * N_FEATURES)


def chi_square(variant: str) -> float:
    """Of the mean estimate of 15,000 clients (300 x 50), all of whose coordinates vary alike."""
    estimates = np.stack([cell.params for cell in simulate(make_null_setting(variant))[0]])  # one step of rate 1 from 0
    return float(len(estimates) * np.sum(estimates.mean(axis=0) ** 2) / np.mean(estimates**2))


def test_one_seed_for_noise_and_clicks_finds_a_gradient_where_there_is_none() -> None:
    """142 as published, 36 with streams of their own."""
    assert chi_square("paper") < PLAUSIBLE
    assert chi_square("published-code") > IMPOSSIBLE
