"""The answers of a client: the bytes that leave the device, and what became of them.

An answer and the impressions that it used are committed together, before anything is sent, so that a process killed at
any moment neither loses an interaction nor uses one twice: what waits here is sent again, byte for byte.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushrank.live.device.database import Database, StoreError, marks
from hushrank.live.device.heads import Heads, write_heads

WAITING, SENT, REFUSED = "waiting", "sent", "refused"  # states of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client made of a round: the bytes that leave the device, and what became of them."""

    round: int
    body: bytes
    weight: float  # in the weighted mean
    guarantee: str  # in words, of this message
    state: str = WAITING  # waiting (perhaps sent, not yet acknowledged), sent or refused
    reason: str | None = None  # refused: why
    made_at: float = 0.0  # seconds since 1970


class Outbox:
    """Every answer that was ever made, in the device's file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def commit(
        self, answer: Answer, used: Sequence[int], heads: Heads | None = None, *, length: float | None = None
    ) -> None:
        """The answer, the impressions that it used and where the ledgers ended, together, before it is sent. length: of
        the update, where it is kept."""
        values = (answer.round, answer.body, answer.weight, answer.guarantee, time.time(), WAITING)
        with self._database.transaction() as run:
            run(f"INSERT INTO outbox (round, body, weight, guarantee, made_at, state) VALUES ({marks(values)})", values)
            marked = run(
                f"UPDATE impressions SET used_in = ? WHERE used_in IS NULL AND number IN ({marks(used)})",
                (answer.round, *used),
            )
            if marked.rowcount != len(used):
                path = self._database.path
                raise StoreError(f"{path}: an impression was used by another answer meanwhile; nothing was kept.")
            if heads is not None:
                write_heads(run, heads)
            if length is not None:
                run("INSERT OR REPLACE INTO lengths VALUES (?, ?)", (answer.round, length))

    def confirm(self, round: int) -> None:
        """The server has counted the answer."""
        with self._database.transaction() as run:
            run("UPDATE outbox SET state = ?, reason = NULL WHERE round = ?", (SENT, round))

    def refuse(self, round: int, reason: str, *, frees: bool) -> None:
        """The answer does not count; `frees`: its impressions may be used again."""
        with self._database.transaction() as run:
            run("UPDATE outbox SET state = ?, reason = ? WHERE round = ?", (REFUSED, reason, round))
            run("DELETE FROM lengths WHERE round = ?", (round,))
            if frees:
                run("UPDATE impressions SET used_in = NULL WHERE used_in = ?", (round,))

    def find(self, round: int) -> Answer | None:
        return next(iter(self._select("WHERE round = ?", (round,))), None)

    def answers(self, state: str | None = None) -> list[Answer]:
        """Oldest first."""
        return self._select("WHERE ? IS NULL OR state = ? ORDER BY round", (state, state))

    def count(self) -> int:
        """Answers that were ever made."""
        return int(self._database.first("SELECT COUNT(*) FROM outbox")[0])

    def newest(self) -> Answer | None:
        return next(iter(self._select("ORDER BY round DESC LIMIT 1", ())), None)

    def _select(self, where: str, values: tuple[Any, ...]) -> list[Answer]:
        statement = f"SELECT round, body, weight, guarantee, state, reason, made_at FROM outbox {where}"
        return [Answer(*row) for row in self._database.rows(statement, values)]
