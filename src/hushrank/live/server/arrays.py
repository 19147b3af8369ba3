"""Named arrays as bytes, for whatever a federation remembers between rounds: each has its name, kind and shape."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hushrank.types import Array


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """In the format of safetensors, from which reading runs no code."""
    return bytes(save({name: np.asarray(array, order="C") for name, array in arrays.items()}))


def unpack_arrays(content: bytes) -> dict[str, Array]:
    """{name: array}"""
    try:
        return dict(load(content))
    except SafetensorError as error:
        raise ValueError(f"these {len(content)} bytes hold no named arrays: {error}.") from error
