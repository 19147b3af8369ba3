"""Where the simulator computes: the processor or an accelerator, and with which engine.

JAX is imported only where its engine is used: it costs seconds, and rankers on a processor do without it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from hushrank.extras import has_package, require_package

ENGINES = ("auto", "numba", "xla", "plain")
PACKAGES = {"numba": "numba", "xla": "jax"}  # {engine: what must be installed for it}


def choose_platform(wanted: str = "auto") -> str:
    """`cpu` or `gpu` for auto, cpu or gpu."""
    if wanted not in ("auto", "cpu", "gpu"):
        raise ValueError(f"device is {wanted!r}, must be auto, cpu or gpu.")
    if wanted == "cpu" or (wanted == "auto" and not may_have_gpu()):
        return "cpu"
    has_gpu = any(device.platform == "gpu" for device in import_jax().devices())
    if wanted == "gpu" and not has_gpu:
        raise ValueError("device=gpu, but JAX sees no GPU. Install jax[cuda13] beside hushrank, or use --device cpu.")
    return "gpu" if has_gpu else "cpu"


def may_have_gpu() -> bool:
    """Whether a GPU plugin of JAX is installed at all and not switched off."""
    names = (dist.metadata["Name"] or "" for dist in metadata.distributions())
    is_allowed = os.environ.get("JAX_PLATFORMS", "").lower() in ("", "cuda", "gpu", "rocm")
    return is_allowed and any(name.lower().startswith(("jax-cuda", "jax-rocm")) for name in names)


def describe_platform(platform: str) -> str:
    """`cpu`, or the accelerator's name."""
    return "cpu" if platform == "cpu" else f"gpu ({find_device(platform).device_kind})"


def find_device(platform: str) -> Any:
    """The first JAX device of a platform."""
    return import_jax().devices(platform)[0]


@contextmanager
def computing_on(platform: str) -> Iterator[None]:
    """Whatever JAX computes inside is computed there, with all digits of float32. Why: a GPU would round products."""
    jax = import_jax()
    with jax.default_device(find_device(platform)), jax.default_matmul_precision("highest"):
        yield


def import_jax() -> Any:
    """JAX with the persistent compilation cache on; a clear sentence where the `lab` extra is missing."""
    require_package("jax")
    import jax

    # Why: a cache that cannot be written costs only time; the run itself will say that the disk is full
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache")
    warnings.filterwarnings("ignore", message="The Pallas Triton backend is deprecated")  # see kernel_fallback.py
    if not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", str(compilation_cache()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return jax


def spare_mappings(most: int = 25_000) -> None:
    """Let go of JAX's compiled programs where this process has more mappings of memory; those in use stay.

    Why: a program takes some 400 of them, and Linux ends a process that wants more than 65,530. Programs that are
    needed again come from the compilation cache.
    """
    jax = sys.modules.get("jax")
    if jax is not None and count_mappings() > most:
        jax.clear_caches()


def count_mappings() -> int:
    """Of this process; 0 where the system does not tell."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


def compilation_cache() -> Path:
    """Compiled programs are kept here between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hushrank" / "compiled"


def has_engine(engine: str) -> bool:
    return engine not in PACKAGES or has_package(PACKAGES[engine])
