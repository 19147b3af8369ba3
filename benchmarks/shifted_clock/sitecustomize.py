"""A wall clock that jumps: Python imports this before anything else in a process whose PYTHONPATH names this directory.

`time.time` and `time.time_ns` are off by as many seconds as the file says that CHAOS_CLOCK names; whoever rewrites it
makes the clock of the running process jump. Monotonic clocks go on as on a real machine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_true_time, _true_time_ns = time.time, time.time_ns
_file = Path(os.environ["CHAOS_CLOCK"])


def _read_offset() -> float:
    try:
        return float(_file.read_text(encoding="ascii"))
    except (OSError, ValueError):  # Why: no jump yet
        return 0.0


time.time = lambda: _true_time() + _read_offset()
time.time_ns = lambda: _true_time_ns() + int(_read_offset() * 1e9)
