"""One thread that writes: what waits is committed together, and everybody is told after the commit is on the disk.

A commit costs one flush of the disk whatever is in it. While one is under way others arrive; they are the next one. So
a slow disk makes commits larger, not fewer updates per second.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from hushrank.live.counters import Histogram
from hushrank.live.messages import Reason, RefusedError
from hushrank.live.store import UpdateRow, insert_updates

T = TypeVar("T")
_MOST_AT_ONCE = 5_000  # jobs in one commit. Why: it bounds how long the first of them waits for the last
_RETRY_AFTER_S = 5  # when the disk failed


@dataclass(slots=True, eq=False)
class _Job:
    """A part of a transaction, and who waits for it."""

    work: UpdateRow | Callable[[sa.Connection], Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class Writer:
    """Started and used on an event loop; works on a thread of its own."""

    def __init__(self, engine: sa.Engine, loop: asyncio.AbstractEventLoop, *, commit_s: Histogram) -> None:
        self._commit_s = commit_s
        self._engine, self._loop = engine, loop
        self._connection: sa.Connection | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="hushrank-writer", daemon=True)
        self._thread.start()

    def write_update(self, row: UpdateRow) -> asyncio.Future[None]:
        """Done when the update is on the disk; RefusedError when it cannot be."""
        return self._submit(row)

    def write(self, work: Callable[[sa.Connection], T]) -> asyncio.Future[T]:
        """Done with the work's result when it is on the disk. Work that refuses must not have written anything."""
        return self._submit(work)

    def stop(self) -> None:
        """Write what waits, then end. Blocks."""
        self._jobs.put(None)
        self._thread.join()

    def _submit(self, work: UpdateRow | Callable[[sa.Connection], Any]) -> asyncio.Future[Any]:
        job = _Job(work, self._loop.create_future())
        self._jobs.put(job)
        return job.done

    def _run(self) -> None:
        is_over = False
        while not is_over:
            batch, is_over = self._next_batch()
            if batch:
                self._commit(batch)
                self._loop.call_soon_threadsafe(_tell, batch)
        self._disconnect()

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Wait for one job, then take all that are there."""
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            try:
                job = self._jobs.get_nowait() if len(batch) < _MOST_AT_ONCE else self._nothing()
            except queue.Empty:
                return batch, False
        return batch, True

    def _nothing(self) -> _Job:
        raise queue.Empty

    def _commit(self, batch: Sequence[_Job]) -> None:
        """All in one transaction; a job with a mistake of its own is left out, and the others begin again."""
        began, left = time.perf_counter(), list(batch)
        while left:
            try:
                self._connection = self._connection or self._engine.connect()
                with self._connection.begin():
                    _work(self._connection, left)
                break
            except (sa.exc.DBAPIError, sqlite3.Error):
                self._fail(left)
                break
            except Exception as error:
                if all(job.error is None for job in left):  # Why: or this would go round for ever
                    _blame(left, error)
                left = [job for job in left if job.error is None]
        self._commit_s.add(time.perf_counter() - began)

    def _fail(self, batch: Sequence[_Job]) -> None:
        """The disk is full or broken: nothing of the batch counts, and the next one begins with a new connection."""
        detail = "the server cannot write to its disk: try again."
        _blame(batch, RefusedError(Reason.disk, detail, retry_after_s=_RETRY_AFTER_S))
        self._disconnect()

    def _disconnect(self) -> None:
        with suppress(sa.exc.DBAPIError, sqlite3.Error):
            if self._connection is not None:
                self._connection.close()
        self._connection = None


def _work(connection: sa.Connection, batch: Sequence[_Job]) -> None:
    rows = [job.work for job in batch if isinstance(job.work, UpdateRow)]
    if rows:
        insert_updates(connection, rows)
    for job in batch:
        if isinstance(job.work, UpdateRow):
            continue
        try:
            job.result, job.error = job.work(connection), None
        except RefusedError as refused:
            job.error = refused
        except (sa.exc.DBAPIError, sqlite3.Error):
            raise
        except Exception as error:
            job.error = error
            raise


def _blame(batch: Sequence[_Job], error: Exception) -> None:
    for job in batch:
        job.error = error


def _tell(batch: Sequence[_Job]) -> None:
    for job in batch:
        if job.done.done():  # Why: whoever waited has gone; the commit stands
            continue
        if job.error is None:
            job.done.set_result(job.result)
        else:
            job.done.set_exception(job.error)
