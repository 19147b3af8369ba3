"""How updates become one, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hushrank.aggregation.bulyan import Bulyan
from hushrank.aggregation.centred_clipping import CentredClipping
from hushrank.aggregation.detector import Detector
from hushrank.aggregation.geometric_median import GeometricMedian
from hushrank.aggregation.krum import Krum, MultiKrum
from hushrank.aggregation.median import median_aggregate
from hushrank.aggregation.mixing import Mixing
from hushrank.aggregation.norm_bound import NormBounding
from hushrank.aggregation.tolerance import ASSUMED, BadResultError, assumes_malicious
from hushrank.aggregation.trimmed_mean import TrimmedMean
from hushrank.aggregation.watchful import Watchful
from hushrank.keys import make_method
from hushrank.registry import register
from hushrank.types import Array, Combined, Gathered, Rule

STREAMED = "mean"  # needs one update at a time; every other rule needs all of them at once
# A rule, a function (updates, weights) -> update, or the dataclass of such that differ in their settings
RuleMaker: TypeAlias = Rule | Callable[[Array, Array], Array] | type[Callable[..., Any]]
# {name: rule over all updates}; `register_rule` adds to it
RULES: dict[str, RuleMaker] = {
    "krum": Krum,
    "multi-krum": MultiKrum,
    "trimmed-mean": TrimmedMean,
    "median": median_aggregate,
    "bulyan": Bulyan,
    "geometric-median": GeometricMedian,
    "norm-bound": NormBounding,
    "centred-clipping": CentredClipping,
    "mixing": Mixing,
    "detector": Detector,
    "watchful": Watchful,
}


@dataclass(frozen=True, slots=True)
class Stateless:
    """A rule that remembers nothing and tells nothing: a function of updates and weights."""

    combine: Callable[[Array, Array], Array]

    def __call__(self, gathered: Gathered) -> Combined:
        return Combined(self.combine(gathered.updates, gathered.weights), memory=gathered.memory)


def register_rule(name: str, rule: RuleMaker) -> None:
    """Offer a rule over all updates as `aggregation=name`: a `Rule`, a function (updates, weights), or a dataclass."""
    if not isinstance(rule, type) and count_needed(rule) not in (1, 2):
        raise ValueError(
            f"aggregation={name} takes {count_needed(rule)} parameters, must be 2 (updates, weights) or 1 (gathered: "
            "all that a server has). For settings, make it a dataclass."
        )
    if name == STREAMED:
        raise ValueError(f"aggregation={STREAMED} is taken (the weighted mean): choose another name.")
    register(RULES, name, rule, key="aggregation")


def aggregation_names() -> tuple[str, ...]:
    return (STREAMED, *RULES)


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule under its name, whose result is checked."""

    name: str
    rule: Rule

    @property
    def n_needed(self) -> int:
        """Answers without which a round is lost."""
        return int(getattr(self.rule, "n_needed", 1))

    @property
    def n_proven(self) -> int:
        """Clients from which on something is proven of it; 0: nothing is said."""
        return int(getattr(self.rule, "n_proven", 0))

    @property
    def n_judged(self) -> int:
        """Clients of a round from which on it judges them; 0: nothing is said."""
        return int(getattr(self.rule, "n_judged", 0))

    @property
    def gives_one(self) -> bool:
        """Whether what comes out is one client's update, which the next model shows to everybody."""
        return bool(getattr(self.rule, "gives_one", False))

    @property
    def assumed_malicious(self) -> int:
        """Malicious clients that it reckons with in a round."""
        return int(getattr(self.rule, ASSUMED, 0))

    def count_bytes(self, n: int) -> int:
        """What grows with the square of n clients; copies of the updates are counted by whoever has the updates."""
        count = getattr(self.rule, "count_bytes", None)
        return 0 if count is None else int(count(n))

    def __call__(self, gathered: Gathered) -> Combined:
        n_clients, n_params = gathered.updates.shape
        combined = self.rule(gathered)
        if np.shape(combined.update) != (n_params,) or not np.isfinite(combined.update).all():
            raise BadResultError(
                f"aggregation={self.name} gave {np.shape(combined.update)} numbers or infinities, must be {n_params}."
            )
        if combined.trust is not None and np.shape(combined.trust) != (n_clients,):
            raise BadResultError(
                f"aggregation={self.name} trusts {np.shape(combined.trust)} clients, must be {n_clients}."
            )
        return Combined(
            np.asarray(combined.update),
            {name: float(value) for name, value in combined.evidence.items()},
            {name: np.asarray(array) for name, array in combined.memory.items()},
            None if combined.trust is None else np.asarray(combined.trust),
        )


def find_rule(name: str, *, assumed_malicious: int = 0, **settings: object) -> CheckedRule | None:
    """The rule of this name with these settings; None: the weighted mean, which needs one update at a time.

    Only a rule that has a field `assumed_malicious` is told that number.
    """
    if name == STREAMED:
        return None
    if assumes_malicious(RULES[name]):
        settings[ASSUMED] = assumed_malicious
    return CheckedRule(name, as_rule(make_method(RULES, name, settings)))


def count_needed(method: Callable[..., object]) -> int:
    """Parameters that have no default."""
    return sum(p.default is p.empty for p in inspect.signature(method).parameters.values())


def as_rule(method: Rule | Callable[[Array, Array], Array]) -> Rule:
    """A function of (updates, weights) as a rule; a rule as it is."""
    if count_needed(method) == 2:
        return Stateless(method)  # type: ignore[arg-type] # Why: two parameters make it the function
    return method  # type: ignore[return-value]
