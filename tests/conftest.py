"""One place for what tests share: the processor as device, a compilation cache, and tiny settings with few shapes.

Compilation is what tests pay for, so the engine's tests use the three settings of `tiny_settings.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))  # Why: test modules share tiny_settings.py without a package

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def chromium() -> str:
    """The system's Chromium; tests that need it say so when it is missing."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed: browser tests left out")
    return found


@pytest.fixture
def in_new_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command's working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
