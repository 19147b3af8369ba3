"""One client's way to its server: HTTP over a kept connection, patient where waiting helps, plain where it does not.

Why `http.client` of the standard library: it keeps 9 MB less in memory than httpx and does all that is needed. Every
request of the wire may be repeated: sending one again after a lost answer changes nothing.
"""

from __future__ import annotations

import http.client
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hushrank.live.device.connector import WrongSchemeError, make_connector, refuse_bad_certificate
from hushrank.live.device.deadlines import WATCHDOG
from hushrank.live.wire.protocol import RECEIPT_HEADER, WIRE_HEADER, WIRE_VERSION
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.untrusted import parse_untrusted
from hushrank.streams import ENTROPY, draw_uniform

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0  # between two tries after errors
_TIMEOUT_S = 30.0  # for a whole answer, beyond what a long poll asks for and what its bytes may take
_LEAST_RATE = 16 << 10  # bytes per second of what is sent and what is answered
_MOST_BYTES = 1 << 16  # of an answer, unless more is expected
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})
Parsed = TypeVar("Parsed")


class StoppedError(Exception):
    """The person or the system asked this client to stop."""


class UnreachableError(OSError):
    """The server did not answer for as long as the client was willing to wait."""


class Stop:
    """A wish to stop that also ends waiting: for an answer, or between two tries."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._cuts: list[Callable[[], None]] = []

    def set(self) -> None:
        self._event.set()
        for cut in tuple(self._cuts):
            cut()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)

    def also(self, cut: Callable[[], None]) -> None:
        """Call this when it is time to stop."""
        self._cuts.append(cut)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered: 200, or 204 for nothing new."""

    status: int
    body: bytes


class Transport:
    """Requests to one server, one after another."""

    def __init__(
        self,
        url: str,
        *,
        credential: str | None = None,
        ca: Path | None = None,
        stop: Stop | None = None,
        patience_s: float | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`ca`: certificates to trust beside the system's. `patience_s`: give up after so long; None: never."""
        self._connector = make_connector(url, ca)
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None  # on which an answer is awaited
        self.url, self.credential, self.stop, self.tell = url, credential, stop or Stop(), tell
        self.instance = secrets.token_hex(8)  # Why: a server tells this client from a copy of its home by it
        self.receipt: str | None = None  # the newest one of this server
        self._patience_s, self._has_answered = patience_s, False
        self.stop.also(self._cut)

    def __enter__(self) -> Transport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        parse: Callable[[Reply], Parsed],
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
        most_bytes: int = _MOST_BYTES,
    ) -> Parsed:
        """What the server answers, tried until it does; RefusedError where trying again would not help."""
        began, tries = time.monotonic(), 0
        while True:
            if self.stop.is_set():
                raise StoppedError
            try:
                reply, after, trouble = self._try(method, path, body, dict(headers or {}), wait_s, most_bytes)
                if reply is not None:
                    return _parse_reply(parse, reply)
            except RefusedError:
                raise
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.close()
                if self.stop.is_set():
                    raise StoppedError from error
                trouble, after = self._explain(error), None
            if self.stop.is_set():
                raise StoppedError
            pause = draw_pause(tries) if after is None else after + draw_pause(0)
            tries += 1
            if self._patience_s is not None and time.monotonic() - began + pause > self._patience_s:
                raise UnreachableError(f"{self.url} does not answer ({trouble}). Is the server running?")
            if tries in (2, 6) or tries % 60 == 0:  # Why: a restart of the server is no news, and a log should not grow
                self.tell(f"no answer from {self.url} ({trouble}); trying again, the next time in {pause:.1f} s")
            self.stop.wait(pause)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = self._socket = None

    def _explain(self, error: Exception) -> str:
        """What went wrong, in words; raises where trying again would not help."""
        refuse_bad_certificate(error, self.url, has_worked=self._has_answered)
        wrong = None if self._has_answered else self._connector.explain(error)
        if wrong is not None:  # Why only of a server that never answered: what has worked may work again
            raise WrongSchemeError(wrong) from error
        return _make_printable(f"{type(error).__name__}: {error}".rstrip(": "))

    def _try(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], wait_s: float, most_bytes: int
    ) -> tuple[Reply | None, float | None, str]:
        """One try: an answer; or None, how long the server asks to wait, and why."""
        headers[WIRE_HEADER] = str(WIRE_VERSION)
        if self.credential is not None:
            headers["Authorization"] = f"Bearer {self.credential}"
        if self.receipt is not None:
            headers[RECEIPT_HEADER] = self.receipt
        most_s = _TIMEOUT_S + wait_s + (len(body or b"") + most_bytes) / _LEAST_RATE
        with WATCHDOG.limit(most_s, self._cut) as deadline:
            try:
                answer = self._send_again(method, path, body, headers, wait_s)
                content = answer.read(most_bytes + 1)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if deadline.has_passed:
                    raise TimeoutError(f"no whole answer within {most_s:.0f} s") from error
                raise
        if len(content) > most_bytes:
            raise ValueError(f"an answer of more than {most_bytes} bytes")
        if deadline.has_passed:  # Why: an answer that was cut only looks shorter
            raise TimeoutError(f"no whole answer within {most_s:.0f} s")
        if answer.length:
            raise ConnectionError(f"the answer ended {answer.length} bytes before its end")
        self._has_answered = True
        if answer.status in (200, 204):
            return Reply(answer.status, content), None, ""
        if answer.status in _TEMPORARY:
            return None, _read_retry_after(answer.headers.get("Retry-After")), _read_trouble(answer.status, content)
        raise _as_refusal(answer.status, content)

    def _send_again(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], wait_s: float
    ) -> http.client.HTTPResponse:
        """On the connection that was kept, or on a new one where the server has closed that."""
        is_kept = self._connection is not None
        try:
            return self._send(method, path, body, headers, wait_s)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not is_kept or self.stop.is_set():
                raise
            self.close()  # Why: the server closed a connection that nobody used; that is no trouble
            return self._send(method, path, body, headers, wait_s)

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], wait_s: float
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = self._connector.connect()
        self._connection.timeout = _TIMEOUT_S + wait_s
        if self._connection.sock is not None:
            self._connection.sock.settimeout(_TIMEOUT_S + wait_s)
        self._connection.request(method, self._connector.prefix + path, body=body, headers=headers)
        self._socket = self._connection.sock  # Why: a connection forgets it as soon as the server wants to close it
        if self.stop.is_set():
            raise StoppedError
        return self._connection.getresponse()

    def _cut(self) -> None:
        """Wake whoever waits for an answer. Called from another thread, or from a signal's handler."""
        connection = self._connection
        for held in (self._socket, None if connection is None else connection.sock):
            if held is not None:
                with suppress(OSError):  # Why: it may be closed already, which is what is wanted
                    # Why not its own method: that of an encrypted socket takes away what the other thread works with
                    socket.socket.shutdown(held, socket.SHUT_RDWR)


