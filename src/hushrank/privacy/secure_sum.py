"""Secure aggregation: the server learns the sum over the clients that answered, and nothing else [bonawitz2017].

Each client adds to its values a mask of its own and one mask for each pair it belongs to, which one of the two adds and
the other subtracts. One upload looks uniform. In the sum the pair masks cancel; those of clients that fell silent and
the own masks of those that did not are removed with shares that the others hold. Four phases [bonawitz2017, Figure 4]:

    1 advertise   client: two public keys, a commitment to its own mask   server: the roster of all that answered
    2 share       client: shares of its two secrets, sealed per reader    server: to each reader those meant for it
    3 mask        client: its values in fixed point, masked               server: who survived
    4 reveal      client: for each other client *one* of the two shares   server: the sum

Every step is a pure function (state, input) -> (state, output) without I/O; a driver carries the messages. A driver
must keep a client's new state before it sends the output, and never use an old state again.

What is promised: a server that follows the protocol, together with fewer than `threshold` clients, learns the sum over
the survivors (at least `threshold`) and who they are. A server that lies about who survived still gets no client's two
secrets as long as nobody colludes with it, because thresholds of half the clients or less are refused. Not promised:
anything against a server that hands out forged public keys (the paper's signatures need identities that somebody
vouches for) or against clients that send wrong values; nor that the sum itself is private: add noise before.
Differs: shares are opened before anything is uploaded, not after, and a commitment to the seed of each client's own
mask travels with its keys, so that a share that does not fit is noticed instead of giving a wrong sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hushrank.privacy.secure_client import begin_client, mask_values, reveal_shares, share_secrets
from hushrank.privacy.secure_messages import SumConfig, SumPhase
from hushrank.privacy.secure_server import (
    SecureSum,
    add_advert,
    add_masked,
    add_revealed,
    add_shares,
    begin_server,
    close_adverts,
    close_masked,
    close_shares,
    finish_sum,
)
from hushrank.types import Array


def run_secure_sum(
    values: Mapping[int, Array],
    config: SumConfig,
    *,
    entropy: Mapping[int, bytes],
    lost: Mapping[int, SumPhase] | None = None,
    watch: Callable[[SumPhase, Any], None] = lambda _, __: None,
) -> SecureSum:
    """The whole protocol: {client: values} and {client: 32 bytes} give the sum. For simulations, tests and benchmarks.

    lost: the phase from which on a client is silent. watch: hears (phase, message) after each step of a client and each
    closing of a phase, and (phase, None) after the server has added a message.
    """
    last = {client_id: (lost or {}).get(client_id, SumPhase.DONE) for client_id in sorted(values)}
    server, clients = begin_server(config), {}
    for i in [i for i in last if last[i] > SumPhase.ADVERTISE]:
        clients[i], advert = begin_client(config, i, entropy=entropy[i])
        watch(SumPhase.ADVERTISE, advert)
        server = add_advert(server, advert)
        watch(SumPhase.ADVERTISE, None)
    server, roster = close_adverts(server)
    watch(SumPhase.ADVERTISE, roster)
    for i in [i for i in clients if last[i] > SumPhase.SHARE]:
        clients[i], shares = share_secrets(clients[i], roster)
        watch(SumPhase.SHARE, shares)
        server = add_shares(server, shares)
        watch(SumPhase.SHARE, None)
    server, deliveries = close_shares(server)
    watch(SumPhase.SHARE, deliveries)
    for i in [i for i in deliveries if last[i] > SumPhase.MASK]:
        clients[i], masked = mask_values(clients[i], deliveries[i], values[i])
        watch(SumPhase.MASK, masked)
        server = add_masked(server, masked)
        watch(SumPhase.MASK, None)
    server, survivors = close_masked(server)
    watch(SumPhase.MASK, survivors)
    for i in [i for i in survivors.client_ids if last[i] > SumPhase.REVEAL]:
        clients[i], revealed = reveal_shares(clients[i], survivors)
        watch(SumPhase.REVEAL, revealed)
        server = add_revealed(server, revealed)
        watch(SumPhase.REVEAL, None)
    _, total = finish_sum(server)
    watch(SumPhase.REVEAL, total)
    return total
