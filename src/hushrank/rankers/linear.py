"""The linear ranker: a document's score is the inner product of its features with the parameters."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.types import Array, Parameter


@dataclass(frozen=True, slots=True)
class LinearRanker:
    """score(d) = w . d, starting at w = 0 (no bias: it would move every score alike and change no order)."""

    n_features: int
    personal: tuple[str, ...] = ()  # names of the parameters that each client keeps for itself

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (Parameter("weights", (self.n_features,), "weights" in self.personal),)

    def initial(self, normals: Array) -> Array:
        return 0.0 * normals

    def score(self, params: Array, features: Array) -> Array:
        scores: Array = features @ params
        return scores

    def score_gradient(self, params: Array, features: Array, weights: Array) -> Array:  # noqa: ARG002 - the slope is the same everywhere
        gradient: Array = weights @ features
        return gradient
