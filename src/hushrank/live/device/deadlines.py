"""Deadlines for calls that the network may hold: one thread for the whole process cuts whatever is overdue.

Why: a socket's own timeout begins anew with every byte, so that a server which sends one now and then holds a call for
ever. Why one thread: a process may have a thousand people, each in a call of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_CUT_AGAIN_S = 0.5  # Why: while a connection is being made there is nothing to cut yet


class Deadline:
    """Of one call."""

    __slots__ = ("at", "cut", "has_passed")

    def __init__(self, at: float, cut: Callable[[], None]) -> None:
        """at: by `time.monotonic`; cut: ends the call, from another thread; may be called more than once."""
        self.at, self.cut, self.has_passed = at, cut, False


class Watchdog:
    """Cuts calls whose deadline has passed. Its thread begins with the first call and never keeps a process alive."""

    def __init__(self) -> None:
        self._watched: set[Deadline] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._next = float("inf")  # when the thread looks again

    def start(self) -> None:
        """The thread, if it does not run yet; RuntimeError where the system has none left, and then the next call tries
        again."""
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="deadlines", daemon=True)
                thread.start()
                self._thread = thread

    @contextmanager
    def limit(self, seconds: float, cut: Callable[[], None]) -> Iterator[Deadline]:
        """`cut` is called as soon as the block has lasted so long, and again until it ends."""
        self.start()
        deadline = Deadline(time.monotonic() + seconds, cut)
        with self._changed:
            self._watched.add(deadline)
            if deadline.at < self._next:
                self._changed.notify()
        try:
            yield deadline
        finally:
            with self._changed:
                self._watched.discard(deadline)

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for deadline in self._watched:
                    if deadline.at <= now:
                        deadline.has_passed, deadline.at = True, now + _CUT_AGAIN_S
                        with suppress(Exception):  # Why any: all other calls need this thread
                            deadline.cut()
                self._next = min((deadline.at for deadline in self._watched), default=float("inf"))
                self._changed.wait(None if self._next == float("inf") else max(self._next - now, 0.0))


WATCHDOG = Watchdog()
