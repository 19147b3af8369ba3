"""What a person saw and clicked, on their own device: one SQLite file, from which the client learns.

An application writes impressions (the list it showed, and why in that order), the client uses each of them in one
answer at most. Which impressions an answer used and the answer's bytes are committed together, before anything is sent,
so that a process killed at any moment neither loses an interaction nor uses one twice: what waits in the outbox is sent
again, byte for byte. Standard library and NumPy only.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hushrank.types import Array

STORE = "client.sqlite"  # its name in a client's home
SAMPLED, SORTED = "plackett-luce", "sorted"  # policies: how a list was made of its scores
WAITING, SENT, REFUSED = "waiting", "sent", "refused"  # states of an answer
FINISHED_AFTER_S = 1800.0  # Why: who has not clicked for half an hour will not, and an application may have died
_BUSY_MS = 10_000  # Why: an application and the client write at the same time, each for a moment

# Each step takes the file from one version to the next; a step that was released is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE membership (one INTEGER PRIMARY KEY CHECK (one = 1), url TEXT NOT NULL, agreement TEXT NOT NULL, "
        "credential TEXT NOT NULL, state TEXT NOT NULL)",
        "CREATE TABLE rankers (round INTEGER PRIMARY KEY, params BLOB NOT NULL, seed INTEGER)",
        "CREATE TABLE impressions (number INTEGER PRIMARY KEY AUTOINCREMENT, round INTEGER NOT NULL, "
        "policy TEXT NOT NULL, seed INTEGER, direction INTEGER, n_candidates INTEGER NOT NULL, features BLOB NOT NULL, "
        "scores BLOB NOT NULL, ranking BLOB NOT NULL, clicks BLOB NOT NULL, shown_at REAL NOT NULL, "
        "is_finished INTEGER NOT NULL, used_in INTEGER)",
        "CREATE INDEX impressions_of_round ON impressions (round)",
        "CREATE INDEX impressions_kept ON impressions (round) WHERE length(scores) > 0",
        "CREATE INDEX impressions_used ON impressions (used_in) WHERE used_in IS NOT NULL",
        "CREATE TABLE outbox (round INTEGER PRIMARY KEY, body BLOB NOT NULL, weight REAL NOT NULL, "
        "guarantee TEXT NOT NULL, made_at REAL NOT NULL, state TEXT NOT NULL, reason TEXT)",
    ),
)


class StoreError(ValueError):
    """The file cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Impression:
    """One list that was shown, all that made it so, and the clicks on it. n candidates, k shown."""

    round: int  # of the ranker that made the list
    features: Array  # [n, n_features] float32 of every candidate
    scores: Array  # [n] float32 of every candidate, as the list was made
    ranking: Array  # [k] candidates' places among the n, as shown
    is_clicked: Array  # [k] bool
    policy: str = SAMPLED  # drawn from the scores (plackett-luce), or by decreasing score (sorted)
    seed: int | None = None  # of the perturbation under which it was shown (evolution strategies)
    direction: int | None = None  # 1: by params + noise, -1: by params - noise

    def __post_init__(self) -> None:
        check_impression(self)


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


