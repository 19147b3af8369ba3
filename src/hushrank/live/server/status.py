"""What a federation's file says, while its server runs or not: the state for people, and the ranker as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushrank.files import Json
from hushrank.live.server import store
from hushrank.live.server.erasures import call_back, read_forgetting
from hushrank.live.server.evidence import read_evidence, read_trust
from hushrank.live.server.lengths import read_lengths
from hushrank.live.server.past import read_past
from hushrank.live.wire.agreement import Agreement, as_json
from hushrank.live.wire.credentials import name_client
from hushrank.live.wire.terms import guarantee_of, price_of, ranker_of, relation_of, total_epsilon_of
from hushrank.privacy.banded import count_answers
from hushrank.privacy.named import MODES
from hushrank.privacy.renyi import Spend, composed_epsilon
from hushrank.rankers.named import write_ranker


def read_status(directory: Path) -> Json:
    """As JSON: rounds, clients, refusals, privacy spent."""
    engine = store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        agreement, rounds = store.read_agreement(connection), store.restore_rounds(connection)
        members, spends = store.read_members(connection), store.read_spends(connection)
        missing, lengths = read_past(connection).missing, read_lengths(connection)
        evidence, forgetting = read_evidence(connection), read_forgetting(connection)
        refused = {reason: n for reason, n in store.read_refusals(connection).items() if n}
    engine.dispose()
    pseudonyms = {member.id: name_client(member.credential_hash, agreement.digest) for member in members}
    separation = agreement.separation or 1
    n_closed = rounds.count_closed(with_replays=MODES[agreement.privacy].is_accounted)
    n_done = n_closed if separation == 1 else rounds.number  # Why: where clients rest, left-out numbers count
    is_forgetting = forgetting is not None and (forgetting["step"] is not None or forgetting["waiting"] > 0)
    is_enough = agreement.rounds is not None and n_done >= agreement.rounds
    is_finished = is_enough and not rounds.is_open and not is_forgetting
    return {
        "name": agreement.name,
        "digest": agreement.digest,
        "agreement": as_json(agreement),
        "round": rounds.number,
        "state": "finished" if is_finished else "open" if rounds.is_open else "idle",
        "answers": len(rounds.answered) if rounds.is_open else None,
        "asked": len(rounds.asked) if rounds.is_open else None,
        "rounds_closed": rounds.n_closed,
        "rounds_replayed": rounds.n_replayed,
        "rounds_abandoned": len(rounds.abandoned),
        "clients": sum(not member.has_left for member in members),
        "clients_left": sum(member.has_left for member in members),
        "updates_accepted": sum(member.accepted for member in members),
        "refused": refused,
        "missing": missing,
        "lengths": lengths,
        **evidence.as_json(pseudonyms),
        "forgetting": forgetting,
        "call_back": call_back(directory) if is_forgetting else None,
        **describe_spending(agreement, spends[: count_answers(rounds.number, separation)]),
    }


def describe_spending(agreement: Agreement, spends: Sequence[Spend]) -> Json:
    """As JSON. spends: what a client could answer at most."""
    price = price_of(agreement)
    return {
        "epsilon_spent": composed_epsilon(spends, delta=agreement.delta) if spends and price else None,
        "epsilon_total": total_epsilon_of(agreement),
        "delta": agreement.delta,
        "adjacency": str(relation_of(agreement)) if price else None,
        "against": price.against if price else None,
        "guarantee": guarantee_of(agreement),
    }


def read_clients(directory: Path) -> list[Json]:
    """As JSON, in the order in which they enrolled: what the file says of each."""
    engine = store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        members, trust = store.read_members(connection), read_trust(connection)
        digest = store.read_agreement(connection).digest
    engine.dispose()
    return [
        {
            "client": member.id,
            "pseudonym": name_client(member.credential_hash, digest),
            "has_left": member.has_left,
            "accepted": member.accepted,
            "refused": member.refused,
            "last_round": member.last_round,
            "trust": trust[member.id].trust if member.id in trust else None,
            "distrusted_since": trust[member.id].low_since if member.id in trust else None,
        }
        for member in members
    ]


def export_newest(directory: Path, path: Path) -> Json:
    """The newest ranker as the other commands' ranker file; its origin."""
    engine = store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        agreement, rounds = store.read_agreement(connection), store.restore_rounds(connection)
        params, _ = store.read_ranker(connection)
    engine.dispose()
    origin = {
        "federation": agreement.name,
        "agreement": agreement.digest,
        "rounds": rounds.n_closed,
        "guarantee": guarantee_of(agreement),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_ranker(path, ranker_of(agreement), params, origin=origin)
    return origin
