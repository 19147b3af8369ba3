"""Four clients and a server of a secure sum, one phase after the other."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushrank.privacy.secure_client import (
    ClientState,
    begin_client,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import Revealed, SumConfig, SumPhase, usual_threshold
from hushrank.privacy.secure_server import (
    SumServer,
    add_advert,
    add_masked,
    add_shares,
    add_signed,
    begin_server,
    close_adverts,
    close_masked,
    close_shares,
    close_signed,
)
from hushrank.privacy.secure_sum import enrol_clients

SESSION = b"federation round 7"


def config_for(n_clients: int, n_entries: int = 5, threshold: int | None = None) -> SumConfig:
    return SumConfig(SESSION, n_clients, n_entries, 1.0, threshold or usual_threshold(n_clients))


def entropy_of(i: int) -> bytes:
    """Fixed, so that a failure can be repeated; on devices it comes from the operating system."""
    return hashlib.sha256(b"test %d" % i).digest()


@dataclass
class Table:
    """Four clients and a server at the end of a phase, and what the server said last."""

    server: SumServer
    clients: dict[int, ClientState]
    said: Any = None
    sent: dict[int, Any] = field(default_factory=dict)  # the clients' last messages


ENROLLED = enrol_clients({i: entropy_of(i) for i in range(4)})


def at_the_end_of(phase: SumPhase, *, silent: tuple[int, ...] = ()) -> Table:
    """`silent` send no masked values."""
    config = config_for(4)
    table = Table(begin_server(config, ENROLLED[0].identities), {})
    for i in range(4):
        table.clients[i], table.sent[i] = begin_client(config, i, enrolment=ENROLLED[i], entropy=entropy_of(i))
        table.server = add_advert(table.server, table.sent[i])
    table.server, table.said = close_adverts(table.server)
    if phase is SumPhase.ADVERTISE:
        return table
    for i in range(4):
        table.clients[i], table.sent[i] = share_secrets(table.clients[i], table.said, enrolment=ENROLLED[i])
        table.server = add_shares(table.server, table.sent[i])
    table.server, table.said = close_shares(table.server)
    if phase is SumPhase.SHARE:
        return table
    for i in [i for i in range(4) if i not in silent]:
        table.clients[i], table.sent[i] = mask_values(
            table.clients[i], table.said[i], np.full(5, 0.25), enrolment=ENROLLED[i]
        )
        table.server = add_masked(table.server, table.sent[i])
    table.server, table.said = close_masked(table.server)
    if phase is SumPhase.MASK:
        return table
    for i in [i for i in range(4) if i not in silent]:
        table.clients[i], table.sent[i] = sign_survivors(table.clients[i], table.said[i], enrolment=ENROLLED[i])
        table.server = add_signed(table.server, table.sent[i])
    table.server, table.said = close_signed(table.server)
    return table


def reveal(table: Table, i: int) -> tuple[ClientState, Revealed]:
    return reveal_shares(table.clients[i], table.said, enrolment=ENROLLED[i])
