"""The documents of a generated population: topics, words with several senses, titles, quality.

Words are numbered: ambiguous ones first, then each topic's own, then the common ones. Ambiguous words come in blocks of
n_topics; within a block a random order of the topics is laid in a circle, and word i has the n_senses topics from place
i on: every topic has the same number of ambiguous words, and no word has a topic twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.personal.bm25 import Bm25Index, make_index
from hushrank.personal.log import FIRST_WORD, N_TITLE_WORDS, Collection, make_collection
from hushrank.personal.shapes import PopulationShape
from hushrank.streams import draw_below, draw_normal, draw_uniform, fold_in, stream
from hushrank.types import Array

_TOPIC, _QUALITY, _SENSES, _WORDS = 1, 2, 3, 4  # what a stream of Purpose.COLLECTION belongs to


@dataclass(frozen=True, slots=True)
class GeneratedDocuments:
    """A collection with what only its maker knows."""

    collection: Collection
    index: Bm25Index
    topics: Array  # [n_documents] int64
    quality: Array  # [n_documents] float64
    ambiguous: Array  # [n_documents, ambiguous_per_title] int32, these words of each title
    own: Array  # [n_documents, topic_words_per_title] int32
    common: Array  # [n_documents, common_per_title] int32
    of_topic: Array  # [n_documents] documents ordered by topic
    topic_starts: Array  # [n_topics + 1] int64, into of_topic


def make_documents(shape: PopulationShape, key: Array) -> GeneratedDocuments:
    """All titles at once."""
    n = shape.n_documents
    # Why: the first documents go round the topics, so that none is empty; the rest are drawn.
    topics = np.concatenate([np.arange(shape.n_topics), draw_below(stream(key, _TOPIC), shape.n_topics, n)])[:n]
    of_document = fold_in(stream(key, _WORDS), np.arange(n))
    senses = _divide_senses(shape, stream(key, _SENSES))
    ambiguous = _choose(senses[topics], shape.ambiguous_per_title, of_document, 1)
    first_own = FIRST_WORD + shape.n_ambiguous
    of_topic = first_own + np.arange(shape.n_topics * shape.n_topic_words).reshape(shape.n_topics, -1)
    own = _choose(of_topic[topics], shape.topic_words_per_title, of_document, 2)
    all_common = first_own + shape.n_topics * shape.n_topic_words + np.arange(shape.n_common)
    common = _choose(np.broadcast_to(all_common, (n, shape.n_common)), shape.common_per_title, of_document, 3)
    titles = np.zeros((n, N_TITLE_WORDS), dtype=np.int32)
    words = np.concatenate([ambiguous, own, common], axis=1)
    titles[:, : shape.title_length] = _choose(words, shape.title_length, of_document, 4)
    collection = make_collection(titles, _name_words(shape))
    return GeneratedDocuments(
        collection=collection,
        index=make_index(collection),
        topics=topics,
        quality=shape.quality * draw_normal(stream(key, _QUALITY), n),
        ambiguous=ambiguous.astype(np.int32),
        own=own.astype(np.int32),
        common=common.astype(np.int32),
        of_topic=np.argsort(topics, kind="stable"),
        topic_starts=np.searchsorted(np.sort(topics), np.arange(shape.n_topics + 1)),
    )


def _choose(values: Array, n: int, keys: Array, name: int) -> Array:
    """[n_documents, n] different ones of each row of values, in random order."""
    draws = draw_uniform(fold_in(keys, np.asarray(name)), values.shape[1])
    return np.take_along_axis(values, np.argsort(draws, axis=1, kind="stable")[:, :n], axis=1)


def _divide_senses(shape: PopulationShape, key: Array) -> Array:
    """[n_topics, k] ambiguous words of each topic, as many as the topic with the fewest has."""
    words = np.arange(shape.n_ambiguous)
    blocks, places = np.divmod(words, shape.n_topics)
    draws = draw_uniform(fold_in(key, np.arange(blocks[-1] + 1)), shape.n_topics)
    circles = np.argsort(draws, axis=1, kind="stable")
    around = (places[:, None] + np.arange(shape.n_senses)) % shape.n_topics
    topics = circles[blocks[:, None], around]  # [n_ambiguous, n_senses]
    rows = [FIRST_WORD + np.flatnonzero((topics == topic).any(axis=1)) for topic in range(shape.n_topics)]
    return np.stack([row[: min(map(len, rows))] for row in rows])


def _name_words(shape: PopulationShape) -> tuple[str, ...]:
    ambiguous = [f"ambiguous{i}" for i in range(shape.n_ambiguous)]
    own = [f"topic{topic}word{i}" for topic in range(shape.n_topics) for i in range(shape.n_topic_words)]
    return ("", "?", *ambiguous, *own, *(f"common{i}" for i in range(shape.n_common)))
