"""The command `hushrank` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def hushrank(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hushrank", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
