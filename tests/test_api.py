"""`import hushrank`: the few names that a person needs, their results as arrays, the same bits as the command line."""

from __future__ import annotations

import gc
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hushrank
from hushrank.aggregation.named import RULES
from hushrank.attacks.named import ATTACKS
from hushrank.clicks.named import USERS
from hushrank.learners.named import LEARNERS
from hushrank.learners.pdgd import pdgd_gradient
from hushrank.recipes.recipe import NAMED
from hushrank.runs.read import RunResult
from hushrank.runs.table import Table, table_of
from hushrank.types import Array, AttackView

SMALL: dict[str, Any] = {"data": "tiny", "folds": [1, 2], "n_clients": 6, "interactions": 2, "rounds": 3, "seed": 7}


@pytest.fixture(autouse=True)
def registries_as_before() -> Iterator[None]:
    registries: list[dict[str, Any]] = [LEARNERS, RULES, ATTACKS, USERS]
    before = [dict(registry) for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)


@pytest.fixture(scope="module")
def found() -> RunResult:
    return hushrank.run("fpdgd", **SMALL)


@pytest.mark.parametrize("name", sorted(set(hushrank.__all__) - {"__version__"}))
def test_every_public_name_says_what_it_does(name: str) -> None:
    public = getattr(hushrank, name)
    assert inspect.getdoc(public) and (inspect.getdoc(public) or "").split("\n")[0].endswith((".", ":"))
    assert name in dir(hushrank) and name in (hushrank.__doc__ or "")


def test_importing_the_package_loads_nothing_heavy_and_an_unknown_name_is_refused() -> None:
    script = "import hushrank, sys; dir(hushrank); print('numpy' in sys.modules, 'hushrank.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    with pytest.raises(AttributeError, match="module 'hushrank' has no attribute 'runn'"):
        hushrank.runn  # noqa: B018


