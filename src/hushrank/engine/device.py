"""Where the simulator computes: the processor or an accelerator, and a compilation cache that outlives the process."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any


def choose_device(wanted: str = "auto") -> tuple[Any, str]:
    """(JAX device, platform `cpu` or `gpu`) for auto, cpu or gpu."""
    if wanted not in ("auto", "cpu", "gpu"):
        raise ValueError(f"device is {wanted!r}, must be auto, cpu or gpu.")
    if wanted == "cpu":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # Why: looking for accelerators costs a second and may print
    jax = import_jax()
    platforms = {device.platform: device for device in reversed(jax.devices())}
    if wanted == "cpu" or (wanted == "auto" and "gpu" not in platforms):
        return jax.devices("cpu")[0], "cpu"
    if "gpu" not in platforms:
        raise ValueError("device=gpu, but JAX sees no GPU. Install jax[cuda13] beside hushrank, or use --device cpu.")
    return platforms["gpu"], "gpu"


def describe_device(device: Any) -> str:
    """`cpu`, or the accelerator's name."""
    return "cpu" if device.platform == "cpu" else f"{device.platform} ({device.device_kind})"


def import_jax() -> Any:
    """JAX with the persistent compilation cache on; a clear sentence where the `lab` extra is missing."""
    try:
        import jax
    except ImportError as error:
        raise ValueError('the simulator needs JAX: install it with pip install "hushrank[lab]".') from error
    # Why: a cache that cannot be written costs only time; the run itself will say that the disk is full
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache")
    if not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", str(compilation_cache()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    return jax


def compilation_cache() -> Path:
    """Compiled programs are kept here between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hushrank" / "compiled"
