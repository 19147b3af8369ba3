"""The JAX twin of `knrm.py`."""

from __future__ import annotations

import jax

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.knrm import Knrm
from hushrank.personal.models.layers_fast import Parts, look_up, score_kernels
from hushrank.personal.models.parameters import WORDS


def score_knrm(
    model: Knrm,  # noqa: ARG001 - all models take the same arguments
    shared: Parts,
    personal: Parts,  # noqa: ARG001
    inputs: PersonalInputs,
    items: jax.Array | None = None,  # noqa: ARG001
    key: jax.Array | None = None,  # noqa: ARG001
) -> jax.Array:
    """[B, D]; twin of `knrm.score_knrm`."""
    query, documents = look_up(shared[WORDS], inputs.query_words), look_up(shared[WORDS], inputs.document_words)
    pairs = {"kernels": (query, documents)}
    return score_kernels(shared, pairs, inputs.query_words > 0, inputs.document_words > 0)[0]