def test_a_run_from_python_has_the_bits_of_the_command_line(found: RunResult, tmp_path: Path) -> None:
    keys = [word for key, value in SMALL.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    command = [sys.executable, "-m", "hushrank", "run", "fpdgd", *keys, "--quiet", "--out", str(tmp_path / "run")]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("rankers.safetensors", "metrics.jsonl", "recipe.json"):
        assert (found.directory / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert hushrank.load_run(tmp_path / "run").metrics.rows == found.metrics.rows


def test_results_are_arrays_and_agree_with_the_json(found: RunResult) -> None:
    values = found.metrics.where(metric="offline/nDCG@10")["value"]
    assert values.dtype == np.float64 and found.metrics["fold"].dtype.kind == "i"
    assert values.mean() == pytest.approx(found.result["metrics"]["offline/nDCG@10"]["mean"])
    curve = found.curves.where(metric="offline/nDCG@10", fold=1)
    assert curve["round"].tolist() == [0, 1, 2, 3] and curve["value"][-1] == values[0]
    assert curve["interactions"][-1] == 3 * 6 * 2  # rounds, clients, searches of each
    assert {key: ranker.dtype for key, ranker in found.rankers.items()} == {
        ("navigational", 1, 0): np.float32,
        ("navigational", 2, 0): np.float32,
    }


def test_files_of_a_run_without_a_place_live_as_long_as_its_result() -> None:
    result = hushrank.run("mse", data="tiny", folds=[1])
    place = result.directory
    assert (place / "report.html").is_file()
    del result
    gc.collect()
    assert not place.parent.exists()


def test_a_run_that_is_refused_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(ValueError, match="workers is 0, must be at least 1"):
        hushrank.run("fpdgd", **SMALL, workers=0)
    assert not list(tmp_path.iterdir())


def test_recipes_come_as_names_files_and_objects(tmp_path: Path, found: RunResult) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('recipe = "fpdgd"\ndata = "tiny"\nfolds = [1, 2]\nn_clients = 6\ninteractions = 2\nrounds = 3\n')
    from_file = hushrank.run(path, seed=np.int64(7))
    from_object = hushrank.run(NAMED["fpdgd"], **SMALL | {"folds": np.array([1, 2])})
    assert from_file.metrics.rows == from_object.metrics.rows == found.metrics.rows


def test_a_run_can_be_continued_and_tells_its_steps(tmp_path: Path) -> None:
    said: list[str] = []
    first = hushrank.run("fpdgd", **SMALL, out=tmp_path / "run", progress=said.append)
    assert any("100%" in sentence for sentence in said)
    with pytest.raises(ValueError, match="exists"):
        hushrank.run("fpdgd", **SMALL, out=tmp_path / "run")
    assert hushrank.run("fpdgd", **SMALL, out=tmp_path / "run", resume=True).metrics.rows == first.metrics.rows


def test_forgetting_from_python_is_that_of_the_command_line(tmp_path: Path) -> None:
    shared = hushrank.run("fpdgd", **SMALL | {"rounds": 4, "keep_every": 2}, out=tmp_path / "run")
    said: list[str] = []
    ours = hushrank.forget(shared, np.array([3, 1]), local_steps=1, compare=True, progress=said.append)
    assert ours.directory == tmp_path / "run" / "forgotten" / "eraser-1-3" and said
    words = ["--clients", "1,3", "--local-steps", "1", "--compare", "--quiet", "--out", str(tmp_path / "theirs")]
    command = [sys.executable, "-m", "hushrank", "forget", str(tmp_path / "run"), *words]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("rankers.safetensors", "metrics.jsonl"):
        assert (ours.directory / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    theirs = hushrank.load_run(tmp_path / "theirs")
    assert ours.metrics.rows == theirs.metrics.rows
    assert ours.result["record"]["to"] == theirs.result["record"]["to"]
    with pytest.raises(ValueError, match="there is no client 6"):
        hushrank.forget(shared, 6)


def test_a_run_without_a_place_stays_while_what_was_forgotten_in_it_is_used() -> None:
    ours = hushrank.forget(hushrank.run("fpdgd", **SMALL), 1, method="fresh", every=1)
    gc.collect()
    assert (ours.directory / "record.json").is_file()
    place = ours.directory
    del ours
    gc.collect()
    assert not place.exists()


def test_evaluate_measures_a_run_on_its_own_and_on_loaded_data(found: RunResult) -> None:
    own, loaded = hushrank.evaluate(found), hushrank.evaluate(found.directory, data=hushrank.load_dataset("tiny"))
    assert own.metrics.rows == loaded.metrics.rows
    offline = found.metrics.where(metric="offline/nDCG@10")["value"]
    np.testing.assert_allclose(own.metrics.where(metric="nDCG@10")["value"], offline, atol=1e-6)  # float32 curves
    with pytest.raises(ValueError, match="split is 'all', must be train, vali or test"):
        hushrank.evaluate(found, split="all")


def test_report_writes_one_page_about_several_runs(found: RunResult, tmp_path: Path) -> None:
    assert hushrank.report(found) == found.directory / "report.html"
    assert hushrank.report(found, found.directory) == found.directory.parent / "report.html"  # beside them
    page = hushrank.report(found, found.directory, path=tmp_path / "pages" / "both.html")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(ValueError, match="report needs one or more runs"):
        hushrank.report()


def test_a_sweep_has_a_table_of_all_runs_and_of_what_was_chosen(tmp_path: Path) -> None:
    swept = hushrank.sweep("fpdgd", {"server_rate": np.array([1.0, 10.0])}, select="vali", out=tmp_path / "s", **SMALL)
    assert list(swept.runs) == ["server_rate=1", "server_rate=10"] and not swept.errors
    assert set(swept.metrics["server_rate"]) == {1.0, 10.0}
    alone = hushrank.run("fpdgd", **SMALL, server_rate=10)
    assert alone.metrics.rows == swept.runs["server_rate=10"].metrics.rows
    assert swept.selected is not None and swept.selected["fold"].tolist() == [1, 2]
    again = hushrank.sweep("fpdgd", {"server_rate": [1, 10]}, out=tmp_path / "s", resume=True, jobs=2, **SMALL)
    assert again.metrics.rows == swept.metrics.rows  # nothing was left to do


def test_a_sweep_in_this_process_knows_own_methods_and_one_failure_stops_no_other() -> None:
    @hushrank.rule("broken")
    def broken(updates: Array, weights: Array) -> Array:
        return updates[:, :1] * weights[:, None]

    swept = hushrank.sweep(NAMED["fpdgd"], {"aggregation": ["mean", "broken"]}, **SMALL)
    assert list(swept.runs) == ["aggregation=mean"] and swept.selected is None
    assert list(swept.errors) == ["aggregation=broken"]
    with pytest.raises(ValueError, match="nothing to sweep"):
        hushrank.sweep(NAMED["fpdgd"], **SMALL)


def test_own_methods_run_by_the_name_of_their_decorator() -> None:
    @hushrank.learner("half")
    def half(ranker: Any, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array) -> Array:
        gradient = pdgd_gradient(ranker, params, features, scores, ranking, is_clicked)
        return gradient / 2

    @hushrank.rule("middle")
    def middle(updates: Array, weights: Array) -> Array:
        return np.asarray(np.median(updates[weights > 0], axis=0))

    @hushrank.attack("silence")
    def silence(view: AttackView, *, key: Array) -> Array:  # noqa: ARG001
        assert view.own is not None and view.others is None
        return 0 * view.own

    @hushrank.user("first")
    def first(grades: Array, click_draws: Array, stop_draws: Array) -> Array:  # noqa: ARG001
        return np.arange(len(grades)) == 0

    own: dict[str, Any] = {
        "learner": "half",
        "aggregation": "middle",
        "attack": "silence",
        "n_malicious": 1,
        "clicks": "first",
    }
    found = hushrank.run("fpdgd", **SMALL, **own)
    assert set(found.metrics["click"]) == {"first"}
    assert hushrank.load_run(found.directory).metrics.rows == found.metrics.rows


def test_a_name_that_is_taken_is_refused_and_the_same_function_may_come_again() -> None:
    for _ in range(2):  # as a notebook's cell is run twice

        @hushrank.rule("twice")
        def twice(updates: Array, weights: Array) -> Array:
            return 2 * updates[weights > 0].mean(axis=0)

    def other(updates: Array, weights: Array) -> Array:
        return updates[weights > 0].mean(axis=0)

    with pytest.raises(ValueError, match=r"aggregation=twice is taken \(.*twice\): choose another name"):
        hushrank.rule("twice")(other)
    with pytest.raises(ValueError, match=r"aggregation=mean is taken"):
        hushrank.rule("mean")(other)
    with pytest.raises(ValueError, match=r"clicks=perfect is taken \(partial\)"):
        hushrank.user("perfect")(lambda grades, click_draws, stop_draws: grades > 0)  # noqa: ARG005
    with pytest.raises(TypeError, match=r"write it with one, as in @hushrank\.rule"):
        hushrank.rule(other)  # type: ignore[arg-type]


def test_a_table_says_what_it_has() -> None:
    table = table_of([{"run": "a", "n": 1, "std": None}, {"run": "b", "n": 2, "std": 0.5}], ("run", "n", "std"))
    assert repr(table) == "Table of 2 rows: run, n, std" and len(table) == 2
    assert np.isnan(table["std"][0]) and table["n"].dtype.kind == "i"
    assert table.where(run="b").rows == [{"run": "b", "n": 2, "std": 0.5}]
    with pytest.raises(KeyError, match="no column is called 'mean'; there are run, n, std"):
        table["mean"]
    mixed = table_of([{"clicks": "perfect"}, {"clicks": ["a", "b"]}, {}], ("clicks",))
    assert mixed["clicks"].tolist() == ["perfect", ["a", "b"], None]
    assert len(table_of([], ("run",))) == 0 and Table({}).rows == []


def test_a_table_becomes_a_data_frame_where_pandas_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of([{"run": "a", "value": 0.5}], ("run", "value"))
    pretend = ModuleType("pandas")
    monkeypatch.setattr(pretend, "DataFrame", dict, raising=False)
    monkeypatch.setitem(sys.modules, "pandas", pretend)
    assert list(table.to_pandas()) == ["run", "value"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas: install it with pip install pandas"):
        table.to_pandas()
