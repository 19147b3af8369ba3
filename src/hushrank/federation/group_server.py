"""What a group server does in a step: it takes counts, and after a quorum sums, and counts each sum once.

Any message between a proxy and its group server may get lost, and those of one proxy come in the order in which they
were sent. So a group server knows the last sum that it has counted of each proxy, in all rounds: a proxy that did not
hear of it sends the same sum again, perhaps when the model has moved, and hears then that it is counted. Between group
servers and the server nothing gets lost: the model moves when all group servers have handed over what they counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from hushrank.federation.hierarchy import FEWEST
from hushrank.federation.proxy_sum import PartialSum


class SumVerdict(StrEnum):
    """What a group server answers to a sum. Whatever it is but `counted`, the sum's clients wait on (`settle_step`)."""

    counted = "counted once, in this round"
    before = "counted once, in an earlier round"
    late = "the model has moved"
    early = "no quorum of this model is known"
    another = "another sum of this proxy and model is counted"
    few = "of fewer than two clients"
    uncounted = "of more clients than the proxy has counted in this step"
    length = "not as long as the model"
    no_number = "with numbers that are not finite, or no weight above 0"


class CountedSum(NamedTuple):
    """What is kept of a sum to know it again."""

    round: int
    model: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class GroupState:
    """What a group server keeps: first counts of an attempt, then, if they are enough, sums of the model."""

    round: int
    model: int  # number of the model that the step moves
    n_params: int  # of it
    asked: frozenset[int]  # proxies that are to pick clients in this step
    counts: Mapping[int, int] = field(default_factory=dict)  # by proxy: clients whose updates it could forward
    is_due: bool = False  # whether the server has found a quorum, so that proxies are asked for their sums
    sums: Mapping[int, PartialSum] = field(default_factory=dict)  # by proxy, of this model
    last: Mapping[int, CountedSum] = field(default_factory=dict)  # by proxy, of this or an earlier model


def begin_attempt(state: GroupState, asked: Iterable[int], *, round: int, model: int) -> GroupState:
    """The group server in the next attempt, step or round. Counted sums stay until the model has moved with them."""
    if model < state.model or round < state.round:
        raise ValueError(
            f"model {model} in round {round} comes after model {state.model} in round {state.round}. Neither goes back."
        )
    sums = state.sums if model == state.model else {}
    return replace(state, round=round, model=model, asked=frozenset(asked), counts={}, is_due=False, sums=sums)


def add_count(state: GroupState, proxy: int, n_clients: int, *, model: int) -> GroupState:
    """The group server after a proxy has told how many are in the sum that it could send (`count_sendable`)."""
    if n_clients < 0 or 0 < n_clients < FEWEST:
        raise ValueError(f"a count of {n_clients} came, must be 0 or {FEWEST} and more: one client alone waits.")
    if model != state.model or state.is_due or proxy not in state.asked:
        return state
    return replace(state, counts={**state.counts, proxy: n_clients})


def has_quorum(n_counted: int, n_asked: int) -> bool:
    """Whether half of those asked can be counted; by the server, from the counts of all group servers."""
    return n_counted >= max(FEWEST, -(-n_asked // 2))


def ask_sums(state: GroupState) -> GroupState:
    """The group server after the server has found a quorum. From then on the step is not repeated."""
    return replace(state, is_due=True)


def add_sum(state: GroupState, proxy: int, part: PartialSum, *, model: int) -> tuple[GroupState, SumVerdict]:
    """The group server after a proxy's sum, and what it answers. A proxy that hears nothing sends the same sum again.

    A sum that is known is counted once, however often and however late it comes.
    """
    digest, known = _digest_sum(part), state.last.get(proxy)
    if known is not None and (known.model, known.digest) == (model, digest):
        return state, SumVerdict.counted if known.round == state.round else SumVerdict.before
    verdict = _judge_sum(state, proxy, part, model=model)
    if verdict is not SumVerdict.counted:
        return state, verdict
    last = {**state.last, proxy: CountedSum(state.round, model, digest)}
    return replace(state, sums={**state.sums, proxy: part}, last=last), verdict


def _judge_sum(state: GroupState, proxy: int, part: PartialSum, *, model: int) -> SumVerdict:
    """Of one that is not known."""
    claims = {
        SumVerdict.late: model < state.model,
        SumVerdict.early: model > state.model or not state.is_due,
        SumVerdict.another: proxy in state.sums,
        SumVerdict.few: part.n_clients < FEWEST,
        SumVerdict.uncounted: part.n_clients > state.counts.get(proxy, 0),
        SumVerdict.length: np.shape(part.total) != (state.n_params,),
        SumVerdict.no_number: not (part.is_finite and part.weight > 0),
    }
    return next((verdict for verdict, holds in claims.items() if holds), SumVerdict.counted)


def _digest_sum(part: PartialSum) -> bytes:
    said = f"{part.weight!r} {part.n_clients} {np.shape(part.total)}".encode()
    return hashlib.sha256(said + np.asarray(part.total, np.float64).tobytes()).digest()
