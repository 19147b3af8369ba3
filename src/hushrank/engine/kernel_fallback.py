"""Where a GPU's kernel cannot be compiled, the same rounds with XLA's kernels: slower, and equal to rounding.

Why: the kernel is written in Pallas for Triton, which JAX calls deprecated and may drop, and not every GPU has it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from hushrank.engine.inputs import Advance
from hushrank.engine.plan import Plan, without_kernel
from hushrank.engine.setting import Setting
from hushrank.types import Ranker

_LOCK = threading.Lock()
_FAILURES: dict[tuple[Ranker, int], str] = {}  # {(ranker, results of a page): why}; of this process, each tried once


def compile_with_fallback(
    compile_plan: Callable[[Setting, Plan], Advance], setting: Setting, plan: Plan, platform: str
) -> Advance:
    """`compile_plan(setting, plan)`, and without the kernel where that fails with it."""
    if not plan.shape.kernel:
        return compile_plan(setting, plan)
    if why_no_kernel(setting) is None:
        try:
            return compile_plan(setting, plan)
        except Exception as error:  # Why any: a missing module, an operation or a GPU that Triton does not know. What
            if is_out_of_memory(error):  # is wrong with the setting fails again below
                raise
            remember_failure(setting, error)
    return compile_plan(setting, without_kernel(setting, plan, platform))


def is_out_of_memory(error: Exception) -> bool:
    """Why apart: it says nothing about the kernel, and may be gone the next time."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def remember_failure(setting: Setting, error: Exception) -> None:
    with _LOCK:
        _FAILURES.setdefault(_kind_of(setting), f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}")


def why_no_kernel(setting: Setting) -> str | None:
    """What kept the GPU's kernel for such rankers and pages from being compiled in this process; None: nothing did."""
    return _FAILURES.get(_kind_of(setting))


def first_failure() -> str | None:
    """Of any kernel of this process."""
    return next(iter(_FAILURES.values()), None)


def _kind_of(setting: Setting) -> tuple[Ranker, int]:
    return setting.method.ranker, setting.method.k
