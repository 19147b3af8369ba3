"""What tests share: the processor as device, and `tiny_settings.py`, whose few shapes keep compilation cheap."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
for place in (".", "live"):  # Why: test modules share tiny_settings.py and live_processes.py without a package
    sys.path.insert(0, str(Path(__file__).parent / place))
