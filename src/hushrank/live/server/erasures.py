"""What an operator does about forgetting with commands: ask for it, sign its records, see how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from hushrank.files import Json
from hushrank.live.server import store
from hushrank.live.server.config import read_config, rules_of
from hushrank.live.server.creation import lock_federation
from hushrank.live.server.forgetting import (
    estimate_left_s,
    forget_terms_of,
    read_forgotten,
    read_running,
    read_waiting,
    wish_forgetting,
)
from hushrank.live.server.schema import FORGETTINGS
from hushrank.live.wire.credentials import name_client
from hushrank.live.wire.news import Forgotten
from hushrank.unlearning.record import sign_record
from hushrank.unlearning.signing_key import FILE, open_key

_MOST_SHOWN = 20  # clients


def make_signature(directory: Path) -> Callable[[Json], Json]:
    """Signs erasure records with the federation's own key, which is made with the first of them; a damaged one is
    refused."""
    if (directory / FILE).exists():
        open_key(directory / FILE)
    return lambda record: sign_record(record, open_key(directory / FILE))


def forget_client(directory: Path, client: str) -> str:
    """Let a client leave and be forgotten; a running server hears of it. client: number or pseudonym; the pseudonym."""
    config = read_config(directory)
    engine = store.open_store(directory / store.FILE, lock=lock_federation(directory))
    with engine.begin() as connection:
        agreement = store.read_agreement(connection)
        id = find_client(connection, client)
        terms, rules = forget_terms_of(agreement, config), rules_of(agreement, config)
        pseudonym = wish_forgetting(connection, id, terms, rules, now=time.time())
    engine.dispose()
    return pseudonym


def find_client(connection: sa.Connection, client: str) -> int:
    """Its number in the file."""
    agreement = store.read_agreement(connection)
    for member in store.read_members(connection):
        if client in (str(member.id), name_client(member.credential_hash, agreement.digest)):
            return member.id
    raise ValueError(f"no client of this federation is called {client!r}: hushrank server clients lists them.")


def read_erasure(directory: Path, pseudonym: str) -> Forgotten | None:
    """What became of a wish; None: nobody with this pseudonym has one."""
    engine = store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        found = read_forgotten(connection, pseudonym)
    engine.dispose()
    return found


def read_awaited(connection: sa.Connection) -> list[int]:
    """Clients whose answers the present step of a forgetting lacks; before the first one, all who stay."""
    rounds, running = store.restore_rounds(connection), read_running(connection)
    if running is None and (rounds.is_open or not read_waiting(connection)):
        return []
    there = {member.id for member in store.read_members(connection) if not member.has_left}
    return sorted((there & rounds.asked) - rounds.answered if rounds.is_open else there)


def call_back(directory: Path) -> Json | None:
    """As JSON: whom a finished federation needs again to forget somebody; None: it is not finished, or needs nobody.

    Why: its clients have ended, and nothing but a person starts them.
    """
    config, engine = read_config(directory), store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        agreement, rounds = store.read_agreement(connection), store.restore_rounds(connection)
        awaited = read_awaited(connection)
    engine.dispose()
    if not awaited or agreement.rounds is None or rounds.n_closed < agreement.rounds:
        return None
    needed = max(rules_of(agreement, config).quorum, 1)
    return {"clients": awaited, "at_least": needed, "patience_s": config.forget_patience_s}


def describe_awaited(found: Json) -> str:
    """For people, of what `call_back` gives: who, how, and for how long."""
    ids, n = found["clients"], len(found["clients"])
    shown = ", ".join(map(str, ids[:_MOST_SHOWN])) + (f" and {n - _MOST_SHOWN} more" if n > _MOST_SHOWN else "")
    return (
        f"clients {shown}. They ended when the federation was finished: start each again on its device with hushrank "
        f"client; it ends by itself. {found['at_least']} must come; for the others the server waits "
        f"{found['patience_s']:g} s (forget_patience_s) from the beginning of the forgetting on"
    )


def read_forgetting(connection: sa.Connection) -> Json | None:
    """As JSON: how far it is, how many wait and whose answers it lacks; None: nobody was ever to be forgotten."""
    running, waiting = read_running(connection), read_waiting(connection)
    ended = connection.execute(sa.select(FORGETTINGS.c.state, FORGETTINGS.c.failure).order_by(FORGETTINGS.c.number))
    states = [(state, failure) for state, failure in ended]
    if running is None and not waiting and not states:
        return None
    return {
        "step": None if running is None else running.step,
        "steps": None if running is None else len(running.rounds),
        "method": None if running is None else running.terms.method,
        "left_s": None if running is None else estimate_left_s(connection, running.number),
        "waiting": len(waiting),
        "awaited": read_awaited(connection),
        "done": sum(state == "done" for state, _ in states),
        "failure": states[-1][1] if states else None,
    }


def describe_forgetting(found: Json) -> str:
    """A line for people."""
    parts = []
    if found["step"] is not None:
        left = "" if found["left_s"] is None else f", about {found['left_s']:.0f} s left"
        parts.append(f"{found['method']}, {found['step']} of {found['steps']} steps{left}; the old ranker is served")
    parts += [f"{found['waiting']} clients wait"] if found["waiting"] else []
    parts += [f"no answer yet from {len(found['awaited'])} clients"] if found["awaited"] else []
    parts += [f"{found['done']} done"] if found["done"] else []
    parts += [f"the last one failed: {found['failure']}"] if found["failure"] else []
    return "; ".join(parts)
