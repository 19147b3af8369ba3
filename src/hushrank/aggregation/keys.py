"""The keys that say how the server makes a new ranker of updates."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.aggregation.named import RULES, aggregation_names
from hushrank.aggregation.server_step import DEFAULT_RATES
from hushrank.keys import above_zero, key


@dataclass(frozen=True, kw_only=True)
class AggregationKeys:
    """Of recipes: many updates become one."""

    aggregation: str = key("mean", "how updates become one", choices=aggregation_names, methods=RULES, alias="rule")
    assumed_malicious: int | None = key(
        None,
        "malicious clients that a rule reckons with among those asked in a round; default: n_malicious, or in a "
        "sampled cohort its share, rounded up",
    )


@dataclass(frozen=True, kw_only=True)
class ServerStepKeys:
    """Of recipes and agreements: what the server does with that one."""

    server_optimiser: str = key("sgd", "sgd, momentum or adam", choices=tuple(DEFAULT_RATES), alias="optimiser")
    server_rate: float | None = key(None, "default 1; adam .001", check=above_zero, alias="rate")
    server_fade: bool = key(
        False, "let the server's rate fall to zero, round by round: the effect of earlier noise fades", alias="fade"
    )
