"""How runs compare, for scripts: the numbers that the page and the terminal show."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from hushrank.files import Json
from hushrank.reports.budgets import Footing, differing_columns, explain_budgets, find_footing, read_budget
from hushrank.reports.differences import describe_differences
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import run_labels


def describe_comparison(runs: Sequence[RunSummary]) -> Json | None:
    """Budgets, what was measured at equal numbers of searches, and the tests; None for a single run."""
    if len(runs) < 2:
        return None
    labels, footing = run_labels(runs), find_footing(runs)
    budgets = [read_budget(run) for run in runs]
    return {
        "has_equal_budgets": not differing_columns(budgets),
        "about": explain_budgets(runs, labels),
        "budgets": [
            {
                "run": label,
                "rounds": budget.rounds,
                "clients_per_round": budget.clients,
                "searches_per_client_and_round": budget.each,
                "searches": budget.searches,
                "messages": budget.messages,
            }
            for label, budget in zip(labels, budgets, strict=True)
        ],
        "at_equal_searches": None if footing is None else _describe_footing(footing, labels),
        "tests": describe_differences(runs, labels),
    }


def _describe_footing(footing: Footing, labels: Sequence[str]) -> Json:
    rows = [
        {
            "run": label,
            "user": click,
            "measured_after": look,
            "metrics": {
                name: {"mean": metric.mean if isfinite(metric.mean) else None, "std": metric.std}
                for name, metric in named.items()
            },
        }
        for run, label, look in zip(footing.runs, labels, footing.looks, strict=True)
        for click, named in run.metrics.items()
    ]
    return {"searches": footing.searches, "rows": rows}
