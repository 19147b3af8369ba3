"""JSON of sweeps and reproductions, as their commands write it, with made-up numbers that follow a rule."""

from __future__ import annotations

from itertools import product
from math import log10
from typing import Any

USERS = ("perfect", "navigational", "informational")
PAPERS = {
    "fpdgd": "Effective and Privacy-preserving Federated Online Learning to Rank",
    "foltr-es": "Federated Online Learning to Rank with Evolution Strategies",
    "thesis": "Federated Online Learning to Rank: a thesis with a title that is long enough to need a second line",
}


def make_sweep(
    axes: dict[str, list[Any]] | None = None, *, users: tuple[str, ...] = USERS, n_folds: int = 5, select: bool = True
) -> dict[str, Any]:
    """A sweep whose runs all finished; quality peaks where the first axis is 10."""
    axes = {"server_rate": [1, 3, 10, 30, 100]} if axes is None else axes
    grid = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())] if axes else []
    runs = [make_sweep_run(settings, users=users, n_folds=n_folds) for settings in grid]
    return {
        "format": 1, "name": "rates", "axes": axes, "select": "vali" if select else None, "runs": runs,
        "recipe": {"recipe": "fpdgd", "data": "mq2008-like", "n_clients": 1000, "rounds": 100, "server_rate": 1.0},
        "selected": {user: make_selected(runs, user, n_folds) for user in users} if select and runs else None,
        "n_failed": 0, "n_waiting": 0,
    }  # fmt: skip


def make_sweep_run(settings: dict[str, Any], *, users: tuple[str, ...] = USERS, n_folds: int = 5) -> dict[str, Any]:
    label = " ".join(f"{key}={value}" for key, value in settings.items())
    first, *rest = settings.values()
    away = abs(log10(first) - 1) if isinstance(first, int | float) else 0.5
    top = 0.7 - 0.05 * away - 0.004 * sum(len(str(value)) for value in rest)
    metrics = {
        user: {
            "offline/nDCG@10": {"mean": top - 0.01 * u, "std": 0.006, "n": n_folds},
            "vali/nDCG@10": {"mean": top - 0.01 * u + 0.004, "std": 0.007, "n": n_folds},
            "online/nDCG@10": {"mean": 80 * top - u, "std": 0.5, "n": n_folds},
        }
        for u, user in enumerate(users)
    }
    return {
        "label": label, "directory": f"{label.replace(' ', '-')}-1a2b3c4d", "settings": settings, "state": "finished",
        "error": None, "metrics": metrics,
    }  # fmt: skip


def make_selected(runs: list[dict[str, Any]], user: str, n_folds: int) -> dict[str, Any]:
    best = max(runs, key=lambda run: run["metrics"][user]["vali/nDCG@10"]["mean"])
    labels = [best["label"]] * (n_folds - 1) + [runs[0]["label"]]
    found = best["metrics"][user]
    values = [{"fold": fold, "repeat": 1, "value": 0.69} for fold in range(1, n_folds + 1)]
    return {
        "folds": [{"fold": i + 1, "label": label, "vali": 0.7, "test": 0.69} for i, label in enumerate(labels)],
        **{name: {"mean": metric["mean"], "std": metric["std"], "values": values} for name, metric in found.items()},
    }


def make_reproduction(*, n_clients: tuple[int, ...] = (10, 50, 1000), is_stand_in: bool = True) -> dict[str, Any]:
    """A figure with a row for each number of clients and user; the last row was not run."""
    rows = [
        {
            "data": "mslr-web10k", "clicks": user, "method": "fpdgd", "n_clients": n, "metric": "offline/nDCG@10",
            "ours": 0.41 + 0.01 * i, "std": 0.006, "n": 25, "published": 0.423, "difference": -0.013 + 0.01 * i,
            "why": "",
        }
        for i, n in enumerate(n_clients)
        for user in USERS
    ]  # fmt: skip
    if rows:
        why = "Needs privacy=paper, which is not part of this version."
        rows[-1] |= {"ours": None, "std": None, "n": 0, "difference": None, "why": why}
    return {
        "format": 1, "name": "fpdgd.figure4", "aliases": ["thesis.figure3.4"], "paper": "fpdgd", "number": "Figure 4",
        "shows": "How quality depends on the number of clients, with and without noise", "metric": "offline/nDCG@10",
        "data": {"name": "mslr-like", "wanted": "mslr-web10k", "is_stand_in": True}
        if is_stand_in else {"name": "mslr-web10k", "wanted": "mslr-web10k", "is_stand_in": False},
        "quick": is_stand_in, "note": "The text does not say which learning rate was used.", "rows": rows,
        "findings": [
            {"id": "more", "claim": "Without noise, more clients are better", "where": "section 5.2", "holds": True,
             "p": 0.0004, "why": "Paired t-tests, corrected: perfect users +0.0131 (p 0.0004)."},
            {"id": "peak", "claim": "With noise, 1,000 clients are worse than 50", "where": "section 5.2",
             "holds": False, "p": 0.21, "why": "Paired t-tests, corrected: perfect users -0.0012 (p 0.21)."},
            {"id": "es", "claim": "FOLtR-ES is worse at every number of clients", "where": "", "holds": None,
             "p": None, "why": "FOLtR-ES is not part of this version."},
        ],
        "runs": ["fpdgd-n_clients=10", "fpdgd-n_clients=50"], "seconds": 192.0,
    }  # fmt: skip


def make_line(number: int = 4, *, paper: str = "fpdgd", is_run: bool = True) -> dict[str, Any]:
    """One line of the list of reproductions."""
    return {
        "name": f"{paper}.figure{number}", "paper": paper, "number": f"Figure {number}",
        "shows": "How quality depends on the number of clients, with and without noise",
        "data": ["mq2007", "mslr-web10k"],
        "state": "run" if is_run else "not run", "held": 3 if is_run else 0, "not_held": number % 2 if is_run else 0,
        "not_judged": 1 if is_run else 4,
        "why": "" if is_run else "needs unlearning, which is not part of this version",
        "page": f"{paper}.figure{number}/report.html" if is_run else None, "is_stand_in": is_run, "quick": is_run,
        "when": f"2026-03-{number % 28 + 1:02d}T10:20:30+00:00" if is_run else None,
    }  # fmt: skip
