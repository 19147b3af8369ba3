"""A server's new ranker is the one that `round.run_round` makes of the same messages."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from seeds import pick_seed
from suspicious_rule import NAME, Suspicious
from tiny_settings import N_FEATURES, random_queries

from hushrank.aggregation.named import RULES
from hushrank.aggregation.tolerance import assumes_malicious
from hushrank.clicks.named import named_user
from hushrank.federation.cohort import Population
from hushrank.federation.round import Federation, run_round
from hushrank.live.server.arrays import pack_arrays, unpack_arrays
from hushrank.live.server.new_ranker import Body, combine_bodies, first_ranker, next_ranker
from hushrank.live.wire.agreement import Agreement, as_json, make_agreement, parse_agreement
from hushrank.live.wire.bodies import encode_reward, encode_update
from hushrank.live.wire.terms import exchange_of, key_of, ranker_of, rule_of, server_step_of
from hushrank.privacy.banded import sum_errors
from hushrank.types import Array, PrivateReward

N_CLIENTS = 5
SOUND: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 0.5, "n_clients": N_CLIENTS}
METHODS: dict[str, dict[str, Any]] = {
    "plain": {},
    "network, momentum": {"ranker": "mlp", "hidden": 3, "server_optimiser": "momentum"},
    "faded": {"server_fade": True, "rounds": 5},
    "paper": {"privacy": "paper", "epsilon": 4.5, "n_clients": N_CLIENTS},
    "sound": SOUND,
    "sound, laplace, adam": {**SOUND, "mechanism": "laplace", "server_optimiser": "adam"},
    "sound, correlated": {**SOUND, "mechanism": "correlated", "separation": 2},
    "sound, noise of clients": {**SOUND, "placement": "clients", "n_honest": 3},
    "evolution": {"method": "foltr-es"},
    "evolution, network": {"method": "foltr-es", "ranker": "mlp", "antithetic": False},
}


def make(**settings: Any) -> Agreement:
    return make_agreement("library", n_features=N_FEATURES, **settings)


def make_federation(agreement: Agreement) -> Federation:
    """The simulator's federation under the same agreement."""
    population = Population(N_CLIENTS, (agreement.interactions,))
    federation = Federation(
        ranker_of(agreement),
        named_user("perfect", n_grades=3),
        random_queries(1),
        population,
        learning_rate=agreement.learning_rate,
        server_step=server_step_of(agreement),
    )
    return exchange_of(agreement).equip(federation)


def listen(federation: Federation, heard: list[Body]) -> Federation:
    """The federation, whose messages are written down as they would cross the wire."""

    def privatise(learnt: Any, *, key: Array) -> Any:
        message = federation.privatise(learnt, key=key)
        body = encode_reward(message) if isinstance(message, PrivateReward) else encode_update(message)
        heard.append(Body(message.weight, body, len(heard)))
        return message

    return replace(federation, privatise=privatise)


@pytest.mark.parametrize("method", METHODS)
def test_three_rounds_over_the_wire_give_the_ranker_of_the_plain_round(method: str) -> None:
    agreement = make(seed=3, **METHODS[method])
    heard: list[Body] = []
    federation = listen(make_federation(agreement), heard)
    params, state = first_ranker(agreement)
    live, live_state = params, state
    for round in (1, 2, 3):
        heard.clear()
        state, params, _ = run_round(federation, state, params, key=key_of(agreement), round=round)
        live, live_state, _ = next_ranker(agreement, live, live_state, heard, round=round)
        assert live.dtype == np.float32 and live == pytest.approx(params, rel=1e-5, abs=1e-6)
        assert {name for name in live_state if not name.startswith("noise/")} == state.keys()
        for name, part in state.items():
            assert live_state[name] == pytest.approx(part, rel=1e-5, abs=1e-6)
        assert state["optimiser/n_steps"] == [round]
    assert np.any(params)


