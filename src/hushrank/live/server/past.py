"""A federation's file that was restored from an older copy, recognised by what clients have seen of later rounds.

Or of rounds that were held on another copy: where a server has run on an old one for a while, clients may have been
told of a round, and answers taken, that the newer file does not hold once it is back.

Each start of a server has a random name, which is on the disk before anybody hears of it. With the news of a round goes
a receipt: the start, the round, and a seal made with a key that is not in the file. A client shows its newest receipt
with every request. One of a start, or of a round, that the file does not hold proves that rounds are missing; a client
cannot make one up. From then on no round opens until the operator decides (`hushrank server recover`).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlalchemy as sa

from hushrank.live.server.schema import ASKED, MISSING, ROUNDS, STARTS, UPDATES
from hushrank.live.server.store import forget_noise
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.refusals import Reason, RefusedError

WHY_BEHIND = "it was restored from an older copy, or the server has run on another copy of it"


@dataclass(frozen=True, slots=True)
class Past:
    """What the file knows of its own past."""

    starts: Mapping[str, int]  # {name of a start: the newest round when it began}, in order
    skipped: int  # up to this round missing ones were given up; 0: none
    missing: int | None  # the highest round that a client has seen and the file lacks, until somebody decides

    @property
    def start(self) -> str:
        """The newest."""
        return tuple(self.starts)[-1]

    def lacks(self, start: str, round: int, *, newest: int) -> bool:
        """Whether this receipt is of a round that the file does not hold; newest: the round that is newest now."""
        names = tuple(self.starts)
        if start not in self.starts:
            return round > self.skipped
        after = names.index(start) + 1
        last = self.starts[names[after]] if after < len(names) else newest
        return round > max(last, self.skipped)

    def compare(self, found: tuple[str, int] | None, *, newest: int) -> Past:
        """With the round of a receipt as missing, if the file lacks it."""
        if found is None or not self.lacks(*found, newest=newest):
            return self
        return replace(self, missing=max(found[1], self.missing or 0))

    def decides(self, before: Past) -> bool:
        """Whether somebody has given up what was missing before. Why not its absence: it may not have been written."""
        return self.missing is None and self.skipped >= (before.missing or 0)

    def refuse_if_behind(self) -> None:
        """Nothing goes on until somebody has decided."""
        if self.missing is not None:
            raise RefusedError(
                Reason.behind,
                f"clients have seen round {self.missing}, which this server's file lacks: {WHY_BEHIND}. Whoever runs "
                "the server must decide what to do.",
                retry_after_s=30,
            )


@lru_cache(maxsize=8)  # Why: everybody is told of the same round
def make_receipt(key: bytes, start: str, round: int) -> str:
    return f"{start}-{round}-{_seal(key, start, round)}"


def read_receipt(key: bytes, text: str) -> tuple[str, int] | None:
    """Start and round; None: this federation's server never wrote it."""
    start, _, rest = text.partition("-")
    number, _, seal = rest.partition("-")
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        return None
    is_own = hmac.compare_digest(seal.encode(), _seal(key, start, int(number)).encode())
    return (start, int(number)) if is_own else None


def _seal(key: bytes, start: str, round: int) -> str:
    return hashlib.blake2b(f"{start}-{round}".encode(), key=key, digest_size=12, person=b"hushrank receipt").hexdigest()


def read_past(connection: sa.Connection) -> Past:
    starts = {row.name: row.round for row in connection.execute(sa.select(STARTS).order_by(STARTS.c.number))}
    missing = connection.execute(sa.select(MISSING).order_by(MISSING.c.round)).all()
    skipped = max((row.round for row in missing if row.decided_at is not None), default=0)
    undecided = max((row.round for row in missing if row.decided_at is None), default=None)
    return Past(starts, skipped, undecided)


def begin_start(connection: sa.Connection) -> Past:
    """One more start, with a name of its own. Its noise takes back nothing of what was added before: the file may be an
    older copy, and whoever could show that may come too late."""
    forget_noise(connection)
    newest = connection.execute(sa.select(sa.func.max(ROUNDS.c.number))).scalar_one() or 0
    connection.execute(sa.insert(STARTS).values(name=os.urandom(8).hex(), round=newest))
    return read_past(connection)


def note_missing(connection: sa.Connection, round: int) -> None:
    """Clients have seen this round, and the file lacks it."""
    if connection.execute(sa.select(MISSING).where(MISSING.c.round == round)).one_or_none() is None:
        connection.execute(sa.insert(MISSING).values(round=round))


def skip_missing(connection: sa.Connection) -> int:
    """Give the missing rounds up; the highest round, of this file or that a client has seen. The next one follows it.

    An open round is abandoned, and its updates are wiped. The ranker stays the one of the file.
    """
    past, now = read_past(connection), time.time()
    if past.missing is None:
        raise ValueError("no client has shown a round that this federation's file lacks: there is nothing to decide.")
    open_rounds = connection.execute(sa.select(ROUNDS.c.number).where(ROUNDS.c.state == Outcome.open)).scalars().all()
    abandoned = {"state": Outcome.abandoned, "closed_at": now, "n_accepted": 0}
    connection.execute(sa.update(ROUNDS).where(ROUNDS.c.state == Outcome.open).values(abandoned))
    connection.execute(sa.delete(ASKED))
    connection.execute(sa.update(UPDATES).where(UPDATES.c.round.in_(open_rounds)).values(body=None))
    newest = connection.execute(sa.select(sa.func.max(ROUNDS.c.number))).scalar_one() or 0
    if newest < past.missing:
        connection.execute(sa.insert(ROUNDS).values(number=past.missing, opened_at=now, n_asked=0, **abandoned))
    connection.execute(sa.update(MISSING).where(MISSING.c.decided_at.is_(None)).values(decided_at=now))
    forget_noise(connection)
    return int(max(newest, past.missing))
