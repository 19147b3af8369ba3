"""A sweep: the table, the choice on validation queries, stopping and continuing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hushrank.recipes.grid import Grid, make_grid
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.sweep import sweep_text
from hushrank.runs.pool import PoolOptions
from hushrank.runs.sweep import SweepOptions, choose_for, run_sweep


def small_grid(**axes: list[Any]) -> Grid:
    base = change_recipe(NAMED["fpdgd"], {"data": "tiny", "folds": [1, 2], "n_clients": 5, "rounds": 4})
    return make_grid(base, axes)


def options(out: Path, **changes: Any) -> SweepOptions:
    return SweepOptions(out=out, pool=PoolOptions(2, run={"workers": 1}), **changes)


def values(**folds: float) -> list[dict[str, Any]]:
    return [{"fold": int(fold[1:]), "repeat": 0, "value": value} for fold, value in folds.items()]


def found(vali: list[dict[str, Any]], test: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {"vali/nDCG@10": vali, "offline/nDCG@10": test, "online/nDCG@10": test}


def test_each_fold_chooses_by_its_own_validation_queries() -> None:
    chosen = choose_for(
        {
            "a": found(values(f1=0.5, f2=0.9), values(f1=0.1, f2=0.2)),
            "b": found(values(f1=0.6, f2=0.7), values(f1=0.3, f2=0.8)),
        }
    )
    assert [(fold["label"], fold["vali"], fold["test"]) for fold in chosen["folds"]] == [
        ("b", 0.6, 0.3),
        ("a", 0.9, 0.2),
    ]
    assert chosen["offline/nDCG@10"]["mean"] == pytest.approx((0.3 + 0.2) / 2)  # not .8, which only test would choose


def test_pooled_means_one_setting_for_all_folds_and_only_those_that_ran_them_all() -> None:
    runs = {
        "a": found(values(f1=0.5, f2=0.9), values(f1=0.1, f2=0.2)),
        "b": found(values(f1=0.6, f2=0.7), values(f1=0.3, f2=0.8)),
        "c": found(values(f2=1.0), values(f2=0.9)),
    }
    chosen = choose_for(runs, pooled=True)
    assert [fold["label"] for fold in chosen["folds"]] == ["a", "a"]  # .7 on average, b .65
    assert [fold["vali"] for fold in chosen["folds"]] == [0.5, 0.9]


def test_test_results_have_no_influence_on_the_choice() -> None:
    runs = {"a": found(values(f1=0.5), values(f1=0.1)), "b": found(values(f1=0.4), values(f1=0.9))}
    turned = {"a": found(values(f1=0.5), values(f1=0.9)), "b": found(values(f1=0.4), values(f1=0.1))}
    assert choose_for(runs)["folds"][0]["label"] == choose_for(turned)["folds"][0]["label"] == "a"


def test_of_equals_the_first_is_taken() -> None:
    same = found(values(f1=0.5), values(f1=0.1))
    assert choose_for({"a": same, "b": same})["folds"][0]["label"] == "a"


def test_a_sweep_writes_its_table_and_its_page(tmp_path: Path) -> None:
    out, table = run_sweep(small_grid(server_rate=[1, 5]), options(tmp_path / "s", select="vali"))
    assert json.loads((out / "table.json").read_text()) == table
    assert [run["state"] for run in table["runs"]] == ["finished"] * 2
    assert {fold["fold"] for fold in table["selected"]["navigational"]["folds"]} == {1, 2}
    assert "server_rate=5" in (out / "report.html").read_text()
    alone = json.loads((out / table["runs"][0]["directory"] / "result.json").read_text())
    mean = table["runs"][0]["metrics"]["navigational"]["offline/nDCG@10"]["mean"]
    assert mean == alone["metrics"]["offline/nDCG@10"]["mean"]


def test_rankers_from_labels_are_swept_without_online_quality(tmp_path: Path) -> None:
    grid = make_grid(
        change_recipe(NAMED["mse"], {"data": "tiny", "folds": [1, 2]}), {"normalise": ["none", "standard"]}
    )
    out, table = run_sweep(grid, options(tmp_path / "s", select="vali"))
    assert [run["state"] for run in table["runs"]] == ["finished"] * 2
    named = [run["metrics"]["navigational"] for run in table["runs"]] + [table["selected"]["navigational"]]
    assert all("offline/nDCG@10" in metrics and "online/nDCG@10" not in metrics for metrics in named)
    assert "–" in sweep_text(table) and (out / "report.html").is_file()


def test_a_failed_run_stands_in_the_table_with_its_reason(tmp_path: Path) -> None:
    out, table = run_sweep(small_grid(data=["tiny", "nowhere"]), options(tmp_path / "s", select="vali"))
    assert [run["state"] for run in table["runs"]] == ["finished", "failed"]
    assert "neither a directory" in table["runs"][1]["error"]
    assert table["n_failed"] == 1
    assert table["selected"]["navigational"]["folds"][0]["label"] == "data=tiny"
    assert "neither a directory" in (out / "report.html").read_text()


def test_an_existing_directory_needs_resume_and_the_same_grid(tmp_path: Path) -> None:
    run_sweep(small_grid(server_rate=[1]), options(tmp_path / "s"))
    with pytest.raises(ValueError, match="exists: add --resume"):
        run_sweep(small_grid(server_rate=[1]), options(tmp_path / "s"))
    with pytest.raises(ValueError, match="belongs to another grid"):
        run_sweep(small_grid(server_rate=[2]), options(tmp_path / "s", resume=True))
    with pytest.raises(ValueError, match="--select is 'test', must be one of none, vali"):
        run_sweep(small_grid(server_rate=[1]), options(tmp_path / "t", select="test"))


def test_a_sweep_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    run_sweep(small_grid(server_rate=[1]), options(tmp_path / "s"))
    written = json.loads((tmp_path / "s" / "grid.json").read_text())
    (tmp_path / "s" / "grid.json").write_text(json.dumps({**written, "format": 99}))
    with pytest.raises(ValueError, match=r"newer hushrank \(format 99"):
        run_sweep(small_grid(server_rate=[1]), options(tmp_path / "s", resume=True))
