"""Is this machine ready? Versions, device, caches, and one compiled round that must equal the plain one."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushrank.extras import advise_install
from hushrank.runs.environment import package_version


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's list."""

    name: str
    is_well: bool
    detail: str


def examine_machine() -> Iterator[Check]:
    yield Check("python", (3, 11) <= sys.version_info[:2] <= (3, 13), sys.version.split()[0] + " (3.11 to 3.13 wanted)")
    for package in ("numpy", "typer", "rich", "safetensors", "jax", "numba", "scipy"):
        found = package_version(package)
        yield Check(package, found is not None, found or f"missing: {advise_install('lab')}")
    yield check_cache()
    yield Check("processors", True, f"{os.cpu_count()}")
    if package_version("jax"):
        yield check_device()
        yield check_round()


def check_cache() -> Check:
    from hushrank.data.cache import cache_root

    root = cache_root()
    existing = next(place for place in (root, *root.parents) if place.exists())
    is_well = os.access(existing, os.W_OK)
    free = shutil.disk_usage(existing).free / 1e9
    return Check(
        "cache", is_well, f"{root} ({free:.0f} GB free)" if is_well else f"{root} cannot be written: set HUSHRANK_DATA"
    )


def check_device() -> Check:
    from hushrank.engine.device import choose_platform, describe_platform

    try:
        return Check("device", True, describe_platform(choose_platform("auto")))
    except Exception as error:  # Why: a broken driver may raise anything, and the list must go on
        return Check("device", False, " ".join(str(error).split())[:200])


def check_round() -> Check:
    """The simulator against the plain round on a tiny data set."""
    began = time.monotonic()
    try:
        gap = compare_rounds()
    except Exception as error:  # Why: as above
        return Check("engine", False, " ".join(str(error).split())[:200])
    detail = f"compiled round equals the plain one to {gap:.0e} ({time.monotonic() - began:.1f} s with compilation)"
    return Check("engine", gap < 1e-5, detail)


def compare_rounds() -> float:
    """The largest difference between parameters after one round, plain and compiled."""
    from hushrank.engine.simulate import Options, simulate
    from hushrank.recipes.recipe import NAMED, change_recipe
    from hushrank.recipes.resolve import resolve

    setting = resolve(change_recipe(NAMED["fpdgd"], {"data": "tiny", "folds": [1], "n_clients": 8, "rounds": 1}))
    fast, plain = (simulate(setting, Options(workers=1, engine=engine))[0][0].params for engine in ("auto", "plain"))
    return float(np.abs(fast - plain).max())
