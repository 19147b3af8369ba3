"""The layers of FedPSProxy: clients, proxies, group servers and one server [fedps, section 3.4].

Every function is a step of one party, from what it knows to what it says, without I/O: the simulator drives them, and
live proxies can. A proxy knows its clients, and says upwards only how many wait. A group server knows how many wait at
each of its proxies, the server how many below each group server. So nobody above a proxy learns who takes part when.

A client waits from its application until a sum that holds its update has been confirmed. Whatever happens in between (a
late answer, a sum that is not forwarded, a proxy that vanishes), it still waits, behind those who were not asked yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hushrank.streams import draw_bits, draw_uniform, fold_in
from hushrank.types import Array

FEWEST = 2  # clients in a sum that leaves a proxy. Why: a sum of one is that client's update


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Who is below whom. Clients are divided in the order of their ids; one alone joins the proxy before."""

    n_clients: int
    users_per_proxy: int = 100
    proxies_per_group: int = 1000

    def __post_init__(self) -> None:
        if self.users_per_proxy < FEWEST or self.proxies_per_group < 1:
            raise ValueError(
                f"users_per_proxy is {self.users_per_proxy} and proxies_per_group {self.proxies_per_group}, must be at "
                f"least {FEWEST} and 1: a proxy with one user would have nobody to hide it among."
            )

    @property
    def n_proxies(self) -> int:
        whole, rest = divmod(self.n_clients, self.users_per_proxy)
        return max(whole + (rest >= FEWEST), 1)

    @property
    def n_groups(self) -> int:
        return -(-self.n_proxies // self.proxies_per_group)

    def proxies_of(self, clients: Array) -> Array:
        """[n] the proxy of each client."""
        return np.minimum(np.asarray(clients) // self.users_per_proxy, self.n_proxies - 1)

    def group_of(self, proxy: int) -> int:
        return proxy // self.proxies_per_group


# What a proxy does


@dataclass(frozen=True, slots=True)
class ProxyState:
    """What a proxy keeps to itself. It begins empty in every round."""

    fresh: frozenset[int] = frozenset()  # clients that applied and were not asked yet
    missed: frozenset[int] = frozenset()  # clients that were asked, and that no confirmed sum holds
    asked: frozenset[int] = frozenset()  # those of both whose answers the current step may hold
    sent: frozenset[int] = frozenset()  # whose sum has left, until the proxy hears what has become of it
    counted: frozenset[int] = frozenset()  # whose sum is counted in this round

    @property
    def waiting(self) -> frozenset[int]:
        return self.fresh | self.missed


class Waiting(NamedTuple):
    """What a proxy tells its group server, and a group server, added up, the server. One alone counts as none."""

    fresh: int
    missed: int


def apply_clients(state: ProxyState, clients: Iterable[int]) -> ProxyState:
    """Clients want to take part. Repeating an application is harmless, also after its client was counted."""
    return replace(state, fresh=state.fresh | (frozenset(clients) - state.missed - state.counted))


def count_waiting(state: ProxyState) -> Waiting:
    """Nobody while it is not known what has become of a sum: who is in it may be counted already.

    Why one alone is none: its update could not be forwarded. Fresh and missed ones are drawn apart, fresh ones first,
    so that two who wait are none, too, if only one of them was asked before.
    """
    if state.sent:
        return Waiting(0, 0)
    return Waiting(*(len(some) if len(some) >= FEWEST else 0 for some in (state.fresh, state.missed)))


def pick_clients(state: ProxyState, n_fresh: int, n_missed: int, *, key: Array) -> ProxyState:
    """The proxy picks so many of those who wait; key: of the step. A step that was not settled is given up."""
    if state.sent:
        raise ValueError("a sum of this proxy has left, and nothing was heard of it. Send it again first.")
    asked = frozenset[int]()
    for some, n in ((state.fresh, n_fresh), (state.missed, n_missed)):
        if n == 0:
            continue
        if not FEWEST <= n <= len(some):
            raise ValueError(f"{n} clients are to be picked, must be from {FEWEST} to {len(some)}, who wait.")
        ids = np.array(sorted(some), dtype=np.int64)
        asked |= frozenset(ids[np.argsort(draw_bits(fold_in(key, ids), 1)[:, 0], kind="stable")[:n]].tolist())
    return replace(state, asked=asked)


def takes_answer(state: ProxyState, client: int) -> bool:
    """Whether an answer comes in time. One of an earlier step is thrown away, and its client still waits."""
    return client in state.asked


def await_answer(state: ProxyState, clients: Iterable[int]) -> ProxyState:
    """The proxy before it sends a sum of these clients. Until its group server has answered, the proxy sends that sum
    again, and asks nobody: otherwise a client whose sum is counted could be asked for another one."""
    return replace(state, sent=frozenset(clients))


def settle_step(state: ProxyState, counted: Iterable[int]) -> ProxyState:
    """The group server has answered that a sum of these clients is counted in this round, or, with nobody, that the
    sum is not. It is of this step or, sent again, of an earlier one. The others that were asked still wait."""
    done = frozenset(counted)
    return ProxyState(
        fresh=state.fresh - state.asked - done,
        missed=(state.missed | state.asked) - done,
        counted=state.counted | done,
    )


# What those above do


def share_step(waiting: Mapping[int, int], n_asked: int, *, clients_each: int, key: Array) -> dict[int, int]:
    """{group server: clients that it is to ask}, from {group server: clients that wait below it}; by the server.

    Parts of about clients_each fall to group servers one after another, to each with a chance in proportion to the
    clients that are left below it.
    """
    left = {group: n for group, n in sorted(waiting.items()) if n}
    wanted = min(n_asked, sum(left.values()))
    size = _divide(n_asked, clients_each, most=n_asked)
    shares: dict[int, int] = {}
    for uniform in draw_uniform(key, wanted).tolist():
        rest = wanted - sum(shares.values())
        if rest <= 0:
            break
        ends = np.cumsum(list(left.values()))
        group = list(left)[int(np.searchsorted(ends, uniform * int(ends[-1]), side="right"))]
        n = min(size, rest, left[group])
        shares[group] = shares.get(group, 0) + n
        left[group] -= n
    return shares


def choose_proxies(waiting: Mapping[int, int], n_asked: int, *, clients_each: int, key: Array) -> dict[int, int]:
    """{proxy: clients that it is to pick}, from {proxy: clients that wait there}; by a group server.

    n_asked / clients_each of the proxies that have clients left, drawn at random, clients_each of each. Where these
    have fewer left, further proxies are drawn; where there are no further ones, more are picked of each. A proxy picks
    at least two and never leaves one alone behind, so that a step may have a few more than n_asked.
    """
    able = np.array([proxy for proxy, n in sorted(waiting.items()) if n >= FEWEST], dtype=np.int64)
    if not len(able):
        return {}
    order = able[np.argsort(draw_bits(fold_in(key, able), 1)[:, 0], kind="stable")].tolist()
    size, chosen, rest = _divide(n_asked, clients_each, most=len(order)), dict[int, int](), n_asked
    for most in (size, n_asked):
        for proxy in order:
            there = chosen.get(proxy, 0)
            n = min(most - there, rest, waiting[proxy] - there)
            if n > 0:
                chosen[proxy] = _leave_none_alone(there + n, waiting[proxy])
                rest -= chosen[proxy] - there
    return chosen


def _divide(n_asked: int, clients_each: int, *, most: int) -> int:
    """The size of n_asked / clients_each equal parts, or of `most` parts where that is fewer."""
    return -(-n_asked // max(min(-(-n_asked // clients_each), most), 1))


def _leave_none_alone(n: int, waiting: int) -> int:
    n = max(n, FEWEST)
    return n + (waiting - n == 1)
