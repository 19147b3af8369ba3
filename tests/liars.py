"""What the tests of attacks share: rounds of honest updates, some of whose senders lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tiny_settings import tiny_setting

from hushrank.attacks.named import ATTACKS, Target, attack_updates, find_attack
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import Population
from hushrank.streams import seed_key
from hushrank.types import Array, AttackView

ON_UPDATES = [name for name in ATTACKS if find_attack(name) is not None]
TEN = Population(10, (2,))
KEY = seed_key(3)


def view_of(own: Array, others: Array | None = None, *, n_clients: int = 10, params: Array | None = None) -> AttackView:
    """Of liars who learnt `own`."""
    shared = np.zeros(own.shape[1]) if params is None else params
    return AttackView(shared, 1, n_clients, len(own), own, others)


def honest_updates(seed: int, n: int = 10, p: int = 6, *, common: float = 1.0) -> Array:
    """[n, p] float32 around a common direction, `common` times as far from zero as from each other."""
    generator = np.random.default_rng(seed)
    return (common * generator.normal(size=p) + generator.normal(size=(n, p))).astype(np.float32)


def send(name: str, updates: Array, n_malicious: int, **settings: object) -> Array:
    """[n, p] what the server receives in a round of the mean, when the first n_malicious lie."""
    attack = find_attack(name, **settings)
    assert attack is not None
    target = Target(np.zeros(updates.shape[1]), 1, KEY, lambda sent, _who: np.asarray(sent.mean(axis=0)))
    return attack_updates(attack, updates, np.arange(len(updates)) < n_malicious, target)


def tiny_federation(**changes: object) -> Setting:
    """Ten clients, two people, one fold; changes: of its method."""
    setting = tiny_setting(users=("perfect", "informational"), population=TEN, n_folds=1)
    return replace(setting, method=replace(setting.method, **changes))  # type: ignore[arg-type] # keys of Method
