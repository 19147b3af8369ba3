"""Randomised tests are alike in every run, alone and among others; fresh seeds are asked for and can be repeated."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import CHOSEN, FRESH, find_run_seed, pick_seed


def draw_examples() -> list[int]:
    seen = list[int]()

    @settings(max_examples=1000)
    @given(st.integers())
    def look(number: int) -> None:
        seen.append(number)

    look()
    return seen


@pytest.mark.skipif(find_run_seed() is not None, reason="a run with fresh seeds also tries constants of loaded modules")
def test_examples_do_not_depend_on_the_run_or_on_what_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = draw_examples()
    (tmp_path / "has_constants.py").write_text("\n".join(f"NUMBER_{n} = {10**12 + n}" for n in range(100)))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("has_constants")
    assert draw_examples() == before


def test_a_run_with_fresh_seeds_has_one_that_is_told_and_can_be_chosen_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FRESH, "1")
    monkeypatch.delenv(CHOSEN, raising=False)
    run_seed = find_run_seed()
    assert run_seed is not None and pick_seed(5) == pick_seed(5) == run_seed + 5
    assert f"{CHOSEN}={run_seed}" in capsys.readouterr().out
    monkeypatch.setenv(CHOSEN, "7")
    assert (find_run_seed(), pick_seed(5)) == (7, 12)


def test_every_other_run_takes_the_usual_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FRESH, CHOSEN):
        monkeypatch.delenv(name, raising=False)
    assert find_run_seed() is None and pick_seed(5) == 5
