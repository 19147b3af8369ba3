"""One question to a search engine or a relay: a connection of its own, one deadline for all of it, plain errors.

Why a connection for each: on a kept one an engine would see which questions come from one device. Why no second try: a
device that repeats its person's query, and not the covers, says which is which.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress

from hushrank.live.device.connector import Connector
from hushrank.live.device.deadlines import WATCHDOG
from hushrank.live.queries.messages import MOST_ANSWER, SEARCH

TIMEOUT_S = 10.0


class EngineError(OSError):
    """The search engine, or the relay on the way to it, gave no list. The text holds no word of the query."""


def fetch_answer(
    connector: Connector, body: bytes, *, timeout_s: float = TIMEOUT_S, headers: Mapping[str, str] | None = None
) -> bytes:
    """The body of an answer of status 200; EngineError for everything else."""
    url, question, why = connector.url, _Question(connector), ""
    found: tuple[int, bytes, bool] | None = None
    with WATCHDOG.limit(timeout_s, question.cut) as deadline:
        try:
            found = question.ask(body, headers or {}, timeout_s=timeout_s)
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = deadline.has_passed or isinstance(error, TimeoutError)
            why = _explain(url, error, late=late, timeout_s=timeout_s)
        finally:
            question.close()
    if found is None:  # Why here: raised within `except`, it would keep the other error, which may hold an answer
        raise EngineError(why)
    status, content, is_whole = found
    if deadline.has_passed:  # Why: an answer that was cut only looks shorter
        raise EngineError(_explain(url, TimeoutError(), late=True, timeout_s=timeout_s))
    if status != 200:
        raise EngineError(f"{url} answered with status {status} and no list. Search again later.")
    if len(content) > MOST_ANSWER:
        raise EngineError(f"{url} answered with more than {MOST_ANSWER} bytes, which is no list.")
    if not is_whole:
        raise EngineError(f"{url} ended its answer before its end. Search again.")
    return content


class _Question:
    """A connection for one question, which can be cut from another thread."""

    def __init__(self, connector: Connector) -> None:
        self._connection, self._prefix = connector.connect(), connector.prefix
        self._socket: socket.socket | None = None  # Why: a connection that will be closed forgets it with the answer
        self._answer: http.client.HTTPResponse | None = None

    def ask(self, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> tuple[int, bytes, bool]:
        """Status, body up to a little more than the longest, and whether nothing is missing from it."""
        self._connection.timeout = timeout_s
        sent = {"Content-Type": "application/json", "Connection": "close", **headers}
        self._connection.request("POST", self._prefix + SEARCH, body=body, headers=sent)
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        content = self._answer.read(MOST_ANSWER + 1)
        return self._answer.status, content, not self._answer.length

    def cut(self) -> None:
        for held in (self._socket, self._connection.sock):
            if held is not None:
                with suppress(OSError):  # Why: it may be closed already, which is what is wanted
                    socket.socket.shutdown(held, socket.SHUT_RDWR)

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
        self._connection.close()


def _explain(url: str, error: Exception, *, late: bool, timeout_s: float) -> str:
    if late:
        return f"{url} did not answer within {timeout_s:g} s. Search again later."
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{url}: its certificate is not trusted ({error.verify_message})."
    return f"{url} does not answer ({type(error).__name__}). Check the address, or search again later."
