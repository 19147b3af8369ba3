"""What a running server looks after by itself: commands that change its file, and a disk that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hushrank.live.server.events import Tell
from hushrank.live.server.held_file import Loss
from hushrank.live.server.snapshot import Decisions, Snapshot, probe_disk, read_decisions
from hushrank.live.server.writer import Writer

if TYPE_CHECKING:
    from hushrank.live.server.coordinator import Coordinator

_TRY_AGAIN_S = 1.0  # after trouble with the disk
_LOOK_AGAIN_S = 2.0  # for the operator's decisions


class CommandWatch:
    """Looks, now and then, for what the operator decided with a command: missing rounds, clients to be forgotten."""

    def __init__(self, federation: Coordinator, *, hear: Callable[[Decisions], None]) -> None:
        self._federation, self._hear, self._loop = federation, hear, asyncio.get_running_loop()
        self._look_later()

    def _look_later(self) -> None:
        self._loop.call_later(_LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        def finish(done: asyncio.Future[Decisions]) -> None:
            self._look_later()
            if done.exception() is None:
                self._hear(done.result())

        federation = self._federation
        if federation.is_in_trouble:
            self._look_later()
        elif not federation.is_stopping:
            look = partial(read_decisions, is_behind=federation.is_behind)
            federation.writer.write(look).add_done_callback(finish)


class DiskTrouble:
    """Nothing is accepted until something could be written again; what is true then stands in the file."""

    def __init__(self, tell: Tell, *, is_stopping: Callable[[], bool], restore: Callable[[Snapshot], None]) -> None:
        self.is_there = False
        self.words = "the server cannot write to its disk."
        self._tell, self._is_stopping, self._restore = tell, is_stopping, restore

    def begin(self, writer: Writer) -> None:
        if not self.is_there:
            self.is_there = True
            self._tell("disk-trouble")
            self._try_later(writer)

    def note_loss(self, loss: Loss) -> None:
        """The file was deleted or replaced: accept nothing any more."""
        self.is_there, self.words = True, "the server's file was deleted or replaced: its log says what to do."
        self._tell("file-lost", what=loss.what, copy=loss.copy and str(loss.copy), detail=loss.describe())

    def _try_later(self, writer: Writer) -> None:
        asyncio.get_running_loop().call_later(_TRY_AGAIN_S, self._try, writer)

    def _try(self, writer: Writer) -> None:
        def finish(done: asyncio.Future[Snapshot]) -> None:
            if done.exception() is not None:
                self._try_later(writer)
                return
            self.is_there = False
            self._restore(done.result())

        if not self._is_stopping():
            writer.write(probe_disk).add_done_callback(finish)
