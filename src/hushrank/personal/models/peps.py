"""PEPS: personal word vectors tell what a user means by a word [peps; fedps, section 3.3.1].

This is what runs on devices: scores and their gradients in NumPy. `peps_fast.py` is the twin for the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.layers import (
    BackNamed,
    BackPairNamed,
    Gradients,
    add_context,
    add_rows,
    find_cosine,
    flat,
    look_up,
    look_up_own,
    run_gru,
    score_kernels,
    score_linear,
)
from hushrank.personal.models.parameters import (
    OWN_WORDS,
    WORDS,
    attention_shapes,
    gru_shapes,
    kernel_shapes,
    matrices,
)
from hushrank.types import Array, NamedArrays, Parameter

# The four kernel scores: which vectors of the query are held against which of the document.
KERNELS = {
    "personal": ("own", "documents"),
    "personal-context": ("around_own", "around_documents"),
    "global": ("query", "documents"),
    "global-context": ("around_query", "around_documents"),
}


@dataclass(frozen=True, slots=True)
class Peps:
    """score = w . (four kernel scores, cosine of query and document, features) [fedps, Eq. 1].

    Shared: global word vectors and everything that computes. Personal: the vectors of the words of the user's queries.
    Differs: personal queries are held against global documents, as in the published code; no query reformulation; no
    layer norm after attention, because only cosines read what it gives; no bias at the end, which changes no order.
    """

    name: ClassVar[str] = "peps"
    n_features: int = 20
    dim: int = 100
    heads: int = 8
    head_size: int = 50
    encoded: int = 100  # numbers of the query vector that the recurrent unit gives

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        attention = {
            name: shape
            for which in ("global", "personal")
            for name, shape in attention_shapes(
                f"attention/{which}", dim=self.dim, heads=self.heads, head_size=self.head_size
            ).items()
        }
        kernels = {name: shape for which in KERNELS for name, shape in kernel_shapes(f"kernels/{which}").items()}
        shared = {
            **attention,
            **kernels,
            **gru_shapes("encoder", n_in=self.dim, n_out=self.encoded),
            "document/weights": (self.dim, self.encoded),
            "features/weights": (self.n_features, 1),
            "features/bias": (1,),
            "combine/weights": (len(KERNELS) + 2, 1),
        }
        return (*matrices(shared), Parameter(OWN_WORDS, (0, self.dim), is_personal=True))


class PepsGradients(NamedTuple):
    """How a weighted sum of scores grows with the parameters."""

    shared: Gradients
    personal: Gradients


PepsBack = Callable[[Array], PepsGradients]


def score_peps(model: Peps, shared: NamedArrays, personal: NamedArrays, inputs: PersonalInputs) -> Array:
    """[B, D]"""
    return trace_peps(model, shared, personal, inputs)[0]


def trace_peps(
    model: Peps, shared: NamedArrays, personal: NamedArrays, inputs: PersonalInputs, *, trains_words: bool = False
) -> tuple[Array, PepsBack]:
    """Scores [B, D], and a function from weights [B, D] to the gradients of the weighted sum of scores."""
    lower, back_lower = trace_lower(shared, personal, inputs, trains_words=trains_words)
    scores, back_upper = trace_upper(model, shared, lower)

    def back(g: Array) -> PepsGradients:
        found, g_lower = back_upper(g)
        below = back_lower(g_lower)
        return PepsGradients({**found, **below.shared}, below.personal)

    return scores, back


class LowerValues(NamedTuple):
    """What the lower layers give to the upper ones: all that these see of a search."""

    query: Array  # [B, Lq, d] global vectors of the query's words
    own: Array  # [B, Lq, d] personal vectors of the same words, global ones where there are none
    documents: Array  # [B, D, Ld, d] global vectors of the candidates' words
    featured: Array  # [B, D] one number of a candidate's features
    is_word: Array  # [B, Lq]
    is_title_word: Array  # [B, D, Ld]


class LowerGradients(NamedTuple):
    """How a weighted sum of scores grows with what the lower layers give."""

    query: Array
    own: Array
    documents: Array
    featured: Array


def trace_lower(
    shared: NamedArrays, personal: NamedArrays, inputs: PersonalInputs, *, trains_words: bool = False
) -> tuple[LowerValues, Callable[[LowerGradients], PepsGradients]]:
    """The input layers: word vectors and the layer of features. They alone read the log and the profile."""
    featured, back_featured = score_linear(shared, "features", inputs.features)
    values = LowerValues(
        look_up(shared[WORDS], inputs.query_words),
        look_up_own(shared[WORDS], personal[OWN_WORDS], inputs.query_words, inputs.query_rows),
        look_up(shared[WORDS], inputs.document_words),
        featured,
        inputs.query_words > 0,
        inputs.document_words > 0,
    )

    def back(g: LowerGradients) -> PepsGradients:
        return _gather_words(g, back_featured(g.featured)[1], shared, personal, inputs, trains_words=trains_words)

    return values, back


def trace_upper(
    model: Peps, shared: NamedArrays, lower: LowerValues
) -> tuple[Array, Callable[[Array], tuple[Gradients, LowerGradients]]]:
    """Everything above the input layers. They read neither words nor features, but vectors and scores of these."""
    texts, back_texts = _add_contexts(model, shared, lower)
    traced = [
        score_kernels(shared, f"kernels/{name}", texts[query], texts[documents], lower.is_word, lower.is_title_word)
        for name, (query, documents) in KERNELS.items()
    ]
    matched, back_matched = _match_encoded(shared, texts, lower.is_word)
    combined = np.stack([*(score for score, _ in traced), matched, lower.featured], axis=-1)

    def back(g: Array) -> tuple[Gradients, LowerGradients]:
        each = g[..., None] * shared["combine/weights"][:, 0]
        found = {"combine/weights": flat(combined).T @ g.reshape(-1, 1)}
        g_texts = {name: np.zeros_like(text) for name, text in texts.items()}
        _add_kernels(found, g_texts, [one for _, one in traced], each)
        g_own, g_documents, of_match = back_matched(each[..., -2])
        g_texts["own"] += g_own
        g_texts["documents"] += g_documents
        found.update(of_match)
        found.update(back_texts(g_texts))
        return found, LowerGradients(g_texts["query"], g_texts["own"], g_texts["documents"], each[..., -1])

    return (combined @ shared["combine/weights"])[..., 0], back


def _add_contexts(
    model: Peps, shared: NamedArrays, lower: LowerValues
) -> tuple[dict[str, Array], Callable[[dict[str, Array]], Gradients]]:
    """The word vectors of queries and documents, alone and in context; back adds what reaches words through context."""
    texts = {"query": lower.query, "own": lower.own, "documents": lower.documents}
    backs: dict[str, BackNamed] = {}
    for text, which, is_item in (
        ("query", "global", lower.is_word),
        ("own", "personal", lower.is_word),
        ("documents", "global", lower.is_title_word),
    ):
        texts[f"around_{text}"], backs[text] = add_context(
            shared, f"attention/{which}", texts[text], is_item, heads=model.heads
        )

    def back(g_texts: dict[str, Array]) -> Gradients:
        total: Gradients = {}
        for text, back_text in backs.items():
            g_text, found = back_text(g_texts[f"around_{text}"])
            g_texts[text] += g_text
            for name, gradient in found.items():
                total[name] = total[name] + gradient if name in total else gradient
        return total

    return texts, back


def _match_encoded(shared: NamedArrays, texts: NamedArrays, is_word: Array) -> tuple[Array, BackPairNamed]:
    """[B, D] cosine of the query vector that a recurrent unit makes and the projected sum of a document's words."""
    encoded, back_encoded = run_gru(shared, "encoder", texts["own"], is_word)
    summed = texts["documents"].sum(axis=2)
    projected = summed @ shared["document/weights"]
    matched, back_matched = find_cosine(np.broadcast_to(encoded[:, None, :], projected.shape), projected)

    def back(g: Array) -> tuple[Array, Array, Gradients]:
        g_encoded, g_projected = back_matched(g)
        g_own, found = back_encoded(g_encoded.sum(axis=1))
        found["document/weights"] = flat(summed).T @ flat(g_projected)
        g_summed = g_projected @ shared["document/weights"].T
        return g_own, np.broadcast_to(g_summed[:, :, None, :], texts["documents"].shape), found

    return matched, back


