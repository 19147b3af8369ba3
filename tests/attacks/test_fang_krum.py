"""Fang et al.'s attack on Krum: the longest step backwards that Krum picks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from liars import honest_updates, send

from hushrank.aggregation.named import find_rule
from hushrank.attacks.fang_krum import bound_length, halve_length
from hushrank.types import Gathered

BOTH = ["partial", "full"]


def test_two_honest_clients_by_hand() -> None:
    honest = np.array([[1.0], [2.0]])
    # n_near = 1. Bound: sqrt(1 / max(2 - 1 - 1, 1)) + 2 = 3. The honest ones are 1 apart, so that each scores at most
    # 1, and the forged one scores its distance to 1: 4 at -3, 2.5 at -1.5, 1.75, 1.375, ... above 1 down to the floor.
    backwards = np.array([-1.0])
    assert bound_length(honest, backwards, 1) == 3.0
    assert halve_length(honest, backwards, 1, picks_all=False) is None
    assert halve_length(honest, backwards, 2, picks_all=False) == 3.0  # two forged ones are 0 apart: picked at once


@pytest.mark.parametrize("knowledge", BOTH)
@pytest.mark.parametrize("n_malicious", [1, 2, 3, 4])
def test_all_send_the_same_backwards_step_in_every_coordinate(knowledge: str, n_malicious: int) -> None:
    updates = honest_updates(0)
    sent = send("fang-krum", updates, n_malicious, knowledge=knowledge)[:n_malicious]
    known = updates if knowledge == "full" else updates[:n_malicious]
    np.testing.assert_array_equal(np.sign(sent), np.tile(-np.sign(known.mean(axis=0)), (n_malicious, 1)))
    assert len(np.unique(np.abs(sent))) == 1


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_multi_krum_is_sent_no_less(seed: int, n_malicious: int) -> None:
    honest = honest_updates(seed)[n_malicious:].astype(float)
    backwards = -np.sign(honest.mean(axis=0))
    one, all_of_them = (halve_length(honest, backwards, n_malicious, picks_all=each) or 0 for each in (False, True))
    assert one <= all_of_them


@pytest.mark.parametrize("n_malicious", [1, 2, 3, 4])
@pytest.mark.parametrize("rule", ["krum", "multi-krum"])
def test_the_rule_takes_what_full_knowledge_sends_it_and_not_twice_as_much(rule: str, n_malicious: int) -> None:
    updates, found = honest_updates(6, p=46, common=0.2), find_rule(rule, assumed_malicious=n_malicious)
    assert found is not None
    sent = send(f"fang-{rule}", updates, n_malicious, knowledge="full")
    further = np.concatenate([2 * sent[:n_malicious], updates[n_malicious:]])
    trusted = []
    for each in (sent, further):
        trust = found(Gathered(each, np.ones(10), np.arange(10), np.zeros(46), 1)).trust
        assert trust is not None
        trusted.append(trust[:n_malicious].sum())
    assert trusted[0] == (1 if rule == "krum" else n_malicious) and trusted[1] < trusted[0]


def test_scaled_updates_are_answered_by_a_step_scaled_alike() -> None:
    updates = honest_updates(4)
    sent, larger = (send("fang-krum", scale * updates, 4, knowledge="full")[0] for scale in (1, 8))
    np.testing.assert_allclose(8 * sent, larger, rtol=1e-6)
