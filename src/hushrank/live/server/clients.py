"""A client as a running server knows it."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.live.server.store import Member


@dataclass(slots=True)
class KnownClient:
    """One that is enrolled, or was. Why it is not frozen: every accepted update changes it."""

    id: int
    accepted: int  # updates, ever
    last_round: int | None  # in which an update was accepted
    has_left: bool


def know_client(member: Member) -> KnownClient:
    """As the file says."""
    return KnownClient(member.id, member.accepted, member.last_round, member.has_left)
