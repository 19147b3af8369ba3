"""The stages that an agreement names, what an answer costs, and what is promised."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hushrank.aggregation.server_step import ServerStep
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.terms import (
    SEEDED,
    count_params,
    exchange_of,
    guarantee_of,
    key_of,
    price_of,
    ranker_of,
    relation_of,
    server_step_of,
    total_epsilon_of,
)
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.renyi import Spend
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.streams import seed_key, stream


def make(**settings: Any) -> Agreement:
    return make_agreement("library", n_features=46, **settings)


def test_a_plain_federation_has_a_linear_ranker_and_no_protection() -> None:
    agreement = make()
    assert ranker_of(agreement) == LinearRanker(46) and count_params(agreement) == 46
    assert exchange_of(agreement) == UpdateExchange(OpenUpdates())
    assert server_step_of(agreement) == ServerStep("sgd", 1.0)
    assert server_step_of(make(server_fade=True, rounds=7)) == ServerStep("sgd", 1.0, fade=7)
    assert price_of(agreement) is None and total_epsilon_of(agreement) is None
    assert guarantee_of(agreement).startswith("no guarantee: whoever sees this update")


def test_a_network_has_as_many_parameters_as_its_parts() -> None:
    agreement = make(ranker="mlp", hidden=3, activation="relu")
    assert ranker_of(agreement) == MlpRanker(46, 3, "relu") and count_params(agreement) == 46 * 3 + 3 + 3


def test_an_evolution_strategy_pays_for_every_interaction() -> None:
    """MaxRR@10 has 11 values: epsilon = ln(.9 * 10 / .1) = ln 90 of each of 4 interactions in each of 250 rounds."""
    agreement = make(method="foltr-es")
    assert exchange_of(agreement) == Evolution("MaxRR", 0.01, True, 0.9)
    price = price_of(agreement)
    assert price is not None and price.ratio == pytest.approx(math.log(90)) and price.times == 4
    assert total_epsilon_of(agreement) == pytest.approx(math.log(90) * 4 * 250)
    assert "against everybody including the server" in guarantee_of(agreement)
    assert price_of(make(method="foltr-es", privacy="none")) is None


def test_published_noise_costs_what_it_costs() -> None:
    agreement = make(privacy="paper", epsilon=1.2, n_clients=20)
    assert exchange_of(agreement).protection == PaperNoise(1.2, 3.0, 20, weighs_alike=True)
    assert price_of(agreement) == PaperNoise(1.2, 3.0, 20).spend(46)
    assert "as published, epsilon 1.2" in guarantee_of(agreement)


def test_sound_noise_is_accounted_over_all_rounds() -> None:
    """Laplace noise of 4 clip norms costs pure epsilon 1/4 a round, 25 in 100 rounds."""
    agreement = make(privacy="sound", mechanism="laplace", noise_multiplier=4, n_clients=20)
    assert exchange_of(agreement).protection == SoundLaplace(0.1, 4.0)
    assert price_of(agreement) == Spend("laplace", 0.25) and total_epsilon_of(agreement) == pytest.approx(25.0)
    assert "over all 100 rounds: epsilon 25" in guarantee_of(agreement)
    assert "not against the server" in guarantee_of(agreement)


def test_noise_of_clients_is_divided_among_the_honest() -> None:
    settings: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 2, "n_clients": 20, "placement": "clients"}
    agreement = make(**settings, n_honest=10)
    assert exchange_of(agreement).protection == SoundGaussian(0.1, 2.0, "clients", 10)
    assert "as long as 10 clients add their noise honestly" in guarantee_of(agreement)
    with pytest.raises(ValueError, match="n_honest is None, must be at least 1"):
        guarantee_of(make(**settings))


def test_clipping_without_noise_promises_nothing_and_costs_nothing() -> None:
    agreement = make(privacy="sound", noise_multiplier=0, n_clients=20)
    assert price_of(agreement) is None and guarantee_of(agreement).startswith("no guarantee")


def test_a_seeded_federation_draws_as_the_simulator_and_says_so() -> None:
    agreement = make(seed=7)
    assert key_of(agreement).tolist() == stream(seed_key(7), 0, 1).tolist()
    assert guarantee_of(agreement) == SEEDED
    with pytest.raises(ValueError, match="this federation has no seed"):
        key_of(make())


@pytest.mark.parametrize(
    "settings",
    [
        {"privacy": "sound", "epsilon": 1.0, "n_clients": 20},
        {"privacy": "paper", "epsilon": 1.2, "n_clients": 20},
        {"method": "foltr-es"},
    ],
)
def test_a_seeded_federation_promises_nothing_and_names_no_epsilon(settings: dict[str, Any]) -> None:
    agreement = make(**settings, seed=7)
    assert "can be predicted and nothing is promised" in guarantee_of(agreement)
    assert "epsilon" not in guarantee_of(agreement)
    assert price_of(agreement) is None and total_epsilon_of(agreement) is None


def test_what_is_promised_names_its_relation_and_a_replacement_costs_twice() -> None:
    settings: dict[str, Any] = {"privacy": "sound", "n_clients": 20, "noise_multiplier": 8, "mechanism": "laplace"}
    zero, replaced = make(**settings), make(**settings, adjacency="replace-one")
    assert relation_of(zero) == "zero-out" and relation_of(replaced) == "replace-one"
    assert price_of(zero) == Spend("laplace", 1 / 8) and price_of(replaced) == Spend("laplace", 2 / 8)
    assert "while it stays and answers (zero-out)" in guarantee_of(zero) and "epsilon 12.5" in guarantee_of(zero)
    assert "(replace-one)" in guarantee_of(replaced) and "epsilon 25" in guarantee_of(replaced)
    assert "Whether the client takes part, and when it is silent, is not hidden" in guarantee_of(zero)
    assert relation_of(make(method="foltr-es")) == relation_of(make(privacy="paper", epsilon=1.2, n_clients=2))
    for other in ({"method": "foltr-es"}, {"privacy": "paper", "epsilon": 1.2, "n_clients": 2}):
        assert relation_of(make(**other)) == "replace-one" and "(replace-one)" in guarantee_of(make(**other))
