"""The stages that an agreement names: server and clients make the same ones from it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from hushrank.aggregation.keys import AggregationKeys
from hushrank.aggregation.named import RULES, CheckedRule, find_rule
from hushrank.aggregation.server_step import ServerStep
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import Exchange, UpdateExchange
from hushrank.keys import check_value, keys_of, method_keys, read_value
from hushrank.live.wire.agreement import ERASER, FRESH, Agreement
from hushrank.privacy.banded import count_answers
from hushrank.privacy.named import make_protection
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.protection import Exposure
from hushrank.privacy.renyi import Spend, composed_epsilon
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.named import named_ranker
from hushrank.streams import seed_key, stream
from hushrank.types import Array

SEEDED = "no privacy: seeded, so that its noise can be predicted and nothing is promised"
_REPEAT, _FOLD = 0, 1  # Why: a seeded federation draws what the simulator draws in its first repeat of fold 1


def ranker_of(agreement: Agreement) -> LinearRanker | MlpRanker:
    return named_ranker(
        agreement.ranker,
        n_features=agreement.n_features,
        hidden=agreement.hidden,
        activation=agreement.activation,
    )


def count_params(agreement: Agreement) -> int:
    return sum(part.size for part in ranker_of(agreement).parameters)


def server_step_of(agreement: Agreement) -> ServerStep:
    fade = agreement.rounds if agreement.server_fade else None
    return ServerStep(agreement.server_optimiser, agreement.server_rate, fade)


def rule_of(agreement: Agreement) -> CheckedRule | None:
    """How the server makes one update of all of a round; None: the exchange adds them up. Refuses an unknown rule."""
    check_value(keys_of(AggregationKeys)["aggregation"], agreement.aggregation)
    known = method_keys(RULES, agreement.aggregation)
    given = {name: json.loads(text) for name, text in agreement.others if name in known}
    settings = {name: read_value(known[name], value) for name, value in given.items()}
    return find_rule(agreement.aggregation, assumed_malicious=agreement.assumed_malicious or 0, **settings)


def exchange_of(agreement: Agreement) -> Exchange:
    """What clients send, and what protects it."""
    if agreement.is_evolution:
        return evolution_of(agreement)
    settings = {**asdict(agreement), "weighs_alike": True}  # Why: what an answer costs must not depend on how much
    return UpdateExchange(make_protection(settings, exposure_of(agreement)))


def evolution_of(agreement: Agreement) -> Evolution:
    """How the clients of an evolution strategy try, judge and answer."""
    chosen = {key: getattr(agreement, key) for key in ("reward", "sigma", "antithetic", "p")}
    return Evolution(**chosen, k=agreement.k)


def exposure_of(agreement: Agreement) -> Exposure:
    """How often a client is seen, among how many; every round counts in full: the server knows whom it asked, and
    nobody can vouch for how it chose."""
    return Exposure(
        n_params=count_params(agreement),
        cohort=agreement.n_clients or 1,
        interactions=agreement.interactions,
        rounds=agreement.rounds,
        delta=agreement.delta,
        adjacency=agreement.adjacency or Adjacency.zero_out,
        separation=agreement.separation or 1,
    )


def key_of(agreement: Agreement) -> Array:
    """[2] the key of all draws of a seeded federation: the simulator's own."""
    if agreement.seed is None:
        raise ValueError("this federation has no seed: its draws come from the operating system's entropy.")
    return stream(seed_key(agreement.seed), _REPEAT, _FOLD)


def price_of(agreement: Agreement) -> Spend | None:
    """What one answer costs a client; None: nothing is promised, so no account is kept."""
    if agreement.is_seeded:
        return None
    return exchange_of(agreement).protection.price(exposure_of(agreement))


def relation_of(agreement: Agreement) -> Adjacency:
    """Which two federations `price_of` is about."""
    return exchange_of(agreement).protection.relation(exposure_of(agreement))


def total_epsilon_of(agreement: Agreement) -> float | None:
    """What all rounds together cost a client that answers whenever it may; None: nothing is promised."""
    price = price_of(agreement)
    if price is None or agreement.rounds is None:
        return None
    answers = count_answers(agreement.rounds, agreement.separation or 1)
    return composed_epsilon([replace(price, times=price.times * answers)], delta=agreement.delta)


def forget_method_of(agreement: Agreement) -> str | None:
    """How this federation forgets a client; None: it cannot."""
    if agreement.is_evolution or (agreement.separation or 1) > 1:
        return None
    return agreement.forget_method or (FRESH if agreement.keep_every is None else ERASER)


def guarantee_of(agreement: Agreement) -> str:
    """In words: what protects a client of this federation, and against whom."""
    promised = exchange_of(agreement).protection.promise(exposure_of(agreement))
    return SEEDED if agreement.is_seeded else promised


def message_guarantee_of(agreement: Agreement, guarantee: str) -> str:
    """What protects one answer, in words that its mechanism gave it."""
    return SEEDED if agreement.is_seeded else guarantee
