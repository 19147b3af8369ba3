"""Who is asked in which step, with which of their searches: rounds in which everybody comes once, or as people apply.

Steps are counted from 1 through all trainings. A step has at least two clients: one alone would show its update.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from hushrank.engine.personal_people import People, Span
from hushrank.personal.log import Periods
from hushrank.streams import Purpose, draw_bits, draw_uniform, fold_in, stream
from hushrank.types import Array

WEEK = 7 * 24 * 3600
ENOUGH = 4  # new searches with a click after which a client applies. Why: people here make about six in a week


class SearchStep(NamedTuple):
    """One step of the server."""

    ids: Array  # [n] the clients that are asked, ascending; empty: nothing happens
    spans: Sequence[Span]  # [n] which searches each of them trains on
    round: int  # from 1 through all trainings; a client is asked at most once in a round
    training: int  # from 1
    begins: bool  # whether a training begins with this step
    number: int  # from 1, by which it is drawn who answers


class Schedule(Protocol):
    """Of all steps."""

    @property
    def steps_each(self) -> int:
        """Steps of one training."""

    def step_at(self, number: int) -> SearchStep:
        """number: from 1 to trainings * steps_each."""


def train_span(periods: Periods, *, updating: str, training: int) -> Span:
    """The searches that the clients of one training have learnt from when it ends."""
    if updating == "once":
        return Span(periods.train, periods.validation)
    first = training if updating in ("continue", "online") else 1
    return Span(periods.train + (first - 1) * WEEK, periods.train + training * WEEK)


def end_of_training(periods: Periods, *, updating: str, training: int) -> float:
    """When the data of a training end; 0: before the first one."""
    if updating == "once":
        return periods.validation
    return periods.train + training * WEEK


def measured_spans(periods: Periods, *, updating: str, training: int) -> dict[str, Span]:
    """{prefix of metrics: searches to measure on} after a training (0: before the first); of weeks, the next one."""
    if updating == "once":
        return {"vali": Span(periods.validation, periods.test), "offline": Span(periods.test, float("inf"))}
    first = max(training, 1)
    return {"offline": Span(periods.train + first * WEEK, periods.train + (first + 1) * WEEK)}


@dataclass(frozen=True)
class RoundSchedule:
    """Every client once in a round, K at a time, in an order that is drawn anew for each round [fedps, Algorithm 1]."""

    n_clients: int
    cohort: int
    rounds: int  # of one training
    trainings: int
    periods: Periods
    updating: str
    key: Array  # of the training

    @cached_property
    def borders(self) -> Array:
        return divide_round(self.n_clients, self.cohort)

    @property
    def steps_per_round(self) -> int:
        return len(self.borders) - 1

    @property
    def steps_each(self) -> int:
        return self.rounds * self.steps_per_round

    def step_at(self, number: int) -> SearchStep:
        round, place = divmod(number - 1, self.steps_per_round)
        training = round // self.rounds + 1
        order = order_clients(self.n_clients, round + 1, self.key.tobytes())
        ids = np.sort(order[self.borders[place] : self.borders[place + 1]])
        spans = [self.span_of(training)] * len(ids)
        return SearchStep(ids, spans, round + 1, training, (number - 1) % self.steps_each == 0, number)

    def span_of(self, training: int) -> Span:
        return train_span(self.periods, updating=self.updating, training=training)


def divide_round(n_clients: int, cohort: int) -> Array:
    """[n_steps + 1] where the steps of a round begin in its order; one client alone joins those before it."""
    borders = np.append(np.arange(0, n_clients, cohort), n_clients)
    return np.delete(borders, -2) if len(borders) > 2 and borders[-1] - borders[-2] == 1 else borders


@lru_cache(maxsize=8)
def order_clients(n_clients: int, round: int, key: bytes) -> Array:
    """[n_clients] ids in the order of a round. key: as bytes, so that a round's order is drawn once for its steps."""
    found = np.frombuffer(key, dtype=np.uint32)
    draws = draw_bits(fold_in(stream(found, Purpose.COHORT, round), np.arange(n_clients)), 1)[:, 0]
    return np.argsort(draws, kind="stable")


@dataclass(frozen=True)
class Lateness:
    """Who misses deadlines, in one repeat."""

    n_clients: int
    stragglers: float  # share of clients that always do
    dropout: float  # probability that a client misses the deadline of an attempt
    key: Array  # of the training

    @cached_property
    def is_late(self) -> Array:
        return find_stragglers(self.n_clients, self.stragglers, self.key)

    def find_ready(self, ids: Array) -> Array:
        """[m] those of the clients that wait whom a step may ask."""
        return ids

    def find_answers(self, ids: Array, *, step: int) -> tuple[Array, int]:
        """As the function of this name."""
        return find_answers(ids, self.is_late, self.dropout, self.key, step=step)


