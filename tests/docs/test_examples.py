"""The examples run as they are."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from shown_blocks import ROOT, run_command

from hushrank.recipes.grid import expand, read_grid

EXAMPLES = ROOT / "examples"


def test_the_recipe_with_a_click_table_of_its_own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHRANK_DATA", str(tmp_path / "data"))
    out = tmp_path / "run"
    printed = run_command(["hushrank", "run", str(EXAMPLES / "two_users.toml"), "--out", str(out)], monkeypatch)
    assert "skimmer" in printed and (out / "report.html").is_file()


def test_every_example_file_is_a_recipe_or_a_grid_of_them() -> None:
    recipes = [point.recipe for path in EXAMPLES.glob("*.toml") for point in expand(read_grid(path))]
    assert recipes and all(recipe.users for recipe in recipes)


@pytest.mark.slow
def test_the_script_trains_twice_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["server_steps.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "server_steps.py"), run_name="__main__")
    assert "over 10 pairs" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()
