"""Named benchmarks: equal answers first, then time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushrank.engine.inputs import PARAMS
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.seen import SEARCHES
from hushrank.machine import bench
from hushrank.machine.bench import BENCHMARKS, Benchmark, find_benchmark, run_benchmark
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.types import Array, NamedArrays

_CHANGES = {"data": "tiny", "folds": [1], "n_clients": 6, "interactions": 2, "rounds": 1, "repeats": 2}
TINY = Benchmark("tiny-6x2x2", change_recipe(NAMED["fpdgd"], _CHANGES), "two trainings of six clients")
KEYS = {"name", "interactions_per_cpu_second", "interactions_per_second", "compile_s", "device"}  # what scripts read


@pytest.fixture(autouse=True)
def few_short_timings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_TIMINGS", 3)
    monkeypatch.setattr(bench, "_SECONDS", 0.01)


def test_every_benchmark_is_found_by_its_name() -> None:
    assert [find_benchmark(name).name for name in BENCHMARKS] == list(BENCHMARKS)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'fpdgd-mslr-like-1000x2'"):
        find_benchmark("fpdgd-mslr-1000x2")


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(ValueError, match="known: fpdgd-mq2007-like-1000x4, "):
        find_benchmark("?")


def test_a_row_has_what_scripts_read_and_equals_the_plain_round() -> None:
    row = run_benchmark(TINY, device="cpu")
    assert row.keys() >= KEYS and row["name"] == "tiny-6x2x2" and row["device"] == "cpu"
    assert 0 <= row["gap_to_plain"] < 2e-5
    low, high = row["spread_per_second"]
    assert 0 < low <= row["interactions_per_second"] <= high and row["n_timings"] == 3


def test_a_timing_counts_every_interaction_of_every_cell() -> None:
    calls: list[tuple[int, int]] = []

    def advance(state: NamedArrays, first: int, n: int) -> Any:
        calls.append((first, n))
        return state, {SEARCHES: np.full((n, 2), 12)}

    timings = list(bench.time_calls(advance, {PARAMS: np.zeros(1)}))
    assert calls[0] == (1, 2)  # the warm-up
    assert [n for n, _, _ in timings] == [24 * n for _, n in calls[1:]]  # 2 cells x 12 interactions a round


def test_an_engine_that_differs_from_the_plain_round_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = bench.plain_round

    def slightly_wrong(setting: Setting, cell: Cell) -> Array:
        return np.asarray(plain(setting, cell) + np.float32(1e-3) * (cell.repeat == 1))

    monkeypatch.setattr(bench, "plain_round", slightly_wrong)
    with pytest.raises(ValueError, match=r"tiny-6x2x2: the fast round differs from the plain one by 1\.0e-03"):
        run_benchmark(TINY, device="cpu")


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="engine is 'warp', must be one of auto, numba, xla"):
        run_benchmark(TINY, device="cpu", engine="warp")
