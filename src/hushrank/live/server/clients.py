"""A client as a running server knows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hushrank.live.server.rounds import Rounds
from hushrank.live.server.store import Member
from hushrank.live.wire.news import LastAnswer, Outcome


@dataclass(slots=True)
class KnownClient:
    """One that is enrolled, or was. Why it is not frozen: every accepted update changes it."""

    id: int
    accepted: int  # updates, ever
    last_round: int | None  # in which an update was accepted
    refused: int  # well-formed updates that did not count, ever
    has_left: bool

    def last(self, rounds: Rounds, abandoned: Collection[int]) -> LastAnswer | None:
        """The last round that counted an update of this client, and what became of it."""
        if self.last_round is None:
            return None
        is_open = self.last_round == rounds.number and not rounds.is_over
        outcome = Outcome.abandoned if self.last_round in abandoned else Outcome.closed
        return LastAnswer(self.last_round, Outcome.open if is_open else outcome)


def know_clients(members: Iterable[Member], known: Mapping[bytes, KnownClient]) -> dict[bytes, KnownClient]:
    """{hash of the credential: client}, as the file says. Who was known stays the same object, which a request that is
    under way may hold and change."""
    clients = {member.credential_hash: know_client(member) for member in members}
    for credential, found in clients.items():
        if (client := known.get(credential)) is not None:
            client.id, client.accepted = found.id, found.accepted
            client.last_round, client.refused, client.has_left = found.last_round, found.refused, found.has_left
            clients[credential] = client
    return clients


def know_client(member: Member) -> KnownClient:
    """As the file says."""
    return KnownClient(member.id, member.accepted, member.last_round, member.refused, member.has_left)
