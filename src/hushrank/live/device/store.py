"""What a device keeps for its federation, in one SQLite file: what a person saw and clicked, and what was made of it.

An application writes impressions (the list it showed, and why in that order); the client learns from each of them in
one answer at most (`outbox.py`). The newest ranker and the membership stand beside them. Standard library and NumPy
only.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from hushrank.live.device.database import Database, marks
from hushrank.live.device.heads import HEADS, Heads, write_heads
from hushrank.live.device.impressions import COLUMNS, PERSONAL, Impression, as_impression, as_row
from hushrank.live.device.outbox import REFUSED, Outbox
from hushrank.types import Array

STORE = "client.sqlite"  # its name in a client's home
FINISHED_AFTER_S = 1800.0  # Why: who has not clicked for half an hour will not, and an application may have died


@dataclass(frozen=True, slots=True)
class Membership:
    """Which federation this device belongs to, and by what it is known there."""

    url: str
    agreement: str  # JSON
    credential: str
    state: str  # joining, member or left


class Identity(NamedTuple):
    """What makes this home another than all others."""

    name: str  # random, for this device's ledger; no server hears it
    secret: bytes  # [32] the key of seeds and noise; never leaves the device


@dataclass(frozen=True, slots=True)
class KeptRanker:
    """The newest ranker of the federation."""

    round: int
    params: Array  # [n_params] float32
    seed: int | None  # of this device's perturbation in this round (evolution strategies)


class Interactions:
    """The open file. An application and the client may have it open at once, each with its own."""

    def __init__(self, path: Path, *, is_durable: bool = True) -> None:
        """`is_durable` False: what a power cut loses is the last moments (for pretend people; kill -9 loses none)."""
        self._database = Database(path, is_durable=is_durable)
        self.path, self.outbox = path, Outbox(self._database)
        self._is_durable = is_durable
        self._has_remains = True  # Why: the last process may have ended before its log was empty

    def __enter__(self) -> Interactions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def add(self, impression: Impression, *, is_finished: bool = True) -> int:
        """Write down a list that was shown; its number. Not finished: clicks are still to come."""
        values = (*as_row(impression), time.time(), int(is_finished))
        with self._database.transaction() as run:
            done = run(f"INSERT INTO impressions ({COLUMNS}, shown_at, is_finished) VALUES ({marks(values)})", values)
            return int(done.lastrowid or 0)

    def click(self, number: int, position: int) -> bool:
        """A click on the shown list's position (0 is the first); False when it comes too late to be learnt from."""
        with self._database.transaction() as run:
            row = run(
                "SELECT clicks FROM impressions WHERE number = ? AND used_in IS NULL AND length(clicks) > 0", (number,)
            ).fetchone()
            if row is None:
                return False
            clicks = bytearray(row[0])
            if not 0 <= position < len(clicks):
                raise ValueError(f"position is {position}, the list has 0 to {len(clicks) - 1}.")
            clicks[position] = 1
            run("UPDATE impressions SET clicks = ? WHERE number = ?", (bytes(clicks), number))
            return True

    def finish(self, number: int) -> None:
        """No more clicks will come: the list may be learnt from."""
        with self._database.transaction() as run:
            run("UPDATE impressions SET is_finished = 1 WHERE number = ?", (number,))

    def find_free(
        self, *, policy: str, oldest_round: int, limit: int, seed: int | None = None, direction: int | None = None
    ) -> list[tuple[int, Impression]]:
        """(number, impression) of the newest finished lists that no answer has used, in the order they were shown."""
        asked: dict[str, Any] = {
            "policy": policy,
            "oldest": oldest_round,
            "seed": seed,
            "direction": direction,
            "limit": limit,
            "finished": time.time() - FINISHED_AFTER_S,
        }
        rows = self._database.rows(
            f"SELECT number, {COLUMNS} FROM impressions WHERE used_in IS NULL AND policy = :policy "
            "AND round >= :oldest AND seed IS :seed AND direction IS :direction "
            "AND (is_finished OR shown_at < :finished) AND length(scores) > 0 ORDER BY number DESC LIMIT :limit",
            asked,
        )
        return [(number, as_impression(rest)) for number, *rest in reversed(rows)]

    def find_used(self, round: int, *, limit: int) -> list[Impression]:
        """The first lists that the answer of a round used, in the order they were shown, as far as they are kept; none
        if the answer was refused."""
        rows = self._database.rows(
            f"SELECT {COLUMNS} FROM impressions WHERE used_in = ? AND length(scores) > 0 AND NOT EXISTS "
            "(SELECT 1 FROM outbox WHERE outbox.round = used_in AND state = ?) ORDER BY number LIMIT ?",
            (round, REFUSED, limit),
        )
        return [as_impression(row) for row in rows]

    def lengths(self) -> dict[int, float]:
        """{round: length of its update}, of those that are kept."""
        return dict(self._database.rows("SELECT round, length FROM lengths ORDER BY round"))

    def forget_lengths(self) -> None:
        """They are of no use to a client that left."""
        with self._database.transaction() as run:
            run("DELETE FROM lengths")

    def count_shown(self, *, round: int, seed: int | None = None, direction: int | None = None) -> int:
        """Lists made by the ranker of a round (and under one perturbation and direction), used or not."""
        found = self._database.first(
            "SELECT COUNT(*) FROM impressions WHERE round = ? AND (? IS NULL OR (seed IS ? AND direction IS ?))",
            (round, seed, seed, direction),
        )
        return int(found[0])

    def count_used(self) -> dict[int, int]:
        """{round: how many impressions its answer used}"""
        counted = "SELECT used_in, COUNT(*) FROM impressions WHERE used_in IS NOT NULL GROUP BY used_in"
        return dict(self._database.rows(counted))

    def keep_ranker(self, ranker: KeptRanker) -> KeptRanker:
        """The ranker in the place of older ones. One that is there already stays, with the seed that it has."""
        with self._database.transaction() as run:
            params = np.ascontiguousarray(ranker.params, "<f4").tobytes()
            run("INSERT OR IGNORE INTO rankers VALUES (?, ?, ?)", (ranker.round, params, ranker.seed))
            run("DELETE FROM rankers WHERE round < ?", (ranker.round,))
        kept = self.newest_ranker()
        assert kept is not None
        return kept

    def newest_ranker(self) -> KeptRanker | None:
        row = self._database.first("SELECT round, params, seed FROM rankers ORDER BY round DESC LIMIT 1")
        return None if row is None else KeptRanker(row[0], np.frombuffer(row[1], "<f4"), row[2])

    def forget_before(self, round: int) -> int:
        """Delete what impressions of rankers older than this hold, and lengths of updates as old; that the lists were
        shown, and what used them, stays.

        Nothing of it is left in the file or beside it: SQLite overwrites what it deletes or, where it does not, zeros
        of the same length take its place first and the file is written anew; then the write-ahead log, which holds
        older pages, is emptied.
        """
        is_old = "WHERE round < ? AND length(scores) > 0"
        with self._database.transaction() as run:
            if not self._database.overwrites:
                blank = ", ".join(f"{name} = zeroblob(length({name}))" for name in PERSONAL)
                run(f"UPDATE impressions SET {blank} {is_old}", (round,))
            empty = ", ".join(f"{name} = x''" for name in PERSONAL)
            n_forgotten = int(run(f"UPDATE impressions SET {empty} {is_old}", (round,)).rowcount)
            run("DELETE FROM lengths WHERE round < ?", (round,))
        if self._is_durable and (n_forgotten or self._has_remains):  # Why: pretend people have nothing to hide
            self._has_remains = not self._database.purge()
        return n_forgotten

    def membership(self) -> Membership | None:
        row = self._database.first("SELECT url, agreement, credential, state FROM membership")
        return None if row is None else Membership(*row)

    def forget_membership(self) -> None:
        """As if this device had never asked."""
        with self._database.transaction() as run:
            run("DELETE FROM membership")

    def is_empty(self) -> bool:
        """Whether nothing is kept here: no membership, and nothing that was shown."""
        asked = "SELECT EXISTS (SELECT 1 FROM membership) OR EXISTS (SELECT 1 FROM impressions)"
        return not self._database.first(asked)[0]

    def keep_membership(self, membership: Membership) -> None:
        values = (1, membership.url, membership.agreement, membership.credential, membership.state)
        with self._database.transaction() as run:
            run(f"INSERT OR REPLACE INTO membership VALUES ({marks(values)})", values)

    def budget(self) -> float | None:
        """Epsilon of all answers together, as decided on joining; None: nothing was decided yet."""
        row = self._database.first("SELECT epsilon FROM budget")
        return None if row is None else float(row[0])

    def keep_budget(self, epsilon: float) -> None:
        """Once; it is never changed."""
        with self._database.transaction() as run:
            run("INSERT OR IGNORE INTO budget VALUES (1, ?)", (epsilon,))

    def identity(self) -> Identity:
        """Made once, and copied with the home."""
        with self._database.transaction() as run:
            made = (1, secrets.token_hex(8), secrets.token_bytes(32))
            run(f"INSERT OR IGNORE INTO identity VALUES ({marks(made)})", made)
            return Identity(*run("SELECT name, secret FROM identity").fetchone())

    def consent(self) -> str | None:
        """What the owner said on joining, as JSON; None: nothing yet."""
        row = self._database.first("SELECT said FROM consent")
        return None if row is None else str(row[0])

    def keep_consent(self, said: str) -> None:
        with self._database.transaction() as run:
            run("INSERT OR REPLACE INTO consent VALUES (1, ?)", (said,))

    def heads(self) -> Heads | None:
        """Where the ledgers ended at the last answer; None: an older version, or nothing, was here."""
        row = self._database.first(f"SELECT {HEADS} FROM heads")
        return None if row is None else Heads(*row)

    def keep_heads(self, heads: Heads) -> None:
        with self._database.transaction() as run:
            write_heads(run, heads)

    def receipt(self) -> str | None:
        """Of the newest round that the server told of; None: it gave none."""
        row = self._database.first("SELECT text FROM receipt")
        return None if row is None else str(row[0])

    def keep_receipt(self, receipt: str) -> None:
        with self._database.transaction() as run:
            run("INSERT OR REPLACE INTO receipt VALUES (1, ?)", (receipt,))
