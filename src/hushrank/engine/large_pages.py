"""Features in memory where any list is found quickly.

Cached data sets are files that are mapped into memory in pages of 4 KB. A search reads one list somewhere in the
features; finding its pages takes a fifth to a quarter of the search. What NumPy allocates itself stands on pages of
2 MB where the system has them, as Linux does.
"""

from __future__ import annotations

import mmap
from threading import Lock
from weakref import WeakValueDictionary

import numpy as np

from hushrank.types import Array

_LEAST, _MOST = 4 << 20, 512 << 20  # bytes; Why: NumPy asks for large pages from 4 MB on; more may not fit twice
_copies: WeakValueDictionary[tuple[int, int], Array] = WeakValueDictionary()
_lock = Lock()  # Why: batches begin at once, and all of them use one copy


def use_large_pages(features: Array) -> Array:
    """The same numbers, copied if they stand in a mapped file of a size for which that pays.

    The copy is shared for as long as somebody uses it, who must keep `features` as long.
    """
    if not (_LEAST <= features.nbytes <= _MOST and is_mapped(features)):
        return features
    with _lock:
        where = (features.ctypes.data, features.nbytes)
        copy = _copies.get(where)
        if copy is None:
            copy = _copies[where] = np.array(features)
        return copy


def is_mapped(array: Array) -> bool:
    """Whether the numbers stand in a file."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, mmap.mmap)