def parse_json(read: Callable[[object], Parsed]) -> Callable[[Reply], Parsed]:
    """The parser of an answer whose JSON `read` understands."""
    return lambda reply: read(parse_untrusted(reply.body))


def _parse_reply(parse: Callable[[Reply], Parsed], reply: Reply) -> Parsed:
    """What the answer says; ValueError for whatever cannot be read."""
    try:
        return parse(reply)
    except ValueError:
        raise
    except Exception as error:  # Why: nothing that a server says may end a client with an error of ours
        raise ValueError(f"an answer that cannot be read ({type(error).__name__})") from error


def draw_pause(tries: int) -> float:
    """Seconds before the next try: twice as long each time up to a minute, and at random from half of it on."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tries, 10))
    return longest * (0.5 + 0.5 * float(draw_uniform(ENTROPY, 1)[0]))


def _read_retry_after(text: str | None) -> float | None:
    """Seconds, at most an hour; None when the header is absent, or a date."""
    return min(float(text), 3600.0) if text is not None and text.isascii() and text.isdigit() else None


def _read_trouble(status: int, content: bytes) -> str:
    """Why a server asks to be left alone for a while."""
    try:
        return f"it says: {_as_refusal(status, content)}"
    except ValueError:
        return "it asks to be left alone for a while"


def _as_refusal(status: int, content: bytes) -> RefusedError:
    """What the server said no to. A text of unknown origin is cut short and made printable."""
    try:
        said: Any = parse_untrusted(content)
        reason, detail = str(said["reason"]), str(said["detail"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"an answer of status {status} that is not a hushrank server's") from None
    known = Reason(reason) if reason in tuple(Reason) else Reason.unknown
    return RefusedError(known, _make_printable(detail), status=status)


def _make_printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:500]
