"""Processes that tests stop in the middle: how they are started, and when they have saved something."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

# A shell's background job is born deaf to Ctrl-C, and so would be what it starts.
HEARING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", "hushrank", *sys.argv[1:]])
"""


def wait_for_news(process: subprocess.Popen[bytes], checkpoints: Path, before: set[int]) -> None:
    """Until a checkpoint is newer than those seen before, or the process has ended."""
    while process.poll() is None and saved_times(checkpoints) <= before:
        time.sleep(0.05)


def saved_times(checkpoints: Path) -> set[int]:
    return {path.stat().st_mtime_ns for path in checkpoints.glob("batch-*.safetensors")}