@dataclass(frozen=True, slots=True)
class Membership:
    """Which federation this device belongs to, and by what it is known there."""

    url: str
    agreement: str  # JSON
    credential: str
    state: str  # joining, member or left


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
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # Why: SQLite gives its side files the same permissions
        self.path = path
        with _told(path):
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
            self._migrate()

    def __enter__(self) -> Interactions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def add(self, impression: Impression, *, is_finished: bool = True) -> int:
        """Write down a list that was shown; its number. Not finished: clicks are still to come."""
        values = (
            impression.round,
            impression.policy,
            impression.seed,
            impression.direction,
            len(impression.scores),
            np.ascontiguousarray(impression.features, "<f4").tobytes(),
            np.ascontiguousarray(impression.scores, "<f4").tobytes(),
            np.ascontiguousarray(impression.ranking, "<i4").tobytes(),
            np.ascontiguousarray(impression.is_clicked, bool).tobytes(),
            time.time(),
            int(is_finished),
        )
        with self._transaction() as run:
            done = run(f"INSERT INTO impressions ({_COLUMNS}, shown_at, is_finished) VALUES ({_marks(values)})", values)
            return int(done.lastrowid or 0)

    def click(self, number: int, position: int) -> bool:
        """A click on the shown list's position (0 is the first); False when it comes too late to be learnt from."""
        with self._transaction() as run:
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
        with self._transaction() as run:
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
        with _told(self.path):
            rows = self._connection.execute(
                f"SELECT number, {_COLUMNS} FROM impressions WHERE used_in IS NULL AND policy = :policy "
                "AND round >= :oldest AND seed IS :seed AND direction IS :direction "
                "AND (is_finished OR shown_at < :finished) AND length(scores) > 0 ORDER BY number DESC LIMIT :limit",
                asked,
            ).fetchall()
        return [(number, _as_impression(rest)) for number, *rest in reversed(rows)]

    def count_shown(self, *, round: int, seed: int | None = None, direction: int | None = None) -> int:
        """Lists made by the ranker of a round (and under one perturbation and direction), used or not."""
        found = self._first(
            "SELECT COUNT(*) FROM impressions WHERE round = ? AND (? IS NULL OR (seed IS ? AND direction IS ?))",
            (round, seed, seed, direction),
        )
        return int(found[0])

    def count_used(self) -> dict[int, int]:
        """{round: how many impressions its answer used}"""
        with _told(self.path):
            return dict(
                self._connection.execute(
                    "SELECT used_in, COUNT(*) FROM impressions WHERE used_in IS NOT NULL GROUP BY used_in"
                )
            )

    def commit_answer(self, answer: Answer, used: Sequence[int]) -> None:
        """The answer and the impressions that it used, together, before it is sent."""
        values = (answer.round, answer.body, answer.weight, answer.guarantee, time.time(), WAITING)
        with self._transaction() as run:
            run(
                f"INSERT INTO outbox (round, body, weight, guarantee, made_at, state) VALUES ({_marks(values)})", values
            )
            marked = run(
                f"UPDATE impressions SET used_in = ? WHERE used_in IS NULL AND number IN ({_marks(used)})",
                (answer.round, *used),
            )
            if marked.rowcount != len(used):
                raise StoreError(f"{self.path}: an impression was used by another answer meanwhile; nothing was kept.")

    def confirm(self, round: int) -> None:
        """The server has counted the answer."""
        with self._transaction() as run:
            run("UPDATE outbox SET state = ?, reason = NULL WHERE round = ?", (SENT, round))

    def refuse(self, round: int, reason: str, *, frees: bool) -> None:
        """The answer does not count; `frees`: its impressions may be used again."""
        with self._transaction() as run:
            run("UPDATE outbox SET state = ?, reason = ? WHERE round = ?", (REFUSED, reason, round))
            if frees:
                run("UPDATE impressions SET used_in = NULL WHERE used_in = ?", (round,))

    def find_answer(self, round: int) -> Answer | None:
        return next(iter(self._answers("WHERE round = ?", (round,))), None)

    def list_answers(self, state: str | None = None) -> list[Answer]:
        """Oldest first."""
        return self._answers("WHERE ? IS NULL OR state = ? ORDER BY round", (state, state))

    def newest_answer(self) -> Answer | None:
        return next(iter(self._answers("ORDER BY round DESC LIMIT 1", ())), None)

    def keep_ranker(self, ranker: KeptRanker) -> KeptRanker:
        """The ranker in the place of older ones. One that is there already stays, with the seed that it has."""
        with self._transaction() as run:
            params = np.ascontiguousarray(ranker.params, "<f4").tobytes()
            run("INSERT OR IGNORE INTO rankers VALUES (?, ?, ?)", (ranker.round, params, ranker.seed))
            run("DELETE FROM rankers WHERE round < ?", (ranker.round,))
        kept = self.newest_ranker()
        assert kept is not None
        return kept

    def newest_ranker(self) -> KeptRanker | None:
        row = self._first("SELECT round, params, seed FROM rankers ORDER BY round DESC LIMIT 1")
        return None if row is None else KeptRanker(row[0], np.frombuffer(row[1], "<f4"), row[2])

    def forget_before(self, round: int) -> int:
        """Delete what impressions of rankers older than this hold; that they were, and what used them, stays."""
        with self._transaction() as run:
            done = run(
                "UPDATE impressions SET features = x'', scores = x'', ranking = x'', clicks = x'' "
                "WHERE round < ? AND length(scores) > 0",
                (round,),
            )
            return int(done.rowcount)

    def membership(self) -> Membership | None:
        row = self._first("SELECT url, agreement, credential, state FROM membership")
        return None if row is None else Membership(*row)

    def keep_membership(self, membership: Membership) -> None:
        values = (1, membership.url, membership.agreement, membership.credential, membership.state)
        with self._transaction() as run:
            run(f"INSERT OR REPLACE INTO membership VALUES ({_marks(values)})", values)

    def _answers(self, where: str, values: tuple[Any, ...]) -> list[Answer]:
        with _told(self.path):
            rows = self._connection.execute(
                f"SELECT round, body, weight, guarantee, state, reason, made_at FROM outbox {where}", values
            ).fetchall()
        return [Answer(*row) for row in rows]

    def _first(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        with _told(self.path):
            return self._connection.execute(statement, values).fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """All of it or nothing, on the disk when the block ends."""
        with _told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _migrate(self) -> None:
        """From whatever version the file has to the newest, whole or not at all."""
        with self._transaction() as run:
            version = run("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"{self.path} has version {version}, this hushrank reads up to {len(MIGRATIONS)}: update hushrank."
                )
            for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
                for statement in (*statements, f"PRAGMA user_version = {number}"):
                    run(statement)


_COLUMNS = "round, policy, seed, direction, n_candidates, features, scores, ranking, clicks"


def _as_impression(row: Sequence[Any]) -> Impression:
    round, policy, seed, direction, n_candidates, features, scores, ranking, clicks = row
    return Impression(
        round,
        np.frombuffer(features, "<f4").reshape(n_candidates, -1),
        np.frombuffer(scores, "<f4"),
        np.frombuffer(ranking, "<i4"),
        np.frombuffer(clicks, bool),
        policy,
        seed,
        direction,
    )


def check_impression(impression: Impression) -> None:
    """Refuse what cannot have been shown. Says counts only: what was shown and clicked is personal."""
    n, shown, clicks = len(impression.scores), impression.ranking, impression.is_clicked
    if np.ndim(impression.features) != 2 or len(impression.features) != n or not n:
        raise ValueError(f"features are {np.shape(impression.features)} for {n} scores, must be one row for each.")
    if not (np.isfinite(impression.features).all() and np.isfinite(impression.scores).all()):
        raise ValueError("a feature or a score is not a finite number: such a list cannot be learnt from.")
    if len(shown) != len(clicks) or not len(shown):
        raise ValueError(
            f"{len(shown)} documents and {len(clicks)} click marks came, must be equally many, at least 1."
        )
    if len(np.unique(shown)) != len(shown) or np.min(shown) < 0 or np.max(shown) >= n:
        raise ValueError(f"a ranking names different documents, each from 0 to {n - 1}: this one does not.")
    if impression.policy not in (SAMPLED, SORTED):
        raise ValueError(f"policy is {impression.policy!r}, must be {SAMPLED} or {SORTED}.")
    if (impression.seed is None) != (impression.direction is None) or impression.direction not in (None, 1, -1):
        raise ValueError("a perturbed list has a seed and a direction, 1 or -1; another list has neither.")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """SQLite's errors, with the file's name and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        hint = "Make room or permission and try again; nothing half-written was left."
        if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
            hint = "Name another --home."
        raise StoreError(f"{path}: {error}. {hint}") from error


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
