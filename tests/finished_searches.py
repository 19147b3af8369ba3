"""Runs of personalised search as their directories say it, made up: for tests of claims about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from hushrank.reproduce.verdicts import Finished

NOISE = np.linspace(-0.01, 0.01, 20)  # of the users
TINY = {"data": "aol-like:n_users=6,n_documents=200,median_searches=30,seed=3", "word_dim": 4, "rounds": 1, "cohort": 3}


def finish(
    place: Path,
    cell: Mapping[str, Any],
    *,
    users: float = 0.5,
    validation: Sequence[float] = (0.1, 0.3, 0.2),
    test: Sequence[float] = (0.1, 0.5, 0.6),
    original: float = 0.2,
    measures: Mapping[str, float] | None = None,
    is_real: bool = False,
    **recipe: object,
) -> Finished:
    """A training with a look after each round, and twenty users around a level at the best of them.

    measures: beside MAP, {metric: level}; is_real: no number of a single user is kept. With `stages` in the recipe, the
    users are around the look of each week, and spread a little more in each.
    """
    directory = place / "-".join(map(str, cell.values()))
    directory.mkdir(parents=True)
    curves = {"vali/MAP": validation, "offline/MAP": test, "original/MAP": [original] * len(test)}
    curves |= {f"offline/{name}": [level] * len(test) for name, level in (measures or {}).items()}
    rows = [
        {"click": "log", "fold": 1, "repeat": 0, "name": name, "round": n, "interactions": 7 * n, "value": value}
        for name, values in curves.items()
        for n, value in enumerate(values)
    ]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    levels = {"MAP": users, **(measures or {})}
    if not is_real:
        single = {f"log/1/0/best/offline/{name}": level + NOISE for name, level in levels.items()}
        for week, level in enumerate(test[1:], 1) if "stages" in recipe else ():
            single[f"log/1/0/stage {week}/offline/MAP"] = level + (week + level) * NOISE
            single[f"log/1/0/stage {week}/original/MAP"] = np.full(len(NOISE), original)
        save_file(single, directory / "users.safetensors")
    settings = {"recipe": "fedps", "clicks": "log", "n_clients": 300, "cohort": 10, "rounds": len(test) - 1, **recipe}
    result = {"recipe": settings, "metrics": {}, "data": {}, "seed": 0, "device": "cpu", "warnings": []}
    (directory / "result.json").write_text(json.dumps(result))
    return Finished({"data": "aol-like", **cell}, directory, result)
