"""Sizes of generated populations, by name: documents and words, users and how they search, lists, clicks, periods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hushrank.personal.log import N_TITLE_WORDS, Periods

WEEK = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class PopulationShape:
    """Everything that a generated population depends on, besides its seed. A user does not depend on n_users."""

    n_users: int = 300
    n_documents: int = 10_000
    n_topics: int = 24
    n_ambiguous: int = 120  # words with several senses
    n_senses: int = 6  # topics of an ambiguous word
    n_topic_words: int = 60  # words of one topic alone
    n_common: int = 200  # words of all topics
    ambiguous_per_title: int = 2
    topic_words_per_title: int = 5
    common_per_title: int = 2
    quality: float = 0.5  # standard deviation of what everybody likes in a document
    mean_topics: float = 2.5  # of a user: 1 / sum of squared shares, on average over the population's sum of squares
    drift: float = 0.3  # part of a user's interests that is replaced between the first and the last day
    median_searches: float = 80.0  # of a user in all weeks
    spread_searches: float = 0.6  # standard deviation of its logarithm
    most_searches: int = 1000
    mean_session: float = 2.5  # searches
    change_of_topic: float = 0.15  # probability within a session
    refinding: float = 0.25  # part of the searches: an earlier query once more, for the document found then
    ambiguous_queries: float = 0.7  # part of the new queries
    more_words: float = 0.1  # probability of each further word of a query, which says more clearly what is meant
    n_candidates: int = 30  # of the general engine's list
    n_short: int = 30  # documents kept of a list outside of the test period
    engine_quality: float = 0.0  # how much the general engine knows of quality, beside BM25
    topic_match: float = 3.0  # utility of a document of the topic that is meant
    coverage: float = 2.5  # utility of a document with all words of the query
    position: float = 0.25  # utility lost for each doubling of the rank
    again: float = 4.0  # utility of a document that is looked for again
    taste: float = 0.6  # scale of the Gumbel noise of the utility
    noise: float = 0.05  # part of the clicks: on any document of the list
    second_click: float = 0.15  # part of the searches with a click on the second best, too
    with_dwell: int = 0  # 1: times on clicked documents are known, and a satisfied click is one of more than 30 seconds
    weeks: float = 13.0
    background_weeks: float = 5.0
    train_part: float = 6.0  # of the weeks after the background: 6:1:1
    validation_part: float = 1.0
    test_part: float = 1.0

    def __post_init__(self) -> None:
        _check_shape(self)

    @property
    def n_words(self) -> int:
        """With padding and unknown words."""
        return 2 + self.n_ambiguous + self.n_topics * self.n_topic_words + self.n_common

    @property
    def title_length(self) -> int:
        return self.ambiguous_per_title + self.topic_words_per_title + self.common_per_title

    @property
    def periods(self) -> Periods:
        """In seconds since the first day."""
        parts = self.train_part + self.validation_part + self.test_part
        rest = self.weeks - self.background_weeks
        ends = (0.0, self.train_part / parts, (self.train_part + self.validation_part) / parts)
        return Periods(*(round((self.background_weeks + rest * end) * WEEK) for end in ends))


def _check_shape(shape: PopulationShape) -> None:
    for claim, holds in {**_claims_of_documents(shape), **_claims_of_users(shape)}.items():
        if not holds:
            raise ValueError(f"{claim}. Change the population's parameters.")


def _claims_of_documents(shape: PopulationShape) -> dict[str, bool]:
    of_topic = shape.n_ambiguous // max(shape.n_topics, 1) * shape.n_senses
    return {
        f"n_topics is {shape.n_topics}, must be at least 1": shape.n_topics >= 1,
        f"n_senses is {shape.n_senses}, must be from 1 to n_topics = {shape.n_topics}": (
            1 <= shape.n_senses <= shape.n_topics
        ),
        f"n_documents is {shape.n_documents}, must be at least 4 per topic": shape.n_documents >= 4 * shape.n_topics,
        f"titles have {shape.title_length} words, must have 1 to {N_TITLE_WORDS}": (
            1 <= shape.title_length <= N_TITLE_WORDS
        ),
        f"a topic has {of_topic} ambiguous words, a title needs {shape.ambiguous_per_title} and at least 1": (
            of_topic >= shape.ambiguous_per_title >= 1
        ),
        f"topic_words_per_title is {shape.topic_words_per_title}, must be from 2 to n_topic_words": (
            shape.n_topic_words >= shape.topic_words_per_title >= 2
        ),
        f"common_per_title is {shape.common_per_title}, must be from 1 to n_common": (
            shape.n_common >= shape.common_per_title >= 1
        ),
        f"quality is {shape.quality}, must not be negative": shape.quality >= 0,
    }


def _claims_of_users(shape: PopulationShape) -> dict[str, bool]:
    parts = (shape.train_part, shape.validation_part, shape.test_part)
    shares = ("drift", "change_of_topic", "refinding", "ambiguous_queries", "more_words", "noise", "second_click")
    return {
        f"n_users is {shape.n_users}, must be from 1 to 2^31": 1 <= shape.n_users <= 2**31,
        f"n_candidates is {shape.n_candidates}, n_short {shape.n_short}: must be n_candidates >= n_short >= 2": (
            shape.n_candidates >= shape.n_short >= 2
        ),
        f"mean_topics is {shape.mean_topics}, must be more than 1": 1 < shape.mean_topics < math.inf,
        f"median_searches is {shape.median_searches}, must be from 1 to most_searches": (
            1 <= shape.median_searches <= shape.most_searches
        ),
        f"mean_session is {shape.mean_session}, must be at least 1": shape.mean_session >= 1,
        **{
            f"{name} is {getattr(shape, name)}, a part, must be from 0 to 1": 0 <= float(getattr(shape, name)) <= 1
            for name in shares
        },
        "spread_searches and taste must not be negative": min(shape.spread_searches, shape.taste) >= 0,
        f"background_weeks is {shape.background_weeks}, must be from 0 to less than weeks = {shape.weeks}": (
            0 <= shape.background_weeks < shape.weeks
        ),
        f"train, validation and test parts are {parts}, must be > 0": min(parts) > 0,
    }


# Why: `personal-like` is the population of the tests and the demo. `aol-like` has what the AOL log has: clicks and BM25
# lists, 5 documents where nothing is measured and 50 in the test. `commercial-like` has the lists that were shown,
# times on documents, six weeks of history and two of experiment [fedps, Section 5.1].
POPULATIONS: Mapping[str, PopulationShape] = MappingProxyType(
    {
        "personal-like": PopulationShape(),
        "aol-like": PopulationShape(n_candidates=50, n_short=5),
        "commercial-like": PopulationShape(
            n_candidates=20, n_short=20, engine_quality=1.0, with_dwell=1, second_click=0.4,
            weeks=8.0, background_weeks=6.0, train_part=4.0, median_searches=60.0,
        ),
    }
)  # fmt: skip
