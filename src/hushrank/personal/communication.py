"""How long the communication of one round takes, flat and with proxies, in units of one exchange [fedps, Table 6].

T is the time in which the model, or an update, passes between two parties. Exchanges below one parent come one after
another; different parents work at the same time. A delay d comes with every exchange of a poorly connected client.
"""

from __future__ import annotations

from dataclasses import dataclass

USERS_OF_AOL = 118_067  # Why: Table 6 needs this number; the text says 118,065


@dataclass(frozen=True, slots=True)
class RoundTime:
    """exchanges T + delays d."""

    exchanges: float
    delays: float = 0.0


def time_flat(n_clients: int, *, delayed: float) -> RoundTime:
    """The server sends the model to every client and receives an update of each, one after another: 2 N T."""
    return RoundTime(2 * n_clients, delayed * n_clients)


def time_with_proxies(
    n_clients: int, *, sampled: int, delayed: float, n_groups: int = 10, clients_each: int = 10
) -> RoundTime:
    """ceil(N / K) 2 [K / (10 groups) + groups + 10 (1 - p)] T, p: share of poorly connected clients.

    In a step, the server serves the group servers, each of these its share of the K / 10 proxies, and each proxy its 10
    clients, less those that have handed it their tasks: nothing is sent to them, and nothing waits for them. Table 6's
    numbers come out with 10 group servers of equally many proxies. Differs from the text, which puts 1,000 proxies of
    100 users below a group server: that would be 2 group servers for this log.
    """
    steps = -(-n_clients // sampled)
    n_proxies = sampled / clients_each
    served = clients_each * (1 - delayed)
    return RoundTime(steps * 2 * (n_proxies / n_groups + n_groups + served))
