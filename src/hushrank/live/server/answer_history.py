"""Who usually answers, and how fast: whom a round waits for, and for how long.

A client that was asked and did not answer in several rounds in a row is silent: it is asked less often, and rounds
close without it. Now and then a round is patient: it asks everybody, waits for all and has the whole time, so that
silent and slow clients are seen again. Each patient round that a client lets pass doubles the rounds until the next one
that waits for it: one that is silent for ever costs the others less and less. One answer, and a client is waited for as
before; one that comes too late, and the next patient round waits for it.

Kept in memory only: after a start of the server everybody is waited for until some rounds have shown who is silent.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

SILENT_AFTER = 3  # rounds in a row in which a client was asked and did not answer
ASKED_EVERY = 4  # the rounds, by number, in which silent clients are asked
PATIENT_EVERY = 8  # the rounds, by number, that wait for all. Why a multiple of the former: everybody is asked in them
_MOST_DOUBLINGS = 20
_ENOUGH, _RECENT = 20, 100  # answering times that say something, and how many of them are remembered at least
QUANTILE, _SLACK = 0.95, 3.0  # of the answering times, and how many times as long a round stays open


@dataclass(slots=True)
class AnswerHistory:
    """What was seen of the clients in the rounds so far."""

    missed: dict[int, int] = field(default_factory=dict)  # {client: rounds in a row that it was asked in vain}
    _past: deque[list[float]] = field(default_factory=deque)  # answering times, a list for each of the newest rounds
    _now: list[float] = field(default_factory=list)  # those of the open round

    def is_silent(self, client: int) -> bool:
        return self.missed.get(client, 0) >= SILENT_AFTER

    def without_silent(self, clients: Collection[int]) -> set[int]:
        """Who of them usually answers; all of them where that is less than half.

        Why half: a few eager clients must not make ranker after ranker among themselves while the others learn.
        """
        usual = {client for client in clients if not self.is_silent(client)}
        return usual if 2 * len(usual) >= len(clients) else set(clients)

    def waits_for(self, client: int, number: int) -> bool:
        """Whether the patient round of this number waits for it: a silent one in the 8th, 16th, 32nd, 64th and so on.

        Why from the misses: there is nothing else to keep. A silent client misses two rounds from one patient round to
        the next.
        """
        n_doublings = max((self.missed.get(client, 0) // SILENT_AFTER).bit_length() - 1, 0)
        return number % (PATIENT_EVERY << min(n_doublings, _MOST_DOUBLINGS)) == 0

    def note_late(self, client: int) -> None:
        """It answered after its round was over: it is slow, not gone."""
        if self.is_silent(client):
            self.missed[client] = SILENT_AFTER

    def note_time(self, seconds: float) -> None:
        """An answer came so long after its round had opened."""
        self._now.append(seconds)

    def forget_misses(self, client: int) -> None:
        """It answered, or left."""
        self.missed.pop(client, None)

    def end_round(self, unanswered: Collection[int], *, excused: Collection[int], deadline_s: float) -> None:
        """A round is over. Who was waited for in vain counts as an answer after the whole time."""
        n_in_vain = sum(client not in excused for client in unanswered)
        for client in unanswered:
            self.missed[client] = self.missed.get(client, 0) + 1
        self._past.append(self._now + [deadline_s] * n_in_vain)
        self._now = []
        n_times = sum(map(len, self._past))
        while n_times - len(self._past[0]) >= _RECENT:
            n_times -= len(self._past.popleft())

    def expect_s(self) -> float | None:
        """Seconds in which those who answer will have answered; None: too little was seen."""
        times = sorted(seconds for round in self._past for seconds in round)
        return _SLACK * times[math.ceil(QUANTILE * len(times)) - 1] if len(times) >= _ENOUGH else None
