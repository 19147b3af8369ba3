"""A running federation: what clients ask, answered from memory; what must not be lost, written first.

It lives on one event loop. The rounds (`rounds.py`) say what is due, the writer (`writer.py`) makes it last, and only
then does memory change and anybody hear of it. After a start, and after trouble with the disk, memory is made anew from
the file.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa

from hushrank.live.server import forgetting, store
from hushrank.live.server.clients import KnownClient, know_client, know_clients
from hushrank.live.server.closing import RoundEnd, RoundResult, write_end
from hushrank.live.server.cohort import choose_cohort
from hushrank.live.server.config import ServerConfig, rules_of
from hushrank.live.server.counters import Counters
from hushrank.live.server.events import Tell
from hushrank.live.server.forgetting import LiveForgetting
from hushrank.live.server.gauges import describe_rounds, read_gauges
from hushrank.live.server.intake import Intake
from hushrank.live.server.limits import limits_of
from hushrank.live.server.long_polls import LongPolls
from hushrank.live.server.past import begin_start, make_receipt, note_missing, read_receipt
from hushrank.live.server.publication import PublishedRanker, Shelf
from hushrank.live.server.replaying import Sign, write_replay_end
from hushrank.live.server.rounds import Rounds, RoundState
from hushrank.live.server.snapshot import Decisions, Snapshot, read_snapshot
from hushrank.live.server.watches import CommandWatch, DiskTrouble
from hushrank.live.server.writer import Writer
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import Outcome, RoundNews, Standing
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import price_of


class Coordinator:
    """One federation. `start` before use, `stop` after."""

    def __init__(
        self,
        engine: sa.Engine,
        config: ServerConfig,
        *,
        digest_key: bytes,
        tell: Tell = lambda *_, **__: None,
        sign: Sign = lambda record: record,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        with engine.begin() as connection:
            self.agreement: Agreement = store.read_agreement(connection)
        self.limits = limits_of(self.agreement, max_norm=config.max_norm)
        self.rules = rules_of(self.agreement, config)
        self.digest = self.agreement.digest
        self.counters = Counters()
        self.is_stopping = False
        self.trouble = DiskTrouble(tell, is_stopping=lambda: self.is_stopping, restore=self._end_trouble)
        self._config, self._engine, self._digest_key = config, engine, digest_key
        self.intake, self._shelf = Intake(self, digest_key), Shelf(self.agreement)
        self._terms, self._sign = forgetting.forget_terms_of(self.agreement, config), sign
        self._replay: LiveForgetting | None = None  # that runs
        self._tell, self._clock = tell, clock
        self._price = price_of(self.agreement)
        self._unwritten: Counter[str] = Counter()  # refusals that the file does not know of
        self._watched: dict[str, Callable[[], float]] = {}  # gauges of others
        self.polls, self._clients = LongPolls(), dict[bytes, KnownClient]()
        self.rounds = Rounds(self.rules)
        self._opened_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_busy = self._is_check_due = False

    # Life

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        commit_s, note_loss = self.counters.commit_s, self.trouble.note_loss
        self.writer = Writer(self._engine, self._loop, commit_s=commit_s, note_loss=note_loss)
        self.past = await self.writer.write(begin_start)
        self._restore(await self.writer.write(read_snapshot))
        self._check_rounds()
        CommandWatch(self, hear=self._note_decisions)

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
        self._abandoned, self._opened_at, self._replay = found.rounds.abandoned, now, found.replay
        self.intake.begin(dict(found.rounds.digests))
        self._shelf.clear()
        until, n_closed = self.rounds.patient_until, found.rounds.count_closed(with_replays=self.rules.counts_replays)
        self.rounds = Rounds(self.rules, found.rounds.number, n_closed, history=history)
        for member in found.members:
            if not member.has_left:
                when = seen.get(member.id, -np.inf)  # Why: asleep until it calls
                self.rounds.join(member.id, when, answered=member.last_round)
        if found.replay is not None:
            self.rounds.begin_replays(now + self._config.forget_patience_s if until is None else until)
        elif found.is_wished:
            self.rounds.pause()
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
        member = await self.write(lambda connection: store.enrol_client(connection, *hashes, now=time.time()))
        client = self._clients.get(hashes[1])
        if client is None:
            client = know_client(member)
            self._clients[hashes[1]] = client
            self.rounds.join(client.id, self._clock())
            self._tell("enrolled", clients=len(self.rounds.members))
            self._check_soon()
        return self.standing(client)

    async def leave(self, client: KnownClient) -> None:
        await self.write(lambda connection: store.leave_client(connection, client.id, now=time.time()))
        self._note_left(client)

    async def forget(self, client: KnownClient) -> str:
        """It leaves, and wants to be forgotten; its pseudonym."""
        wish = partial(forgetting.wish_forgetting, client=client.id, terms=self._terms, rules=self.rules)
        pseudonym: str = await self.write(partial(wish, now=time.time()))
        self._note_left(client)
        self._note_wishes(await self.write(forgetting.read_waiting))
        return pseudonym

    def _note_left(self, client: KnownClient) -> None:
        if not client.has_left:
            client.has_left = True
            self.rounds.leave(client.id)
            self._tell("left", clients=len(self.rounds.members))
        self._check_soon()

    def _note_wishes(self, waiting: Collection[int]) -> None:
        """Clients that want to be forgotten, as the file says: they have left, and rounds stop learning."""
        for client in (each for each in self._clients.values() if each.id in waiting):
            self._note_left(client)
        if waiting and not self.rounds.is_paused:
            is_over = self.rounds.state is RoundState.finished
            self._tell("forget", clients=len(waiting), **({"ended": len(self.rounds.members)} if is_over else {}))
            self.rounds.pause()
            self._check_soon()

    def standing(self, client: KnownClient) -> Standing:
        last = client.last(self.rounds, self._abandoned)
        return Standing(client.accepted, last, client.accepted + client.refused)

    # What they ask

    async def wait_for_round(self, client: KnownClient, *, after: int, wait_s: float) -> RoundNews | None:
        """News of a round after the named one, as soon as there is one; None: there is none yet."""
        until = self._clock() + wait_s
        if self.rounds.state is RoundState.finished:  # Why: a client that hears of the end is not there to forget
            self._note_wishes(await self.write(forgetting.read_waiting))
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
        forget = self._replay.news if rounds.is_replay and self._replay is not None else None
        return RoundNews(rounds.number, closes_in_s, client.id in rounds.asked, last, receipt, forget)

    def published(self, round: int | None) -> PublishedRanker:
        """The ranker of the open round, or of the next one if none is open; to people the newest, whatever it is."""
        current = self.rounds.number + self.rounds.is_over
        if round not in (None, current) or (round is not None and self.rounds.is_replaying):
            raise RefusedError(Reason.round, "there is no ranker of this round: ask for the newest.")
        return self._shelf.find(self._params, round=current)

    def candidate(self, round: int) -> PublishedRanker:
        """What the open round, which forgets, starts from."""
        if self._replay is None or not self.rounds.is_replaying or round != self.rounds.number:
            raise RefusedError(Reason.round, "no round of this number forgets now: ask for the next one.")
        return self._shelf.find(self._replay.params, round=round, is_candidate=True)

    # What they send

    def decline(self, client: KnownClient, round: int) -> None:
        """It has nothing to replay in this round, which waits for it no longer."""
        self.rounds.decline(client.id, round)
        self._check_soon()

    def note_update(self, client: KnownClient, round: int, *, is_written: bool) -> None:
        """An update is on the disk, or could not be written."""
        if is_written:
            client.accepted, client.last_round = client.accepted + 1, round
            self.counters.n_accepted += 1
            self.rounds.confirm(client.id)
        else:
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
        rounds = read_gauges(self.rounds, self._replay, now=self._clock())
        watched = {name: read() for name, read in self._watched.items()}
        return {**rounds, "polls": len(self.polls), "disk_trouble": self.is_in_trouble, **watched}

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """One more gauge."""
        self._watched[name] = read

    def refuse_if_unable(self) -> None:
        """Nothing is taken while the server stops, has a file that is too old, or cannot write."""
        self._refuse_if_stopping()
        self.past.refuse_if_behind()
        if self.is_in_trouble:
            raise RefusedError(Reason.disk, "the server cannot write to its disk: try again.", retry_after_s=5)

    def _refuse_if_stopping(self) -> None:
        if self.is_stopping:
            raise RefusedError(Reason.stopping, "the server is stopping: try again in a moment.", retry_after_s=2)

    async def write(self, work: Callable[[sa.Connection], Any]) -> Any:
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
            return
        now = self._clock()
        if (outcome := self.rounds.decide(now)) is not None:
            self._end_round(outcome, now)
        elif self.rounds.may_open(now):
            opening = self._make_opening(now)
            self._begin(lambda connection: store.open_round(connection, opening, now=time.time()), opening, None)
        elif self._terms is not None and self.rounds.may_begin_replays:
            self._begin(partial(forgetting.begin_forgetting, terms=self._terms, now=time.time()), None, None)
        elif (seconds := self.rounds.next_check(now)) is not None:
            self._timer = self._loop.call_later(seconds, self._check_rounds)

    def _end_round(self, outcome: Outcome, now: float) -> None:
        """The end of this round and, where it may, the beginning of the next in one transaction."""
        number, opening, running = self.rounds.number, None, self._replay
        if self.rounds.may_follow(outcome, now) and (running is None or not running.is_last):
            opening = self._make_opening(now, n_before=1)
        refused, self._unwritten = self._unwritten, Counter()
        keeps, holds, price = self._config.keep_updates, self._config.hold_back, self._price
        if running is None:
            end = RoundEnd(number, outcome, self._params, self._state, price, keeps, refused, opening, holds)
            self._begin(lambda connection: write_end(connection, self.agreement, end), opening, refused)
        else:
            end = RoundEnd(number, outcome, running.params, running.state, price, keeps, refused, opening)
            write = partial(write_replay_end, agreement=self.agreement, end=end, running=running, sign=self._sign)
            self._begin(write, opening, refused)

    def _make_opening(self, now: float, *, n_before: int = 0) -> store.Opening:
        """The next round, and whom it asks; n_before: steps of a forgetting that end with this one."""
        number, invited = self.rounds.next_number(now), self.rounds.invite(now)
        if self._replay is not None:
            return store.Opening(number, invited, self._replay.rounds[self._replay.step + n_before])
        return store.Opening(number, choose_cohort(self.agreement, invited, size=self.rules.cohort, round=number))

    def _begin(
        self,
        work: Callable[[sa.Connection], RoundResult | LiveForgetting | None],
        opening: store.Opening | None,
        refused: Counter[str] | None,
    ) -> None:
        """Write the end or the beginning of a round or of a forgetting; memory follows when it is on the disk."""
        self._is_busy = True

        def finish(done: asyncio.Future[RoundResult | LiveForgetting | None]) -> None:
            self._is_busy = False
            error = done.exception()
            if error is not None:
                self._unwritten.update(refused or {})
                self._tell("write-failed", error=type(error).__name__)
                self._begin_trouble()
                return
            if isinstance(result := done.result(), RoundResult):
                self._note_end(result, refused or Counter())
            elif result is not None:
                self._replay = result
                self.rounds.begin_replays(self._clock() + self._config.forget_patience_s)
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
        self._note_step(result)
        if rounds.state is RoundState.finished:
            self._tell("finished", rounds=rounds.n_closed)

    def _note_step(self, result: RoundResult) -> None:
        """Of a forgetting, if one runs."""
        if self._replay is not None and result.replay is None:
            self.rounds.end_replays()
            if result.is_wished:
                self.rounds.pause()
            self._shelf.clear()
            self._tell("forgotten", clients=result.n_forgotten, failure=result.not_forgotten)
        self._replay = result.replay

    def _note_opening(self, opening: store.Opening) -> None:
        self._opened_at = self._clock()
        self.intake.begin({})
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

    # What the operator decides with a command

    def _note_decisions(self, found: Decisions) -> None:
        if self.is_behind and found.snapshot is not None and found.past.decides(self.past):
            self.past = found.past
            self._restore(found.snapshot)
            self._tell("decided", round=self.rounds.number + 1)
            self.polls.wake()
            self._check_soon()
        self._note_wishes(found.waiting)

    # Trouble with the disk

    @property
    def is_in_trouble(self) -> bool:
        return self.trouble.is_there

    def _begin_trouble(self) -> None:
        self.trouble.begin(self.writer)

    def _end_trouble(self, found: Snapshot) -> None:
        self._restore(found)
        self._is_busy = False
        self._tell("disk-works")
        self.polls.wake()
        self._check_soon()
