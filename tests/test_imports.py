"""Imports point down: stages know the shared types and their own room, drivers know stages, recipes know drivers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rooms import (
    ALLOWED,
    BOTTOM,
    FILES,
    SOURCE,
    STAGES,
    imports,
    module_of,
    modules_reached,
    room_of,
    rooms_imported,
)

import hushrank

HEAVY = {"jax", "jaxlib", "optax", "equinox", "scipy", "sklearn", "pyarrow", "matplotlib", "lightgbm", "ray"}


def test_the_order_is_that_of_the_package_under_test() -> None:
    assert Path(hushrank.__file__).parent == SOURCE


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


@pytest.mark.parametrize(("one", "other"), [("live/server", "live/device"), ("live/device", "live/server")])
def test_server_and_device_never_import_each_other_not_even_through_others(one: str, other: str) -> None:
    reached = {path for each in FILES if room_of(each) == one for path in modules_reached(each)}
    assert reached and not {module_of(path) for path in reached if room_of(path) == other}


def test_one_round_stays_readable() -> None:
    assert len((SOURCE / "federation" / "round.py").read_text(encoding="utf-8").splitlines()) < 120
