"""Long polls: clients that wait until something happens. A client has one at a time; a newer one ends the older.

The older is asked to wait before it comes again: two processes of one client must not wake each other in turn.
"""

from __future__ import annotations

import asyncio

from hushrank.live.wire.refusals import Reason, RefusedError

_COME_AGAIN_S = 5


class LongPolls:
    """Used on one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[None]] = {}  # {client: its poll}

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, client: int, seconds: float) -> None:
        """Until `wake`, or until the time is over; refused when a newer poll of this client takes the place."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        _finish(self._waiting.get(client))
        self._waiting[client] = mine
        timer = loop.call_later(seconds, _finish, mine)
        try:
            await mine
        finally:
            timer.cancel()
            is_newest = self._waiting.get(client) is mine
            if is_newest:
                del self._waiting[client]
        if not is_newest:
            detail = "a newer poll of this client took the place of this one."
            raise RefusedError(Reason.rate, detail, retry_after_s=_COME_AGAIN_S)

    def wake(self) -> None:
        """Something happened: everybody looks."""
        for poll in self._waiting.values():
            _finish(poll)


def _finish(poll: asyncio.Future[None] | None) -> None:
    if poll is not None and not poll.done():
        poll.set_result(None)
