"""A process lets go of compiled programs before the system ends it for want of mappings."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from tiny_settings import tiny_setting

from hushrank.engine import simulate
from hushrank.engine.device import count_mappings, spare_mappings
from hushrank.engine.simulate import Options

pytestmark = pytest.mark.skipif(count_mappings() == 0, reason="this system does not tell a process's mappings")


def add_up(values: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sort(values) ** 2)


ADD_UP = jax.jit(add_up)


def compile_many() -> int:
    """Programs for ten shapes; how many mappings they took."""
    before = count_mappings()
    for n in range(2, 12):
        ADD_UP(jnp.ones(n))
    return count_mappings() - before


def test_programs_take_mappings_and_are_let_go_where_there_are_too_many() -> None:
    spare_mappings(most=0)
    taken = compile_many()
    assert taken >= 20
    spare_mappings(most=10**6)
    held = count_mappings()
    spare_mappings(most=0)
    assert count_mappings() <= held - taken // 2
    assert float(ADD_UP(jnp.ones(3))) == 3.0


def test_every_run_begins_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_many()
    held = count_mappings()
    monkeypatch.setattr(simulate, "spare_mappings", lambda: spare_mappings(most=0))
    simulate.simulate(tiny_setting(), Options(engine="plain"))
    assert count_mappings() < held
