"""What `chaos.py` promises, checked from the files that the processes left on the disk.

- Every update that a client was told is accepted is in the server's file, byte for byte, once, in a round that was not
  abandoned without the client hearing of it.
- Every update in the server's file is one that its client, or the copy of its home, made, with the weight of the
  impressions that it used up. A client has one update in a round, however many processes it had.
- No home uses an impression twice. An impression counts in two updates only if it was free in the moment in which its
  home was copied: then it lies in both, and neither process can know what the other does with it.
- The ranker after every round is what the accepted updates give: bit for bit with the server's own function and, for
  FPDGD, to rounding with the formula written down here.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.live.device.outbox import REFUSED, SENT, WAITING
from hushrank.live.device.store import STORE
from hushrank.live.server.new_ranker import Body, first_ranker, next_ranker
from hushrank.live.wire.agreement import Agreement, parse_agreement
from hushrank.live.wire.refusals import Reason
from hushrank.types import Array

_SHIFTED_S = 1800.0  # a stamp that lies so far outside of its run is one of a clock that has jumped

_ANSWERED = str(Reason.answered)  # by another process of this client


@dataclass(frozen=True)
class CopiedHome:
    """A client's home that was copied, and what lay in it in that moment."""

    original: Path
    copy: Path
    newest: int  # impression
    free: frozenset[int]  # impressions that no answer had used
    waiting: dict[int, frozenset[int]]  # {round of an answer that waited for its acknowledgement: what it had used}

    def moved(self, home: Path, to: Path) -> CopiedHome:
        """One of the two lies elsewhere now."""
        return replace(self, original=to) if home == self.original else replace(self, copy=to)


@dataclass(frozen=True)
class Files:
    """Where everything lies."""

    server: Path
    homes: list[Path]  # of clients, copies and removed ones among them
    copied: list[CopiedHome]


@dataclass(frozen=True)
class Made:
    """What one home made."""

    client: int  # as the server numbers it
    answers: dict[int, tuple[bytes, float, str, str | None]]  # {round: body, weight, state, reason}
    used: dict[int, int]  # {impression: the round whose answer has used it}


@dataclass(frozen=True)
class Served:
    """What the server's file says."""

    agreement: Agreement
    states: dict[int, str]  # of rounds
    clients: dict[bytes, int]  # {hash of a credential: number}
    counted: dict[int, int]  # {client: updates}
    accepted: dict[tuple[int, int], Body]  # {(round, client): update}
    rankers: dict[int, Array]
    refused: dict[str, int]

    def counts(self, round: int, made: Made) -> bool:
        """Whether this home's answer moved the ranker."""
        body = self.accepted.get((round, made.client))
        return body is not None and body.content == made.answers[round][0] and self.states[round] == "closed"


def is_enrolled(home: Path) -> bool:
    """Whether the client of this home has a credential. Before that a copy is no clone, but a second applicant."""
    return bool(read_row(home, "membership", "credential"))


def read_seen(home: Path) -> int:
    """The newest round that a server told this client of; 0: of none."""
    row = read_row(home, "receipt", "text")
    return int(row[0].split("-")[1]) if row else 0


def read_row(home: Path, table: str, column: str) -> tuple[Any, ...]:
    """The only one, or nothing; a home that was just begun has no tables yet."""
    if not (home / STORE).exists():
        return ()
    with opened(home / STORE) as store:
        if store.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
            return ()
        return store.execute(f"SELECT {column} FROM {table}").fetchone() or ()


def read_copied(original: Path, copy: Path) -> CopiedHome:
    """Right after it was copied."""
    with opened(copy / STORE) as store:
        rows = store.execute("SELECT number, used_in FROM impressions").fetchall()
        waits = store.execute("SELECT round FROM outbox WHERE state = ?", (WAITING,)).fetchall()
    waiting = {round: frozenset(n for n, used_in in rows if used_in == round) for (round,) in waits}
    newest, free = max((n for n, _ in rows), default=0), frozenset(n for n, used_in in rows if used_in is None)
    return CopiedHome(original, copy, newest, free, waiting)


def check_files(files: Files, *, is_clock_shifted: bool = False) -> dict[str, Any]:
    """What was found; raises AssertionError where a promise was broken."""
    served = read_server(files.server)
    made = {home: read_home(home, served) for home in files.homes}
    cloned = {made[pair.copy].client for pair in files.copied}
    n_acknowledged = n_freed = 0
    for home in made.values():
        for round, (_, _, state, reason) in home.answers.items():
            check_answer(served, home, round, is_cloned=home.client in cloned)
            n_acknowledged += state == SENT
            n_freed += state == REFUSED and reason != _ANSWERED
    for (round, client), body in served.accepted.items():
        bodies = [home.answers[round][0] for home in made.values() if home.client == client and round in home.answers]
        assert body.content in bodies, f"round {round}: an update that its client never made was counted"
    for client, n in served.counted.items():
        assert n == sum(c == client for _, c in served.accepted), "a client's count of accepted updates is wrong"
    n_shared = sum(check_copied(served, pair, made[pair.original], made[pair.copy]) for pair in files.copied)
    n_shifted = count_shifted(files)
    assert n_shifted or not is_clock_shifted, "no file has a stamp of a clock that jumped"
    difference = check_rankers(served)
    return {
        "rounds_closed": sum(state == "closed" for state in served.states.values()),
        "rounds_abandoned": sum(state == "abandoned" for state in served.states.values()),
        "updates_accepted": len(served.accepted),
        "acknowledged": n_acknowledged,
        "acknowledged_lost": 0,
        "counted_twice": 0,
        "free_when_copied_and_used_by_both": n_shared,
        "not_counted_and_free_again": n_freed,
        "stamps_of_shifted_clocks": n_shifted,
        "refused": served.refused,
        "rankers_equal_bit_for_bit": len(served.rankers),
        "largest_difference_from_formula": difference,
    }


