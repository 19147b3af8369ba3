"""A running federation: what clients ask, answered from memory; what must not be lost, written first.

It lives on one event loop. The rounds (`rounds.py`) say what is due, the writer (`writer.py`) makes it last, and only
then does memory change and anybody hear of it. After a start, and after trouble with the disk, memory is made anew from
the file.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.config import ServerConfig, rules_of
from hushrank.live.server.counters import Counters
from hushrank.live.server.limits import limits_of
from hushrank.live.server.new_ranker import draws_of, next_ranker
from hushrank.live.server.polls import Polls
from hushrank.live.server.rounds import RoundPhase, Rounds
from hushrank.live.server.writer import Writer
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.messages import LastAnswer, Outcome, Reason, RefusedError, RoundNews, Standing, is_secret
from hushrank.live.wire.terms import price_of, ranker_of
from hushrank.rankers.named import pack_ranker
from hushrank.streams import Purpose, draw_bits, fold_in, stream
from hushrank.types import Array, NamedArrays

_LOOK_AGAIN_S = 1.0  # after trouble with the disk
Tell = Callable[..., None]  # tell("round-closed", round=3, answers=20, ...): never anything about one client


@dataclass(slots=True)
class Caller:
    """A client as the server knows it."""

    id: int
    accepted: int
    last_round: int | None
    has_left: bool


class PublishedRanker(NamedTuple):
    """The ranker as clients get it."""

    round: int  # that it is for
    content: bytes
    etag: str


class Ended(NamedTuple):
    """What the end of a round left on the disk."""

    outcome: Outcome
    params: Array
    state: NamedArrays


class Found(NamedTuple):
    """What the file says."""

    rounds: store.Restored
    members: list[store.Member]
    ranker: tuple[Array, NamedArrays]


class Coordinator:
    """One federation. `start` before use, `stop` after."""

    def __init__(
        self,
        engine: sa.Engine,
        config: ServerConfig,
        *,
        digest_key: bytes,
        tell: Tell = lambda *_, **__: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        with engine.begin() as connection:
            self.agreement: Agreement = store.read_agreement(connection)
        self.limits = limits_of(self.agreement, max_norm=config.max_norm)
        self.rules = rules_of(self.agreement, config)
        self.digest = self.agreement.digest
        self.counters = Counters()
        self.is_stopping = self.is_in_trouble = False
        self._config, self._engine, self._digest_key = config, engine, digest_key
        self._tell, self._clock = tell, clock
        self._ranker, self._price = ranker_of(self.agreement), price_of(self.agreement)
        self._unwritten: Counter[str] = Counter()  # refusals that the file does not know of
        self.polls = Polls()
        self.rounds = Rounds(self.rules)
        self._opened_at = 0.0
        self._published: PublishedRanker | None = None
        self._in_flight: dict[int, asyncio.Future[None]] = {}  # {client: its update on the way to the disk}
        self._timer: asyncio.TimerHandle | None = None
        self._is_busy = self._is_look_due = False

    # Life

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.writer = Writer(self._engine, self._loop, commit_s=self.counters.commit_s)
        self._restore(await self.writer.write(_read_all))
        self._look()

    async def stop(self) -> None:
        """Write what waits; nothing is accepted from `begin_stop` on."""
        self.begin_stop()
        left, self._unwritten = self._unwritten, Counter()
        counted = self.writer.write(lambda connection: store.add_refusals(connection, left))
        await asyncio.gather(counted, return_exceptions=True)
        await self.writer.stop()

    def begin_stop(self) -> None:
        """Refuse what is new and answer who waits."""
        self.is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        self.polls.wake()

    def _restore(self, found: Found) -> None:
        """Memory from the file. Who was awake stays so; an open round gets its whole time again."""
        now, seen = self._clock(), self.rounds.members
        self._params, self._state = found.ranker
        self._callers = {m.credential_hash: Caller(m.id, m.accepted, m.last_round, m.has_left) for m in found.members}
        self._abandoned, self._digests = found.rounds.abandoned, dict(found.rounds.digests)
        self._published, self._opened_at = None, now
        self.rounds = Rounds(self.rules, number=found.rounds.number, n_closed=found.rounds.n_closed)
        for member in found.members:
            if not member.has_left:
                self.rounds.join(member.id, seen.get(member.id, -np.inf))  # Why: asleep until it calls
        if found.rounds.is_open:
            self.rounds.resume(found.rounds.asked, found.rounds.digests, now)

    # Who calls

    def identify(self, credential: str | None, *, or_left: bool = False) -> Caller:
        """The client of a credential. All others are refused alike."""
        is_known = credential is not None and is_secret(credential)
        caller = self._callers.get(store.hash_secret(credential or "")) if is_known else None
        if caller is None or (caller.has_left and not or_left):
            raise RefusedError(Reason.credential, "no client has this credential: enrol first.")
        self.rounds.see(caller.id, self._clock())
        if self.rounds.phase is RoundPhase.idle:
            self._look_soon()
        return caller

    async def enrol(self, token: str, credential: str) -> Standing:
        """Idempotent: a client whose answer was lost asks again with the same two."""
        self._refuse_if_stopping()
        hashes = store.hash_secret(token), store.hash_secret(credential)
        member = await self._write(lambda connection: store.enrol_client(connection, *hashes, now=time.time()))
        caller = self._callers.get(hashes[1])
        if caller is None:
            caller = Caller(member.id, member.accepted, member.last_round, member.has_left)
            self._callers[hashes[1]] = caller
            self.rounds.join(caller.id, self._clock())
            self._tell("enrolled", clients=len(self.rounds.members))
            self._look_soon()
        return self.standing(caller)

    async def leave(self, caller: Caller) -> None:
        if not caller.has_left:
            await self._write(lambda connection: store.leave_client(connection, caller.id, now=time.time()))
            caller.has_left = True
            self.rounds.leave(caller.id)
            self._tell("left", clients=len(self.rounds.members))
            self._look_soon()

    def standing(self, caller: Caller) -> Standing:
        return Standing(caller.accepted, self._last(caller))

    def _last(self, caller: Caller) -> LastAnswer | None:
        if caller.last_round is None:
            return None
        is_open = caller.last_round == self.rounds.number and self.rounds.phase not in (
            RoundPhase.idle,
            RoundPhase.finished,
        )
        is_abandoned = caller.last_round in self._abandoned
        outcome = Outcome.open if is_open else Outcome.abandoned if is_abandoned else Outcome.closed
        return LastAnswer(caller.last_round, outcome)

    # What they ask

    async def wait_for_round(self, caller: Caller, *, after: int, wait_s: float) -> RoundNews | None:
        """News of a round after the named one, as soon as there is one; None: there is none yet."""
        until = self._clock() + wait_s
        while (news := self._news(caller, after)) is None:
            self._refuse_if_stopping()
            left = until - self._clock()
            if left <= 0 or not await self.polls.wait(caller.id, left):
                return None
        return news

    def _news(self, caller: Caller, after: int) -> RoundNews | None:
        rounds = self.rounds
        if rounds.phase is RoundPhase.finished:
            return RoundNews(None, None, is_asked=False, last=self._last(caller))
        if not rounds.is_open or rounds.number <= after:
            return None
        closes_in_s = round(max(rounds.closes_at - self._clock(), 0.0), 3)
        return RoundNews(rounds.number, closes_in_s, caller.id in rounds.asked, self._last(caller))

    def published(self, round: int | None) -> PublishedRanker:
        """The ranker of the open round, or of the next one if none is open."""
        is_over = self.rounds.phase in (RoundPhase.idle, RoundPhase.finished)
        current = self.rounds.number + is_over
        if round not in (None, current):
            raise RefusedError(Reason.round, "there is no ranker of this round: ask for the newest.")
        if self._published is None or self._published.round != current:
            origin = {"agreement": self.digest, "round": current}
            content = pack_ranker(self._ranker, self._params, origin=origin)
            self._published = PublishedRanker(current, content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
        return self._published

    # What they send

    async def take_update(self, caller: Caller, round: int, weight: int, body: bytes) -> bool:
        """Count an update that is good in itself, once. True: the very same was counted before."""
        self._refuse_if_stopping()
        if self.is_in_trouble:
            raise RefusedError(Reason.disk, "the server cannot write to its disk: try again.", retry_after_s=5)
        digest = store.digest_body(body, self._digest_key)
        if round == self.rounds.number and caller.id in self._digests:
            return await self._take_again(caller, digest)
        try:
            self.rounds.reserve(caller.id, round, self._clock())
        except RefusedError as refused:
            if refused.reason is not Reason.late:
                raise
            return await self._take_late(caller, round, digest, refused)
        self._digests[caller.id] = digest
        written = self.writer.write_update(store.UpdateRow(round, caller.id, weight, digest, body))
        self._in_flight[caller.id] = written
        written.add_done_callback(lambda done: self._settle(caller, round, done.exception()))
        await asyncio.shield(written)  # Why: whoever waits may go; the update is counted or not all the same
        return False

    async def _take_again(self, caller: Caller, digest: bytes) -> bool:
        if self._digests[caller.id] != digest:
            raise RefusedError(Reason.answered, "another update of this client counts in this round.")
        if caller.id in self._in_flight:
            await asyncio.shield(self._in_flight[caller.id])
        return True

    async def _take_late(self, caller: Caller, round: int, digest: bytes, refused: RefusedError) -> bool:
        """An answer to a round that is over: perhaps it was counted, and only the acknowledgement was lost."""
        known = await self._write(lambda connection: store.find_digest(connection, round, caller.id))
        if known is None:
            raise refused
        if known != digest:
            raise RefusedError(Reason.answered, "another update of this client counts in this round.")
        return True

    def _settle(self, caller: Caller, round: int, error: BaseException | None) -> None:
        """An update is on the disk, or could not be written."""
        del self._in_flight[caller.id]
        if error is None:
            caller.accepted, caller.last_round = caller.accepted + 1, round
            self.counters.n_accepted += 1
            self.rounds.confirm(caller.id)
        else:
            self._digests.pop(caller.id, None)
            self.rounds.release(caller.id)
            self._begin_trouble()
        self._look_soon()

    def count_refusal(self, reason: Reason) -> None:
        self.counters.refused[reason] += 1
        self._unwritten[reason] += 1

    def read_counts(self) -> dict[str, int]:
        """From the file, before the start: how many clients there are, and which round is next."""
        with self._engine.begin() as connection:
            found = _read_all(connection)
        n_clients = sum(not member.has_left for member in found.members)
        return {"clients": n_clients, "round": found.rounds.number + (not found.rounds.is_open)}

    def describe_now(self) -> str:
        """The open round, for a person who watches; may be called from another thread."""
        rounds, refused = self.rounds, sum(self._unwritten.values())
        if rounds.phase is RoundPhase.finished:
            return f"finished after {rounds.n_closed} rounds"
        if not rounds.is_open:
            return f"{rounds.phase}: {len(rounds.members)} clients, a round needs {self.rules.fewest} that are awake"
        answers = f"{len(rounds.answered)}/{len(rounds.asked)} answers"
        return f"round {rounds.number}: {answers}, {self._clock() - self._opened_at:.0f} s, {refused} refused"

    def now(self) -> float:
        """In seconds of a clock that does not jump."""
        return self._clock()

    def gauges(self) -> dict[str, float]:
        """What goes up and down, for the operator."""
        rounds = self.rounds
        return {
            "round": rounds.number,
            "rounds_closed": rounds.n_closed,
            "clients_enrolled": len(rounds.members),
            "clients_awake": len(rounds.candidates(self._clock())),
            "clients_asked": len(rounds.asked),
            "clients_answered": len(rounds.answered),
            "polls": len(self.polls),
            "disk_trouble": self.is_in_trouble,
        }

    def _refuse_if_stopping(self) -> None:
        if self.is_stopping:
            raise RefusedError(Reason.stopping, "the server is stopping: try again in a moment.", retry_after_s=2)

    async def _write(self, work: Callable[[sa.Connection], Any]) -> Any:
        try:
            return await asyncio.shield(self.writer.write(work))
        except RefusedError as refused:
            if refused.reason is Reason.disk:
                self._begin_trouble()
            raise

    # What is due

    def _look_soon(self) -> None:
        """Once for all that happens in this turn of the loop."""
        if not self._is_look_due:
            self._is_look_due = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """End or open a round if that is due, or come back when it may be."""
        self._is_look_due = False
        if self._timer is not None:
            self._timer.cancel()
        if self.is_stopping or self.is_in_trouble or self._is_busy:
            return
        now = self._clock()
        if (outcome := self.rounds.decide(now)) is not None:
            self._end_round(outcome, now)
        elif self.rounds.may_open(now):
            opening = store.Opening(self.rounds.number + 1, self._choose(now, self.rounds.number + 1))
            self._begin(lambda connection: store.open_round(connection, opening, now=time.time()), opening, None)
        elif (seconds := self.rounds.next_look(now)) is not None:
            self._timer = self._loop.call_later(seconds, self._look)

    def _end_round(self, outcome: Outcome, now: float) -> None:
        """The end of this round and, where it may, the beginning of the next in one transaction."""
        number, params, state = self.rounds.number, self._params, self._state
        opening = None
        if self.rounds.may_follow(outcome, now):
            opening = store.Opening(number + 1, self._choose(now, number + 1))
        refused, self._unwritten = self._unwritten, Counter()

        def work(connection: sa.Connection) -> Ended:
            made = self._make_ranker(connection, number, params, state) if outcome is Outcome.closed else None
            closing = store.Closing(number, made, self._price, keep_updates=self._config.keep_updates)
            store.close_round(connection, closing, now=time.time())
            store.add_refusals(connection, refused)
            if opening is not None:
                store.open_round(connection, opening, now=time.time())
            return Ended(Outcome.closed, *made) if made else Ended(Outcome.abandoned, params, state)

        self._begin(work, opening, refused)

    def _make_ranker(
        self, connection: sa.Connection, number: int, params: Array, state: NamedArrays
    ) -> tuple[Array, NamedArrays] | None:
        """Of the round's updates; None where they make none, so that the round is abandoned and the next one opens."""
        bodies = store.read_bodies(connection, number)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                made = next_ranker(self.agreement, params, state, bodies, round=number)
        except ValueError:  # Why: what was checked at the door cannot fail here, but a round must never stall
            return None
        return made if np.isfinite(made[0]).all() else None

    def _begin(
        self, work: Callable[[sa.Connection], Ended | None], opening: store.Opening | None, refused: Counter[str] | None
    ) -> None:
        """Write the end or the beginning of a round; memory follows when it is on the disk."""
        self._is_busy = True

        def finish(done: asyncio.Future[Ended | None]) -> None:
            self._is_busy = False
            error = done.exception()
            if error is not None:
                self._unwritten.update(refused or {})
                self._tell("write-failed", error=type(error).__name__)
                self._begin_trouble()
                return
            if (ended := done.result()) is not None:
                self._note_end(ended, refused or Counter())
            if opening is not None:
                self._note_opening(opening)
            self.polls.wake()
            self._look_soon()

        self.writer.write(work).add_done_callback(finish)

    def _note_end(self, ended: Ended, refused: Counter[str]) -> None:
        rounds, now = self.rounds, self._clock()
        self._params, self._state = ended.params, ended.state
        if ended.outcome is Outcome.abandoned:
            self._abandoned.add(rounds.number)
        rounds.end(ended.outcome, now)
        self.counters.rounds[ended.outcome] += 1
        self.counters.round_s.add(now - self._opened_at)
        self._tell(
            f"round-{ended.outcome}",
            round=rounds.number,
            answers=len(rounds.answered),
            asked=len(rounds.asked),
            seconds=now - self._opened_at,
            refused=dict(refused),
        )
        if rounds.phase is RoundPhase.finished:
            self._tell("finished", rounds=rounds.n_closed)

    def _note_opening(self, opening: store.Opening) -> None:
        self._opened_at, self._digests = self._clock(), {}
        self.rounds.open(opening.asked, self._opened_at)

    def _choose(self, now: float, round: int) -> list[int]:
        """Whom the round asks: everybody who is awake, or those with the smallest draws."""
        awake = self.rounds.candidates(now)
        if self.rules.cohort is None or self.rules.cohort >= len(awake):
            return awake
        keys = fold_in(stream(draws_of(self.agreement), Purpose.COHORT, round), np.array(awake))
        order = np.argsort(np.ravel(draw_bits(keys, 1)), kind="stable")
        return sorted(awake[place] for place in order[: self.rules.cohort])

    # Trouble with the disk

    def _begin_trouble(self) -> None:
        """Accept nothing until something could be written again; what is true then stands in the file."""
        if not self.is_in_trouble:
            self.is_in_trouble = True
            self._tell("disk-trouble")
            self._loop.call_later(_LOOK_AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        def finish(done: asyncio.Future[Any]) -> None:
            if done.exception() is not None:
                self._loop.call_later(_LOOK_AGAIN_S, self._try_again)
                return
            self._restore(done.result())
            self.is_in_trouble = self._is_busy = False
            self._tell("disk-works")
            self.polls.wake()
            self._look_soon()

        if not self.is_stopping:
            self.writer.write(_probe).add_done_callback(finish)


def _read_all(connection: sa.Connection) -> Found:
    return Found(store.restore_rounds(connection), store.read_members(connection), store.read_ranker(connection))


def _probe(connection: sa.Connection) -> Found:
    """Everything from the file, and proof that it can be written to."""
    store.add_refusals(connection, {Reason.disk: 0})
    return _read_all(connection)
