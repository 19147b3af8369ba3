"""A running federation: what clients ask, answered from memory; what must not be lost, written first.

It lives on one event loop. The rounds (`rounds.py`) say what is due, the writer (`writer.py`) makes it last, and only
then does memory change and anybody hear of it. After a start, and after trouble with the disk, memory is made anew from
the file.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.clients import KnownClient, know_client, know_clients
from hushrank.live.server.closing import RoundEnd, RoundResult, write_end
from hushrank.live.server.cohort import choose_cohort
from hushrank.live.server.config import ServerConfig, rules_of
from hushrank.live.server.counters import Counters
from hushrank.live.server.events import Tell
from hushrank.live.server.gauges import describe_rounds, read_gauges
from hushrank.live.server.held_file import Loss
from hushrank.live.server.limits import limits_of
from hushrank.live.server.long_polls import LongPolls
from hushrank.live.server.past import Past, begin_start, make_receipt, note_missing, read_past, read_receipt
from hushrank.live.server.publication import PublishedRanker, publish_ranker
from hushrank.live.server.received import COUNTED, count_refused
from hushrank.live.server.rounds import Rounds, RoundState
from hushrank.live.server.snapshot import Snapshot, probe_disk, read_snapshot
from hushrank.live.server.writer import Writer
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import Outcome, RoundNews, Standing
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import price_of

_TRY_AGAIN_S = 1.0  # after trouble with the disk
_LOOK_AGAIN_S = 2.0  # for the operator's decision


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
        self.trouble = "the server cannot write to its disk."  # while it is in trouble
        self._config, self._engine, self._digest_key = config, engine, digest_key
        self._tell, self._clock = tell, clock
        self._price = price_of(self.agreement)
        self._unwritten: Counter[str] = Counter()  # refusals that the file does not know of
        self._watched: dict[str, Callable[[], float]] = {}  # gauges of others
        self.polls, self._clients = LongPolls(), dict[bytes, KnownClient]()
        self.rounds = Rounds(self.rules)
        self._opened_at = 0.0
        self._published: PublishedRanker | None = None
        self._in_flight: dict[tuple[str, int], asyncio.Future[None]] = {}  # {(phase, client): on the way to the disk}
        self._timer: asyncio.TimerHandle | None = None
        self._is_busy = self._is_check_due = self._is_looking = False

    # Life

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.writer = Writer(self._engine, self._loop, commit_s=self.counters.commit_s, note_loss=self._note_loss)
        self.past = await self.writer.write(begin_start)
        self._restore(await self.writer.write(read_snapshot))
        self._check_rounds()

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

    def _restore(self, found: Snapshot) -> None:
        """Memory from the file. Who was awake stays so; an open round gets its whole time again."""
        now, seen, history = self._clock(), self.rounds.members, self.rounds.history
        (self._params, self._state), self.counters.evidence = found.ranker, found.evidence
        self._clients = know_clients(found.members, self._clients)
        self._abandoned, self._digests = found.rounds.abandoned, dict(found.rounds.digests)
        self._published, self._opened_at = None, now
        self.rounds = Rounds(self.rules, found.rounds.number, found.rounds.n_closed, history=history)
        for member in found.members:
            if not member.has_left:
                when = seen.get(member.id, -np.inf)  # Why: asleep until it calls
                self.rounds.join(member.id, when, answered=member.last_round)
        if found.rounds.is_open:
            self.rounds.resume(found.rounds.asked, found.rounds.answered, now)
        self.rounds.finish_if_enough()

    # Who calls

    def identify(self, credential: str | None, *, or_left: bool = False) -> KnownClient:
        """The client of a credential. All others are refused alike."""
        client = None if credential is None else self._clients.get(store.hash_secret(credential))
        if client is None or (client.has_left and not or_left):
            raise RefusedError(Reason.credential, "no client has this credential: enrol first.")
        self.rounds.see(client.id, self._clock())
        if self.rounds.state is RoundState.idle:
            self._check_soon()
        return client

    async def enrol(self, token: str, credential: str) -> Standing:
        """Idempotent: a client whose answer was lost asks again with the same two."""
        self._refuse_if_stopping()
        hashes = store.hash_secret(token), store.hash_secret(credential)
        member = await self._write(lambda connection: store.enrol_client(connection, *hashes, now=time.time()))
        client = self._clients.get(hashes[1])
        if client is None:
            client = know_client(member)
            self._clients[hashes[1]] = client
            self.rounds.join(client.id, self._clock())
            self._tell("enrolled", clients=len(self.rounds.members))
            self._check_soon()
        return self.standing(client)

    async def leave(self, client: KnownClient) -> None:
        if not client.has_left:
            await self._write(lambda connection: store.leave_client(connection, client.id, now=time.time()))
            client.has_left = True
            self.rounds.leave(client.id)
            self._tell("left", clients=len(self.rounds.members))
            self._check_soon()

    def standing(self, client: KnownClient) -> Standing:
        last = client.last(self.rounds, self._abandoned)
        return Standing(client.accepted, last, client.accepted + client.refused)

    # What they ask

    async def wait_for_round(self, client: KnownClient, *, after: int, wait_s: float) -> RoundNews | None:
        """News of a round after the named one, as soon as there is one; None: there is none yet."""
        until = self._clock() + wait_s
        while (news := self._news(client, after)) is None:
            self._refuse_if_stopping()
            self.past.refuse_if_behind()
            left = until - self._clock()
            if left <= 0:
                return None
            await self.polls.wait(client.id, left)
        return news

    def _news(self, client: KnownClient, after: int) -> RoundNews | None:
        rounds, last = self.rounds, client.last(self.rounds, self._abandoned)
        if rounds.state is RoundState.finished:
            return RoundNews(None, None, is_asked=False, last=last)
        if not rounds.is_open or rounds.number <= after:
            return None
        closes_in_s = round(max(rounds.closes_at - self._clock(), 0.0), 3)
        receipt = make_receipt(self._digest_key, self.past.start, rounds.number)
        return RoundNews(rounds.number, closes_in_s, client.id in rounds.asked, last, receipt)

    def published(self, round: int | None) -> PublishedRanker:
        """The ranker of the open round, or of the next one if none is open."""
        current = self.rounds.number + self.rounds.is_over
        if round not in (None, current):
            raise RefusedError(Reason.round, "there is no ranker of this round: ask for the newest.")
        if self._published is None or self._published.round != current:
            self._published = publish_ranker(self.agreement, self._params, round=current)
        return self._published

    # What they send

    async def take_update(self, client: KnownClient, round: int, phase: str, weight: int, body: bytes) -> bool:
        """Count an update that is good in itself, once. True: the very same was counted before."""
        row = store.UpdateRow(round, phase, client.id, weight, store.digest_body(body, self._digest_key), body)
        try:
            return await self._take_update(client, row)
        except RefusedError as refused:
            if refused.reason in COUNTED:
                client.refused = await self._write(lambda connection: count_refused(connection, row))
            raise

    async def _take_update(self, client: KnownClient, row: store.UpdateRow) -> bool:
        self._refuse_if_stopping()
        self.past.refuse_if_behind()
        if self.is_in_trouble:
            raise RefusedError(Reason.disk, "the server cannot write to its disk: try again.", retry_after_s=5)
        if row.round == self.rounds.number and row.key in self._digests:
            return await self._take_again(row)
        try:
            self.rounds.reserve(client.id, row.round, self._clock())
        except RefusedError as refused:
            if refused.reason is not Reason.late:
                raise
            return await self._take_late(row, refused)
        self._digests[row.key] = row.digest
        written = self._in_flight[row.key] = self.writer.write_update(row)
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
        known = await self._write(lambda connection: store.find_digest(connection, row.round, *row.key))
        if known is None:
            raise refused
        if known != row.digest:
            raise RefusedError(Reason.answered, "another update of this client counts in this round.")
        return True

    def _settle(self, client: KnownClient, row: store.UpdateRow, error: BaseException | None) -> None:
        """An update is on the disk, or could not be written."""
        del self._in_flight[row.key]
        if error is None:
            client.accepted, client.last_round = client.accepted + 1, row.round
            self.counters.n_accepted += 1
            self.rounds.confirm(client.id)
        else:
            self._digests.pop(row.key, None)
            self.rounds.release(client.id)
            self._begin_trouble()
        self._check_soon()

    def count_refusal(self, reason: Reason) -> None:
        self.counters.refused[reason] += 1
        self._unwritten[reason] += 1

    def read_counts(self) -> dict[str, int]:
        """From the file, before the start."""
        with self._engine.begin() as connection:
            return read_snapshot(connection).counts

    def describe_now(self) -> str:
        """The open round, for a person who watches; may be called from another thread."""
        seconds = self._clock() - self._opened_at
        return describe_rounds(self.rounds, seconds=seconds, n_refused=sum(self._unwritten.values()))

    def now(self) -> float:
        """In seconds of a clock that does not jump."""
        return self._clock()

    def gauges(self) -> dict[str, float]:
        """What goes up and down, for the operator."""
        rounds = read_gauges(self.rounds, now=self._clock())
        watched = {name: read() for name, read in self._watched.items()}
        return {**rounds, "polls": len(self.polls), "disk_trouble": self.is_in_trouble, **watched}

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """One more gauge."""
        self._watched[name] = read

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

    def _check_soon(self) -> None:
        """Once for all that happens in this turn of the loop."""
        if not self._is_check_due:
            self._is_check_due = True
            self._loop.call_soon(self._check_rounds)

    def _check_rounds(self) -> None:
        """End or open a round if that is due, or come back when it may be."""
        self._is_check_due = False
        if self._timer is not None:
            self._timer.cancel()
        if self.is_stopping or self.is_in_trouble or self._is_busy:
            return
        if self.is_behind:
            self._look_soon()
            return
        now = self._clock()
        if (outcome := self.rounds.decide(now)) is not None:
            self._end_round(outcome, now)
        elif self.rounds.may_open(now):
            opening = self._make_opening(now)
            self._begin(lambda connection: store.open_round(connection, opening, now=time.time()), opening, None)
        elif (seconds := self.rounds.next_check(now)) is not None:
            self._timer = self._loop.call_later(seconds, self._check_rounds)

    def _end_round(self, outcome: Outcome, now: float) -> None:
        """The end of this round and, where it may, the beginning of the next in one transaction."""
        number, opening = self.rounds.number, None
        if self.rounds.may_follow(outcome, now):
            opening = self._make_opening(now)
        refused, self._unwritten = self._unwritten, Counter()
        keeps, holds = self._config.keep_updates, self._config.hold_back
        end = RoundEnd(number, outcome, self._params, self._state, self._price, keeps, refused, opening, holds)
        self._begin(lambda connection: write_end(connection, self.agreement, end), opening, refused)

    def _make_opening(self, now: float) -> store.Opening:
        """The next round, and whom it asks."""
        number, invited = self.rounds.next_number(now), self.rounds.invite(now)
        return store.Opening(number, choose_cohort(self.agreement, invited, size=self.rules.cohort, round=number))

    def _begin(
        self,
        work: Callable[[sa.Connection], RoundResult | None],
        opening: store.Opening | None,
        refused: Counter[str] | None,
    ) -> None:
        """Write the end or the beginning of a round; memory follows when it is on the disk."""
        self._is_busy = True

        def finish(done: asyncio.Future[RoundResult | None]) -> None:
            self._is_busy = False
            error = done.exception()
            if error is not None:
                self._unwritten.update(refused or {})
                self._tell("write-failed", error=type(error).__name__)
                self._begin_trouble()
                return
            if (result := done.result()) is not None:
                self._note_end(result, refused or Counter())
            if opening is not None:
                self._note_opening(opening)
            self.polls.wake()
            self._check_soon()

        self.writer.write(work).add_done_callback(finish)

    def _note_end(self, result: RoundResult, refused: Counter[str]) -> None:
        rounds, now = self.rounds, self._clock()
        self._params, self._state = result.params, result.state
        if result.outcome is Outcome.abandoned:
            self._abandoned.add(rounds.number)
        rounds.end(result.outcome, now)
        self.counters.rounds[result.outcome] += 1
        self.counters.round_s.add(now - self._opened_at)
        self._tell(
            f"round-{result.outcome}",
            round=rounds.number,
            answers=len(rounds.answered),
            asked=len(rounds.asked),
            seconds=now - self._opened_at,
            refused=dict(refused),
            **result.facts(),
        )
        self.counters.lengths, self.counters.evidence = result.lengths, result.evidence
        if result.is_held:
            self._tell("held-back", round=rounds.number, step=result.lengths and result.lengths.step)
        if rounds.state is RoundState.finished:
            self._tell("finished", rounds=rounds.n_closed)

    def _note_opening(self, opening: store.Opening) -> None:
        self._opened_at, self._digests = self._clock(), {}
        self.rounds.open(opening.asked, self._opened_at, number=opening.number)

    # A past that is missing

    @property
    def is_behind(self) -> bool:
        """Whether clients have seen rounds that the file lacks, and nobody has decided what becomes of them."""
        return self.past.missing is not None

    def compare_past(self, receipt: str | None) -> None:
        """Recognise a file that was restored from an older copy."""
        before, found = self.past.missing, None if receipt is None else read_receipt(self._digest_key, receipt)
        self.past = self.past.compare(found, newest=self.rounds.number)
        if (missing := self.past.missing) is not None and missing != before:
            self._tell("behind", seen=missing, round=self.rounds.number)
            self.writer.write(lambda connection: note_missing(connection, missing))
            self.polls.wake()
            self._check_soon()

    def _look_soon(self) -> None:
        """Once at a time. Why no timer that is set anew: whoever asks often would put it off for ever."""
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_later(_LOOK_AGAIN_S, self._look_for_decision)

    def _look_for_decision(self) -> None:
        def finish(done: asyncio.Future[tuple[Past, Snapshot]]) -> None:
            self._is_looking = False
            if done.exception() is None and done.result()[0].decides(self.past):
                self.past, found = done.result()
                self._restore(found)
                self._tell("decided", round=self.rounds.number + 1)
                self.polls.wake()
            self._check_soon()

        if not self.is_stopping:
            look = self.writer.write(lambda connection: (read_past(connection), read_snapshot(connection)))
            look.add_done_callback(finish)

    # Trouble with the disk

    def _begin_trouble(self) -> None:
        """Accept nothing until something could be written again; what is true then stands in the file."""
        if not self.is_in_trouble:
            self.is_in_trouble = True
            self._tell("disk-trouble")
            self._loop.call_later(_TRY_AGAIN_S, self._try_again)

    def _note_loss(self, loss: Loss) -> None:
        """The file was deleted or replaced: accept nothing any more."""
        self.is_in_trouble, self.trouble = True, "the server's file was deleted or replaced: its log says what to do."
        self._tell("file-lost", what=loss.what, copy=loss.copy and str(loss.copy), detail=loss.describe())

    def _try_again(self) -> None:
        def finish(done: asyncio.Future[Any]) -> None:
            if done.exception() is not None:
                self._loop.call_later(_TRY_AGAIN_S, self._try_again)
                return
            self._restore(done.result())
            self.is_in_trouble = self._is_busy = False
            self._tell("disk-works")
            self.polls.wake()
            self._check_soon()

        if not self.is_stopping:
            self.writer.write(probe_disk).add_done_callback(finish)
