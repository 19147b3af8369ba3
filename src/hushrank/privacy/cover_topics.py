"""What queries are about, for cover queries: topics found by LDA on a server, the mix of a query inferred on a device.

`fit_topics` needs scikit-learn [blei2003]. What it finds are plain arrays, which devices get; `infer_mix` uses NumPy
alone. For a query of words w_1, ..., w_n it finds the share of each topic by collapsed variational inference of order
zero [asuncion2009]:

    g_it  in proportion to  p(w_i | t) (a + sum of g_jt over the other words j)
    share_t = (a + sum_i g_it) / (n + a T)

Shapes: T topics, V words (0 is padding, 1 an unknown word), n texts of L words.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from hushrank.extras import require_package
from hushrank.streams import draw_bits
from hushrank.types import Array, NamedArrays

N_TOPICS = 40
FIRST_WORD = 2  # the first two numbers are padding and an unknown word
_FIT_PASSES = 20  # over the titles
_PASSES = 10  # over a query's words
_ROUNDING = 1e-3  # by which shares that came as float32 may miss 1


@dataclass(frozen=True, slots=True)
class CoverTopics:
    """The same for everybody: nothing in it belongs to a user."""

    words: Array  # [T, V] float64, the probability of each word in a topic; 0 for padding and unknown words
    shares: Array  # [T] float64, of each topic in all titles
    prior: float  # a: how many words of each topic a text is thought to have before its words are read

    def __post_init__(self) -> None:
        _check_topics(self)

    @property
    def n_topics(self) -> int:
        return len(self.shares)

    @property
    def version(self) -> str:
        """The same wherever these topics have travelled; another one as soon as any number differs."""
        arrays = self.as_arrays()
        whole = b"".join(repr(arrays[name].shape).encode() + arrays[name].tobytes() for name in sorted(arrays))
        return hashlib.sha256(whole).hexdigest()

    def as_arrays(self) -> NamedArrays:
        """What travels to a device."""
        prior = np.array([self.prior], dtype=np.float32)
        return {"words": self.words.astype(np.float32), "shares": self.shares.astype(np.float32), "prior": prior}


def read_topics(arrays: NamedArrays) -> CoverTopics:
    """What came to a device; refuses what are no topics."""
    missing = {"words", "shares", "prior"} - arrays.keys()
    if missing:
        raise ValueError(f"topics of cover queries lack {', '.join(sorted(missing))}. Take what as_arrays gives.")
    words, shares = (np.asarray(arrays[name], dtype=np.float64) for name in ("words", "shares"))
    return CoverTopics(words, shares, float(np.asarray(arrays["prior"]).ravel()[0]))


def fit_topics(titles: Array, n_words: int, *, key: Array, n_topics: int = N_TOPICS) -> CoverTopics:
    """LDA over titles [n_documents, width] of word numbers. The key is public: no user's data are in here."""
    require_package("sklearn")
    from scipy import sparse
    from sklearn.decomposition import LatentDirichletAllocation

    rows, places = np.nonzero(titles >= FIRST_WORD)
    shape = (len(titles), n_words - FIRST_WORD)
    if not len(rows):
        raise ValueError("topics of cover queries are found in titles, and these have no known word.")
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, titles[rows, places] - FIRST_WORD)), shape=shape)
    seed = int(draw_bits(key, 1)[0])
    model = LatentDirichletAllocation(n_topics, learning_method="batch", max_iter=_FIT_PASSES, random_state=seed)
    found = model.fit(counts).components_  # [T, V - 2] how often a topic gave a word, and a prior
    words = np.zeros((n_topics, n_words))
    words[:, FIRST_WORD:] = found / found.sum(axis=1, keepdims=True)
    return CoverTopics(words, found.sum(axis=1) / found.sum(), float(model.doc_topic_prior_))


def infer_mix(topics: CoverTopics, texts: Array) -> Array:
    """[n, T] the share of each topic in texts [n, L]; those of the prior where no word is known."""
    is_known = (texts >= FIRST_WORD) & (texts < topics.words.shape[1])
    given = topics.words.T[np.where(is_known, texts, 0)]  # [n, L, T]
    parts = _scale(given)
    for _ in range(_PASSES):
        parts = _scale(given * (topics.prior + parts.sum(axis=1, keepdims=True) - parts))
    total = topics.prior + parts.sum(axis=1)
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def mix_entropy(mix: Array) -> Array:
    """[...] in nats, of mixes [..., T]: 0 for a text of one topic, log T for one that could be about anything."""
    return np.asarray(-np.sum(mix * np.log(np.maximum(mix, 1e-300)), axis=-1))


def _scale(parts: Array) -> Array:
    """Each last axis at sum 1, or at 0."""
    sums = parts.sum(axis=-1, keepdims=True)
    return np.divide(parts, sums, out=np.zeros_like(parts), where=sums > 0)


def _check_topics(topics: CoverTopics) -> None:
    words, shares = topics.words, topics.shares
    claims = {
        f"words have shape {words.shape}, must be [n_topics, n_words] with at least 3 words": (
            words.ndim == 2 and words.shape[1] > FIRST_WORD
        ),
        f"shares have shape {shares.shape}, must have one number for each of at least 2 topics": (
            shares.shape == words.shape[:1] and len(shares) > 1
        ),
        f"prior is {topics.prior}, must be above 0": bool(np.isfinite(topics.prior) and topics.prior > 0),
        "words and shares are probabilities: finite, not negative, with sum 1": all(
            bool(np.isfinite(part).all() and (part >= 0).all() and np.allclose(part.sum(axis=-1), 1, atol=_ROUNDING))
            for part in (words, shares)
        ),
        "padding and unknown words have probability 0": words.ndim == 2 and not words[:, :FIRST_WORD].any(),
    }
    for claim, holds in claims.items():
        if not holds:
            raise ValueError(f"topics of cover queries: {claim}. Take what fit_topics gives.")
