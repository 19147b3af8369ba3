"""Files, functions and names stay small enough to read: limits that hold for the whole package."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from rooms import FILES, SOURCE, module_of, parsed

COMPILED = {"engine/kernel.py", "engine/es_kernel.py", "engine/program.py", "engine/local.py", "engine/es_local.py"}
COMPILED |= {"engine/addition.py", "engine/gathered.py", "engine/es_published_kernel.py", "engine/memory.py"}
COMPILED |= {"engine/cohort.py", "engine/keeping.py", "engine/network_kernel.py", "engine/compiled.py"}
COMPILED |= {"engine/lanes.py", "engine/vectors.py", "engine/search.py", "engine/evaluate_kernel.py"}
COMPILED |= {"engine/gpu_kernel.py", "engine/gpu_lists.py"}
MOST_ANY = 187  # outside compiled kernels; only ever lowered


def name_file(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_file_has_fewer_than_450_lines(path: Path) -> None:
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines < 450


def count_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement to the last, the docstring left out."""
    body = function.body[ast.get_docstring(function, clean=False) is not None :]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_a_function_body_has_fewer_than_40_lines() -> None:
    functions = [
        (f"{name_file(path)}:{node.name}", count_body(node))
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert not {name for name, n_lines in functions if n_lines >= 40}


def test_no_class_name_is_used_twice() -> None:
    classes = Counter(node.name for path in FILES for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))
    assert not {name for name, n in classes.items() if n > 1}


def test_any_is_said_ever_less_often() -> None:
    """Where the kind of a value is known, it is written down; compiled kernels have their shapes in comments."""
    typed = [path for path in FILES if name_file(path) not in COMPILED]
    n_any = sum(isinstance(node, ast.Name) and node.id == "Any" for path in typed for node in ast.walk(parsed(path)))
    assert n_any <= MOST_ANY, f"{n_any} times, at most {MOST_ANY}: name the type"
