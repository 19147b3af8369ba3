"""Proxies and their group server where any message may get lost at any moment: nobody counts twice, nobody is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hushrank.federation.group_server import (
    GroupState,
    SumVerdict,
    add_count,
    add_sum,
    ask_sums,
    begin_attempt,
    has_quorum,
)
from hushrank.federation.hierarchy import (
    Hierarchy,
    ProxyState,
    apply_clients,
    await_answer,
    choose_proxies,
    count_waiting,
    pick_clients,
    settle_step,
    takes_answer,
)
from hushrank.federation.proxy_sum import (
    PartialSum,
    SentSum,
    WholeMessage,
    choose_forwarded,
    count_sendable,
    send_sum,
    sum_openly,
)
from hushrank.streams import fold_in, seed_key, stream

BELOW = Hierarchy(11, users_per_proxy=4)
PROXIES, CLIENTS = range(BELOW.n_proxies), range(BELOW.n_clients)
EVERY, ALL = frozenset(PROXIES), frozenset(CLIENTS)
HEARD = st.sets(st.sampled_from(PROXIES)).map(lambda lost: EVERY - lost)  # proxies whose message arrives
HERE = st.sets(st.sampled_from(CLIENTS), max_size=5).map(lambda lost: ALL - lost)


def clients_in(part: PartialSum) -> set[int]:
    """Client i moves parameter i and no other one."""
    return set(np.flatnonzero(part.total).tolist())


class LostMessages(RuleBasedStateMachine):
    """One group server and its three proxies, in any order. Sets of proxies say which messages arrive."""

    @initialize()
    def begin(self) -> None:
        self.proxies = {proxy: ProxyState() for proxy in PROXIES}
        self.kept: dict[int, SentSum | None] = dict.fromkeys(PROXIES)
        self.trained = dict.fromkeys(PROXIES, 0)  # the model of the clients that a proxy has asked
        self.answered: dict[int, set[int]] = {proxy: set() for proxy in PROXIES}
        self.group = GroupState(1, 1, BELOW.n_clients, frozenset())
        self.n_steps = self.n_asked = 0
        self.applied: set[int] = set()
        self.counted = Counter[int]()  # {client: sums that hold its update} in this round
        self.unmoved: set[tuple[int, int]] = set()  # (proxy, client) of counted sums by which the model has not moved
        self.left: dict[tuple[int, int], bytes] = {}  # {(proxy, model): the sum}
        self.apply(ALL)

    @rule(clients=HERE)
    def apply(self, clients: Set[int]) -> None:
        """Again, too: a client may not have heard that it is counted."""
        self.applied |= clients
        for proxy in PROXIES:
            mine = {c for c in clients if BELOW.proxies_of(np.array([c]))[0] == proxy}
            self.proxies[proxy] = apply_clients(self.proxies[proxy], mine)

    @rule(
        told=HEARD,
        picked=HEARD,
        n_asked=st.integers(2, 8),
        clients=HERE,
        counts=HEARD,
        due=HEARD,
        arrived=HEARD,
        heard=HEARD,
    )
    def play_step(
        self,
        told: Set[int],
        picked: Set[int],
        n_asked: int,
        clients: Set[int],
        counts: Set[int],
        due: Set[int],
        arrived: Set[int],
        heard: Set[int],
    ) -> None:
        """Proxies that do not know what has become of a sum send it first."""
        self.send_again(told, heard)
        self.begin_step(told, picked, n_asked)
        self.answer(clients)
        self.count(counts)
        if has_quorum(sum(self.group.counts.values()), self.n_asked):
            self.find_quorum()
            self.send(due, arrived, heard)

    def begin_step(self, told: Set[int], picked: Set[int], n_asked: int) -> None:
        """Those who missed a step in the room that others leave."""
        self.n_steps += 1
        key = stream(seed_key(5), self.n_steps)
        waiting = {proxy: count_waiting(self.proxies[proxy]) for proxy in told}
        fresh = choose_proxies({p: n.fresh for p, n in waiting.items()}, n_asked, clients_each=2, key=key)
        room = n_asked - sum(fresh.values())
        missed = choose_proxies({p: n.missed for p, n in waiting.items()}, room, clients_each=2, key=key)
        missed = missed if room >= 2 else {}
        self.n_asked = sum(fresh.values()) + sum(missed.values())
        self.group = begin_attempt(self.group, {*fresh, *missed}, round=self.group.round, model=self.group.model)
        for proxy in self.group.asked & picked:
            draws = fold_in(key, np.array([proxy]))[0]
            state = pick_clients(self.proxies[proxy], fresh.get(proxy, 0), missed.get(proxy, 0), key=draws)
            self.proxies[proxy], self.trained[proxy] = state, self.group.model
            self.answered[proxy] = set()

    def answer(self, clients: Set[int]) -> None:
        for proxy, state in self.proxies.items():
            self.answered[proxy] |= {client for client in clients if takes_answer(state, client)}

    def count(self, told: Set[int]) -> None:
        for proxy in told:
            ids = np.array(sorted(self.proxies[proxy].asked), dtype=np.int64)
            came = np.isin(ids, list(self.answered[proxy]))
            n = int(choose_forwarded(np.zeros_like(ids), came, np.zeros(len(ids), bool), is_secure=False).sum())
            n = count_sendable(self.kept[proxy], n, model=self.trained[proxy])
            self.group = add_count(self.group, proxy, n, model=self.trained[proxy])

    def find_quorum(self) -> None:
        self.group = ask_sums(self.group)

    @rule()
    def repeat(self) -> None:
        """Another attempt, unless there was a quorum."""
        if not self.group.is_due:
            known = {"round": self.group.round, "model": self.group.model}
            self.group = begin_attempt(self.group, self.group.asked, **known)

    @rule(reached=HEARD, arrived=HEARD, heard=HEARD)
    def send(self, reached: Set[int], arrived: Set[int], heard: Set[int]) -> None:
        """Proxies that hear that their sums are due; one that comes too early is lost in no other way."""
        for proxy in reached:
            clients = sorted(self.answered[proxy])
            part = sum_openly(WholeMessage(np.eye(BELOW.n_clients)[client]) for client in clients)
            kept, part = send_sum(self.kept[proxy], part, clients, model=self.trained[proxy])
            self.kept[proxy] = kept
            if kept is not None and part is not None:
                self.proxies[proxy] = await_answer(self.proxies[proxy], kept.clients)
                self.deliver(proxy, kept, arrived, heard)

    @rule(arrived=HEARD, heard=HEARD)
    def send_again(self, arrived: Set[int], heard: Set[int]) -> None:
        for proxy, state in self.proxies.items():
            kept = self.kept[proxy]
            if state.sent and kept is not None:
                self.deliver(proxy, kept, arrived, heard)

    def deliver(self, proxy: int, kept: SentSum, arrived: Set[int], heard: Set[int]) -> None:
        said = kept.part.total.tobytes()
        assert self.left.setdefault((proxy, kept.model), said) == said and len(kept.clients) >= 2
        if proxy not in arrived:
            return
        before = self.group.sums
        self.group, verdict = add_sum(self.group, proxy, kept.part, model=kept.model)
        if self.group.sums != before:
            assert clients_in(kept.part) == kept.clients
            self.counted.update(kept.clients)
            self.unmoved |= {(proxy, client) for client in kept.clients}
        if proxy in heard:
            done = kept.clients if verdict is SumVerdict.counted else ()
            self.proxies[proxy] = settle_step(self.proxies[proxy], done)
            self.answered[proxy] = set()

    @precondition(lambda self: self.unmoved)
    @rule()
    def move_model(self) -> None:
        """By all that was counted since it moved the last time."""
        assert {(p, client) for p, part in self.group.sums.items() for client in clients_in(part)} == self.unmoved
        self.unmoved = set()
        self.n_asked = 0
        self.group = begin_attempt(self.group, (), round=self.group.round, model=self.group.model + 1)

    @rule()
    def begin_round(self) -> None:
        self.proxies = {proxy: ProxyState() for proxy in PROXIES}
        self.answered = {proxy: set() for proxy in PROXIES}
        self.group = begin_attempt(self.group, (), round=self.group.round + 1, model=self.group.model)
        self.n_asked, self.applied, self.counted = 0, set(), Counter()
        self.apply(ALL)

    @invariant()
    def nobody_counts_twice(self) -> None:
        assert not self.counted or max(self.counted.values()) == 1

    @invariant()
    def nobody_is_lost(self) -> None:
        for proxy in PROXIES:
            state = self.proxies[proxy]
            mine = {c for c in self.applied if BELOW.proxies_of(np.array([c]))[0] == proxy}
            assert mine <= state.waiting | state.sent | set(self.counted)
            assert state.waiting & set(self.counted) <= state.sent

    def teardown(self) -> None:
        """Where nothing more is lost, all of the round are counted but those who wait alone."""
        self.send_again(EVERY, EVERY)
        assert not any(state.sent for state in self.proxies.values())
        self.nobody_is_lost()
        for _ in range(12):
            if self.unmoved:
                self.move_model()
            self.play_step(EVERY, EVERY, 8, ALL, EVERY, EVERY, EVERY, EVERY)
        assert all(count_waiting(state) == (0, 0) for state in self.proxies.values())
        self.nobody_counts_twice()
        self.nobody_is_lost()
        waiting = {client for state in self.proxies.values() for client in state.waiting}
        assert self.applied - set(self.counted) == waiting


LostMessages.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestLostMessages = LostMessages.TestCase
