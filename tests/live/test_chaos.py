"""Kill -9, old files, copied homes and clocks that jump: nothing acknowledged is lost, nothing counts twice.

`make chaos` does the same for 300 rounds and 200 kills.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chaos import Plan, run_chaos


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpdgd", "foltr-es"])
def test_a_federation_survives_its_processes(method: str, tmp_path: Path) -> None:
    plan = Plan(tmp_path, rounds=25, kills=10, clients=5, method=method, restores=3, clones=1, clock_jumps=3)
    found = run_chaos(plan)
    assert found["rounds_closed"] == 25 and found["restored"] == 3
    assert sum(found["clones_that_went_on"].values()) == 1 and sum(found["clock_jumps"].values()) == 3
    assert 5 <= sum(found["killed"].values()) <= 10  # fewer only where a busy machine was late
    assert found["rankers_equal_bit_for_bit"] == 26
    assert found["updates_accepted"] >= 25 * 2  # the quorum
