"""Cover queries: a query goes to the search engine among others that its person never thought of [fedps, section 3.2].

A cover is as long as the query, has words of one topic that the query is not about, and is as clear or as vague: the
entropy of its topics differs from the query's by at most 0.2 nats. Ten are tried; if none will do, the nearest is
taken. Differs: the paper leaves the method open; this is ours.

The words of the covers depend on the key and on the query's words, in any order, and on nothing else. Why: who asks
twice gets the same covers again. With new ones each time, the query would be what both sets have in common. Unknown
words count by their letters: two queries with other words never share covers, or the covers would be what both sets
have in common. On a device the key is a secret of the device (`KeyedEntropy`); order and pauses are new each time.

Shapes: n queries of L words, padded with 0; k covers for each; R tries; T topics.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.privacy.cover_topics import CoverTopics, infer_mix, mix_entropy
from hushrank.streams import ENTROPY, Purpose, draw_uniform, fold_in, stream
from hushrank.types import Array, PrivateQueries

N_COVERS = 1
N_TRIES = 10
MOST_DIFFERENCE = 0.2  # of the entropies of two mixes, in nats
LONGEST_PAUSE_S = 0.3  # between two queries. Why so short: half of the time the person's own comes second
_WITH_COVERS = (
    "no guarantee: among {n} queries in random order the engine is not told which is the person's; who knows the "
    "person, or sees many searches, can guess better than by chance"
)
_ALONE = "no guarantee: the query is sent as it is, and whoever receives it reads it"


@dataclass(frozen=True, slots=True)
class CoverSettings:
    """How a query is hidden."""

    n_covers: int = N_COVERS
    longest_pause_s: float = LONGEST_PAUSE_S

    def __post_init__(self) -> None:
        if not 1 <= self.n_covers <= 20:
            raise ValueError(f"n_covers is {self.n_covers}, must be from 1 to 20. Without covers, use send_alone.")
        if not 0 <= self.longest_pause_s <= 60:
            raise ValueError(f"longest_pause_s is {self.longest_pause_s}, must be from 0 to 60 seconds.")


def cover_query(
    text: str,
    numbers: Array,
    topics: CoverTopics,
    words: Sequence[str],
    *,
    key: Array,
    settings: CoverSettings = CoverSettings(),  # noqa: B008 - frozen
    order_key: Array = ENTROPY,
) -> tuple[PrivateQueries, int]:
    """What to send for one query, and the place of the query itself in it, which stays on the device.

    numbers: [L] of its words; words: of all numbers. order_key: of order and pauses; a seeded one for simulations.
    """
    own = stream(key, *(_number_letters(word) for word in sorted(text.split())))
    covers = draw_covers(topics, np.atleast_2d(numbers), key=own, n_covers=settings.n_covers)[0]
    texts = [text, *(" ".join(words[number] for number in cover if number) for cover in covers)]
    draws = draw_uniform(stream(order_key, Purpose.COVER_ORDER), 2 * len(texts)).astype(np.float64)
    order = np.argsort(draws[: len(texts)], kind="stable")
    pauses = draws[len(texts) :] * settings.longest_pause_s
    pauses[0] = 0.0
    sent = PrivateQueries(
        tuple(texts[place] for place in order), tuple(pauses.tolist()), _WITH_COVERS.format(n=len(texts))
    )
    return sent, int(np.argmin(order))


def _number_letters(word: str) -> int:
    """64 bits that hardly any other word has."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")


def send_alone(text: str) -> tuple[PrivateQueries, int]:
    """A query without covers: for a relay that hides who asks, or for nobody's protection."""
    return PrivateQueries((text,), (0.0,), _ALONE), 0


def draw_covers(topics: CoverTopics, queries: Array, *, key: Array, n_covers: int = N_COVERS) -> Array:
    """[n, k, L] int32 words of covers for queries [n, L], padded with 0."""
    n, length = queries.shape
    keys = key_queries(key, queries)
    found = np.zeros((n, n_covers, length), dtype=np.int32)
    mixes, n_words = infer_mix(topics, queries), np.count_nonzero(queries, axis=1)
    width = max(int(n_words.max(initial=0)), 1)
    for cover in range(n_covers):
        draws = draw_uniform(fold_in(keys, np.asarray(cover)), 1 + N_TRIES * length).astype(np.float64)
        unlike = choose_unlike(topics.shares, mixes, draws[:, 0])
        by_place = draws[:, 1:].reshape(n, length, N_TRIES)[:, :width]  # Why so: padding adds draws behind all others
        tries = _draw_words(topics, unlike, by_place.swapaxes(1, 2), n_words)
        found[:, cover, :width] = tries[np.arange(n), _choose_try(topics, tries, queries, mixes)]
    return found


def key_queries(key: Array, queries: Array) -> Array:
    """[n, 2] one key for each query [n, L], the same for the same words in any order and with any padding.

    Of a secret (`KeyedEntropy`) ask for one query at a time: it gives one key for all names that are folded in at once.
    """
    words = np.asarray(queries, dtype=np.uint64)
    mixed = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # wraps
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    codes = np.where(words > 0, mixed ^ (mixed >> np.uint64(29)), np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return fold_in(stream(key, Purpose.COVER), codes)


def choose_unlike(shares: Array, mixes: Array, draws: Array) -> Array:
    """[n] a topic of the half with the smallest shares in each mix [n, T], by its share in all titles; draws: [n]."""
    order = np.argsort(mixes, axis=1, kind="stable")[:, : mixes.shape[1] // 2]
    heights = np.cumsum(shares[order], axis=1)
    places = (draws[:, None] * heights[:, -1:] > heights).sum(axis=1)
    return np.asarray(order[np.arange(len(order)), np.minimum(places, order.shape[1] - 1)])


def _draw_words(topics: CoverTopics, unlike: Array, draws: Array, n_words: Array) -> Array:
    """[n, R, L] words of the topics [n], as many as each query has."""
    words = np.zeros(draws.shape, dtype=np.int32)
    for topic in np.unique(unlike):
        is_of = unlike == topic
        heights = np.cumsum(topics.words[topic])
        words[is_of] = np.searchsorted(heights, draws[is_of] * heights[-1], side="left")
    return np.where(np.arange(draws.shape[2]) < n_words[:, None, None], words, 0).astype(np.int32)


def _choose_try(topics: CoverTopics, tries: Array, queries: Array, mixes: Array) -> Array:
    """[n] the first try that will do, or the nearest one; a word twice, or one of the query's, counts as far away."""
    n, n_tries, width = tries.shape
    found = mix_entropy(infer_mix(topics, tries.reshape(-1, width))).reshape(n, n_tries)
    ordered = np.sort(tries, axis=2)
    is_odd = ((np.diff(ordered, axis=2) == 0) & (ordered[..., 1:] > 0)).any(axis=2)
    is_odd |= ((tries[..., None] == queries[:, None, None, :]) & (tries > 0)[..., None]).any(axis=(2, 3))
    difference = np.abs(found - mix_entropy(mixes)[:, None]) + np.where(is_odd, 1e3, 0)
    fits = difference <= MOST_DIFFERENCE
    return np.where(fits.any(axis=1), np.argmax(fits, axis=1), np.argmin(difference, axis=1))
