"""A recipe with a secure sum, from beginning to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.result import read_rankers
from hushrank.runs.run import RunOptions, run_recipe

SMALL = {"data": "tiny", "folds": [1], "n_clients": 12, "rounds": 4, "interactions": [1, 3], "dropout": 0.15}
SHARED = {"privacy": "sound", "noise_multiplier": 2.0, "noise_at": "clients", "n_honest": 9}


def run(out: Path, engine: str, **changes: Any) -> dict[str, Any]:
    recipe = change_recipe(NAMED["fpdgd"], {**SMALL, "secure_sum": True, **changes})
    found: dict[str, Any] = run_recipe(recipe, RunOptions(out=out, engine=engine)).result
    return found


@pytest.mark.parametrize("changes", [{}, SHARED], ids=["open", "sound"])
def test_the_protocol_and_the_fused_loop_train_the_same_ranker(changes: dict[str, Any], tmp_path: Path) -> None:
    plain, fast = (run(tmp_path / engine, engine, **changes) for engine in ("plain", "numba"))
    rankers = [next(iter(read_rankers(tmp_path / engine).values())) for engine in ("plain", "numba")]
    np.testing.assert_allclose(rankers[0], rankers[1], atol=1e-6)
    assert plain["rounds_lost"] == fast["rounds_lost"] < 4
    # advert 8 + 96 + 64, shares 8 + 11 x 90, masked 8 + 4 x (8 + 1) + 64, signed 8 + 64, revealed 8 + 12 x 41
    assert fast["bytes_per_client_round"] == 168 + 998 + 108 + 72 + 500


def test_the_result_says_what_the_server_sees(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "numba", **SHARED)
    assert "the server included, which sees only the sum of a round" in found["guarantee"]["guarantee"]
    assert found["guarantee"]["adjacency"] == "zero-out" and found["guarantee"]["n_honest"] == 9
    assert found["guarantee"]["epsilon"] > 0


def test_without_noise_the_result_says_so(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "numba")
    assert found["guarantee"]["guarantee"].startswith("no guarantee in numbers: a secure sum shows the server only the")
    assert "the server learns their sum" in found["privacy"]
    assert run(tmp_path / "seen", "numba", secure_sum=False)["guarantee"] is None


def test_a_number_beyond_the_range_says_which_key_to_set(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"beyond 1e-05, the range of this secure sum.*Set sum_bound higher"):
        run(tmp_path / "run", "numba", sum_bound=1e-5)
    assert run(tmp_path / "wide", "numba", sum_bound=50.0)["rounds_lost"] < 4