def test_a_rule_over_the_wire_gives_the_plain_rounds_ranker_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And remembers the same of the same clients."""
    monkeypatch.setitem(RULES, NAME, Suspicious)
    agreement, heard = make(seed=3, aggregation=NAME, patience=1), list[Body]()
    federation = listen(replace(make_federation(agreement), rule=rule_of(agreement)), heard)
    params, state = first_ranker(agreement)
    live, live_state = params, state
    for round in range(1, 16):
        heard.clear()
        state, params, seen = run_round(federation, state, params, key=key_of(agreement), round=round)
        live, live_state, combined = next_ranker(agreement, live, live_state, heard, round=round)
        assert live.tolist() == params.tolist() and live_state.keys() == state.keys()
        assert all(live_state[name].tolist() == part.tolist() for name, part in state.items())
        assert combined is not None and combined.evidence["opposed"] == seen["evidence/opposed"]
    assert combined is not None and combined.trust is not None
    assert 0 < combined.trust.sum() < N_CLIENTS  # somebody pulled against the median


@pytest.mark.randomised
@pytest.mark.parametrize("name", RULES)
def test_every_rule_can_be_agreed_on_and_what_it_remembers_stored(name: str) -> None:
    """Four rounds of twelve clients, one of whom is away in the third, with the memory through the file and without."""
    told = {"assumed_malicious": 2} if assumes_malicious(RULES[name]) else {}
    agreement, chance = make(aggregation=name, **told), np.random.default_rng(pick_seed(3))
    assert parse_agreement(as_json(agreement)) == agreement
    params, state = first_ranker(agreement)
    kept, kept_state = params, state
    for round in range(1, 5):
        clients = [client for client in range(1, 13) if (client, round) != (4, 3)]
        bodies = [Body(4, chance.normal(0.1, 0.1, N_FEATURES).astype("<f4").tobytes(), client) for client in clients]
        params, state, _ = next_ranker(agreement, params, state, bodies, round=round)
        kept, kept_state, combined = next_ranker(agreement, kept, kept_state, bodies, round=round)
        kept_state = unpack_arrays(pack_arrays(kept_state))
        assert kept.tolist() == params.tolist() and np.isfinite(params).all() and combined is not None
        assert state.keys() == kept_state.keys()
        for name, array in state.items():
            assert kept_state[name].dtype == array.dtype and np.array_equal(kept_state[name], array, equal_nan=True)


def test_without_a_seed_the_noise_of_a_sum_cannot_be_repeated() -> None:
    agreement = make(**SOUND)
    nothing = [Body(1.0, np.zeros(N_FEATURES, "<f4").tobytes())] * N_CLIENTS
    once, again = (combine_bodies(agreement, nothing, round=1)[0] for _ in range(2))
    assert once.tolist() != again.tolist()
    spread = np.std([combine_bodies(agreement, nothing, round=1)[0] * N_CLIENTS for _ in range(500)])
    assert spread == pytest.approx(0.05, rel=0.1)  # noise_multiplier * clip_norm; 3,000 draws err by 1.3 %


def test_noise_is_taken_back_by_the_rounds_that_follow() -> None:
    """Eight rounds without an update: the ranker keeps much less noise than they added."""
    agreement = make(**SOUND, mechanism="correlated", separation=8, rounds=8, clip_norm=1.0)
    nothing, ends, steps = [Body(1.0, np.zeros(N_FEATURES, "<f4").tobytes())] * N_CLIENTS, [], []
    for _ in range(100):
        params, state = first_ranker(agreement)
        begun, rankers = params, [params]
        for round in range(1, 9):
            params, state, _ = next_ranker(agreement, params, state, nothing, round=round)
            rankers.append(params)
        ends.append(params - begun)
        steps.append(np.diff(rankers, axis=0))
    assert np.std(ends) == pytest.approx(float(np.std([each[0] for each in steps])) * sum_errors(8, 8)[-1], rel=0.15)
    assert np.std(ends) < 0.65 * np.std(steps) * math.sqrt(8)


def test_weights_count_by_hand() -> None:
    """(1 * 4 + 3 * 0) / 4 = 1 in every coordinate."""
    bodies = [Body(1, np.full(N_FEATURES, 4, "<f4").tobytes()), Body(3, np.zeros(N_FEATURES, "<f4").tobytes())]
    assert combine_bodies(make(), bodies, round=1)[0].tolist() == [1.0] * N_FEATURES


def test_fewer_answers_than_share_the_noise_are_refused() -> None:
    agreement = make(**METHODS["sound, noise of clients"])
    with pytest.raises(ValueError, match="2 clients answered, but the noise was divided among 3"):
        combine_bodies(agreement, [Body(1, np.zeros(N_FEATURES, "<f4").tobytes())] * 2, round=1)


def test_a_fresh_network_is_another_each_time_unless_seeded() -> None:
    network: dict[str, Any] = {"ranker": "mlp", "hidden": 3}
    fresh = [first_ranker(make(**network))[0].tolist() for _ in range(2)]
    seeded = [first_ranker(make(**network, seed=1))[0].tolist() for _ in range(2)]
    assert fresh[0] != fresh[1] and seeded[0] == seeded[1]
    assert not np.any(first_ranker(make(method="foltr-es", **network))[0])
