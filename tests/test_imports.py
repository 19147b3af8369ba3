"""Imports point down: stages know the shared types and their own room, drivers know stages, recipes know drivers."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import hushrank

SOURCE = Path(hushrank.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

BOTTOM = {"types", "keys", "streams", "streams_fast", "files", "locks"}
STAGES = {"data", "rankers", "clicks", "learners", "privacy", "aggregation", "attacks", "metrics"}
# What each room may import besides itself. A new room gets a line here, and so a place in the order.
ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "types": set(),
    "keys": set(),
    "files": set(),
    "locks": set(),
    "streams": {"types"},
    "streams_fast": {"streams", "types"},
    **dict.fromkeys(STAGES, BOTTOM),
    "federation": BOTTOM | STAGES,
    "engine": BOTTOM | STAGES | {"federation"},
    "live/wire": BOTTOM | STAGES | {"federation"},
    "live/server": BOTTOM | STAGES | {"federation", "live/wire"},
    "live/device": BOTTOM | STAGES | {"federation", "live/wire"},
    "live/pretend": BOTTOM | STAGES | {"federation", "live/wire", "live/device"},
    "live": set(),
    "look": set(),
    "report": {"files", "look", "metrics"},
    "recipes": BOTTOM | STAGES | {"federation", "engine"},
    "leaks": BOTTOM | STAGES | {"federation", "engine", "recipes"},
    "runs": BOTTOM | STAGES | {"federation", "engine", "recipes", "report"},
    "machine": BOTTOM | STAGES | {"federation", "engine", "recipes", "runs"},
    "reproduce": BOTTOM | STAGES | {"federation", "engine", "recipes", "runs", "report"},
}
ALLOWED["cli"] = set(ALLOWED) - {"__init__"}
ALLOWED["__main__"] = {"cli"}
HEAVY = {"jax", "jaxlib", "optax", "equinox", "scipy", "sklearn", "pyarrow", "matplotlib", "lightgbm", "ray"}


def room_of(path: Path) -> str:
    return room_named(path.relative_to(SOURCE).with_suffix("").parts)


def room_named(parts: Sequence[str]) -> str:
    """The room of a module below the package: `live` has rooms of its own, every other folder is one."""
    is_nested = parts[0] == "live" and len(parts) > 1 and parts[1] != "__init__"
    return "/".join(parts[: 2 if is_nested else 1])


def module_of(path: Path) -> str:
    parts = ("hushrank", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imports(path: Path, *, at_top: bool = False) -> Iterator[str]:
    """Full names of what a file imports; `at_top`: only what importing the file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in loaded_at_import(tree) if at_top else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def loaded_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes outside functions and outside `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not is_for_types and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from loaded_at_import(child)


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports(path)]
    rooms = {room_named(part[1:]) for part in parts if part[0] == "hushrank" and len(part) > 1}
    return {room for room in rooms if (SOURCE / room).is_dir() or (SOURCE / f"{room}.py").is_file()}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    assert room in ALLOWED, f"{room} has no place in the order of imports: add it to ALLOWED"
    assert rooms_imported(path) - {room} <= ALLOWED[room]


def test_the_order_has_no_circle() -> None:
    rooms = set(ALLOWED)
    while rooms:
        lowest = {room for room in rooms if not ALLOWED[room] & rooms}
        assert lowest, f"these import one another: {sorted(rooms)}"
        rooms -= lowest


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) in STAGES | BOTTOM | {"federation"}], ids=module_of)
def test_only_fast_files_know_jax(path: Path) -> None:
    packages = {name.split(".")[0] for name in imports(path)}
    if path.stem.endswith("_fast"):
        assert "jax" in packages
    else:
        assert not packages & {"jax", "jaxlib", "optax", "equinox"}


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) in {"cli", "__main__"}], ids=module_of)
def test_commands_import_when_they_run(path: Path) -> None:
    names = {name for name in imports(path, at_top=True) if name.split(".")[0] not in sys.stdlib_module_names}
    late = {
        n
        for n in names
        if not n.startswith(("typer", "hushrank.cli.")) and n not in {"hushrank.cli", "hushrank.__version__"}
    }
    assert not late


def modules_after(*statements: str) -> set[str]:
    """The top-level packages in memory after these statements in a fresh interpreter."""
    script = "\n".join((*statements, "import sys", "print(*{name.partition('.')[0] for name in sys.modules})"))
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_plain_stages_and_the_round_load_nothing_heavy() -> None:
    plain = [p for p in FILES if room_of(p) in STAGES | BOTTOM | {"federation"} and not p.stem.endswith("_fast")]
    loaded = modules_after(*(f"import {module_of(path)}" for path in plain))
    assert "numpy" in loaded
    assert not loaded & HEAVY


def test_the_command_starts_without_numpy() -> None:
    loaded = modules_after("import hushrank.cli.main")
    assert not loaded & (HEAVY | {"numpy", "safetensors"})


def test_no_room_is_a_drawer() -> None:
    drawers = {"util", "utils", "common", "core", "helper", "helpers", "manager", "managers", "base", "misc"}
    names = {path.stem for path in FILES} | {path.parent.name for path in FILES}
    assert not names & drawers


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_file_is_longer_than_500_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def test_one_round_stays_readable() -> None:
    assert len((SOURCE / "federation" / "round.py").read_text(encoding="utf-8").splitlines()) < 120
