"""The end of a round that forgets: the next candidate, and at the last step the new ranker with its signed record.

What is checked before the new ranker takes the place of the old one: that its numbers are finite, that every step is
over, and that at least one of them made a candidate. How good it is, a server cannot know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import sqlalchemy as sa

from hushrank.federation.state import OPTIMISER
from hushrank.files import Json
from hushrank.live.server import store
from hushrank.live.server.closing import MadeRanker, RoundEnd, RoundResult, make_ranker
from hushrank.live.server.evidence import read_evidence
from hushrank.live.server.forgetting import LiveForgetting, end_forgetting, end_step, read_leavers, read_waiting
from hushrank.live.server.schema import FORGETTINGS, RANKERS, SEEN, TRUST, UPDATES
from hushrank.live.wire.agreement import ERASER, Agreement
from hushrank.live.wire.news import Outcome
from hushrank.types import Array, NamedArrays
from hushrank.unlearning.record import Erasure, build_record, digest_rankers

Sign = Callable[[Json], Json]  # a record, with key and signature
_STEPS = f"{OPTIMISER}/n_steps"
_FAILURE = "none of its steps had enough answers; the old ranker stays, and the wish may be repeated."


def write_replay_end(
    connection: sa.Connection, agreement: Agreement, end: RoundEnd, running: LiveForgetting, sign: Sign
) -> RoundResult:
    """All of it, for one transaction; end: with the candidate's parameters and memory."""
    is_closed, step = end.outcome is Outcome.closed, running.server_step(agreement)
    made = make_ranker(connection, agreement, end, step) if is_closed else MadeRanker()
    candidate = None if made.ranker is None else (made.ranker.params, made.ranker.state)
    n, n_filled = count_answers(connection, end.number)
    after = end_step(connection, running, candidate, n=n, n_filled=n_filled)
    closing = store.Closing(end.number, None, end.price, keep_updates=end.keep_updates, makes_candidate=bool(candidate))
    store.close_round(connection, closing, now=time.time())
    store.add_refusals(connection, end.refused)
    record, failure = None, None
    if after.step == len(after.rounds):
        record, failure = finish_forgetting(connection, after, number=end.number, sign=sign)
    if end.opening is not None:
        store.open_round(connection, end.opening, now=time.time())
    params, state = store.read_ranker(connection)
    return RoundResult(
        closing.outcome,
        params,
        state,
        evidence=read_evidence(connection),
        failure=made.failure,
        replay=after if record is None and failure is None else None,
        n_forgotten=0 if record is None else len(record["clients"]),
        not_forgotten=failure,
        is_wished=bool(read_waiting(connection)),
    )


def count_answers(connection: sa.Connection, round: int) -> tuple[int, int]:
    """Of a round, and how many of them had a length that stands in for a missing one."""
    counted = sa.select(sa.func.count(), sa.func.sum(UPDATES.c.is_filled)).where(UPDATES.c.round == round)
    n, n_filled = connection.execute(counted).one()
    return int(n), int(n_filled or 0)


def finish_forgetting(
    connection: sa.Connection, after: LiveForgetting, *, number: int, sign: Sign
) -> tuple[Json | None, str | None]:
    """The record, or why there is none."""
    row = connection.execute(sa.select(FORGETTINGS).where(FORGETTINGS.c.number == after.number)).mappings().one()
    if row["n_answers"] == 0 or not np.isfinite(after.params).all():
        end_forgetting(connection, after.number, failure=_FAILURE, now=time.time())
        return None, _FAILURE
    leavers, (old, memory) = read_leavers(connection, after.number), store.read_ranker(connection)
    record = sign(build_record(state_erasure(after, tuple(leavers.values()), old, row), when=datetime.now(UTC)))
    is_fading = store.read_agreement(connection).server_fade
    state = resume_fading(after.state, memory) if is_fading else after.state
    store.publish_ranker(connection, number, after.params, state)
    wipe_traces(connection, list(leavers), number=number)
    end_forgetting(connection, after.number, record=record, now=time.time())
    return record, None


def resume_fading(state: NamedArrays, before: NamedArrays) -> NamedArrays:
    """The server's memory with which learning goes on: the rate has fallen as far as it had before the forgetting."""
    return {**state, _STEPS: before[_STEPS]}


def state_erasure(after: LiveForgetting, clients: tuple[str, ...], old: Array, row: sa.RowMapping) -> Erasure:
    """What the record says. Nothing of it is about what anybody did."""
    n_closed = row["steps"] - row["n_lost"]
    figures: dict[str, float | int | bool | None] = {
        "is_finite": True,
        "steps": row["steps"],
        "steps_lost": row["n_lost"],
        "answers_per_step": row["n_answers"] / n_closed,
        "lengths_filled": row["n_filled"],
        "distance/l2": float(np.linalg.norm(after.params.astype(np.float64) - old)),
    }
    residues = ("lengths", "impressions") if row["method"] == ERASER else ("impressions",)
    return Erasure(clients, row["method"], residues, digest_params(old), digest_params(after.params), figures)


def digest_params(params: Array) -> str:
    """Of a ranker, as records name it."""
    return digest_rankers({"params": np.asarray(params, "<f4")})


def wipe_traces(connection: sa.Connection, clients: list[int], *, number: int) -> None:
    """What the file still has of those who left: updates that were kept, digests, trust, and rankers that they helped
    to train. That they were enrolled stays, so that their credentials are nobody's again."""
    for table in (UPDATES, SEEN, TRUST):
        connection.execute(sa.delete(table).where(table.c.client.in_(clients)))
    connection.execute(sa.delete(RANKERS).where(RANKERS.c.round > 0, RANKERS.c.round < number))
