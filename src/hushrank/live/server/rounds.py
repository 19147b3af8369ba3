"""The rounds of a live federation as a state machine that knows no transport, no disk and no clock.

    idle -> open -> collecting (first answer) -> closing -> closed | abandoned -> idle ... -> finished

Who is asked is fixed when a round opens. It closes as soon as everybody who is waited for has answered and there is a
quorum, or at its deadline with a quorum; below the quorum it is abandoned, and its number is used up. Who is waited for
and how long follows from `answer_history.py`. Whoever drives the rounds says what happened and when (`now`, in seconds
of any clock that does not jump), asks what is due, and writes that down before it says so.

While a client is being forgotten, rounds replay earlier ones and none learns. Such a round asks everybody who is
enrolled, awake or not, and waits for all of them until patience ends, at least as long as any round.

Why it is not frozen: a copy for every answer would make a round of n clients cost n^2.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from hushrank.live.server.answer_history import ASKED_EVERY, PATIENT_EVERY, QUANTILE, AnswerHistory
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.refusals import Reason, RefusedError

_SILENT_ROUNDS, _MOST_DOUBLINGS = 3, 4  # that nobody answers until the pauses grow, and how often they double


class RoundState(StrEnum):
    """Where the newest round stands."""

    idle = "idle"  # none is open; the next one opens when enough clients are awake
    open = "open"
    collecting = "collecting"  # at least one answer is on the disk
    closing = "closing"  # decided; the result is not yet on the disk
    finished = "finished"  # no round will open again


@dataclass(frozen=True, slots=True)
class RoundRules:
    """When a round opens, whom it asks and when it closes."""

    quorum: int = 1  # fewest answers that make a ranker; 0 where the server's noise hides whether anybody answered
    min_clients: int = 1  # fewest awake clients with which a round opens
    cohort: int | None = None  # clients asked in each round; None: all who are awake
    deadline_s: float = 60.0  # that a round stays open at most
    pause_s: float = 0.0  # between two rounds
    asleep_after_s: float = 120.0  # a client that has not called for so long is not asked
    rounds: int | None = None  # closed ones, after which the federation is finished
    separation: int = 1  # rounds from one that asks a client to the next that does, at least
    least_deadline_s: float = 5.0  # that a round stays open where everybody answers fast; deadline_s if that is less
    counts_replays: bool = False  # whether rounds that forget are among `rounds`

    def __post_init__(self) -> None:
        if self.quorum < 0:
            raise ValueError(f"quorum is {self.quorum}, must be at least 0.")
        for key in ("min_clients", "cohort", "rounds", "separation"):
            if (count := getattr(self, key)) is not None and count < 1:
                raise ValueError(f"{key} is {count}, must be at least 1.")
        if self.cohort is not None and self.cohort < self.quorum:
            raise ValueError(f"cohort is {self.cohort}, fewer than the quorum of {self.quorum}: no round could close.")
        if not self.deadline_s > 0 or not self.asleep_after_s > 0 or self.pause_s < 0:
            raise ValueError("deadline_s and asleep_after_s must be > 0, pause_s must be at least 0.")
        if not self.least_deadline_s > 0:
            raise ValueError(f"least_deadline_s is {self.least_deadline_s}, must be > 0.")

    @property
    def fewest(self) -> int:
        """Awake clients that a round needs to open."""
        return max(self.quorum, self.min_clients)


@dataclass(slots=True)
class Rounds:
    """The newest round, and who is there. Clients are known by numbers."""

    rules: RoundRules
    number: int = 0  # of the newest round; 0: none was ever opened
    n_closed: int = 0
    n_silent: int = 0  # rounds that nobody answered, the newest ones in a row
    state: RoundState = RoundState.idle
    opens_at: float = 0.0  # not before
    opened_at: float = 0.0  # the newest round
    closes_at: float = 0.0  # the newest round, at the latest
    members: dict[int, float] = field(default_factory=dict)  # {enrolled client: when it was last seen}
    asked: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)  # asked, and neither answered nor left
    excused: set[int] = field(default_factory=set)  # asked, but the round may close without them
    pending: set[int] = field(default_factory=set)  # whose answers are on their way to the disk
    answered: set[int] = field(default_factory=set)  # whose answers are on the disk
    history: AnswerHistory = field(default_factory=AnswerHistory)
    last_asked: dict[int, int] = field(default_factory=dict)  # {client: round}, where clients rest
    is_paused: bool = False  # somebody is to be forgotten: no round that learns opens
    patient_until: float | None = None  # rounds replay, and wait for all until then; None: they learn
    is_replay: bool = False  # whether the newest round forgets
    n_opened: int = field(init=False)  # rounds; Why not the number: where clients rest, numbers are left out

    def __post_init__(self) -> None:
        self.n_opened = self.number
        self.finish_if_enough()

    def finish_if_enough(self) -> None:
        """Between rounds; call it once everybody has joined who was enrolled before."""
        if self.state is RoundState.idle and not self.is_paused and self._is_enough(self.n_closed):
            self.state = RoundState.finished

    def pause(self) -> None:
        """Somebody is to be forgotten: from the end of this round on none learns."""
        self.is_paused = True
        if self.state is RoundState.finished:
            self.state = RoundState.idle

    def begin_replays(self, until: float) -> None:
        """From now on rounds forget, and wait for everybody until then."""
        self.pause()
        self.patient_until = until

    def end_replays(self) -> None:
        """Between rounds: the next one learns, if there is one."""
        self.is_paused, self.patient_until = False, None
        self.finish_if_enough()

    @property
    def is_open(self) -> bool:
        """Whether answers may come."""
        return self.state in (RoundState.open, RoundState.collecting)

    @property
    def is_replaying(self) -> bool:
        """Whether a round that forgets is open, or decided and not yet over."""
        return self.is_replay and not self.is_over

    @property
    def may_begin_replays(self) -> bool:
        """Whether somebody is to be forgotten, and the last round that learnt is over."""
        return self.is_paused and self.patient_until is None and self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the newest round has ended, or none was ever opened."""
        return self.state in (RoundState.idle, RoundState.finished)

    def join(self, client: int, now: float, *, answered: int | None = None) -> None:
        """Enrolled. A round that is open goes on without it. answered: the round in which it last did."""
        self.members[client] = now
        if answered is not None and self.rules.separation > 1:
            self.last_asked[client] = answered

    def leave(self, client: int) -> None:
        """The open round waits for it no longer; what it has answered counts."""
        self.members.pop(client, None)
        self.waiting.discard(client)
        self.history.forget_misses(client)

    def see(self, client: int, now: float) -> None:
        """It called, so it is awake."""
        if client in self.members:
            self.members[client] = now

    def candidates(self, now: float) -> list[int]:
        """Who is enrolled and awake, in order."""
        limit = now - self.rules.asleep_after_s
        return sorted(client for client, seen in self.members.items() if seen >= limit)

    def next_number(self, now: float) -> int:
        """Of the round that may open next: the first in which enough of those who are awake have rested."""
        if self.rules.separation == 1:
            return self.number + 1
        rested = sorted(self._rested_from(client) for client in self.candidates(now))
        return max([self.number + 1, *rested[: self._enough_rested][-1:]])

    def _rested_from(self, client: int) -> int:
        """The first round that may ask it."""
        return self.last_asked.get(client, -self.rules.separation) + self.rules.separation

    def invite(self, now: float) -> list[int]:
        """Whom the next round may ask, in order: who is awake and has rested; silent clients now and then, or if it
        takes them."""
        if self.patient_until is not None:
            return sorted(self.members)
        number = self.next_number(now)
        awake = [client for client in self.candidates(now) if self._rested_from(client) <= number]
        usual = self.history.without_silent(awake)
        is_for_all = self._is_next_patient() or (self.n_opened + 1) % ASKED_EVERY == 0
        is_enough = len(usual) >= max(self.rules.fewest, self.rules.cohort or 1)
        return sorted(usual) if is_enough and not is_for_all else awake

    def may_open(self, now: float) -> bool:
        return self.state is RoundState.idle and now >= self.opens_at and self._are_ready(now)

    def may_follow(self, outcome: Outcome, now: float) -> bool:
        """Whether the next round may open in the same moment in which this one ends so."""
        is_last = not self.is_paused and self._is_enough(self.n_closed + (outcome is Outcome.closed))
        return not is_last and self._pause_after() == 0 and self._are_ready(now)

    def _are_ready(self, now: float) -> bool:
        """Whether enough are awake, and have rested before the last round."""
        if self.is_paused:  # Why not the fewest that are set: those who left may be missing for ever
            is_enough = len(self.candidates(now)) >= max(self.rules.quorum, 1)
            return self.patient_until is not None and is_enough
        if len(self.candidates(now)) < self.rules.fewest:
            return False
        is_counted = self.rules.rounds is not None and self.rules.separation > 1
        return not is_counted or self.next_number(now) <= (self.rules.rounds or 0)

    def open(self, asked: Collection[int], now: float, *, number: int | None = None) -> int:
        """The number of the new round, which asks these clients; number: as `next_number` said before."""
        if self.state is not RoundState.idle:
            raise ValueError(f"a round cannot open while the newest one is {self.state}.")
        if len(set(asked)) < max(self.rules.quorum, 1):
            raise ValueError(f"{len(set(asked))} clients are asked, must be at least one and the quorum.")
        is_patient, is_lost = self._is_next_patient(), self._is_lost()
        self.number, self.n_opened = max(self.number + 1, number or 0), self.n_opened + 1
        self._note_asked(asked)
        self.asked, self.waiting = set(asked), set(asked) & self.members.keys()
        self.excused = set() if is_lost else self.asked - self.history.without_silent(self.asked)
        if is_patient:
            self.excused = {client for client in self.excused if not self.history.waits_for(client, self.n_opened)}
        self.pending, self.answered = set(), set()
        self.state, self.opened_at = RoundState.open, now
        self.closes_at = now + (self.rules.deadline_s if is_patient else self._usual_deadline())
        self._note_kind(now)
        return self.number

    def _note_kind(self, now: float) -> None:
        """Of the newest round; one that forgets excuses nobody."""
        self.is_replay = self.patient_until is not None
        if self.patient_until is not None:
            self.excused = set()
            self.closes_at = max(now + self.rules.deadline_s, self.patient_until)

    def _is_next_patient(self) -> bool:
        """Whether the next round waits for all, with the whole time: now and then, and after too few answers."""
        return self._is_lost() or (self.n_opened + 1) % PATIENT_EVERY == 0

    def _is_lost(self) -> bool:
        """Whether the newest round had too few answers."""
        return self.number > 0 and len(self.answered) < max(self.rules.quorum, 1)

    def _usual_deadline(self) -> float:
        expected, longest = self.history.expect_s(), self.rules.deadline_s
        if expected is None or self.rules.quorum > QUANTILE * len(self.asked - self.excused):
            return longest  # Why: where nearly all must answer, the slowest count, whom a quantile does not see
        return min(max(expected, self.rules.least_deadline_s), longest)

    def resume(self, asked: Collection[int], answered: Collection[int], now: float) -> None:
        """The newest round was found open on the disk: it goes on, with its whole time, and waits for all."""
        self._note_asked(asked)
        self.asked, self.answered, self.pending, self.excused = set(asked), set(answered), set(), set()
        self.waiting = (self.asked & self.members.keys()) - self.answered
        self.state = RoundState.collecting if self.answered else RoundState.open
        self.opened_at, self.closes_at = now, now + self.rules.deadline_s
        self._note_kind(now)

    def _note_asked(self, asked: Collection[int]) -> None:
        if self.rules.separation > 1:
            self.last_asked.update(dict.fromkeys(asked, self.number))

    def reserve(self, client: int, round: int, now: float) -> None:
        """Take an answer that is good in itself, until it is on the disk; or refuse it."""
        if not 1 <= round <= self.number:
            raise RefusedError(Reason.round, "this round was never opened.")
        if round < self.number or not self.is_open or now >= self.closes_at:
            self.history.note_late(client)
            raise RefusedError(Reason.late, "this round is over: ask for the next one.")
        if client not in self.asked or client not in self.members:
            raise RefusedError(Reason.not_asked, "this client is not asked in this round: wait for the next one.")
        if client not in self.waiting:
            raise RefusedError(Reason.answered, "another update of this client counts in this round.")
        self.waiting.remove(client)
        self.pending.add(client)
        if not self.is_replay:
            self.history.note_time(now - self.opened_at)

    def decline(self, client: int, round: int) -> None:
        """It has nothing to replay: the round waits for it no longer."""
        if round != self.number or not self.is_open or not self.is_replay:
            raise RefusedError(Reason.round, "no round of this number forgets now: ask for the next one.")
        self.waiting.discard(client)

    def confirm(self, client: int) -> None:
        """Its answer is on the disk."""
        self.pending.remove(client)
        self.answered.add(client)
        self.history.forget_misses(client)
        self.state = RoundState.collecting

    def release(self, client: int) -> None:
        """Its answer could not be written: it may come again."""
        self.pending.remove(client)
        if client in self.members:
            self.waiting.add(client)

    def decide(self, now: float) -> Outcome | None:
        """How the open round ends, once it does; from then on it is closing."""
        if not self.is_open or self.pending:
            return None
        is_quorate = len(self.answered) >= self.rules.quorum
        is_complete = (
            self.waiting <= self.excused and is_quorate and bool(self.answered)
        )  # Why bool: not by noise alone
        if self.waiting and not is_complete and now < self.closes_at:
            return None
        self.state = RoundState.closing
        return Outcome.closed if is_quorate else Outcome.abandoned

    def end(self, outcome: Outcome, now: float) -> None:
        """The outcome is on the disk."""
        if self.state is not RoundState.closing:
            raise ValueError(f"a round that is {self.state} cannot end: it was not decided.")
        if not self.is_replay:  # Why: who sleeps is asked, too, and is not silent
            self.history.end_round(self.waiting, excused=self.excused, deadline_s=self.rules.deadline_s)
        self.n_closed += outcome is Outcome.closed and (not self.is_replay or self.rules.counts_replays)
        self.opens_at = now + self._pause_after()
        self.n_silent = self._silent_with_this()
        self.state = RoundState.idle
        self.finish_if_enough()

    def _is_enough(self, n_closed: int) -> bool:
        """Whether no round will open again. Where clients rest, numbers that are left out count as rounds, too: a
        client's answers are so many numbers apart, and its budget is for as many as fit. No number is left where even
        those who have rested longest would have to wait for a later one."""
        if self.rules.rounds is None or self.rules.separation == 1:
            return self.rules.rounds is not None and n_closed >= self.rules.rounds
        rested = sorted(self._rested_from(client) for client in self.members)
        soonest = max([self.number + 1, *rested[: self._enough_rested][-1:]])
        return soonest > self.rules.rounds

    @property
    def _enough_rested(self) -> int:
        return min(self.rules.fewest, self.rules.cohort or self.rules.fewest)

    def _silent_with_this(self) -> int:
        return self.n_silent if self.is_replay else 0 if self.answered else self.n_silent + 1

    def _pause_after(self) -> float:
        """Seconds between the newest round and the next; longer and longer while nothing but noise moves the ranker."""
        if self.is_replay:
            return 0.0
        n = self._silent_with_this() - _SILENT_ROUNDS
        is_noise_alone = self.rules.quorum == 0 and n >= 0
        return max(
            self.rules.pause_s, self.rules.deadline_s * 2.0 ** min(n, _MOST_DOUBLINGS) if is_noise_alone else 0.0
        )

    def next_check(self, now: float) -> float | None:
        """Seconds until time alone may change something; None: only an event can. Asked after `decide`."""
        if self.is_open and self.closes_at > now:
            return self.closes_at - now
        if self.state is RoundState.idle and self.opens_at > now:
            return self.opens_at - now
        return None