def _add_kernels(found: Gradients, g_texts: dict[str, Array], backs: list[BackPairNamed], each: Array) -> None:
    for k, ((query, documents), back) in enumerate(zip(KERNELS.values(), backs, strict=True)):
        g_query, g_documents, of_kernel = back(each[..., k])
        g_texts[query] += g_query
        g_texts[documents] += g_documents
        found.update(of_kernel)


def _gather_words(
    g: LowerGradients,
    found: Gradients,
    shared: NamedArrays,
    personal: NamedArrays,
    inputs: PersonalInputs,
    *,
    trains_words: bool,
) -> PepsGradients:
    """From vectors in texts to the rows of the two tables of word vectors."""
    is_own = inputs.query_rows >= 0
    own = add_rows(len(personal[OWN_WORDS]), inputs.query_rows, g.own)
    if trains_words:
        n_words = len(shared[WORDS])
        of_texts = (
            (np.where(inputs.query_words > 0, inputs.query_words, -1), g.query),
            (np.where((inputs.query_words > 0) & ~is_own, inputs.query_words, -1), g.own),
            (np.where(inputs.document_words > 0, inputs.document_words, -1), g.documents),
        )
        found[WORDS] = np.sum([add_rows(n_words, words, gradient) for words, gradient in of_texts], axis=0)
    return PepsGradients(found, {OWN_WORDS: own})
