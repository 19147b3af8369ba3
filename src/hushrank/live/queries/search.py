"""A whole personal search on a device: ask, re-rank, and write down what was shown and clicked.

    mine = PersonalSearch(client, ranker, history)         # history: what the application has stored
    found = mine.search("two words")                       # found.shown: in this person's order
    mine.finish(found, clicked=["d17"])                    # the new entry of the log, to be stored

Only the person's own query is ever written down; covers leave no trace on the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from hushrank.live.queries.client import N_LISTED, QueryClient
from hushrank.live.queries.messages import normalise_query
from hushrank.personal.queries.local_log import FoundDocument, LoggedSearch
from hushrank.personal.queries.rerank import PersonalRanker


class PersonalResults(NamedTuple):
    """What one search found."""

    time: int
    query: str
    general: tuple[FoundDocument, ...]  # as the engine ordered them
    shown: tuple[FoundDocument, ...]  # as this person should see them


class PersonalSearch:
    """One person's searches."""

    def __init__(
        self,
        client: QueryClient,
        ranker: PersonalRanker,
        history: Iterable[LoggedSearch] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.client, self.ranker, self.history, self._clock = client, ranker, list(history), clock

    def search(self, text: str, *, n: int = N_LISTED) -> PersonalResults:
        general = self.client.search(text, n=n)
        now = max(int(self._clock()), self.history[-1].time if self.history else 0)  # Why: clocks are set back
        query = normalise_query(text)
        order = self.ranker.rank(self.history, query, general, time=now)
        return PersonalResults(now, query, general, tuple(general[place] for place in order))

    def finish(self, found: PersonalResults, *, clicked: Iterable[str] = ()) -> LoggedSearch:
        """What to remember of a search; refuses clicks on what was not listed."""
        names, chosen = tuple(document.name for document in found.shown), tuple(clicked)
        if not set(chosen) <= set(names):
            raise ValueError("a click on a document that was not listed. Log clicks on listed ones only.")
        entry = LoggedSearch(found.time, found.query, found.general, names, chosen)
        self.history.append(entry)
        self.history.sort(key=lambda each: each.time)
        return entry
