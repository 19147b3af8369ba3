"""Which word stands for which in cover queries: one table for each cover, fixed by a device's secret and the topics.

Every topic has an unlike one that stands for it: of the half that its words are least about, drawn by the share in all
titles; where others have taken that half, any topic that is left. A word gets a word of the topic that stands for its
own main topic, drawn by the words' shares in that topic, and as clear or as vague: the entropy of its topics differs
from the word's by at most 0.2 nats. Ten are tried; if none will do, the nearest is taken. No word stands for two, so
that a cover never repeats what its query does not repeat; where all ten are taken, the commonest word of the topic that
is left is taken.

Differs: the paper draws a whole cover from one topic that is unlike the whole query, and compares the entropies of the
two. Here topic, draw and comparison are those of each word, because a word's cover must not depend on the words beside
it. The cover of a query of several topics has several topics, too, and one of these may be among the query's.

The version of the topics is part of the key: other topics give other tables throughout. Shapes: k covers, V words
(0 is padding, 1 an unknown word), T topics, R tries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from hushrank.privacy.cover_topics import FIRST_WORD, CoverTopics, infer_mix, mix_entropy
from hushrank.streams import Purpose, draw_uniform, stream
from hushrank.types import Array

N_TRIES = 10
MOST_DIFFERENCE = 0.2  # of the entropies of two mixes, in nats


@dataclass(frozen=True, slots=True)
class CoverWords:
    """How one secret covers words."""

    topics: CoverTopics
    words: Array  # [k, V] int32: what stands for each word; 0 for padding and unknown words
    key: Array = field(repr=False)  # of words that no title has; secret

    @property
    def n_covers(self) -> int:
        return len(self.words)


def make_cover_words(topics: CoverTopics, *, key: Array, n_covers: int) -> CoverWords:
    """key: a secret of the device (`KeyedEntropy`); a seeded one for simulations."""
    n_known = topics.words.shape[1] - FIRST_WORD
    if n_known <= n_covers:
        raise ValueError(
            f"{n_covers} covers of every word need at least {n_covers + 1} words, but these topics know {n_known}. Ask "
            "for fewer covers, or take topics of more titles."
        )
    bound = stream(key, Purpose.COVER, int(topics.version[:16], 16))
    n_words = topics.words.shape[1]
    mixes = infer_mix(topics, np.arange(n_words)[:, None])  # [V, T]
    found = np.zeros((n_covers, n_words), dtype=np.int32)
    for cover in range(n_covers):
        draws = draw_uniform(stream(bound, cover), topics.n_topics + n_words * N_TRIES).astype(np.float64)
        stands_for = pair_topics(topics, mixes, draws[: topics.n_topics])
        unlike = stands_for[np.argmax(mixes, axis=1)]
        tries = _order_tries(topics, mixes, unlike, draws[topics.n_topics :].reshape(n_words, N_TRIES))
        found[cover] = _assign(topics, unlike, tries, found[:cover])
    return CoverWords(topics, found, bound)


def pair_topics(topics: CoverTopics, mixes: Array, draws: Array) -> Array:
    """[T] which topic stands for each one, drawn by shares; mixes: [V, T] of single words; draws: [T].

    No topic stands for two, or for itself.
    """
    likeness, free = topics.words @ mixes, np.ones(topics.n_topics, dtype=bool)
    found = np.full(topics.n_topics, -1)
    for topic in np.argsort(-topics.shares, kind="stable"):
        order = np.argsort(likeness[topic], kind="stable")
        half, left = order[: topics.n_topics // 2], order[free[order] & (order != topic)]
        if not len(left):  # only itself: it changes places with the one that is least like it
            others = np.flatnonzero(found >= 0)
            other = others[np.argmin(likeness[others, topic] + likeness[topic, found[others]])]
            found[topic], found[other] = found[other], topic
            break
        choices = half[free[half]] if free[half].any() else left
        heights = np.cumsum(topics.shares[choices])
        found[topic] = choices[min(np.searchsorted(heights, draws[topic] * heights[-1]), len(choices) - 1)]
        free[found[topic]] = False
    return found


def draw_corpus_words(topics: CoverTopics, draws: Array) -> Array:
    """[...] words by their shares in all titles; draws: [...]."""
    heights = np.cumsum(topics.shares @ topics.words)
    return np.searchsorted(heights, draws.astype(np.float64) * heights[-1], side="left")


def _order_tries(topics: CoverTopics, mixes: Array, unlike: Array, draws: Array) -> Array:
    """[V, R] words of the topics [V]: those that will do as they were drawn, then the others, the nearest first."""
    tries = np.zeros(draws.shape, dtype=np.int64)
    for topic in np.unique(unlike):
        is_of, heights = unlike == topic, np.cumsum(topics.words[topic])
        tries[is_of] = np.searchsorted(heights, draws[is_of] * heights[-1], side="left")
    entropy = mix_entropy(mixes)
    difference = np.abs(entropy[tries] - entropy[:, None])
    order = np.argsort(np.where(difference <= MOST_DIFFERENCE, 0.0, difference), axis=1, kind="stable")
    return np.take_along_axis(tries, order, axis=1)


def _assign(topics: CoverTopics, unlike: Array, tries: Array, earlier: Array) -> Array:
    """[V] one word for each, common words first; never the word itself or what earlier covers [c, V] have for it."""
    n_words = len(tries)
    common = np.argsort(-(topics.shares @ topics.words), kind="stable")
    by_topic = {int(topic): np.argsort(-topics.words[topic], kind="stable").tolist() for topic in np.unique(unlike)}
    begins = dict.fromkeys(by_topic, 0)  # all words of the topic before this place are taken
    is_taken = [True] * FIRST_WORD + [False] * (n_words - FIRST_WORD)
    found = [0] * n_words
    for word in common[common >= FIRST_WORD].tolist():
        topic, barred = int(unlike[word]), {word, *earlier[:, word].tolist()}
        left = by_topic[topic]
        while begins[topic] < n_words and is_taken[left[begins[topic]]]:
            begins[topic] += 1
        wanted = chain(tries[word].tolist(), (left[place] for place in range(begins[topic], n_words)))
        choice = next((each for each in wanted if not is_taken[each] and each not in barred), None)
        if choice is None:  # Why: a few last words may find nothing but themselves
            choice = next(each for each in left if each >= FIRST_WORD and each not in barred)
        found[word], is_taken[choice] = choice, True
    return np.array(found, dtype=np.int32)
