"""Where and with what a run was made: versions, device, commit, command."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import hushrank

_PACKAGES = ("numpy", "jax", "jaxlib", "scipy", "safetensors")


def describe_environment(*, device: str, engine: str, engine_reason: str, command: str) -> dict[str, str]:
    """Strings only; what is not there is left out."""
    versions = {name: found for name in _PACKAGES if (found := package_version(name))}
    commit = read_commit()
    return {
        "hushrank": hushrank.__version__,
        "python": platform.python_version(),
        **versions,
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device,
        "engine": engine,
        "engine_reason": engine_reason,
        **({"commit": commit} if commit else {}),
        "command": command,
        "started": now(),
    }


def now() -> str:
    """This moment, for people and programs."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def package_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def read_commit() -> str | None:
    """The commit of the source tree that runs, where it is one; `+` after it means uncommitted changes."""
    root = Path(hushrank.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head, changes = (
            subprocess.run(
                ["git", "--no-optional-locks", "-C", str(root), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout
            for words in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.strip() + ("+" if changes.strip() else "")


def current_command() -> str:
    """What was typed, without the directory that the program stands in."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
