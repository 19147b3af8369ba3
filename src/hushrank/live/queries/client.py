"""The device's side of a search: a query goes out among its covers, and only the query's own list comes back.

What happens, whatever the engine does:

- The person's query and its covers go out in random order with random pauses, each on a connection of its own, with the
  same headers. All of them are read to their end, however early the person's list is there.
- The person waits for the answer to their own query alone. A cover that is refused, late or never answered is counted
  (`n_covers_failed`) and changes nothing.
- If the person's own query fails, `EngineError` says why. Nothing is sent a second time.
- At most 64 questions are under way. More wait for one of them, no longer than its deadline.
- Lists of covers are dropped where they arrive: no caller sees them, and no log holds them.

Nothing is said about a query but what `privacy/covers.py` makes: `PrivateQueries`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushrank.live.device.connector import make_connector
from hushrank.live.queries.fetch import TIMEOUT_S, EngineError, fetch_answer
from hushrank.live.queries.messages import SearchRequest, encode_request, parse_answer
from hushrank.personal.log import N_QUERY_WORDS
from hushrank.personal.queries.local_log import FoundDocument, encode_words
from hushrank.personal.titles import split_words
from hushrank.privacy.cover_topics import CoverTopics
from hushrank.privacy.covers import CoverSettings, cover_query, send_alone
from hushrank.types import Array, PrivateQueries

N_LISTED = 30
_MOST_AT_ONCE = 64  # questions under way. Why: an engine that never answers covers must not fill a device with threads
_Answer = Future[tuple[FoundDocument, ...]]


@dataclass(frozen=True, slots=True)
class CoverMaker:
    """How one device makes covers."""

    topics: CoverTopics
    words: tuple[str, ...]  # of all numbers
    key: Array = field(repr=False)  # a secret of the device (`KeyedEntropy`); a seeded one for simulations
    settings: CoverSettings = CoverSettings()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        if self.topics.words.shape[1] != len(self.words):
            raise ValueError(
                f"topics are of {self.topics.words.shape[1]} words, but {len(self.words)} are named. Take both from "
                "the same collection."
            )


class QueryClient:
    """Asks one search engine, or the relay before it."""

    def __init__(
        self,
        url: str,
        *,
        covers: CoverMaker | None,
        ca: Path | None = None,
        timeout_s: float = TIMEOUT_S,
        account: str | None = None,
    ) -> None:
        """covers: None to send queries alone, as through a relay. account: of an engine that wants one (a cookie)."""
        self._connector = make_connector(url, ca, carries="queries")
        self._covers, self._timeout_s = covers, timeout_s
        self._numbers = {} if covers is None else {word: n for n, word in enumerate(covers.words) if n > 1}
        self._headers = {} if account is None else {"Cookie": account}
        self._room, self._threads = threading.BoundedSemaphore(_MOST_AT_ONCE), set[threading.Thread]()
        self._counting, self.n_covers_sent, self.n_covers_failed = threading.Lock(), 0, 0

    def search(self, text: str, *, n: int = N_LISTED) -> tuple[FoundDocument, ...]:
        """The engine's list for a query, in the engine's order.

        The query is sent as its first 20 words in small letters: covers have no capitals and no signs either.
        """
        query = normalise_query(text)
        sent, own = self._hide(query)
        answers: list[_Answer] = [Future() for _ in sent.texts]
        self._send(sent, answers, own=own, n=n)
        return answers[own].result()

    def close(self) -> None:
        """Wait until every cover has been sent and answered, or has failed."""
        for thread in tuple(self._threads):
            thread.join()

    def _hide(self, query: str) -> tuple[PrivateQueries, int]:
        if self._covers is None:
            return send_alone(query)
        numbers = np.array(encode_words(query, self._numbers, most=N_QUERY_WORDS), dtype=np.int32)
        made = self._covers
        return cover_query(query, numbers, made.topics, made.words, key=made.key, settings=made.settings)

    def _send(self, sent: PrivateQueries, answers: list[_Answer], *, own: int, n: int) -> None:
        """Each at its time, in a thread of its own. Why not as daemons: a process that ends would send half of it."""
        at = time.monotonic()
        for place, (text, pause) in enumerate(zip(sent.texts, sent.pauses_s, strict=True)):
            at += pause
            body = encode_request(SearchRequest(text, n))
            finish = self._finish_own(answers[place], n) if place == own else self._finish_cover
            thread = threading.Thread(target=self._ask, args=(at, body, finish), name="query")
            self._threads.add(thread)
            thread.start()

    def _ask(self, at: float, body: bytes, finish: Callable[[bytes | EngineError], None]) -> None:
        try:
            time.sleep(max(at - time.monotonic(), 0.0))
            with self._room:
                answer = fetch_answer(self._connector, body, timeout_s=self._timeout_s, headers=self._headers)
            finish(answer)
        except EngineError as error:
            finish(error)
        except Exception as error:  # Why: whoever waits for the answer must hear of it
            finish(EngineError(f"the search failed ({type(error).__name__})."))
        finally:
            self._threads.discard(threading.current_thread())

    def _finish_own(self, waiting: _Answer, n: int) -> Callable[[bytes | EngineError], None]:
        def finish(answer: bytes | EngineError) -> None:
            if isinstance(answer, EngineError):
                waiting.set_exception(answer)
                return
            try:
                waiting.set_result(parse_answer(answer, n=n))
            except ValueError as error:
                said = f"{self._connector.url} gave an answer that cannot be read: {error}."
                waiting.set_exception(EngineError(said))

        return finish

    def _finish_cover(self, answer: bytes | EngineError) -> None:
        """Nothing of the list is kept."""
        with self._counting:
            self.n_covers_sent += 1
            self.n_covers_failed += isinstance(answer, EngineError)


def normalise_query(text: str) -> str:
    """Words in small letters, at most 20; refuses a text without any."""
    words = split_words(text)[:N_QUERY_WORDS]
    if not words:
        raise ValueError("there is no word in the query. Type at least one.")
    return " ".join(words)
