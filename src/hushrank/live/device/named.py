"""How a device learns, by the name of what it sends."""

from __future__ import annotations

from collections.abc import Callable

from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.live.device.learning import GradientLearning, Learning
from hushrank.live.device.trials import TrialLearning
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.body_formats import body_of
from hushrank.live.wire.terms import exchange_of, price_of, ranker_of

LEARNINGS: dict[str, Callable[..., Learning]] = {
    UpdateExchange.name: GradientLearning,
    Evolution.name: TrialLearning,
}  # {name of the exchange: what a device does for it}


def make_learning(agreement: Agreement) -> Learning:
    exchange = exchange_of(agreement)
    body = body_of(agreement, exchange=exchange)
    return LEARNINGS[exchange.name](agreement, ranker_of(agreement), exchange, body, price_of(agreement))
