"""Is this machine ready? Versions, device, caches, and compiled rounds that must equal the plain ones."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hushrank.extras import advise_install
from hushrank.runs.environment import package_version
from hushrank.types import NamedArrays

_ROUNDS = 40
_TOLERANCE = 1e-5  # Why: float32 sums in another order
_NEAR_TIES = 1e-3  # of the searches, at most


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
    """The simulator against the plain round on a tiny data set, round by round."""
    began = time.monotonic()
    try:
        compared = compare_rounds()
    except Exception as error:  # Why: as above
        return Check("engine", False, " ".join(str(error).split())[:200])
    from hushrank.engine.kernel_fallback import first_failure

    is_well, words = judge_rounds(*compared)
    if missing := first_failure():
        words = f"{words}, but slower than they could be: the GPU's kernel cannot be compiled ({missing})"
    return Check("engine", is_well, f"{words} ({time.monotonic() - began:.1f} s with compilation)")


def compare_rounds() -> tuple[list[float], int]:
    """The largest difference between parameters after each of some rounds, plain and compiled; and their searches.

    Both engines begin each round with the state that the plain one left, so a round's difference is its own.
    """
    from hushrank.engine.device import choose_platform
    from hushrank.engine.inputs import PARAMS, initial_state
    from hushrank.engine.plan import make_plans
    from hushrank.engine.simulate import Options, load_engine, name_engine
    from hushrank.federation.seen import SEARCHES
    from hushrank.recipes.recipe import NAMED, change_recipe
    from hushrank.recipes.resolve import resolve

    small = {"data": "tiny", "folds": [1], "n_clients": 8, "rounds": _ROUNDS}
    setting, platform = resolve(change_recipe(NAMED["fpdgd"], small)), choose_platform("auto")
    plan, named = make_plans(setting, platform=platform)[0], name_engine(setting, Options(), platform)
    run_fast, run_plain = (load_engine(name, platform, threads=1)(setting, plan) for name in (named, "plain"))
    state: NamedArrays = initial_state(setting, plan)
    gaps, n_searches = list[float](), 0
    for round in range(1, _ROUNDS + 1):
        fast, _ = run_fast(state, round, 1)
        state, shown = run_plain(state, round, 1)
        gaps.append(float(np.abs(np.asarray(fast[PARAMS]) - state[PARAMS]).max()))
        n_searches += int(shown[SEARCHES].sum())
    return gaps, n_searches


def judge_rounds(gaps: Sequence[float], n_searches: int) -> tuple[bool, str]:
    """Whether compiled rounds equal the plain ones but for near-ties, and that in words."""
    equal = [gap for gap in gaps if gap < _TOLERANCE]
    n_other, rounds = len(gaps) - len(equal), f"{len(gaps)} compiled rounds with {n_searches:,} searches"
    if not n_other:
        return True, f"{rounds} equal the plain ones to {max(gaps):.0e}"
    words = f"{n_other} of {rounds} differ from the plain ones by more than {_TOLERANCE:.0e}"
    if n_other <= _NEAR_TIES * n_searches:
        return True, f"{words}: so rarely two documents with almost equal scores may change places"
    return False, f"{words}: too many for documents with almost equal scores that change places"
