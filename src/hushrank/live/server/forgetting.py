"""Clients that want to be forgotten, in the federation's file: who waits, how far it is, and what came of it.

A forgetting begins with the first ranker and replays earlier rounds, one by one, with those who stayed. What it has
reached, the candidate, is written with the end of each of its rounds, in a row of its own: people search with the old
ranker until the last step. Those who wish to be forgotten before it begins are forgotten together; who comes later
waits for the next.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import sqlalchemy as sa

from hushrank.aggregation.server_step import ServerStep
from hushrank.files import Json
from hushrank.live.server import store
from hushrank.live.server.arrays import pack_arrays, unpack_arrays
from hushrank.live.server.config import ServerConfig
from hushrank.live.server.rounds import RoundRules
from hushrank.live.server.schema import CLIENTS, FORGETTINGS, ROUNDS, WISHES
from hushrank.live.wire.agreement import FRESH, Agreement
from hushrank.live.wire.credentials import name_client
from hushrank.live.wire.news import ForgetNews, ForgettingState, Forgotten, Outcome
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import forget_method_of, server_step_of
from hushrank.types import Array, NamedArrays
from hushrank.unlearning.lengths import count_kept, is_kept

_SEARCHES = Fraction(3, 5)  # of a round's; Why: three of five as in [thesis, Figure 6.3]


@dataclass(frozen=True, slots=True)
class ForgetTerms:
    """How a server forgets a client."""

    method: str
    every: int  # rounds from one that is replayed to the next
    searches: int  # of a replayed round, at most


@dataclass(frozen=True, slots=True)
class LiveForgetting:
    """One that runs."""

    number: int
    terms: ForgetTerms
    rounds: tuple[int, ...]  # the earlier ones that are replayed, in order
    step: int  # how many of them are over
    params: Array  # [n_params] of the candidate
    state: NamedArrays  # the server's memory for it

    @property
    def is_last(self) -> bool:
        """Whether its present step is the last one."""
        return self.step + 1 == len(self.rounds)

    @property
    def news(self) -> ForgetNews:
        """Of the present step."""
        return ForgetNews(self.step + 1, len(self.rounds), self.rounds[self.step], self.terms.searches)

    def server_step(self, agreement: Agreement) -> ServerStep:
        """By which a candidate is made. Fresh: longer steps make up for the rounds that are left out. A rate that fades
        in all rounds fades in as many of them as are replayed."""
        step, every = server_step_of(agreement), self.terms.every
        if step.fade is not None:  # Why the longer one: where rounds were abandoned, more are replayed than agreed
            step = replace(step, fade=max(count_kept(step.fade, every), len(self.rounds)))
        return replace(step, rate=step.rate * every) if self.terms.method == FRESH else step


def forget_terms_of(agreement: Agreement, config: ServerConfig) -> ForgetTerms | None:
    """None: this federation cannot forget."""
    method = forget_method_of(agreement)
    if method is None:
        return None
    searches = config.forget_searches or max(1, int(_SEARCHES * agreement.interactions))
    return ForgetTerms(method, agreement.keep_every or config.forget_every, min(searches, agreement.interactions))


def find_replayed(connection: sa.Connection, every: int) -> list[int]:
    """The rounds that learnt and closed, as far as clients keep something of them."""
    is_learnt = (ROUNDS.c.state == Outcome.closed) & ROUNDS.c.stands_for.is_(None)
    closed = connection.execute(sa.select(ROUNDS.c.number).where(is_learnt).order_by(ROUNDS.c.number)).scalars()
    return [number for number in closed if is_kept(number, every)]


def wish_forgetting(
    connection: sa.Connection, client: int, terms: ForgetTerms | None, rules: RoundRules, *, now: float
) -> str:
    """A client leaves and wants to be forgotten, in one transaction; the pseudonym that its record will have. Again is
    harmless. RefusedError: it cannot be forgotten, and nothing was changed."""
    agreement = store.read_agreement(connection)
    row = connection.execute(sa.select(CLIENTS).where(CLIENTS.c.id == client)).one()
    pseudonym = name_client(row.credential_hash, agreement.digest)
    known = read_forgotten(connection, pseudonym)
    if known is None or known.state is ForgettingState.failed:
        check_wish(connection, client, terms, rules, has_answered=row.accepted > 0)
        connection.execute(sa.delete(WISHES).where(WISHES.c.client == client))
        connection.execute(sa.insert(WISHES).values(client=client, pseudonym=pseudonym, wished_at=now))
    store.leave_client(connection, client, now=now)
    return pseudonym


def check_wish(
    connection: sa.Connection, client: int, terms: ForgetTerms | None, rules: RoundRules, *, has_answered: bool
) -> None:
    """Refuse what cannot be done, and say what can."""
    if terms is None:
        raise _refuse("this federation cannot forget a client: only updates (fpdgd) without rests can be replayed.")
    if not has_answered:
        raise _refuse("this client never took part: there is nothing to forget. It may leave without --forget.")
    there = {member.id for member in store.read_members(connection) if not member.has_left} - {client}
    if len(there) < max(rules.quorum, 1):
        raise _refuse(
            f"{len(there)} other clients remain, and forgetting needs {max(rules.quorum, 1)}: nobody is left to learn "
            "the ranker anew. Begin a new federation instead."
        )
    steps = find_replayed(connection, terms.every)
    if not steps:
        raise _refuse(f"no round that can be replayed (1, {1 + terms.every}, ...) has closed yet: try again later.")
    found = store.restore_rounds(connection)
    left = None if rules.rounds is None else rules.rounds - found.n_closed - found.n_replayed
    if rules.counts_replays and left is not None and left < len(steps):
        raise _refuse(
            f"forgetting takes {len(steps)} rounds, but only {max(left, 0)} are left of the {rules.rounds} that the "
            "clients' privacy budgets are for."
        )
    try:
        store.read_first_ranker(connection)
    except ValueError as error:
        raise _refuse(str(error)) from error


def _refuse(why: str) -> RefusedError:
    return RefusedError(Reason.forget, why)


def read_waiting(connection: sa.Connection) -> list[int]:
    """Clients that no forgetting has begun with."""
    waiting = sa.select(WISHES.c.client).where(WISHES.c.forgetting.is_(None)).order_by(WISHES.c.client)
    return list(connection.execute(waiting).scalars())


def read_leavers(connection: sa.Connection, number: int) -> dict[int, str]:
    """{client: pseudonym} of a forgetting."""
    chosen = sa.select(WISHES).where(WISHES.c.forgetting == number).order_by(WISHES.c.pseudonym)
    return {row.client: row.pseudonym for row in connection.execute(chosen)}


def begin_forgetting(connection: sa.Connection, terms: ForgetTerms, *, now: float) -> LiveForgetting | None:
    """Of all who wait; None: nobody does."""
    if not read_waiting(connection):
        return None
    rounds, (params, memory) = find_replayed(connection, terms.every), store.read_first_ranker(connection)
    counts = dict.fromkeys(("step", "n_lost", "n_answers", "n_filled"), 0)
    row: Json = {"method": terms.method, "every": terms.every, "searches": terms.searches}
    row |= {**counts, "state": ForgettingState.running, "steps": len(rounds), "began_at": now}
    made = connection.execute(sa.insert(FORGETTINGS).values({**row, **_candidate(params, memory)}))
    number = int(made.inserted_primary_key[0]) if made.inserted_primary_key else 0
    connection.execute(sa.update(WISHES).where(WISHES.c.forgetting.is_(None)).values(forgetting=number))
    return LiveForgetting(number, terms, tuple(rounds), 0, params, memory)


def read_running(connection: sa.Connection) -> LiveForgetting | None:
    is_running = FORGETTINGS.c.state == ForgettingState.running
    row = connection.execute(sa.select(FORGETTINGS).where(is_running)).one_or_none()
    if row is None:
        return None
    rounds = tuple(find_replayed(connection, row.every)[: row.steps])  # Why the same: meanwhile no round learns
    terms = ForgetTerms(row.method, row.every, row.searches)
    return LiveForgetting(
        row.number, terms, rounds, row.step, np.frombuffer(row.params, "<f4"), unpack_arrays(row.memory)
    )


def end_step(
    connection: sa.Connection, running: LiveForgetting, made: tuple[Array, NamedArrays] | None, *, n: int, n_filled: int
) -> LiveForgetting:
    """The next step. made: the new candidate of n answers; None: the step is lost."""
    params, memory = (running.params, running.state) if made is None else made
    counts = FORGETTINGS.c
    values: Json = {"step": running.step + 1, **_candidate(params, memory)}
    if made is None:
        values["n_lost"] = counts.n_lost + 1
    else:
        values |= {"n_answers": counts.n_answers + n, "n_filled": counts.n_filled + n_filled}
    connection.execute(sa.update(FORGETTINGS).where(counts.number == running.number).values(values))
    return replace(running, step=running.step + 1, params=params, state=memory)


def end_forgetting(
    connection: sa.Connection, number: int, *, record: Json | None = None, failure: str | None = None, now: float
) -> None:
    """Done, with its record, or failed; the candidate is wiped."""
    state = ForgettingState.done if failure is None else ForgettingState.failed
    said = None if record is None else json.dumps(record)
    values = {"state": state, "record": said, "failure": failure, "ended_at": now, "params": None, "memory": None}
    connection.execute(sa.update(FORGETTINGS).where(FORGETTINGS.c.number == number).values(values))


def _candidate(params: Array, memory: NamedArrays) -> dict[str, bytes]:
    return {"params": np.asarray(params, "<f4").tobytes(), "memory": pack_arrays(memory)}


def read_forgotten(connection: sa.Connection, pseudonym: str) -> Forgotten | None:
    """What became of a client's wish; None: nobody with this pseudonym has one."""
    wish = connection.execute(sa.select(WISHES).where(WISHES.c.pseudonym == pseudonym)).one_or_none()
    if wish is None:
        return None
    if wish.forgetting is None:
        return Forgotten(ForgettingState.waiting)
    row = connection.execute(sa.select(FORGETTINGS).where(FORGETTINGS.c.number == wish.forgetting)).one()
    record = None if row.record is None else json.loads(row.record)
    return Forgotten(ForgettingState(row.state), row.step, row.steps, row.failure, record)


def estimate_left_s(connection: sa.Connection, number: int) -> float | None:
    """Seconds that the forgetting of this number will still take, if its steps take as long as they did; None: none of
    them is over."""
    row = connection.execute(sa.select(FORGETTINGS).where(FORGETTINGS.c.number == number)).one()
    is_own = ROUNDS.c.stands_for.is_not(None) & (ROUNDS.c.opened_at >= row.began_at) & ROUNDS.c.closed_at.is_not(None)
    times = connection.execute(sa.select(ROUNDS.c.opened_at, ROUNDS.c.closed_at).where(is_own)).all()
    if not times or row.step == 0:
        return None
    return float(np.mean([closed - opened for opened, closed in times])) * (row.steps - row.step)