def read_server(path: Path) -> Served:
    with opened(path) as server:
        agreed = json.loads(server.execute("SELECT agreement FROM federation").fetchone()[0])
        updates = server.execute("SELECT round, client, weight, body FROM updates").fetchall()
        rankers = server.execute("SELECT round, params FROM rankers").fetchall()
        assert len({(r, c) for r, c, _, _ in updates}) == len(updates), "a client has two updates in one round"
        return Served(
            parse_agreement(agreed),
            dict(server.execute("SELECT number, state FROM rounds")),
            dict(server.execute("SELECT credential_hash, id FROM clients")),
            dict(server.execute("SELECT id, accepted FROM clients")),
            {(round, client): Body(weight, body, client) for round, client, weight, body in updates},
            {round: np.frombuffer(params, "<f4") for round, params in rankers},
            dict(server.execute("SELECT reason, n FROM refused")),
        )


def read_home(home: Path, served: Served) -> Made:
    with opened(home / STORE) as store:
        credential = store.execute("SELECT credential FROM membership").fetchone()[0]
        rows = store.execute("SELECT round, body, weight, state, reason FROM outbox").fetchall()
        used = dict(store.execute("SELECT number, used_in FROM impressions WHERE used_in IS NOT NULL"))
    client = served.clients[hashlib.sha256(credential.encode()).digest()]
    answers = {round: (body, weight, state, reason) for round, body, weight, state, reason in rows}
    return Made(client, answers, used)


def check_answer(served: Served, made: Made, round: int, *, is_cloned: bool) -> None:
    """One answer of one home. is_cloned: another process of this client may have answered in its place."""
    (body, weight, state, reason), cell = made.answers[round], (round, made.client)
    is_counted = served.counts(round, made)
    if state == SENT:
        assert cell in served.accepted, f"round {round}: an acknowledged update is lost"
        assert served.accepted[cell].content == body, f"round {round}: another update took its place"
    if state == REFUSED:
        is_by_other = is_cloned and reason == _ANSWERED
        is_answered = cell in served.accepted and served.states[round] == "closed"
        told = f"though its client was told that it was not ({reason})"
        assert not is_counted and (is_by_other or not is_answered), f"round {round}: counted, {told}"
    if is_counted:
        assert state in (SENT, WAITING)
        n_used = sum(used_in == round for used_in in made.used.values())
        assert n_used == served.agreement.interactions, f"round {round}: impressions were lost or repeated"
        if served.agreement.method == "fpdgd":
            assert served.accepted[cell].weight == weight == n_used


def check_copied(served: Served, pair: CopiedHome, original: Made, copy: Made) -> int:
    """How many impressions both homes used, each in an answer that counts; all of them were free when one was made."""
    counted = [
        {number: round for number, round in home.used.items() if served.counts(round, home)}
        for home in (original, copy)
    ]
    free = set(pair.free)
    for round, numbers in pair.waiting.items():
        if not served.counts(round, original):
            free |= numbers
    both = {n for n in counted[0].keys() & counted[1].keys() if n <= pair.newest}
    twice = {n for n in both if counted[0][n] != counted[1][n]}  # Why: one round has one update of this client
    assert twice <= free, "an impression that was used before its home was copied counts again"
    return len(twice)


def count_shifted(files: Files) -> int:
    """Stamps that no true clock can have made during this run."""
    with opened(files.server) as server:
        first = server.execute("SELECT founded_at FROM federation").fetchone()[0]
        stamps = [at for (at,) in server.execute("SELECT opened_at FROM rounds")]
    for home in files.homes:
        with opened(home / STORE) as store:
            stamps += [at for (at,) in store.execute("SELECT made_at FROM outbox")]
    return sum(not first - _SHIFTED_S < at < time.time() + _SHIFTED_S for at in stamps)


def check_rankers(served: Served) -> float | None:
    """Replays every closed round from the accepted updates; the largest difference from the plain formula."""
    agreement, accepted, rankers = served.agreement, served.accepted, served.rankers
    params, state = first_ranker(agreement)
    assert np.array_equal(params, rankers[0])
    largest = 0.0 if agreement.method == "fpdgd" else None
    for round in sorted(r for r, s in served.states.items() if s == "closed"):
        bodies = [accepted[cell] for cell in sorted(accepted) if cell[0] == round]
        before = params
        params, state, _ = next_ranker(agreement, params, state, bodies, round=round)
        assert np.array_equal(params, rankers[round]), f"round {round}: the ranker is not what its updates give"
        if largest is not None:  # weighted mean [fpdgd, Algorithm 2]
            deltas = np.array([np.frombuffer(body.content, "<f4") for body in bodies], np.float64)
            weights = np.array([body.weight for body in bodies])
            wanted = before + agreement.server_rate * (weights @ deltas) / weights.sum()
            largest = max(largest, float(np.abs(wanted - params).max()))
            assert np.allclose(wanted, params, atol=1e-5), f"round {round}: the ranker is not the mean of its updates"
    return largest


def count_closed(server: Path) -> int:
    """Rounds, so far."""
    with opened(server) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM rounds WHERE state = 'closed'").fetchone()[0])


def read_newest(server: Path) -> int:
    """The number of the newest round, which may be open."""
    with opened(server) as connection:
        return int(connection.execute("SELECT COALESCE(MAX(number), 0) FROM rounds").fetchone()[0])


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        yield connection
    finally:
        connection.close()
