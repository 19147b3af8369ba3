"""Small run directories as the engine writes them, with made-up numbers from named streams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from hushrank.streams import draw_uniform, seed_key, stream


def make_run(
    path: Path,
    *,
    recipe: str = "fpdgd",
    clicks: str | Sequence[str] = ("perfect", "navigational", "informational"),
    n_folds: int = 5,
    n_repeats: int = 2,
    n_evaluations: int = 20,
    top: float = 0.70,
    searches: int = 400_000,
    privacy: str | None = "The server sees each client's update as it is: no guarantee.",
    **settings: Any,
) -> Path:
    """A finished run whose nDCG@10 grows towards `top`."""
    path.mkdir(parents=True)
    names = [clicks] if isinstance(clicks, str) else list(clicks)
    full = {
        "recipe": recipe, "n_clients": 1000, "interactions": 4, "rounds": 100, "ranker": "linear", "learning_rate": 0.1,
        "server_optimiser": "sgd", "server_rate": 1.0, "aggregation": "mean", "privacy": "none", "eval_every": 5,
        "clicks": clicks if isinstance(clicks, str) else names, **settings,
    }  # fmt: skip
    curve = [
        row
        for c, click in enumerate(names)
        for fold in range(1, n_folds + 1)
        for repeat in range(1, n_repeats + 1)
        for row in _curve(click, fold, repeat, n_evaluations, top - 0.01 * c, seed=len(str(path.name)))
    ]
    last = max(row["round"] for row in curve)
    metrics = {click: _metrics([row for row in curve if row["click"] == click], last) for click in names}
    result = {
        "format": 1, "recipe": full, "seed": 1, "device": "cpu", "wall_s": 192.4, "cpu_s": 371.0,
        "n_interactions": searches * n_folds * n_repeats * len(names),
        "metrics": metrics[names[0]] if isinstance(clicks, str) else metrics,
        "data": {"name": "mq2008-like", "normalise": "query-minmax", "fingerprint": "ab12", "n_queries_skipped": 220},
        "bytes_per_client_round": 184, "privacy": privacy,
    }  # fmt: skip
    environment = {
        "hushrank": "0.1.0", "python": "3.11.7", "numpy": "2.4.6", "jax": "0.10.2", "device": "cpu",
        "platform": "Linux-6.1-x86_64", "commit": "b85f19f", "started": "2026-03-04T10:20:30+00:00",
        "command": f"hushrank run {recipe} --data mq2008-like --repeats {n_repeats} --out runs/{path.name}",
    }  # fmt: skip
    (path / "recipe.json").write_text(json.dumps(full))
    (path / "result.json").write_text(json.dumps(result))
    (path / "environment.json").write_text(json.dumps(environment))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in curve))
    return path


def _curve(click: str, fold: int, repeat: int, n: int, top: float, *, seed: int) -> list[dict[str, Any]]:
    noise = draw_uniform(stream(seed_key(seed), fold, repeat, len(click)), 3 * n + 1)
    rows = []
    for i in range(n):
        grown = top - 0.25 * 0.75 ** (20 * i / max(1, n - 1)) + 0.02 * (noise[-1] - 0.5)
        values = {"offline": grown, "vali": grown + 0.005, "online": 0.8 * grown}
        rows += [
            {
                "click": click, "fold": fold, "repeat": repeat, "round": 5 * i, "interactions": 20_000 * i,
                "name": f"{kind}/nDCG@10", "value": float(value + 0.01 * (noise[3 * i + j] - 0.5)),
            }
            for j, (kind, value) in enumerate(values.items())
        ]  # fmt: skip
    return rows


def _metrics(curve: list[dict[str, Any]], last: int) -> dict[str, Any]:
    final = [row for row in curve if row["round"] == last]
    found: dict[str, Any] = {}
    for name, scale in (("offline/nDCG@10", 1.0), ("vali/nDCG@10", 1.0), ("online/nDCG@10", 97.5)):
        rows = [row for row in final if row["name"] == name]
        found[name] = _metric([{**row, "value": scale * row["value"]} for row in rows])
    for name, scale in (("offline/MRR", 1.1), ("offline/MAP", 0.9)):
        rows = [row for row in final if row["name"] == "offline/nDCG@10"]
        found[name] = _metric([{**row, "value": scale * row["value"]} for row in rows])
    return found


def _metric(rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = [row["value"] for row in rows]
    return {
        "mean": fmean(values),
        "std": stdev(values) if len(values) > 1 else None,
        "values": [{key: row[key] for key in ("fold", "repeat", "value")} for row in rows],
    }
