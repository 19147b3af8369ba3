"""The device's side of a search: a query goes out among its covers, and only the query's own list comes back.

What happens, whatever the engine does:

- The person's query and its covers go out in random order with random pauses, each on a connection of its own, with the
  same headers. All of them are read to their end.
- The list comes once every text of the set is answered. If one of them is refused, late or answered with what is no
  list, the search fails, with the same `EngineError` whichever text it was. Why: a person who searches again after a
  failure, and not after a failed cover, would tell the engine which text is theirs.
- Nothing is sent before all that it takes to send the whole set is ready: one text alone is never sent for want of it.
- Nothing is sent a second time. Who searches again sends the whole set again.
- A search whose texts an engine must refuse (too long, a wrong n) raises ValueError before anything is sent.
- At most 64 texts are under way. A set has places for all its texts before the first is sent, or waits for them, no
  longer than its deadline.
- Lists of covers are dropped where they arrive: no caller sees them, and no log holds them.

Nothing is said about a query but what `privacy/covers.py` makes: `PrivateQueries`.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np

from hushrank.live.device.connector import make_connector
from hushrank.live.device.deadlines import WATCHDOG
from hushrank.live.queries.fetch import TIMEOUT_S, EngineError, fetch_answer
from hushrank.live.queries.messages import SearchRequest, encode_request, normalise_query, parse_answer
from hushrank.personal.log import N_QUERY_WORDS
from hushrank.personal.queries.local_log import FoundDocument, encode_words
from hushrank.privacy.cover_topics import CoverTopics
from hushrank.privacy.cover_words import CoverWords, make_cover_words
from hushrank.privacy.covers import CoverSettings, cover_query, send_alone
from hushrank.types import Array, PrivateQueries

N_LISTED = 30
_MOST_AT_ONCE = 64  # texts under way. Why: an engine that never answers must not fill a device with threads
_MOST_ACCOUNT = 4096  # letters
_Answer = Future[tuple[FoundDocument, ...]]
_Beginning = Future[float]  # when the first text of a set is due; cancelled: nothing of it is sent


@dataclass(frozen=True, slots=True)
class CoverMaker:
    """How one device makes covers."""

    topics: CoverTopics
    words: tuple[str, ...]  # of all numbers
    key: Array = field(repr=False)  # a secret of the account (`KeyedEntropy`); a seeded one for simulations
    settings: CoverSettings = CoverSettings()  # noqa: RUF009 - frozen
    version: str | None = None  # of the topics that this device has used so far; None: any
    made: CoverWords = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.topics.words.shape[1] != len(self.words):
            raise ValueError(
                f"topics are of {self.topics.words.shape[1]} words, but {len(self.words)} are named. Take both from "
                "the same collection."
            )
        if self.version not in (None, self.topics.version):
            raise ValueError(
                "these topics are not those that this device has used so far. With other topics every query has other "
                "covers, which tells an engine that remembers which queries are the person's. Keep the topics of the "
                "device, or leave version out to change them on purpose."
            )
        made = make_cover_words(self.topics, key=self.key, n_covers=self.settings.n_covers)
        object.__setattr__(self, "made", made)


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
        self._headers = {} if account is None else {"Cookie": check_account(account)}
        self._places, self._threads = _Places(_MOST_AT_ONCE), set[threading.Thread]()
        self._counting, self.n_sent, self.n_failed = threading.Lock(), 0, 0  # texts, queries and covers alike

    def search(self, text: str, *, n: int = N_LISTED) -> tuple[FoundDocument, ...]:
        """The engine's list for a query, in the engine's order, once all texts that were sent are answered.

        The query is sent as its first 20 words in small letters: covers have no capitals and no signs either.
        """
        sent, own = self._hide(normalise_query(text))
        bodies = [encode_request(SearchRequest(each, n)) for each in sent.texts]
        if not self._places.take(len(bodies), timeout_s=self._timeout_s):
            raise EngineError("too many searches of this device are under way. Search again later.")
        answers: list[_Answer] = [Future() for _ in bodies]
        self._send(bodies, sent.pauses_s, answers, n=n)
        wait(answers)
        for answer in answers:  # Why all, in the order of sending: which of them failed must make no difference
            answer.result()
        return answers[own].result()

    def close(self) -> None:
        """Wait until every text of a search that was interrupted has been sent and answered, or has failed."""
        for thread in tuple(self._threads):
            thread.join()

    def _hide(self, query: str) -> tuple[PrivateQueries, int]:
        if self._covers is None:
            return send_alone(query)
        numbers = np.array(encode_words(query, self._numbers, most=N_QUERY_WORDS), dtype=np.int32)
        made = self._covers
        return cover_query(query, numbers, made.made, made.words, longest_pause_s=made.settings.longest_pause_s)

    def _send(self, bodies: list[bytes], pauses_s: tuple[float, ...], answers: list[_Answer], *, n: int) -> None:
        """Each at its time, in a thread of its own. Why not as daemons: a process that ends would send half of it.

        All threads wait until the last one runs; where one cannot, none sends anything.
        """
        beginning = _Beginning()
        try:
            WATCHDOG.start()
            for body, pause, answer in zip(bodies, accumulate(pauses_s), answers, strict=True):
                thread = threading.Thread(target=self._ask, args=(beginning, pause, body, answer, n), name="query")
                thread.start()
                self._threads.add(thread)
            beginning.set_result(time.monotonic())
        except BaseException as error:
            if beginning.cancel():  # Why it may be too late: an interrupt may come when all of them have begun
                self._places.give_back(len(bodies))
            if isinstance(error, RuntimeError | MemoryError):
                raise EngineError("this device has no thread left for the search. Search again later.") from None
            raise

    def _ask(self, beginning: _Beginning, pause: float, body: bytes, answer: _Answer, n: int) -> None:
        found: tuple[FoundDocument, ...] | EngineError
        try:
            time.sleep(max(beginning.result() + pause - time.monotonic(), 0.0))
            found = self._fetch(body, n)
        except CancelledError:
            self._threads.discard(threading.current_thread())
            return
        except EngineError as error:
            found = error
        except Exception as error:  # Why: whoever waits for the answer must hear of it
            found = EngineError(f"the search failed ({type(error).__name__}).")
        self._finish(answer, found)

    def _fetch(self, body: bytes, n: int) -> tuple[FoundDocument, ...]:
        content = fetch_answer(self._connector, body, timeout_s=self._timeout_s, headers=self._headers)
        try:
            return parse_answer(content, n=n)
        except ValueError as error:
            raise EngineError(f"{self._connector.url} gave an answer that cannot be read: {error}.") from None

    def _finish(self, answer: _Answer, found: tuple[FoundDocument, ...] | EngineError) -> None:
        """Whoever hears of the answer finds it counted and its place free."""
        with self._counting:
            self.n_sent += 1
            self.n_failed += isinstance(found, EngineError)
        self._threads.discard(threading.current_thread())
        self._places.give_back(1)
        if isinstance(found, EngineError):
            answer.set_exception(found)
        else:
            answer.set_result(found)


class _Places:
    """So many texts at once, and a set only as a whole."""

    def __init__(self, n: int) -> None:
        self._n_free, self._changed = n, threading.Condition()

    def take(self, n: int, *, timeout_s: float) -> bool:
        with self._changed:
            if not self._changed.wait_for(lambda: self._n_free >= n, timeout_s):
                return False
            self._n_free -= n
            return True

    def give_back(self, n: int) -> None:
        with self._changed:
            self._n_free += n
            self._changed.notify_all()


def check_account(account: str) -> str:
    """Refuses what no cookie can be; the error does not repeat it."""
    is_text = isinstance(account, str) and account.isascii() and account.isprintable() and account == account.strip()
    if not is_text or not 0 < len(account) <= _MOST_ACCOUNT:
        raise ValueError(
            f"the account must be a text of 1 to {_MOST_ACCOUNT} ASCII letters and signs without line breaks. Give the "
            "cookie as the engine gave it, or None."
        )
    return account
