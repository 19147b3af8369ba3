"""Kill -9 of server and clients at random moments: nothing acknowledged is lost, nothing counts twice.

`make chaos` does the same for 300 rounds and 200 kills.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chaos import Plan, run_chaos


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpdgd", "foltr-es"])
def test_a_federation_survives_its_processes(method: str, tmp_path: Path) -> None:
    found = run_chaos(Plan(tmp_path, rounds=15, kills=10, clients=4, method=method, restores=3))
    assert found["rounds_closed"] == 15 and found["restored"] == 3
    assert 5 <= sum(found["killed"].values()) <= 10  # fewer only where a busy machine was late
    assert found["rankers_equal_bit_for_bit"] == 16
    assert found["updates_accepted"] >= 15 * 2  # the quorum
