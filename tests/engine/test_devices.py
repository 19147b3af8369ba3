"""Clients divided among several devices give the numbers of one, to rounding."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_settings import tiny_setting

from hushrank.engine.simulate import Options, simulate

DIVIDED = """
import numpy as np
from tiny_settings import UNEQUAL, tiny_setting
from hushrank.federation.cohort import Population
from hushrank.engine.simulate import Options, simulate
for setting in (tiny_setting(population=UNEQUAL), tiny_setting(population=Population(1, (12,)), batch=6)):
    one, _ = simulate(setting, Options(engine="xla", devices=1))
    many, _ = simulate(setting, Options(engine="xla", devices=4))
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a.params, b.params, atol=2e-6)
        np.testing.assert_allclose(a.online, b.online, atol=1e-6)
        assert (a.searches == b.searches).all()
"""


def test_four_devices_give_the_numbers_of_one() -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    environment = {**os.environ, **flags, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", DIVIDED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_more_devices_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="devices is 9, must be from 1 to 1, the number that JAX sees"):
        simulate(tiny_setting(), Options(engine="xla", devices=9))