def count_asked(schedule: Schedule, lateness: Lateness, *, trainings: int) -> int:
    """Messages that clients are asked for in all steps, every attempt counted."""
    steps = (schedule.step_at(number) for number in range(1, trainings * schedule.steps_each + 1))
    return sum(len(step.ids) * lateness.find_answers(step.ids, step=step.number)[1] for step in steps if len(step.ids))


@dataclass(frozen=True)
class OnlineSchedule:
    """Clients apply when they have `ENOUGH` new searches; when K have, the server takes a step [fedps, section 3.2].

    Who applies again before the step is taken comes once, with all its new searches. Weeks have unequally many steps;
    shorter ones are filled up with steps in which nothing happens, so that every week ends with a look.
    """

    weeks: tuple[tuple[SearchStep, ...], ...]  # [n_trainings]

    @property
    def steps_each(self) -> int:
        return max(1, *(len(week) for week in self.weeks))

    def step_at(self, number: int) -> SearchStep:
        training, place = divmod(number - 1, self.steps_each)
        week = self.weeks[training]
        if place < len(week):
            return week[place]
        return SearchStep(np.zeros(0, np.int64), (), number, training + 1, begins=False, number=number)


def plan_online(
    people: People,
    lateness: Lateness,
    *,
    cohort: int,
    trainings: int,
    applies: Callable[[int, Span], bool] | None = None,
) -> OnlineSchedule:
    """By the times of all users' searches; in rounds, which are counted by steps, nobody comes twice.

    Who was asked and did not answer in time keeps its new searches for the next time that it applies. Who cannot be
    asked yet, because nobody else of its proxy waits, waits on.

    applies: whether a client has pairs to learn from, otherwise it waits for more searches; None: all apply.
    """
    start = people.population.periods.train
    whole = Span(start, start + trainings * WEEK)
    events: list[tuple[float, int]] = []
    for user in range(people.population.n_users):
        times = people.log_of(user).log.times[people.searches_in(user, whole)]
        events += [(float(time), user) for time in times[ENOUGH - 1 :: ENOUGH]]
    heapq.heapify(events)
    weeks: list[list[SearchStep]] = [[] for _ in range(trainings)]
    since: dict[int, float] = {}
    waiting: dict[int, float] = {}
    number = 0
    while events:
        now, user = heapq.heappop(events)
        if applies is not None and not applies(user, Span(since.get(user, start), now + 1)):
            continue
        waiting[user] = now + 1
        ids = lateness.find_ready(np.array(sorted(waiting)))
        if len(ids) >= cohort:
            spans = [Span(since.get(int(id), start), waiting[int(id)]) for id in ids]
            number += 1
            answers, _ = lateness.find_answers(ids, step=number)
            since |= {int(id): waiting[int(id)] for id in ids[answers]}
            waiting = {id: then for id, then in waiting.items() if id not in ids}
            week = int((now - start) // WEEK)
            weeks[week].append(SearchStep(ids, spans, number, week + 1, begins=False, number=number))
    return OnlineSchedule(tuple(tuple(week) for week in weeks))


def find_stragglers(n_clients: int, share: float, key: Array) -> Array:
    """[n_clients] who always misses the deadline: a share of all, drawn once."""
    n = round(share * n_clients)
    is_late = np.zeros(n_clients, dtype=bool)
    if n:
        draws = draw_bits(fold_in(stream(key, Purpose.STRAGGLER), np.arange(n_clients)), 1)[:, 0]
        is_late[np.argsort(draws, kind="stable")[:n]] = True
    return is_late


MOST_ATTEMPTS = 20  # of one step; then it is lost, and the model stays as it is


def find_answers(ids: Array, is_late: Array, dropout: float, key: Array, *, step: int) -> tuple[Array, int]:
    """[n] who answers before the deadline, in the first attempt in which half of those asked do, and its number.

    Fewer than two never make a step. Nobody (all False) after `MOST_ATTEMPTS`: the step is lost.
    """
    needed = max(2, -(-len(ids) // 2))
    for attempt in range(MOST_ATTEMPTS):
        draws = draw_uniform(fold_in(stream(key, Purpose.ATTEMPT, step, attempt), ids), 1)[:, 0]
        answers = ~is_late[ids] & (draws >= dropout)
        if np.count_nonzero(answers) >= needed:
            return answers, attempt + 1
        if dropout == 0:  # Why: another attempt would end in the same way
            break
    return np.zeros(len(ids), dtype=bool), attempt + 1
