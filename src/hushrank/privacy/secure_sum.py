"""Secure aggregation: the server learns the sum over the clients that answered, and nothing else, even if it lies.

Each client adds to its values a mask of its own and one mask for each pair it belongs to, which one of the two adds and
the other subtracts. One upload looks uniform. In the sum the pair masks cancel; those of clients that fell silent and
the own masks of those that did not are removed with shares that others hold. Five phases [bonawitz2017, Figure 4]:

    1 advertise   client: signed public keys, commitment to its own mask   server: the roster of all that answered
    2 share       client: shares of its two secrets, sealed per reader     server: who shared, to each its own shares
    3 mask        client: its values, masked, and its signed view          server: who survived, with signed views
    4 sign        client: what it was told so far, signed                  server: as many signatures as the threshold
    5 reveal      client: of each client *one* of the two shares           server: the sum

A view is session, roster and sharers. Masks are derived of it, so that clients with different views never cancel, and
of the two clients' ids and keys, so that no two pairs have the same mask. Every step is a pure function (state, input)
-> (state, output) without I/O; a driver carries the messages. A driver must keep a client's new state before it sends
the output (`secure_state.py`), and never use an old state again.

What is promised against any server, together with up to a third of `n_clients` (invented ones count): it never holds
both secrets of an honest client, and every sum that it learns is over `honest_in_sum` honest clients or more. For large
rosters (`neighbours.py`) that holds but for a chance of 2^-40 per sum. `docs/secure_sum.md` has the argument. Not
promised: that a sum comes out, that clients send right values, that the sum itself is private: add noise before.
Differs: shares are opened before anything is uploaded, not after; a commitment to the seed of each client's own mask
travels with its keys, so that a share that does not fit is noticed instead of giving a wrong sum; uploads are signed;
from [bell2020]: all clients agree on the survivors, so that neighbours can be fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hushrank.privacy.identities import Enrolment, identity_key
from hushrank.privacy.masks import derive
from hushrank.privacy.secure_client import (
    ClientState,
    begin_client,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import SumConfig, SumPhase
from hushrank.privacy.secure_server import (
    SecureSum,
    SumServer,
    add_advert,
    add_masked,
    add_revealed,
    add_shares,
    add_signed,
    begin_server,
    close_adverts,
    close_masked,
    close_shares,
    close_signed,
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
    enrolled = enrol_clients({i: entropy[i] for i in last})
    server, clients = begin_server(config, next(iter(enrolled.values())).identities), {}
    for i in [i for i in last if last[i] > SumPhase.ADVERTISE]:
        clients[i], advert = begin_client(config, i, enrolment=enrolled[i], entropy=entropy[i])
        watch(SumPhase.ADVERTISE, advert)
        server = add_advert(server, advert)
        watch(SumPhase.ADVERTISE, None)
    server, roster = close_adverts(server)
    watch(SumPhase.ADVERTISE, roster)
    for i in [i for i in clients if last[i] > SumPhase.SHARE]:
        clients[i], shares = share_secrets(clients[i], roster, enrolment=enrolled[i])
        watch(SumPhase.SHARE, shares)
        server = add_shares(server, shares)
        watch(SumPhase.SHARE, None)
    server, deliveries = close_shares(server)
    watch(SumPhase.SHARE, deliveries)
    for i in [i for i in deliveries if last[i] > SumPhase.MASK]:
        clients[i], masked = mask_values(clients[i], deliveries[i], values[i], enrolment=enrolled[i])
        watch(SumPhase.MASK, masked)
        server = add_masked(server, masked)
        watch(SumPhase.MASK, None)
    return _finish(server, clients, enrolled, last, watch)


def _finish(
    server: SumServer,
    clients: Mapping[int, ClientState],
    enrolled: Mapping[int, Enrolment],
    last: Mapping[int, SumPhase],
    watch: Callable[[SumPhase, Any], None],
) -> SecureSum:
    """The phases after the values have arrived."""
    server, told = close_masked(server)
    watch(SumPhase.MASK, told)
    signers = {}
    for i in [i for i in told if last[i] > SumPhase.SIGN]:
        signers[i], signed = sign_survivors(clients[i], told[i], enrolment=enrolled[i])
        watch(SumPhase.SIGN, signed)
        server = add_signed(server, signed)
        watch(SumPhase.SIGN, None)
    server, confirmation = close_signed(server)
    watch(SumPhase.SIGN, confirmation)
    for i in [i for i in signers if last[i] > SumPhase.REVEAL]:
        _, revealed = reveal_shares(signers[i], confirmation, enrolment=enrolled[i])
        watch(SumPhase.REVEAL, revealed)
        server = add_revealed(server, revealed)
        watch(SumPhase.REVEAL, None)
    _, total = finish_sum(server)
    watch(SumPhase.REVEAL, total)
    return total


def enrol_clients(entropy: Mapping[int, bytes]) -> dict[int, Enrolment]:
    """For simulations, tests and benchmarks: an identity for each client, of its entropy, and all know all."""
    secrets = {i: derive(entropy[i], "identity") for i in entropy}
    identities = {i: identity_key(secret) for i, secret in secrets.items()}
    return {i: Enrolment(secret, identities) for i, secret in secrets.items()}
