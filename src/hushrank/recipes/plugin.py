"""A user's own methods: a module that registers them when it is imported.

    @hushrank.learner("mine")
    def my_gradient(ranker, params, features, scores, ranking, is_clicked): ...

Only `--plugin` (or Python) names such a module, never a recipe or a run's directory: reading a file that somebody sent
must not run their code.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType


def load_plugins(names: Iterable[str]) -> None:
    """Import each: a dotted name, or the path of a .py file."""
    for name in names:
        try:
            _import_file(Path(name)) if name.endswith(".py") else _import_name(name)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"plugin {name} cannot be imported: {type(error).__name__}: {reason}") from error


def _import_name(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # Why: an installed command does not look into the directory it is called from
    return importlib.import_module(name)


def _import_file(path: Path) -> ModuleType:
    """Under a name of its own, once: a second import would register everything twice."""
    name = f"hushrank_plugin_{path.resolve().as_posix().replace('/', '_').removesuffix('.py')}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
