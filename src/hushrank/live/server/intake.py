"""Updates that clients send, each counted once or not at all: taken, known again, or refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hushrank.live.server import store
from hushrank.live.server.clients import KnownClient
from hushrank.live.server.received import COUNTED, count_refused
from hushrank.live.wire.refusals import Reason, RefusedError

if TYPE_CHECKING:
    from hushrank.live.server.coordinator import Coordinator


class Intake:
    """Of the open round."""

    def __init__(self, federation: Coordinator, digest_key: bytes) -> None:
        self._federation, self._digest_key = federation, digest_key
        self._digests: dict[tuple[str, int], bytes] = {}  # {(phase, client): of its update}
        self._in_flight: dict[tuple[str, int], asyncio.Future[None]] = {}  # {(phase, client): on the way to the disk}

    def begin(self, digests: dict[tuple[str, int], bytes]) -> None:
        """A round is open; digests: of the updates that are on the disk."""
        self._digests = digests

    async def take(
        self, client: KnownClient, round: int, phase: str, weight: int, body: bytes, *, is_filled: bool = False
    ) -> bool:
        """Count an update that is good in itself, once. True: the very same was counted before."""
        digest = store.digest_body(body, self._digest_key)
        row = store.UpdateRow(round, phase, client.id, weight, digest, body, int(is_filled))
        try:
            return await self._take(client, row)
        except RefusedError as refused:
            if refused.reason in COUNTED:
                client.refused = await self._federation.write(lambda connection: count_refused(connection, row))
            raise

    async def _take(self, client: KnownClient, row: store.UpdateRow) -> bool:
        federation = self._federation
        federation.refuse_if_unable()
        if row.round == federation.rounds.number and row.key in self._digests:
            return await self._take_again(row)
        try:
            federation.rounds.reserve(client.id, row.round, federation.now())
        except RefusedError as refused:
            if refused.reason is not Reason.late:
                raise
            return await self._take_late(row, refused)
        self._digests[row.key] = row.digest
        written = self._in_flight[row.key] = federation.writer.write_update(row)
        written.add_done_callback(lambda done: self._settle(client, row, done.exception()))
        await asyncio.shield(written)  # Why: whoever waits may go; the update is counted or not all the same
        return False

    async def _take_again(self, row: store.UpdateRow) -> bool:
        if self._digests[row.key] != row.digest:
            raise RefusedError(Reason.answered, "another update of this client counts in this round.")
        if row.key in self._in_flight:
            await asyncio.shield(self._in_flight[row.key])
        return True

    async def _take_late(self, row: store.UpdateRow, refused: RefusedError) -> bool:
        """An answer to a round that is over: perhaps it was counted, and only the acknowledgement was lost."""
        known = await self._federation.write(lambda connection: store.find_digest(connection, row.round, *row.key))
        if known is None:
            raise refused
        if known != row.digest:
            raise RefusedError(Reason.answered, "another update of this client counts in this round.")
        return True

    def _settle(self, client: KnownClient, row: store.UpdateRow, error: BaseException | None) -> None:
        """An update is on the disk, or could not be written."""
        del self._in_flight[row.key]
        if error is not None:
            self._digests.pop(row.key, None)
        self._federation.note_update(client, row.round, is_written=error is None)
