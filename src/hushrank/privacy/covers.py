"""Cover queries: a query goes to the search engine among others that its person never thought of [fedps, section 3.2].

A cover has one word for each word of the query, in the same order, and repeats what the query repeats. Which word
stands for a word that titles have is fixed by a secret of the device (`cover_words.py`), whatever else the query says.
Why: a query that is asked again, changed, turned round or made longer has a cover that changes in the same way. With
words drawn for each query anew, the person's texts would be those that have words in common. Order and pauses of the
texts are new each time.

A word that no title has is covered by its letters: by the first word of a row, which the secret fixes, that stands for
no other word of the query. Words without a title are without number, so that two words of a query have the same first
word now and then (3 of 6,000 pairs of a word without and one with a title, of 500 documents). Then a cover is told from
its query by whoever compares it with that of another query without the second word. Why not the same word for both: a
cover that repeats what its query does not is told by itself.

Shapes: n queries of L words, padded with 0; k covers for each; V words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.privacy.cover_topics import FIRST_WORD, CoverTopics
from hushrank.privacy.cover_words import N_TRIES, CoverWords, draw_corpus_words, make_cover_words
from hushrank.streams import ENTROPY, Purpose, draw_uniform, fold_in, stream
from hushrank.types import Array, PrivateQueries

N_COVERS = 1
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
    made: CoverWords,
    words: Sequence[str],
    *,
    longest_pause_s: float = LONGEST_PAUSE_S,
    order_key: Array = ENTROPY,
) -> tuple[PrivateQueries, int]:
    """What to send for one query, and the place of the query itself in it, which stays on the device.

    numbers: [L] of its words; words: of all numbers. order_key: of order and pauses; a seeded one for simulations.
    """
    spelt = dict(zip(text.split(), (int(number) for number in numbers if number), strict=True))
    texts = [text]
    for cover in range(made.n_covers):
        stands_for = _cover_spelt(made, cover, spelt)
        texts.append(" ".join(words[stands_for[word]] for word in text.split()))
    draws = draw_uniform(stream(order_key, Purpose.COVER_ORDER), 2 * len(texts)).astype(np.float64)
    order = np.argsort(draws[: len(texts)], kind="stable")
    pauses = draws[len(texts) :] * longest_pause_s
    pauses[0] = 0.0
    sent = PrivateQueries(
        tuple(texts[place] for place in order), tuple(pauses.tolist()), _WITH_COVERS.format(n=len(texts))
    )
    return sent, int(np.argmin(order))


def _cover_spelt(made: CoverWords, cover: int, spelt: dict[str, int]) -> dict[str, int]:
    """{word: the number of what stands for it}. A word that no title has takes its first try that no other word has."""
    found = {word: int(made.words[cover, number]) for word, number in spelt.items() if number >= FIRST_WORD}
    for word in sorted(spelt.keys() - found.keys()):
        draws = draw_uniform(stream(made.key, cover, _number_letters(word)), N_TRIES)
        tries = draw_corpus_words(made.topics, draws).tolist()
        found[word] = next((each for each in tries if each not in found.values()), tries[0])
    return found


def _number_letters(word: str) -> int:
    """64 bits that hardly any other word has."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")


def send_alone(text: str) -> tuple[PrivateQueries, int]:
    """A query without covers: for a relay that hides who asks, or for nobody's protection."""
    return PrivateQueries((text,), (0.0,), _ALONE), 0


def draw_covers(topics: CoverTopics, queries: Array, *, key: Array, n_covers: int = N_COVERS) -> Array:
    """[n, k, L] int32 words of covers for queries [n, L] of one user, padded with 0; for simulations.

    Here all words that no title has look alike, so what stands for them comes from the whole query and the place.
    """
    made = make_cover_words(topics, key=key, n_covers=n_covers)
    found = made.words[:, queries].swapaxes(0, 1)
    is_unknown = queries == FIRST_WORD - 1
    if is_unknown.any():
        keys = key_queries(made.key, queries)
        for cover in range(n_covers):
            draws = draw_uniform(fold_in(keys, np.asarray(cover)), queries.shape[1])
            found[:, cover] = np.where(is_unknown, draw_corpus_words(topics, draws), found[:, cover])
    return np.ascontiguousarray(found)


def key_queries(key: Array, queries: Array) -> Array:
    """[n, 2] one key for each query [n, L], the same for the same words in any order and with any padding.

    Of a secret (`KeyedEntropy`) ask for one query at a time: it gives one key for all names that are folded in at once.
    """
    words = np.asarray(queries, dtype=np.uint64)
    mixed = (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # wraps
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    codes = np.where(words > 0, mixed ^ (mixed >> np.uint64(29)), np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return fold_in(key, codes)
