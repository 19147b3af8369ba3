"""How updates become one, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from hushrank.keys import make_method
from hushrank.registry import register
from hushrank.types import Array, NamedArrays, Rule

STREAMED = "mean"  # needs one update at a time; every other rule needs all of them at once
RuleMaker: TypeAlias = Rule | type[Rule]  # a rule, or the dataclass of rules that differ in their settings
RULES: dict[str, RuleMaker] = {}  # {name: rule over all updates}; `register_rule` adds to it


@dataclass(frozen=True, slots=True)
class Stateless:
    """A rule that remembers nothing and tells nothing: a function of updates and weights."""

    combine: Callable[[Array, Array], Array]

    def __call__(
        self, state: NamedArrays, updates: Array, weights: Array, round: int
    ) -> tuple[NamedArrays, Array, Mapping[str, float]]:
        del round
        return state, self.combine(updates, weights), {}


def register_rule(name: str, rule: RuleMaker | Callable[[Array, Array], Array]) -> None:
    """Offer a rule over all updates as `aggregation=name`: a `Rule`, a dataclass of rules, or (updates, weights)."""
    if not isinstance(rule, type) and count_needed(rule) not in (2, 4):
        raise ValueError(
            f"aggregation={name} takes {count_needed(rule)} parameters, must be 2 (updates, weights) or 4 (state, "
            "updates, weights, round). For settings, make it a dataclass."
        )
    if name == STREAMED:
        raise ValueError(f"aggregation={STREAMED} is taken (the weighted mean): choose another name.")
    register(RULES, name, cast("RuleMaker", rule), key="aggregation")


def aggregation_names() -> tuple[str, ...]:
    return (STREAMED, *RULES)


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule under its name, whose result is checked."""

    name: str
    rule: Rule

    def __call__(
        self, state: NamedArrays, updates: Array, weights: Array, round: int
    ) -> tuple[NamedArrays, Array, dict[str, float]]:
        state, combined, evidence = self.rule(state, updates, weights, round)
        n_params = updates.shape[1]
        if np.shape(combined) != (n_params,) or not np.isfinite(combined).all():
            raise ValueError(
                f"aggregation={self.name} gave {np.shape(combined)} numbers or infinities, must be {n_params}."
            )
        memory = {name: np.asarray(array) for name, array in state.items()}
        return memory, np.asarray(combined), {name: float(value) for name, value in evidence.items()}


def find_rule(name: str, **settings: object) -> CheckedRule | None:
    """The rule of this name with these settings; None: the weighted mean, which needs one update at a time."""
    if name == STREAMED:
        return None
    return CheckedRule(name, as_rule(make_method(RULES, name, settings)))


def count_needed(method: Callable[..., object]) -> int:
    """Parameters that have no default."""
    return sum(p.default is p.empty for p in inspect.signature(method).parameters.values())


def as_rule(method: Rule | Callable[[Array, Array], Array]) -> Rule:
    """A function of (updates, weights) as a rule; a rule as it is."""
    if count_needed(method) == 2:
        return Stateless(method)  # type: ignore[arg-type] # Why: two parameters make it the function
    return method  # type: ignore[return-value]
