"""How long the plain engine will take: a few searches timed, times all of them."""

from __future__ import annotations

import time
from dataclasses import replace
from math import isnan

from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import sample_cohort

_PROBE_SECONDS = 0.25
_MOST_SEARCHES = 8  # Why: of one client; a central one has thousands, which would take as long as the round


def count_planned(setting: Setting) -> int:
    """Searches of all trainings and warm-ups together; with sampled cohorts on average."""
    population = setting.method.population
    each = sum(population.interactions) / len(population.interactions)
    n_cells = len(setting.users) * len(setting.dataset.folds) * setting.repeats
    before = 0 if setting.warm_up is None else count_planned(setting.warm_up)
    return before + round(n_cells * setting.rounds * population.cohort_size * each)


def estimate_plain_seconds(setting: Setting) -> float | None:
    """Wall seconds of all rounds by the plain engine; None where no client has anything to do."""
    rate = measure_plain_rate(setting)
    return count_planned(setting) / rate if rate else None


def measure_plain_rate(setting: Setting) -> float | None:
    """Searches per second of the first clients of the first round, whose results are let go."""
    cell = Cell(0, 0, 0)
    federation, key, params = make_federation(setting, cell), cell_key(setting, cell), initial_params(setting, cell)
    searches, began = 0, time.monotonic()
    for client in sample_cohort(setting.method.population, key, 1):
        few = replace(client, n_interactions=min(client.n_interactions, _MOST_SEARCHES))
        _, quality = federation.study(federation, params, few, key=key, round=1)
        searches += 0 if isnan(quality) else few.n_interactions
        if time.monotonic() - began > _PROBE_SECONDS:
            break
    elapsed = time.monotonic() - began
    return searches / elapsed if searches and elapsed else None
