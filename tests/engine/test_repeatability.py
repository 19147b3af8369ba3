"""Same setting, same bits: whatever the workers, the memory limit, the cut into calls or the resume point."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plug import Plug
from safetensors.numpy import save
from tiny_settings import tiny_setting

from hushrank.engine import fused, plan, program, train
from hushrank.engine.checkpoint import load_progress
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plan import Cell, estimate_bytes, make_plans
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.federation.cohort import Population
from hushrank.federation.local import learn
from hushrank.federation.round import Federation
from hushrank.types import Array, Client


def assert_same_bits(ours: list[CellResult], theirs: list[CellResult]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.params.tobytes() == b.params.tobytes()
        assert a.online.tobytes() == b.online.tobytes()
        assert a.test.tobytes() == b.test.tobytes()


def many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut the six cells into three batches."""
    monkeypatch.setattr(plan, "_CELLS", {"cpu": 2})


ENGINES = [Options(engine="numba"), Options(engine="xla")]


@pytest.mark.parametrize(("ranker", "options"), [*(("linear", each) for each in ENGINES), ("mlp", ENGINES[0])])
def test_workers_and_memory_limit_change_no_bit(ranker: str, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    many_batches(monkeypatch)
    setting = tiny_setting(ranker=ranker)
    plans = make_plans(setting, platform="cpu")
    assert len(plans) == 3
    alone, _ = simulate(setting, replace(options, workers=1))
    together, _ = simulate(setting, replace(options, workers=3))
    limit = max(estimate_bytes(setting, p) for p in plans)
    tight, _ = simulate(setting, replace(options, workers=3, memory_limit=limit))
    assert_same_bits(together, alone)
    assert_same_bits(tight, alone)


@pytest.mark.parametrize("options", ENGINES)
def test_the_cut_into_calls_changes_no_bit(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = replace(tiny_setting(), rounds=9, eval_every=9)
    whole, _ = simulate(setting, options)
    monkeypatch.setattr(train, "_CALL_SECONDS", 1e-9)  # one round per call
    single, _ = simulate(setting, options)
    assert_same_bits(single, whole)


@pytest.mark.parametrize(("ranker", "engine"), [("linear", "numba"), ("linear", "xla"), ("mlp", "numba")])
def test_a_run_stopped_after_any_checkpoint_resumes_to_the_same_bits(
    ranker: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = replace(tiny_setting(ranker=ranker), rounds=6)
    whole, _ = simulate(setting, Options(engine=engine))
    monkeypatch.setattr(train, "_CALL_SECONDS", 1e-9)
    for stop_after in (1, 2, 5):
        options = Options(engine=engine, checkpoints=tmp_path, checkpoint_seconds=0.0, identity=f"stop {stop_after}")
        with pytest.raises(RuntimeError, match="pulled the plug"):
            simulate(setting, replace(options, saved=Plug(stop_after)))
        saved = load_progress(tmp_path / "batch-000.safetensors", identity=f"{options.identity}-{engine}-cpu1")
        assert saved is not None and 0 < saved.round < 6
        resumed, _ = simulate(setting, options)
        assert_same_bits(resumed, whole)
        (tmp_path / "batch-000.safetensors").unlink()


def test_blocks_and_batches_equal_single_runs_to_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, options = tiny_setting(population=Population(9, (2,))), Options(engine="xla")
    together, _ = simulate(setting, options)
    monkeypatch.setattr(plan, "_BLOCK_ROWS", 4)  # blocks of at most four clients, the last one padded
    monkeypatch.setattr(plan, "_CELLS", {"cpu": 1})
    monkeypatch.setattr(plan, "_TILE", {"cpu": 3})
    shape = make_plans(setting, platform="cpu")[0].shape
    assert (shape.n_blocks, shape.block, shape.n_tiles) == (3, 3, 1)
    alone, _ = simulate(setting, options)
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a.params, b.params, atol=2e-6)


@pytest.mark.parametrize("ranker", ["linear", "mlp"])
def test_threads_within_a_batch_change_no_bit(ranker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_BLOCK", 3)
    monkeypatch.setattr(fused, "_WORTH_HANDING_OVER", 1)
    setting = tiny_setting(ranker=ranker, population=Population(20, (2,)), users=("perfect",), n_folds=1)
    alone, _ = simulate(setting, Options(engine="numba", workers=1))
    many, _ = simulate(setting, Options(engine="numba", workers=4))
    assert_same_bits(many, alone)


def test_removing_a_client_moves_no_draw_of_the_others() -> None:
    few, many = (first_update(Population(n_clients, (2,)), Client(3, 2)) for n_clients in (5, 50))
    assert (few == many).all() and few.any()


def first_update(population: Population, client: Client) -> Array:
    """What one client of a population learns in the first round."""
    setting, cell = tiny_setting(population=population), Cell(0, 0, 0)
    method = setting.method
    federation = Federation(method.ranker, setting.users[0][1], setting.dataset.folds[0].train, population)
    key = cell_key(setting, cell)
    return learn(federation, initial_params(setting, cell), client, key=key, round=1)[0].delta


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    setting = tiny_setting()
    simulate(setting, Options(checkpoints=tmp_path, identity="one"))
    with pytest.raises(ValueError, match="belongs to another recipe"):
        simulate(setting, Options(checkpoints=tmp_path, identity="two"))


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "batch-000.safetensors").write_bytes(b"half of something")
    with pytest.raises(ValueError, match=r"batch-000.safetensors is not a readable checkpoint .* Remove it"):
        simulate(tiny_setting(), Options(checkpoints=tmp_path))


def test_a_checkpoint_of_an_older_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "batch-000.safetensors"
    path.write_bytes(save({"params": np.zeros(3)}, metadata={"identity": "-numba-cpu1", "round": "1"}))
    with pytest.raises(ValueError, match=r"batch-000.safetensors is not a readable checkpoint \(of an older version\)"):
        simulate(tiny_setting(), Options(checkpoints=tmp_path))


def test_a_memory_limit_that_nothing_fits_into_names_the_bytes() -> None:
    with pytest.raises(ValueError, match=r"needs about [\d,]+ bytes and the memory limit is 10"):
        simulate(tiny_setting(), Options(memory_limit=10))


def test_programs_are_compiled_once_for_batches_of_equal_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    many_batches(monkeypatch)
    setting = replace(tiny_setting(), repeats=2, users=tiny_setting().users[:1])
    monkeypatch.setattr(program, "_PROGRAMS", OrderedDict())
    simulate(setting, Options(engine="xla", workers=2))
    assert len(make_plans(setting, platform="cpu")) == 2 and len(program._PROGRAMS) == 1


def test_programs_that_are_out_of_use_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of many different settings would be ended by the system when its mappings of memory are used up."""
    monkeypatch.setattr(program, "_PROGRAMS", OrderedDict())
    monkeypatch.setattr(program, "MOST_PROGRAMS", 2)
    setting = tiny_setting()
    shape = make_plans(setting, platform="cpu")[0].shape
    place = program.find_place(shape, "cpu")

    def compiled(length: int) -> weakref.ref[Any]:
        example = (np.zeros(length, np.float32),)
        return weakref.ref(program.compile_program(add_one, setting.method, shape, example, place))

    first, second = compiled(1), compiled(2)
    assert compiled(1)() is first()
    compiled(3)
    gc.collect()
    assert len(program._PROGRAMS) == 2 and first() is not None and second() is None


def add_one(*given: Any) -> Any:
    return given[-1] + 1
