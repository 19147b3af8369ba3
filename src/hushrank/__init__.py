"""hushrank: search that learns from everyone's clicks and sees no one's.

    import hushrank

    found = hushrank.run("fpdgd", n_clients=20, rounds=5, seed=7)
    found.metrics.where(metric="offline/nDCG@10")["value"].mean()

`run`, `sweep`, `forget`, `evaluate` and `report` do what the commands of these names do. `load_run` reads a finished
run, `load_dataset` a data set. `Recipe` is an experiment as data. `learner`, `rule`, `attack`, `user` and `remedy` are
decorators for methods of your own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hushrank.api import attack, evaluate, forget, learner, load_run, remedy, report, rule, run, sweep, user
    from hushrank.data.load import load_dataset
    from hushrank.recipes.recipe import Recipe

__all__ = [
    "Recipe",
    "__version__",
    "attack",
    "evaluate",
    "forget",
    "learner",
    "load_dataset",
    "load_run",
    "remedy",
    "report",
    "rule",
    "run",
    "sweep",
    "user",
]
_ELSEWHERE = {"Recipe": "hushrank.recipes.recipe", "load_dataset": "hushrank.data.load"}  # all others: hushrank.api


def __getattr__(name: str) -> object:
    """Import a public name when it is first used. Why: `hushrank --help` must answer at once, without NumPy."""
    if name not in __all__:
        raise AttributeError(f"module 'hushrank' has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE.get(name, "hushrank.api")), name)


def __dir__() -> list[str]:
    return list(__all__)
