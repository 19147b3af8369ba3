"""How updates become one, by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushrank.aggregation.mean import mean_aggregate
from hushrank.registry import register
from hushrank.types import Array, PrivateUpdate, Rule

STREAMED = "mean"  # needs one update at a time; every other rule needs all of them at once
RULES: dict[str, Rule] = {}  # {name: rule over all updates}; `register_rule` adds to it


def register_rule(name: str, rule: Rule) -> None:
    """Offer a rule over all updates as `aggregation=name`."""
    if name == STREAMED:
        raise ValueError(f"aggregation={STREAMED} is taken (the weighted mean): choose another name.")
    register(RULES, name, rule, key="aggregation")


def aggregation_names() -> tuple[str, ...]:
    return (STREAMED, *RULES)


def aggregate_by(
    name: str, updates: Sequence[PrivateUpdate], *, n_params: int, key: Array | None = None, round: int | None = None
) -> Array:
    """[n_params] one update of those that arrived. Nothing is drawn, whatever the key and the round."""
    del key, round
    if name == STREAMED:
        return mean_aggregate(updates, n_params=n_params)
    combined = RULES[name](np.stack([u.delta for u in updates]), np.array([u.weight for u in updates]))
    if np.shape(combined) != (n_params,) or not np.isfinite(combined).all():
        raise ValueError(f"aggregation={name} gave {np.shape(combined)} numbers or infinities, must be {n_params}.")
    return np.asarray(combined)
