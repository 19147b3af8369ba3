"""What writes: what waits is committed together, and everybody is told after the commit is on the disk.

A commit costs one flush of the disk whatever is in it. While one is under way others arrive; they are the next one. So
a slow disk makes commits larger, not fewer updates per second.

Updates are inserted on the event loop's own thread and only flushed on another. Why: Python's SQLite lets go of the
interpreter at every row, and a thread that competes with a busy loop waits milliseconds to get it back each time. What
takes longer, such as closing a round, runs on the other thread as a whole.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from hushrank.live.server.counters import Histogram
from hushrank.live.server.held_file import HeldFile, Loss
from hushrank.live.server.store import UpdateRow, insert_updates
from hushrank.live.wire.refusals import Reason, RefusedError

T = TypeVar("T")
_MOST_AT_ONCE = 1_000  # jobs in one commit. Why: it bounds how long the first of them waits for the last
_RETRY_AFTER_S = 5  # when the disk failed
_LOOK_S = 1.0  # between two looks at the file while nothing is written
_DISK_ERRORS = (sa.exc.DBAPIError, sqlite3.Error)


class _LostError(Exception):
    """The file was deleted or replaced."""


@dataclass(slots=True, eq=False)
class _Job:
    """A part of a transaction, and who waits for it."""

    work: UpdateRow | Callable[[sa.Connection], Any]
    done: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class Writer:
    """Used on one event loop, which it keeps free of waiting for the disk."""

    def __init__(
        self,
        engine: sa.Engine,
        loop: asyncio.AbstractEventLoop,
        *,
        commit_s: Histogram,
        note_loss: Callable[[Loss], None] = lambda _: None,
    ) -> None:
        """note_loss: hears, once, that the file was deleted or replaced; from then on everything is refused."""
        self._engine, self._loop, self._commit_s, self._note_loss = engine, loop, commit_s, note_loss
        self._thread = ThreadPoolExecutor(1, "hushrank-writer")
        self._connection: sa.Connection | None = None
        self._loss: Loss | None = None
        self._waiting: list[_Job] = []
        self._is_busy = False
        self._file, self._is_loss_told = HeldFile(), False
        self._look_timer = loop.call_later(_LOOK_S, self._look)

    def write_update(self, row: UpdateRow) -> asyncio.Future[None]:
        """Done when the update is on the disk; RefusedError when it cannot be."""
        return self._submit(row)

    def write(self, work: Callable[[sa.Connection], T]) -> asyncio.Future[T]:
        """Done with the work's result when it is on the disk. Work that refuses must not have written anything."""
        return self._submit(work)

    async def stop(self) -> None:
        """Write what waits, as far as the disk allows, then end."""
        self._look_timer.cancel()
        with suppress(RefusedError):
            await self.write(lambda _: None)
        self._thread.shutdown()
        self._disconnect()

    def _look(self) -> None:
        """Once a second; a commit looks by itself."""
        if not self._is_busy and self._file.find_change() is not None:
            self._submit(lambda _: None).add_done_callback(asyncio.Future.exception)
        if self._loss is None:
            self._look_timer = self._loop.call_later(_LOOK_S, self._look)

    def _submit(self, work: UpdateRow | Callable[[sa.Connection], Any]) -> asyncio.Future[Any]:
        job = _Job(work, self._loop.create_future())
        self._waiting.append(job)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._begin)  # Why not at once: others may come in the same turn of the loop
        return job.done

    def _begin(self) -> None:
        """The next transaction, of all that waits."""
        batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
        began = time.perf_counter()
        if all(isinstance(job.work, UpdateRow) for job in batch):
            try:
                transaction = self._enter()
                _work(self._connect(), batch)
            except Exception:
                self._fail(batch)
                self._loop.call_soon(self._finish, batch, began)
                return
            self._thread.submit(self._flush, transaction, batch, began)
        else:
            self._thread.submit(self._run, batch, began)

    def _flush(self, transaction: sa.RootTransaction, batch: Sequence[_Job], began: float) -> None:
        """On the other thread: wait for the disk."""
        try:
            transaction.commit()
            self._refuse_if_lost()
        except Exception:  # Why any: whatever goes wrong here, nobody may wait for ever
            self._fail(batch)
        self._loop.call_soon_threadsafe(self._finish, batch, began)

    def _run(self, batch: Sequence[_Job], began: float) -> None:
        """On the other thread: all jobs; one with a mistake of its own is left out, and the others begin again."""
        left = list(batch)
        while left:
            try:
                with self._enter():
                    _work(self._connect(), left)
                self._refuse_if_lost()
                break
            except (*_DISK_ERRORS, _LostError):
                self._fail(left)
                break
            except Exception as error:
                if all(job.error is None for job in left):  # Why: or this would go round for ever
                    _blame(left, error)
                left = [job for job in left if job.error is None]
        self._loop.call_soon_threadsafe(self._finish, batch, began)

    def _finish(self, batch: Sequence[_Job], began: float) -> None:
        """Everybody is told; what has come meanwhile is next."""
        self._commit_s.add(time.perf_counter() - began)
        if self._loss is not None and not self._is_loss_told:
            self._is_loss_told = True
            self._note_loss(self._loss)
        for job in batch:
            if job.done.done():  # Why: whoever waited has gone; the commit stands
                continue
            if job.error is None:
                job.done.set_result(job.result)
            else:
                job.done.set_exception(job.error)
        self._is_busy = bool(self._waiting)
        if self._waiting:
            self._loop.call_soon(self._begin)

    def _fail(self, batch: Sequence[_Job]) -> None:
        """The disk is full or broken: nothing of the batch counts, and the next one begins with a new connection.

        When the file is gone there is no next one: the connection that has it open stays.
        """
        detail = "the server cannot write to its disk: try again."
        _blame(batch, RefusedError(Reason.disk, detail, retry_after_s=_RETRY_AFTER_S))
        if self._loss is None and (what := self._file.find_change()) is not None:
            self._loss = self._file.rescue(self._connection, what)
        if self._loss is None:
            self._disconnect()

    def _enter(self) -> sa.RootTransaction:
        """A transaction, of the file that was opened first."""
        if self._loss is not None:
            raise _LostError
        is_new = self._connection is None
        if is_new:
            self._refuse_if_lost()  # Why: SQLite would make an empty file where there is none
        transaction = self._connect().begin()
        if is_new:
            self._file.note(self._connect())
        return transaction

    def _refuse_if_lost(self) -> None:
        if self._file.find_change() is not None:
            raise _LostError

    def _connect(self) -> sa.Connection:
        self._connection = self._connection or self._engine.connect()
        return self._connection

    def _disconnect(self) -> None:
        with suppress(*_DISK_ERRORS):
            if self._connection is not None:
                self._connection.close()
        self._connection = None
        self._file.forget_logs()


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
        except _DISK_ERRORS:
            raise
        except Exception as error:
            job.error = error
            raise


def _blame(batch: Sequence[_Job], error: Exception) -> None:
    for job in batch:
        job.error = error
