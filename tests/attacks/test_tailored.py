"""The attack that tries the server's rule."""

from __future__ import annotations

import numpy as np
import pytest
from liars import KEY, honest_updates

from hushrank.aggregation.named import find_rule
from hushrank.attacks.min_max import PERTURBATIONS
from hushrank.attacks.named import Target, attack_updates, find_attack
from hushrank.attacks.tailored import find_best, imagine_others
from hushrank.federation.gathering import rule_on_trial
from hushrank.streams import seed_key
from hushrank.types import Array, AttackView, Gathered

LIARS = np.arange(10) < 2


def attack_rule(rule: str, updates: Array, **settings: object) -> tuple[Array, Array]:
    """What is sent to a rule that reckons with two liars, and what it makes of it."""
    found, attack = find_rule(rule, assumed_malicious=2), find_attack("tailored", **settings)
    assert attack is not None
    gathered = Gathered(updates, np.ones(10), np.arange(10), np.zeros(updates.shape[1]), 1)
    trial = rule_on_trial(found, gathered)
    sent = attack_updates(attack, updates, LIARS, Target(gathered.params, 1, KEY, trial))
    return sent, trial(sent, np.arange(10))


def test_a_mean_is_pushed_as_far_as_liars_reach() -> None:
    updates = honest_updates(0)
    sent, _ = attack_rule("mean", updates, knowledge="full", reach=3.0)
    off = np.linalg.norm(sent[0] - updates.mean(axis=0))
    assert off == pytest.approx(3.0 * np.linalg.norm(updates, axis=1).mean(), rel=1e-5)


@pytest.mark.parametrize("rule", ["krum", "multi-krum", "trimmed-mean", "median"])
@pytest.mark.parametrize("perturbation", PERTURBATIONS)
def test_a_rule_is_moved_further_than_by_lies_of_any_halved_length(rule: str, perturbation: str) -> None:
    updates = honest_updates(3)
    mean, found = updates.astype(float).mean(axis=0), find_rule(rule, assumed_malicious=2)
    sent, made = attack_rule(rule, updates, knowledge="full", perturbation=perturbation)
    step, longest = sent[0] - mean, 10 * np.linalg.norm(updates, axis=1).mean()
    gathered = Gathered(updates, np.ones(10), np.arange(10), mean, 1)
    for n in range(8):
        lies = np.tile(mean + longest / 2**n * step / np.linalg.norm(step), (2, 1)).astype(np.float32)
        other = rule_on_trial(found, gathered)(np.concatenate([lies, updates[2:]]), np.arange(10))
        assert np.linalg.norm(made - mean) >= np.linalg.norm(other - mean) - 1e-5


def test_the_best_step_is_found_where_longer_ones_are_refused() -> None:
    best = find_best(lambda step: step if step <= 0.7 else 0.0, 10.0)
    assert best == pytest.approx(0.7, abs=0.625 / 2 / 2**4)  # halved from 10 to .625, then four times refined


def test_imagined_updates_have_the_mean_and_spread_of_what_the_liars_learnt() -> None:
    own = np.array([[0.0, 1.0], [2.0, 5.0]])  # variances, estimated: 2 and 8
    view = AttackView(np.zeros(2), 1, 20_002, 2, own, None)
    found = imagine_others(view, seed_key(0))
    assert found.shape == (20_000, 2)
    np.testing.assert_allclose(found.mean(axis=0), [1.0, 3.0], atol=5 * np.sqrt(8 / 20_000))
    np.testing.assert_allclose(found.std(axis=0), np.sqrt([2.0, 8.0]), rtol=0.03)
