"""One place for what tests share: the processor as device, a compilation cache, and tiny settings with few shapes.

Compilation is what tests pay for, so the engine's tests use the three settings of `tiny_settings.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))  # Why: test modules share tiny_settings.py without a package
