"""Topics of words and documents: clusters of word vectors, found by k-means on the sphere.

Why not LDA: it needs a library and minutes; clusters of word vectors need a few products, and any ranker only wants to
know whether two documents are about the same. A word belongs to the clusters with which it has a cosine above 0, in
proportion to the cube of the cosine: mostly the nearest one, several for a word between topics. A document's mix is the
mean over its words, each weighted by how rare it is. Everything is positive, and a mix has length 1 (its cosine with
another is their product), or is 0 without a known word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.personal.log import FIRST_WORD, PADDING, Collection
from hushrank.personal.vectors import scale_rows
from hushrank.types import Array

N_TOPICS = 40
_ROUNDS = 20
_SHARPNESS = 3
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class TopicSpace:
    """What is known of topics before any user is: the same for everybody, so devices get it with the word vectors."""

    words: Array  # [n_words, n_topics] float32, not negative; 0 for padding and unknown words; a word's weight included
    documents: Array  # [n_documents, n_topics] float32, length 1 or 0

    @property
    def n_topics(self) -> int:
        return int(self.words.shape[1])


def make_topics(collection: Collection, vectors: Array, *, n_topics: int = N_TOPICS) -> TopicSpace:
    """Clusters of the vectors [n_words, d] of `train_vectors`, and the mix of each word and document."""
    is_known = (np.arange(collection.n_words) >= FIRST_WORD) & (vectors != 0).any(axis=1)
    centres = _find_centres(vectors[is_known], collection.document_frequency[is_known], n_topics)
    rarity = np.log1p(collection.n_documents / np.maximum(collection.document_frequency, 1))
    closeness = np.maximum(vectors @ centres.T, 0) ** _SHARPNESS
    shares = closeness / np.maximum(closeness.sum(axis=1, keepdims=True), 1e-12)
    words = np.where(is_known[:, None], shares * rarity[:, None], 0).astype(np.float32)
    documents = np.zeros((collection.n_documents, n_topics), dtype=np.float32)
    for first in range(0, collection.n_documents, _BLOCK):
        documents[first : first + _BLOCK] = mix_words(words, collection.titles[first : first + _BLOCK])
    return TopicSpace(words, documents)


def mix_words(words: Array, texts: Array) -> Array:
    """[n, n_topics] the mix of each row of word numbers [n, length], at length 1 or 0."""
    total = np.zeros((len(texts), words.shape[1]), dtype=np.float32)
    for column in texts.T:  # Why: by places, so that no array has texts x places x topics
        if (column != PADDING).any():
            total += words[column]
    return scale_rows(total)


def _find_centres(vectors: Array, weights: Array, n_topics: int) -> Array:
    """[n_topics, d] at length 1, or 0 where there are fewer words: k-means from a start that needs no draw.

    The first centre is the most frequent word; each next one is the word whose nearest centre is farthest, in terms of
    its frequency's logarithm times the distance.
    """
    if not len(vectors):
        return np.zeros((n_topics, vectors.shape[1]), dtype=np.float32)
    importance = np.log1p(weights)
    chosen = [int(np.argmax(weights))]
    nearest = vectors @ vectors[chosen[0]]
    for _ in range(min(n_topics, len(vectors)) - 1):
        chosen.append(int(np.argmax(importance * (1 - nearest))))
        nearest = np.maximum(nearest, vectors @ vectors[chosen[-1]])
    centres = vectors[chosen]
    for _ in range(_ROUNDS):
        owners = np.argmax(vectors @ centres.T, axis=1)
        sums = np.zeros(centres.shape, dtype=np.float64)
        np.add.at(sums, owners, vectors * importance[:, None])
        moved = scale_rows(sums).astype(np.float32)
        centres = np.where((moved != 0).any(axis=1, keepdims=True), moved, centres)
    return np.concatenate([centres, np.zeros((n_topics - len(centres), vectors.shape[1]), np.float32)])
