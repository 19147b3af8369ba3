"""The keys of recipes and agreements that choose the scoring function."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import at_least, key


@dataclass(frozen=True, kw_only=True)
class RankerKeys:
    """What is learnt."""

    ranker: str = key("linear", "the scoring function: linear or mlp", choices=("linear", "mlp"), alias="name")
    hidden: int = key(64, "mlp: units of the hidden layer", check=at_least(1))
    activation: str = key("sigmoid", "mlp: of the hidden layer, sigmoid or relu", choices=("sigmoid", "relu"))
