"""The JAX twin of `peps.py`; the gradients are derived by JAX rather than by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.layers_fast import (
    Parts,
    add_context,
    combine_scores,
    find_cosine,
    look_up,
    look_up_own,
    run_gru,
    score_features,
    score_kernels,
)
from hushrank.personal.models.parameters import OWN_WORDS, WORDS
from hushrank.personal.models.peps import Peps


def score_peps(
    model: Peps,
    shared: Parts,
    personal: Parts,
    inputs: PersonalInputs,
    items: jax.Array | None = None,  # noqa: ARG001 - all models take the same arguments
    key: jax.Array | None = None,  # noqa: ARG001
) -> jax.Array:
    """[B, D]; twin of `peps.score_peps`."""
    is_word, is_title_word = inputs.query_words > 0, inputs.document_words > 0
    documents = look_up(shared[WORDS], inputs.document_words)
    query = look_up(shared[WORDS], inputs.query_words)
    own_query = look_up_own(shared[WORDS], personal[OWN_WORDS], inputs.query_words, inputs.query_rows)
    around_documents = add_context(shared, "attention/global", documents, is_title_word, heads=model.heads)
    around_query = add_context(shared, "attention/global", query, is_word, heads=model.heads)
    around_own = add_context(shared, "attention/personal", own_query, is_word, heads=model.heads)
    pairs = {
        "kernels/personal": (own_query, documents),
        "kernels/personal-context": (around_own, around_documents),
        "kernels/global": (query, documents),
        "kernels/global-context": (around_query, around_documents),
    }
    kernels = score_kernels(shared, pairs, is_word, is_title_word)
    encoded = run_gru(shared, "encoder", own_query, is_word)
    projected = jnp.sum(documents, axis=2) @ shared["document/weights"]
    matched = find_cosine(encoded[:, None, :], projected)
    return combine_scores(shared, *kernels, matched, score_features(shared, inputs.features))
