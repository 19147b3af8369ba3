"""Packages that only some commands need: which extra of hushrank installs them, and how to get it.

The advice names the place that this hushrank came from, because no registry is known to have it.
"""

from __future__ import annotations

import importlib.util
import json
from importlib import metadata
from pathlib import Path

# {package, as it is imported: the extra of pyproject.toml that installs it}; a test compares the two.
EXTRAS = {
    **dict.fromkeys(("jax", "numba", "scipy", "sklearn", "lightgbm", "dp_accounting", "cryptography"), "lab"),
    "threadpoolctl": "lab",
    **dict.fromkeys(("starlette", "uvicorn", "httptools", "sqlalchemy"), "server"),
}
_TREE = Path(__file__).parents[2]  # the source tree, where hushrank runs from one


class MissingExtraError(ModuleNotFoundError):
    """A package that an extra installs is not there; the text says how to get it."""


def has_package(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def require_package(package: str, *, extra: str | None = None) -> None:
    """Refuse to go on without a package. extra: for one that several extras install."""
    if not has_package(package):
        raise MissingExtraError(describe_missing(package, extra=extra), name=package)


def explain_missing(error: Exception) -> str | None:
    """What to install, where an error says that the package of an extra is missing; None for every other error."""
    if isinstance(error, MissingExtraError):
        return str(error)
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return describe_missing(package) if package in EXTRAS else None


def describe_missing(package: str, *, extra: str | None = None) -> str:
    extra = extra or EXTRAS[package]
    return f"this needs {package}, which the extra {extra!r} installs: {advise_install(extra)}"


def advise_install(extra: str) -> str:
    """The command that adds an extra to this hushrank, from where it came."""
    if (_TREE / "pyproject.toml").is_file():
        return f'pip install -e "{_TREE}[{extra}]"'
    origin = find_origin()
    if origin is not None:
        return f'pip install "hushrank[{extra}] @ {origin}"'
    return f'pip install ".[{extra}]", in the source tree of hushrank'


def find_origin() -> str | None:
    """The address that pip installed this hushrank from, as pip writes it; None where nobody wrote it down."""
    try:
        written = metadata.distribution("hushrank").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    if written is None:
        return None
    origin = json.loads(written)
    vcs = origin.get("vcs_info", {}).get("vcs")
    return f"{vcs}+{origin['url']}" if vcs else str(origin["url"])
