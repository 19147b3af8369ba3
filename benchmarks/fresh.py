"""A measurement in a process of its own, so that no other leaves memory or compiled code behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def run_fresh(*arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """What `python -m ARGUMENTS` prints, read as JSON; its messages go where ours go."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    return json.loads(done.stdout)
