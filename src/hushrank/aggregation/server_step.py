"""What the server does with the aggregated update: add it (FedAvg), or treat its negative as a gradient [reddi2021].

One text for NumPy (a server) and JAX (the simulator): only operators are used. Equal to optax by test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hushrank.types import Array, NamedArrays

DEFAULT_RATES = {"sgd": 1.0, "momentum": 1.0, "adam": 0.001}
_MOMENTUM, _SECOND, _TINY = 0.9, 0.999, 1e-8  # Why: the customary constants, those of Kingma and Ba for Adam
# {optimiser: arrays [n_params] that it remembers}: running means (Adam) or sums (momentum) of updates, of their squares
_MEMORY = {"sgd": (), "momentum": ("first",), "adam": ("first", "second")}


@dataclass(frozen=True, slots=True)
class ServerStep:
    """`sgd` with rate 1 is FedAvg."""

    optimiser: str = "sgd"
    rate: float = 1.0
    fade: int | None = None  # steps over which the rate falls to zero in equal parts; None: it stays

    def __post_init__(self) -> None:
        if self.optimiser not in DEFAULT_RATES:
            raise ValueError(f"server_optimiser is {self.optimiser!r}, must be one of {', '.join(DEFAULT_RATES)}.")
        if not self.rate > 0:
            raise ValueError(f"server_rate is {self.rate}, must be > 0.")
        if self.fade is not None and self.fade < 1:
            raise ValueError(f"fade is {self.fade}, must be at least 1 step.")

    def init(self, params: Any) -> NamedArrays:
        """Nothing remembered yet, no step taken."""
        memory = dict.fromkeys(_MEMORY[self.optimiser], 0.0 * params)
        return {**memory, "n_steps": 0.0 * params[..., :1]}

    def rate_at(self, state: NamedArrays) -> float | Array:
        """Of the next step."""
        return self.rate if self.fade is None else self.rate * (1.0 - state["n_steps"] / self.fade)

    def __call__(self, state: NamedArrays, params: Any, update: Any) -> tuple[NamedArrays, Any]:
        """New state and new parameters [n_params]."""
        n_steps = state["n_steps"] + 1.0
        rate = self.rate_at(state)
        if self.optimiser == "sgd":
            return {**state, "n_steps": n_steps}, params + rate * update
        if self.optimiser == "momentum":
            first = _MOMENTUM * state["first"] + update
            return {**state, "first": first, "n_steps": n_steps}, params + rate * first
        first = _MOMENTUM * state["first"] + (1 - _MOMENTUM) * update
        second = _SECOND * state["second"] + (1 - _SECOND) * update * update
        mean, mean_square = first / (1 - _MOMENTUM**n_steps), second / (1 - _SECOND**n_steps)
        moved = params + rate * mean / (mean_square**0.5 + _TINY)
        return {**state, "first": first, "second": second, "n_steps": n_steps}, moved
