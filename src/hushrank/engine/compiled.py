"""How kernels are compiled by Numba, and kept on the disk for the next process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from numba import njit, types
from numba.core.options import DefaultOptions

MAKING = {"nogil": True, "error_model": "numpy"}
# Why: what only works on arrays that its caller holds need not count who uses them, as Numba does otherwise for every
# slice. It is safe: Numba refuses to compile a function with this option that makes an array or returns a part of one.
# The option is not among Numba's documented ones; 0.61, the oldest that we allow, has it. Without it all is slower.
_BORROWING = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
# Why False where it is not wanted: Numba takes the caller's otherwise, and what is compiled would depend on the order.
FLAGS = {**MAKING, **_BORROWING, "forceinline": False}
# Why: a call hands over every number of every array; with those of a search and its queries, two hundred words.
INLINED = {**FLAGS, "forceinline": True}
SUMS = {**FLAGS, "fastmath": {"reassoc", "contract", "nsz"}}  # Why: lets a sum use vectors; same code, same bits
FUSED = {**FLAGS, "fastmath": {"contract"}}  # Why: a product and a sum in one instruction
f4, f8, i8 = types.float32, types.float64, types.int64
_FOLDER = Path(__file__).parent
# Whatever a kernel is made of. Only kernels are kept, their pieces are inside.
_NAMES = (
    "es_published_kernel",
    "evaluate_kernel",
    "compiled",
    "lanes",
    "vectors",
    "search",
    "kernel",
    "network_kernel",
    "es_kernel",
)
SOURCES = (*(_FOLDER / f"{name}.py" for name in _NAMES), _FOLDER.parent / "streams.py")


def array_type(kind: Any, n_axes: int) -> Any:
    """Why read-only: cached data sets are, and one signature for all callers is compiled once."""
    return types.Array(kind, n_axes, "C", readonly=True)


def keep_compiled(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a kernel now, or find it on the disk.

    Why a sum over the code in its name: to see whether a kernel is stale, Numba looks only at the kernel's own file.
    """

    def compile_kernel(kernel: Callable[..., Any]) -> Any:
        kernel.__qualname__ = f"{kernel.__name__}_{own_sum()}"  # by which Numba finds it again
        return njit(signature, cache=True, **MAKING)(kernel)

    return compile_kernel


@cache
def own_sum() -> str:
    return sum_files(SOURCES)


def sum_files(files: Iterable[Path]) -> str:
    """Eight digits, others for other files."""
    total = 0
    for file in files:
        total = crc32(file.read_bytes(), total)
    return f"{total:08x}"
