"""The communication of one round by its formula."""

from __future__ import annotations

import pytest

from hushrank.personal.communication import USERS_OF_AOL, time_flat, time_with_proxies


@pytest.mark.parametrize(
    ("sampled", "delayed", "exchanges"),
    [
        (100, 0.1, 47_240),  # ceil(118067 / 100) = 1181 steps of 2 (1 + 10 + 9)
        (1000, 0.1, 6_902),  # 119 steps of 2 (10 + 10 + 9)
        (100, 0.2, 44_878),  # 1181 steps of 2 (1 + 10 + 8)
        (1000, 0.2, 6_664),  # 119 steps of 2 (10 + 10 + 8)
    ],
)
def test_the_cells_of_table_6_are_exact(sampled: int, delayed: float, exchanges: int) -> None:
    found = time_with_proxies(USERS_OF_AOL, sampled=sampled, delayed=delayed)
    assert (found.exchanges, found.delays) == (exchanges, 0)


def test_without_proxies_every_client_is_an_exchange_in_both_directions() -> None:
    assert time_flat(USERS_OF_AOL, delayed=0.1).exchanges == 236_134
    assert time_flat(1000, delayed=0.2).delays == 200


def test_the_topology_is_a_parameter() -> None:
    """The text's own, two group servers of 1,000 proxies: 1181 steps of 2 (5 + 2 + 9)."""
    assert time_with_proxies(USERS_OF_AOL, sampled=100, delayed=0.1, n_groups=2).exchanges == 1181 * 32
