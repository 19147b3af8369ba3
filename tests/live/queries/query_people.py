"""People who search a small engine over HTTP, for tests of the way of a query."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import cache

from hushrank.live.queries.client import CoverMaker, QueryClient
from hushrank.personal.features import FeatureSource, make_source
from hushrank.personal.population import population_named
from hushrank.personal.vectors import train_vectors
from hushrank.privacy.cover_topics import CoverTopics, fit_topics
from hushrank.privacy.covers import CoverSettings
from hushrank.streams import KeyedEntropy, seed_key

FEW = "personal-like:n_users=2,n_documents=300,median_searches=20,seed=5"


@cache
def shared_source() -> FeatureSource:
    collection = population_named(FEW).collection
    return make_source(collection, train_vectors(collection, n_dimensions=20))


@cache
def shared_topics() -> CoverTopics:
    collection = shared_source().collection
    return fit_topics(collection.titles, collection.n_words, key=seed_key(1), n_topics=12)


def cover_maker(person: int = 0, *, n_covers: int = 1) -> CoverMaker:
    """With a secret of the person's device; no pauses to wait for."""
    secret = KeyedEntropy(secret=bytes([person]) * 32)
    settings = CoverSettings(n_covers, longest_pause_s=0.02)
    return CoverMaker(shared_topics(), shared_source().collection.words, secret, settings)  # type: ignore[arg-type] # a key


def make_person(url: str, person: int = 0, *, covered: bool = True, timeout_s: float = 10.0) -> QueryClient:
    """Known to the engine by a cookie."""
    covers = cover_maker(person) if covered else None
    return QueryClient(url, covers=covers, timeout_s=timeout_s, account=f"user=person-{person}")


def a_query(place: int = 0) -> str:
    """Two words of a document, other ones for each place."""
    collection = shared_source().collection
    return " ".join(collection.words[word] for word in collection.titles[place][:2])


def wait_until(is_so: Callable[[], bool], why_not: str) -> None:
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until, why_not
        threading.Event().wait(0.01)
