"""Mapped features are copied once for the fused loop, and let go with it."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_settings import tiny_setting

from hushrank.engine import large_pages
from hushrank.engine.fused import fuse_rounds
from hushrank.engine.inputs import initial_state
from hushrank.engine.large_pages import is_mapped, use_large_pages
from hushrank.engine.plan import make_plans
from hushrank.types import Array


def map_numbers(folder: Path, n: int) -> Array:
    np.save(folder / "numbers.npy", np.arange(n, dtype=np.float32))
    return np.asarray(np.load(folder / "numbers.npy", mmap_mode="r"))


def test_a_mapped_array_is_copied_once_and_let_go(tmp_path: Path) -> None:
    mapped = map_numbers(tmp_path, 2 << 20)
    copy = use_large_pages(mapped[:-5])
    assert is_mapped(mapped[:-5]) and not is_mapped(copy)
    np.testing.assert_array_equal(copy, mapped[:-5])
    assert use_large_pages(mapped[:-5]) is copy
    there = weakref.ref(copy)
    del copy
    gc.collect()
    assert there() is None


def test_what_is_small_or_in_memory_already_stays_where_it_is(tmp_path: Path) -> None:
    small, own = map_numbers(tmp_path, 100), np.zeros(2 << 20, np.float32)
    assert use_large_pages(small) is small
    assert use_large_pages(own) is own


def test_the_fused_loop_reads_no_mapped_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, read = tiny_setting(n_folds=1), list[Array]()

    def learn_nothing(updates: Array, qualities: Array, *given: Array) -> None:
        updates[:], qualities[:] = 0, 0
        read.append(given[2])

    fold = setting.dataset.folds[0]
    np.save(tmp_path / "features.npy", fold.train.features)
    mapped = np.asarray(np.load(tmp_path / "features.npy", mmap_mode="r"))
    fold = replace(fold, train=replace(fold.train, features=mapped))
    setting = replace(setting, dataset=replace(setting.dataset, folds=(fold,)))
    monkeypatch.setattr(large_pages, "_LEAST", 0)  # of a data set that is quickly made
    monkeypatch.setattr("hushrank.engine.fused.kernel_for", lambda *_: learn_nothing)
    for _ in range(2):  # two batches at the same time share one copy
        plan = make_plans(setting, platform="cpu")[0]
        fuse_rounds(setting, plan)(initial_state(setting, plan), 1, 1)
    assert not is_mapped(read[0])
    assert all(each is read[0] for each in read)
