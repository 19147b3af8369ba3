"""Random searches of made-up users in tiny arrays, and tiny models, for tests of personalised search."""

from __future__ import annotations

import jax
import numpy as np

from hushrank.personal.inputs import HistoryTable, PersonalInputs, find_own_rows
from hushrank.personal.models.named_fast import named_model, score_searches
from hushrank.personal.models.parameters import PersonalModel, initial_personal, initial_shared
from hushrank.streams import seed_key
from hushrank.types import Array

N_WORDS, N_OWN, N_FEATURES, DIM = 30, 8, 3, 6
SIZES: dict[str, int] = {"n_features": N_FEATURES, "dim": DIM}
SMALL = {
    "knrm": SIZES,
    "peps": {**SIZES, "heads": 2, "head_size": 3, "encoded": 5},
    "hrnn": {**SIZES, "hidden": 5},
    "htps": {**SIZES, "heads": 2, "head_size": 3, "inner": 7},
}


def draw_words(rng: np.random.Generator, *shape: int) -> Array:
    """Texts of 1 to all words, padded with 0; some words are unknown."""
    words = rng.integers(1, N_WORDS, shape)
    lengths = rng.integers(1, shape[-1] + 1, shape[:-1])
    return np.where(np.arange(shape[-1]) < lengths[..., None], words, 0).astype(np.int32)


def draw_inputs(seed: int, n_queries: int = 4, n_documents: int = 5, n_history: int = 9) -> PersonalInputs:
    """One user; every search has at least two candidates, one of them clicked and one not."""
    rng = np.random.default_rng(seed)
    query_words = draw_words(rng, n_queries, 3)
    n_listed = rng.integers(2, n_documents + 1, n_queries)
    is_document = np.arange(n_documents) < n_listed[:, None]
    is_clicked = is_document & (rng.random(is_document.shape) < 0.3)
    is_clicked[:, 0], is_clicked[:, 1] = rng.random(n_queries) < 0.5, False
    is_clicked[~is_clicked.any(axis=1), 0] = True
    n_before = np.sort(rng.integers(0, n_history + 1, n_queries)).astype(np.int32)
    sessions = np.sort(rng.integers(0, 4, n_history)).astype(np.int32)
    n_long = np.array([np.searchsorted(sessions, sessions[n - 1]) if n else 0 for n in n_before], dtype=np.int32)
    own = np.unique(query_words[query_words > 1])[:N_OWN]
    return PersonalInputs(
        query_words=query_words,
        query_rows=find_own_rows(own, query_words),
        document_words=np.where(is_document[..., None], draw_words(rng, n_queries, n_documents, 4), 0).astype(np.int32),
        is_document=is_document,
        features=np.where(is_document[..., None], rng.normal(size=(n_queries, n_documents, N_FEATURES)), 0).astype(
            "f4"
        ),
        is_clicked=is_clicked,
        is_query=np.ones(n_queries, bool),
        n_long=n_long,
        n_before=n_before,
        history=HistoryTable(draw_words(rng, n_history, 3), draw_words(rng, n_history, 4), sessions),
    )


def draw_vectors(seed: int) -> Array:
    """[N_WORDS, DIM] float32; padding has vector zero."""
    vectors = np.random.default_rng(seed).normal(size=(N_WORDS, DIM)).astype(np.float32)
    vectors[0] = 0
    return vectors


def make_model(name: str, seed: int = 1) -> tuple[PersonalModel, dict[str, Array], dict[str, Array]]:
    """A tiny model, shared parameters, and personal ones that have moved away from the global vectors."""
    model, vectors = named_model(name, **SMALL[name]), draw_vectors(seed)
    shared = initial_shared(model, vectors, key=seed_key(seed))
    own = initial_personal(model, vectors[2 : 2 + N_OWN], n_own=N_OWN)
    rng = np.random.default_rng(seed)
    return model, shared, {name: part + rng.normal(size=part.shape).astype("f4") for name, part in own.items()}


score_fast = jax.jit(score_searches, static_argnums=0)
