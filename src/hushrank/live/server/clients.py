"""A client as a running server knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hushrank.live.server.store import Member


@dataclass(slots=True)
class KnownClient:
    """One that is enrolled, or was. Why it is not frozen: every accepted update changes it."""

    id: int
    accepted: int  # updates, ever
    last_round: int | None  # in which an update was accepted
    has_left: bool


def know_clients(members: Iterable[Member], known: Mapping[bytes, KnownClient]) -> dict[bytes, KnownClient]:
    """{hash of the credential: client}, as the file says. Who was known stays the same object, which a request that is
    under way may hold and change."""
    clients = {member.credential_hash: know_client(member) for member in members}
    for credential, found in clients.items():
        if (client := known.get(credential)) is not None:
            client.id, client.accepted = found.id, found.accepted
            client.last_round, client.has_left = found.last_round, found.has_left
            clients[credential] = client
    return clients


def know_client(member: Member) -> KnownClient:
    """As the file says."""
    return KnownClient(member.id, member.accepted, member.last_round, member.has_left)
