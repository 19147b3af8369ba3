"""What a server remembers comes back with its names, kinds and shapes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from hushrank.live.server.arrays import pack_arrays, unpack_arrays
from hushrank.types import Array


def test_named_arrays_come_back_as_they_were() -> None:
    arrays: dict[str, Array] = {
        "first": np.arange(3, dtype=np.float32),
        "n_steps": np.array([7.0], np.float32),
        "rule/seen": np.arange(6, dtype=np.int64).reshape(2, 3).T,
        "rule/nobody": np.zeros((0, 4)),
        "rule/share": np.array(0.25),
    }
    found = unpack_arrays(pack_arrays(arrays))
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].tolist() == array.tolist()
    assert unpack_arrays(pack_arrays({})) == {}


@pytest.mark.parametrize("content", [b"", b"x" * 100, pickle.dumps({"first": [1.0]})])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=f"these {len(content)} bytes hold no named arrays"):
        unpack_arrays(content)
