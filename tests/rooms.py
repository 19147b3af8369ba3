"""The rooms of the package and the order of their imports: what the tests enforce and the documentation draws."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hushrank"
FILES = sorted(SOURCE.rglob("*.py"))

BOTTOM = {"types", "streams", "streams_fast", "files", "locks", "registry", "keys", "extras"}
STAGES = {
    "data",
    "remedies",
    "rankers",
    "clicks",
    "learners",
    "privacy",
    "aggregation",
    "attacks",
    "metrics",
    "unlearning",
    "personal",
}
# What each room may import besides itself. A new room gets a line here, and so a place in the order.
ALLOWED: dict[str, set[str]] = {
    "types": set(),
    "files": set(),
    "locks": set(),
    "registry": set(),
    "keys": set(),
    "extras": set(),
    "streams": {"types"},
    "streams_fast": {"streams", "types"},
    **dict.fromkeys(sorted(STAGES), BOTTOM),
    "attacks": BOTTOM | {"aggregation"},  # Why: some of them are made against a rule, and try it
    "remedies": BOTTOM | {"data"},  # Why: some of them share queries
    "unlearning": BOTTOM | {"privacy", "metrics"},  # Why: its records are signed, and say how far rankers are apart
    "personal": BOTTOM | {"data", "metrics"},  # Why: its loss weighs pairs by average precision
    "federation": BOTTOM | STAGES,
    "partitions": BOTTOM | STAGES | {"federation"},
    "engine": BOTTOM | STAGES | {"federation"},
    "live/wire": BOTTOM | STAGES | {"federation"},
    "live/server": BOTTOM | STAGES | {"federation", "live/wire"},
    "live/device": BOTTOM | STAGES | {"federation", "live/wire"},
    "live/pretend": BOTTOM | STAGES | {"federation", "live/wire", "live/device"},
    "live/queries": BOTTOM | {"privacy", "personal", "live/wire", "live/device", "live/server"},  # Why: its guard
    "live": set(),
    "look": set(),
    "reports": {"files", "look", "metrics"},
    "recipes": BOTTOM | STAGES | {"federation", "partitions", "engine"},
    "leaks": BOTTOM | STAGES | {"federation", "engine", "recipes"},
    "audit": BOTTOM | STAGES | {"federation", "recipes", "live/wire", "live/device"},
    "runs": BOTTOM | STAGES | {"federation", "partitions", "engine", "recipes", "reports", "look"},
    "machine": BOTTOM | STAGES | {"federation", "engine", "recipes", "runs"},
    "reproduce": BOTTOM | STAGES | {"federation", "engine", "recipes", "runs", "reports"},
    "api": BOTTOM | STAGES | {"engine", "recipes", "runs", "reports"},
    "__init__": {"api", "data", "recipes"},
}
ALLOWED["cli"] = set(ALLOWED) - {"__init__", "api"}
ALLOWED["__main__"] = {"cli"}


def room_of(path: Path) -> str:
    return room_named(path.relative_to(SOURCE).with_suffix("").parts)


def room_named(parts: Sequence[str]) -> str:
    """The room of a module below the package: `live` has rooms of its own, every other folder is one."""
    is_nested = parts[0] == "live" and len(parts) > 1 and parts[1] != "__init__"
    return "/".join(parts[: 2 if is_nested else 1])


def module_of(path: Path) -> str:
    parts = ("hushrank", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, at_top: bool = False) -> Iterator[str]:
    """Full names of what a file imports; `at_top`: only what importing the file imports."""
    for node in loaded_at_import(parsed(path)) if at_top else ast.walk(parsed(path)):
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


def import_graph() -> dict[str, set[str]]:
    """{room: the other rooms that its files import}, from the source."""
    graph: dict[str, set[str]] = {}
    for path in FILES:
        room = room_of(path)
        graph.setdefault(room, set()).update(rooms_imported(path) - {room})
    return graph


def modules_reached(path: Path) -> set[Path]:
    """Every file of the package that a file imports, at once or through others, inside functions too."""
    by_module = {module_of(each): each for each in FILES}
    reached, waiting = set[Path](), [path]
    while waiting:
        names = [part for name in imports(waiting.pop()) for part in (name, name.rpartition(".")[0])]
        found = {by_module[name] for name in names if name in by_module} - reached
        reached |= found
        waiting += found
    return reached
