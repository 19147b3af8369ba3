"""The recipe key keep_every: what a run writes, what it costs, and where it cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushrank
from hushrank.recipes.recipe import NAMED, change_recipe, hash_recipe
from hushrank.runs.result import read_kept, read_rankers

SMALL: dict[str, Any] = {"data": "tiny", "n_clients": 6, "rounds": 5, "interactions": 2, "seed": 3, "folds": [1, 2]}
MISUSE: list[tuple[str, dict[str, Any], str]] = [
    ("pdgd", {"keep_every": 2}, "recipe pdgd has no clients that send updates: leave it out, or run fpdgd"),
    ("foltr-es", {"keep_every": 2}, "recipe foltr-es has no clients that send updates"),
    ("mse", {"keep_every": 2}, "keep_every is for learning from clicks; recipe mse learns from labels"),
    ("fpdgd", {"keep_every": 2, "remedy": "tastes"}, "clients with remedy=tastes send more than an update"),
    ("fpdgd", {"keep_every": 0}, "keep_every is 0, must be at least 1"),
]


@pytest.mark.parametrize(("recipe", "keys", "said"), MISUSE)
def test_what_cannot_work_is_refused_before_anything_is_written(
    recipe: str, keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        hushrank.run(recipe, out=tmp_path / "run", **keys)
    assert not (tmp_path / "run").exists()


def test_recipes_without_it_are_called_what_they_were() -> None:
    assert hash_recipe(change_recipe(NAMED["fpdgd"], {"keep_every": "none"})) == hash_recipe(NAMED["fpdgd"])
    assert hash_recipe(change_recipe(NAMED["fpdgd"], {"keep_every": 5})) != hash_recipe(NAMED["fpdgd"])


def test_a_run_writes_what_clients_keep_and_counts_it(tmp_path: Path) -> None:
    found = hushrank.run(
        "fpdgd", out=tmp_path / "kept", **SMALL, keep_every=2, cohort=4, clicks=["perfect", "navigational"]
    )
    kept = read_kept(tmp_path / "kept")
    assert set(kept) == {(user, fold, 0) for user in ("perfect", "navigational") for fold in (1, 2)}
    for lengths in kept.values():  # rounds 1, 3 and 5, four clients of six in each
        assert lengths.shape == (6, 3) and lengths.dtype == np.float32
        assert (np.isfinite(lengths).sum(axis=0) == 4).all() and np.nanmin(lengths) >= 0
    assert found.result["kept_bytes_per_client"] == 4 * 3


def test_a_run_without_it_writes_nothing_and_trains_the_same(tmp_path: Path) -> None:
    kept = hushrank.run("fpdgd", out=tmp_path / "kept", **SMALL, keep_every=2)
    usual = hushrank.run("fpdgd", out=tmp_path / "usual", **SMALL)
    assert usual.result["kept_bytes_per_client"] == 0 < kept.result["kept_bytes_per_client"]
    with pytest.raises(ValueError, match="holds no kept lengths: name the directory of a finished run with keep_every"):
        read_kept(tmp_path / "usual")
    ours, theirs = read_rankers(tmp_path / "kept"), read_rankers(tmp_path / "usual")
    assert {cell: params.tobytes() for cell, params in ours.items()} == {
        cell: params.tobytes() for cell, params in theirs.items()
    }


def test_clients_whose_first_ranker_is_trained_centrally_keep_lengths_too(tmp_path: Path) -> None:
    shared: dict[str, Any] = {"remedy": "data-sharing", "partition": "labels-1", "warm_up": 20}
    hushrank.run("fpdgd", out=tmp_path / "run", **SMALL, **shared, keep_every=2)
    assert all(np.isfinite(lengths).all() for lengths in read_kept(tmp_path / "run").values())
