"""KNRM: how similar the words of a query and a title are, counted by kernels. It knows no user. [knrm]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.layers import look_up, score_kernels
from hushrank.personal.models.parameters import WORDS, kernel_shapes, matrices
from hushrank.types import Array, NamedArrays, Parameter


@dataclass(frozen=True, slots=True)
class Knrm:
    """score = tanh(w . kernels + b). Shared: all of it. Personal: nothing. It reads no features and no history."""

    name: ClassVar[str] = "knrm"
    n_features: int = 20
    dim: int = 100

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return matrices(kernel_shapes("kernels"))


def score_knrm(model: Knrm, shared: NamedArrays, personal: NamedArrays, inputs: PersonalInputs) -> Array:  # noqa: ARG001 - all models take the same arguments
    """[B, D]; `knrm_fast.py` is the twin."""
    query, documents = look_up(shared[WORDS], inputs.query_words), look_up(shared[WORDS], inputs.document_words)
    return score_kernels(shared, "kernels", query, documents, inputs.query_words > 0, inputs.document_words > 0)[0]
