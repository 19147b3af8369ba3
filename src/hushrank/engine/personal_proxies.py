"""Personalised search with proxies between clients and server: who is asked when, and whose updates get through.

The simulator plays every party with the step functions of `federation/hierarchy.py` and `federation/proxy_sum.py`. In
each step those who still wait are counted, proxies drawn and clients picked, and who is in no confirmed sum after it
waits on. A round has as many steps as without proxies, and where clients or proxies may fail, as many more as those
need who are expected to miss theirs. Who still waits after the last step takes part in the next round again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hushrank.engine.personal_people import Span
from hushrank.engine.personal_schedule import MOST_ATTEMPTS, Lateness, RoundSchedule, SearchStep, divide_round
from hushrank.federation.group_server import GroupState, add_count, add_sum, ask_sums, has_quorum
from hushrank.federation.hierarchy import (
    FEWEST,
    Hierarchy,
    ProxyState,
    apply_clients,
    choose_proxies,
    count_waiting,
    pick_clients,
    settle_step,
    share_step,
)
from hushrank.federation.proxy_sum import PartialSum, ProxyFormat, choose_forwarded, join_sums, sum_below_proxies
from hushrank.streams import Purpose, draw_uniform, fold_in, stream
from hushrank.types import Array, Weighted

_MOST_PLANNED = 4  # rounds whose plans are kept


@dataclass(frozen=True, slots=True)
class ProxySetting:
    """What all parties agree on."""

    hierarchy: Hierarchy
    clients_each: int = 10  # that a proxy picks in a step
    is_offloading: bool = True  # whether stragglers hand their tasks to their proxies, which answer in time
    dropout: float = 0.0  # probability that a proxy vanishes in an attempt
    format: ProxyFormat | None = None  # of a secure sum under each proxy; None: the proxy sees its clients' updates

    def sum_messages(
        self, messages: Iterable[Weighted], ids: Array, is_offloaded: Array, *, step: int
    ) -> tuple[PartialSum | None, int]:
        """The server's sum of a step's messages of ids [n], ascending, and how many proxies forwarded nothing."""
        proxies = self.hierarchy.proxies_of(ids).tolist()
        forwarded = sum_below_proxies(messages, proxies, is_offloaded.tolist(), self.format)
        below: dict[int, dict[int, PartialSum]] = {}
        for proxy, part in forwarded.items():
            if part is not None:
                below.setdefault(self.hierarchy.group_of(proxy), {})[proxy] = part
        joined = join_sums(join_sums(count_sums(parts, step=step).values()) for parts in below.values())
        return joined, sum(part is None for part in forwarded.values())


def count_sums(parts: Mapping[int, PartialSum], *, step: int) -> Mapping[int, PartialSum]:
    """{proxy: its sum} that a group server counts of all that come in a step with a quorum; no message gets lost."""
    (n_params,) = {part.total.size for part in parts.values()}
    state = GroupState(0, step, n_params, frozenset(parts))
    for proxy, part in parts.items():
        state = add_count(state, proxy, part.n_clients, model=step)
    state = ask_sums(state)
    for proxy, part in parts.items():
        state, _ = add_sum(state, proxy, part, model=step)
    return state.sums


@dataclass(frozen=True)
class ProxyLateness(Lateness):
    """Who is counted in a step."""

    proxies: ProxySetting

    @cached_property
    def is_offloaded(self) -> Array:
        """[n_clients] stragglers whose proxies train for them."""
        return self.is_late & self.proxies.is_offloading

    def find_ready(self, ids: Array) -> Array:
        """[m] those below a proxy where at least one other waits."""
        n_waiting = np.bincount(self.proxies.hierarchy.proxies_of(ids))
        return ids[n_waiting[self.proxies.hierarchy.proxies_of(ids)] >= FEWEST]

    def find_answers(self, ids: Array, *, step: int) -> tuple[Array, int]:
        """[n] whose updates are in forwarded sums, in the first attempt in which half of those asked are.

        Proxies tell counts in every attempt, and send their sums after the one in which there are enough. Whose task
        its proxy has is never late. A proxy that vanishes takes all its clients' answers of the attempt with it. Nobody
        after `MOST_ATTEMPTS`: the step is lost, and all of them wait on.
        """
        of = self.proxies.hierarchy.proxies_of(ids)
        is_done, is_late = self.is_offloaded[ids], self.is_late[ids] & ~self.is_offloaded[ids]
        for attempt in range(MOST_ATTEMPTS):
            draws = draw_uniform(fold_in(stream(self.key, Purpose.ATTEMPT, step, attempt), ids), 1)[:, 0]
            gone = draw_uniform(fold_in(stream(self.key, Purpose.VANISH, step, attempt), of), 1)[:, 0]
            answers = ~is_late & (is_done | (draws >= self.dropout)) & (gone >= self.proxies.dropout)
            counted = choose_forwarded(of, answers, is_done, is_secure=self.proxies.format is not None)
            if has_quorum(int(np.count_nonzero(counted)), len(ids)):
                return counted, attempt + 1
            if self.dropout == 0 == self.proxies.dropout:  # Why: another attempt would end in the same way
                break
        return np.zeros(len(ids), dtype=bool), attempt + 1


def count_proxy_steps(n_clients: int, cohort: int, missing: float) -> int:
    """Of a round; missing: probability that a client that is asked is not counted."""
    return len(divide_round(n_clients, cohort)) - 1 + math.ceil(n_clients * missing / cohort)


@dataclass(frozen=True)
class ProxySchedule(RoundSchedule):
    """Every client is counted at most once in a round; who was not is asked again where there is room."""

    lateness: ProxyLateness
    # spans -> [n_spans, n_clients] bool, who has pairs to learn from and applies; None: all apply
    find_learners: Callable[[tuple[Span, ...]], Array] | None
    plans: dict[int, tuple[Array, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def steps_per_round(self) -> int:
        missing = 1 - (1 - self.lateness.dropout) * (1 - self.lateness.proxies.dropout)
        return count_proxy_steps(self.n_clients, self.cohort, missing)

    def step_at(self, number: int) -> SearchStep:
        round, place = divmod(number - 1, self.steps_per_round)
        training = round // self.rounds + 1
        span = self.span_of(training)
        if round not in self.plans:
            self.plans[round] = self.plan_round(round + 1, training)
            while len(self.plans) > _MOST_PLANNED:
                self.plans.pop(next(iter(self.plans)))
        ids = self.plans[round][place]
        return SearchStep(ids, [span] * len(ids), round + 1, training, (number - 1) % self.steps_each == 0, number)

    def list_applicants(self, training: int) -> Array:
        """[n] ascending: clients that apply in every round of a training."""
        if self.find_learners is None:
            return np.arange(self.n_clients)
        spans = tuple(self.span_of(each + 1) for each in range(self.trainings))  # Why all: logs are read once for them
        return np.flatnonzero(self.find_learners(spans)[training - 1])

    def plan_round(self, round: int, training: int) -> tuple[Array, ...]:
        """[steps] ids of those who are asked in each step, ascending."""
        hierarchy, applied = self.lateness.proxies.hierarchy, self.list_applicants(training)
        owners = hierarchy.proxies_of(applied)
        proxies = {int(p): apply_clients(ProxyState(), applied[owners == p].tolist()) for p in np.unique(owners)}
        steps = []
        for number in range((round - 1) * self.steps_per_round + 1, round * self.steps_per_round + 1):
            proxies = self.ask_proxies(proxies, number)
            ids = np.array(sorted(i for state in proxies.values() for i in state.asked), dtype=np.int64)
            steps.append(ids)
            if len(ids):
                counted, _ = self.lateness.find_answers(ids, step=number)
                done = frozenset(ids[counted].tolist())
                proxies |= {proxy: settle_step(state, done) for proxy, state in proxies.items() if state.asked}
        return tuple(steps)

    def ask_proxies(self, proxies: dict[int, ProxyState], number: int) -> dict[int, ProxyState]:
        """The proxies after they have picked the clients of a step: those who missed theirs where others leave room."""
        counts = {proxy: count_waiting(state) for proxy, state in proxies.items()}
        key = stream(self.key, Purpose.PROXY, number)
        fresh = self.choose({proxy: n.fresh for proxy, n in counts.items()}, self.cohort, key=stream(key, 0))
        room = self.cohort - sum(fresh.values())
        missed = self.choose({proxy: n.missed for proxy, n in counts.items()}, room, key=stream(key, 1))
        picks = {proxy: (fresh.get(proxy, 0), missed.get(proxy, 0)) for proxy in {**fresh, **missed}}
        draws = stream(key, 2)
        return proxies | {proxy: pick_clients(proxies[proxy], *n, key=draws) for proxy, n in picks.items()}

    def choose(self, waiting: dict[int, int], n_asked: int, *, key: Array) -> dict[int, int]:
        """{proxy: clients to pick}, by the server and then by each group server."""
        if n_asked < FEWEST:
            return {}
        below: dict[int, dict[int, int]] = {}
        setting, chosen = self.lateness.proxies, dict[int, int]()
        for proxy, n in waiting.items():
            below.setdefault(setting.hierarchy.group_of(proxy), {})[proxy] = n
        counts = {group: sum(there.values()) for group, there in below.items()}
        for group, n in share_step(counts, n_asked, clients_each=setting.clients_each, key=stream(key, 0)).items():
            draws = stream(key, 1, group)
            chosen |= choose_proxies(below[group], n, clients_each=setting.clients_each, key=draws)
        return chosen
