"""The network ranker: one hidden layer, any size, ReLU or sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.types import Array, Parameter


@dataclass(frozen=True, slots=True)
class MlpRanker:
    """score(d) = v . h(d W + b), hidden weights and v starting at N(0, 1 / fan_in), b at zero.

    Differs: no bias at the output, because it would move every score alike and change no order.
    """

    n_features: int
    hidden: int = 64
    activation: str = "sigmoid"  # or "relu"
    personal: tuple[str, ...] = ()  # names of the parameters that each client keeps for itself

    def __post_init__(self) -> None:
        if self.activation not in ("sigmoid", "relu"):
            raise ValueError(f"activation is {self.activation!r}, must be sigmoid or relu.")
        if self.hidden < 1:
            raise ValueError(f"hidden is {self.hidden}, must be at least 1.")
        known = [part.name for part in self.parameters]
        if not set(self.personal) <= set(known):
            raise ValueError(f"personal is {list(self.personal)}, must be some of {', '.join(known)}.")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        shapes = {
            "hidden/weights": (self.n_features, self.hidden),
            "hidden/bias": (self.hidden,),
            "output/weights": (self.hidden,),
        }
        return tuple(Parameter(name, shape, name in self.personal) for name, shape in shapes.items())

    def initial(self, normals: Array) -> Array:
        weights, bias, output = self.split(normals)
        parts = (weights / np.sqrt(self.n_features), 0.0 * bias, output / np.sqrt(self.hidden))
        return np.concatenate([part.ravel() for part in parts])

    def split(self, params: Array) -> tuple[Array, Array, Array]:
        """The parts of the flat vector: [n_features, hidden], [hidden], [hidden]."""
        cut = self.n_features * self.hidden
        return (
            params[:cut].reshape(self.n_features, self.hidden),
            params[cut : cut + self.hidden],
            params[cut + self.hidden :],
        )

    def score(self, params: Array, features: Array) -> Array:
        weights, bias, output = self.split(params)
        scores: Array = self._activate(features @ weights + bias)[0] @ output
        return scores

    def score_gradient(self, params: Array, features: Array, weights: Array) -> Array:
        first, bias, output = self.split(params)
        active, slope = self._activate(features @ first + bias)
        back = weights[:, None] * output * slope  # [n, hidden] the chain rule through the hidden layer
        return np.concatenate([(features.T @ back).ravel(), back.sum(axis=0), weights @ active])

    def _activate(self, x: Array) -> tuple[Array, Array]:
        """The hidden layer's values and their slopes."""
        if self.activation == "relu":
            return np.maximum(x, 0), (x > 0).astype(x.dtype)
        value = 0.5 * (1.0 + np.tanh(0.5 * x))  # Why: the sigmoid, written so that it cannot overflow
        return value, value * (1.0 - value)
