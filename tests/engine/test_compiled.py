"""Kernels that are kept on the disk are found again only while all code that they are made of is the same."""

from __future__ import annotations

import ast
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from rooms import SOURCE

from hushrank.engine.compiled import FLAGS, FUSED, MAKING, SOURCES, SUMS, own_sum, sum_files
from hushrank.engine.kernel import kernel_for
from hushrank.engine.network_kernel import network_parts

KERNELS = {"learn_clients", "evolve_clients", "evolve_as_published", "pick_best"}


def imported_files(file: Path) -> set[Path]:
    """Of this package."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    names = [node.module for node in nodes if node.module and node.module.startswith("hushrank.")]
    return {SOURCE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in names}


def compiled_functions() -> list[Any]:
    names = [".".join(file.relative_to(SOURCE.parent).with_suffix("").parts) for file in SOURCES]
    found = [value for name in names for value in vars(import_module(name)).values() if isinstance(value, Dispatcher)]
    return list({id(value): value for value in found}.values())


def test_the_sum_is_over_every_file_with_compiled_code_and_over_what_these_import() -> None:
    own = {file for file in (SOURCE / "engine").glob("*.py") if "njit" in file.read_text("utf-8")}
    needed = own | {each for file in own for each in imported_files(file)}
    assert needed <= set(SOURCES)


@pytest.mark.parametrize("changed", SOURCES, ids=lambda file: file.stem)
def test_a_change_of_any_file_gives_another_sum(changed: Path, tmp_path: Path) -> None:
    copies = [Path(shutil.copy(file, tmp_path)) for file in SOURCES]
    assert sum_files(copies) == own_sum()
    copy = tmp_path / changed.name
    copy.write_bytes(copy.read_bytes().replace(b" = ", b"  = ", 1))
    assert sum_files(copies) != own_sum()


def test_only_kernels_are_kept_and_the_sum_is_in_the_name_of_their_files() -> None:
    kept = [each for each in compiled_functions() if not isinstance(each._cache, NullCache)]
    assert {each.py_func.__name__ for each in kept} == KERNELS
    networks = [kernel_for(None, network_parts(activation)) for activation in ("sigmoid", "relu")]
    for kernel in (*kept, *networks):
        assert own_sum() in kernel._cache._impl.filename_base


@pytest.mark.parametrize("flags", [FLAGS, SUMS, FUSED], ids=["flags", "sums", "fused"])
def test_what_borrows_its_arrays_cannot_make_or_hand_out_any(flags: dict[str, Any]) -> None:
    def make(n: int) -> Any:
        return np.empty(n)[0]

    def cut(array: Any) -> Any:
        return array[1:]

    for function, given in ((make, 3), (cut, np.ones(3))):
        njit(**MAKING)(function)(given)
        with pytest.raises(TypingError):
            njit(**flags)(function)(given)
