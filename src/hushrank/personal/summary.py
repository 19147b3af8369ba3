"""What a population looks like, period by period: counts and means over users, nothing of any one user."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from hushrank.files import Json
from hushrank.personal.log import PERIODS, SearchLog, SearchPopulation
from hushrank.personal.spool import SpooledPopulation
from hushrank.types import Array

N_SAMPLED = 200  # users that are looked at


def describe_log(population: SpooledPopulation) -> Json:
    """Of a log that was read into a directory: how many users, searches and documents, and when."""
    first, last = (datetime.fromtimestamp(time, UTC).isoformat(" ", "seconds") for time in population.span)
    return {
        "name": population.name,
        "description": population.description,
        "n_users": population.n_users,
        "n_searches": population.n_searches,
        "n_documents": population.collection.n_documents,
        "first_search": first.removesuffix("+00:00"),
        "last_search": last.removesuffix("+00:00"),
        "counts": population.counts,
    }


def summarise_population(population: SearchPopulation, *, n_sampled: int = N_SAMPLED) -> list[dict[str, object]]:
    """For each period searches per user, documents and clicks per search, and MAP of the general list.

    Measured on the first users, so that a large population is not made as a whole.
    """
    n_users = min(n_sampled, population.n_users)
    parts = [_measure(population.log_of(user), population) for user in range(n_users)]
    periods, lengths, n_clicks, precision = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    rows: list[dict[str, object]] = []
    for number, name in enumerate(PERIODS):
        of_period = periods == number
        has_click = of_period & (n_clicks > 0)
        rows.append(
            {
                "period": name,
                "users_measured": n_users,
                "searches_per_user": round(int(of_period.sum()) / n_users, 2),
                "mean_list": round(float(lengths[of_period].mean()), 2) if of_period.any() else None,
                "mean_clicks": round(float(n_clicks[of_period].mean()), 3) if of_period.any() else None,
                "general_map": round(float(precision[has_click].mean()), 4) if has_click.any() else None,
            }
        )
    return rows


def _measure(log: SearchLog, population: SearchPopulation) -> tuple[Array, Array, Array, Array]:
    """[n] each: period, list length, clicks, average precision of the list as it was shown."""
    owners = log.owners()
    ranks = np.arange(len(owners)) - log.starts[owners] + 1
    n_clicks = np.bincount(owners[log.is_clicked], minlength=log.n_searches)
    clicked = np.flatnonzero(log.is_clicked)
    first = np.concatenate([[0], np.cumsum(n_clicks)])[owners[clicked]]
    precisions = (np.arange(len(clicked)) - first + 1) / ranks[clicked]
    total = np.bincount(owners[clicked], weights=precisions, minlength=log.n_searches)
    return population.periods.of(log.times), np.diff(log.starts), n_clicks, total / np.maximum(n_clicks, 1)
