"""A run is refused before anything is written, by the plan that it would follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.run import RunOptions, run_recipe


def test_more_devices_than_there_are_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    recipe = change_recipe(NAMED["fpdgd"], {"data": "tiny", "n_clients": 4, "rounds": 1})
    with pytest.raises(ValueError, match="devices is 9, must be from 1 to 1, the number that JAX sees"):
        run_recipe(recipe, RunOptions(out=tmp_path / "run", devices=9))
    assert not (tmp_path / "run").exists()
