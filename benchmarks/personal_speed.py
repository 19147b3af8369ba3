"""How fast clients of personalised search are trained: PEPS, 300 users with K = 10 and 100, 100,000 with K = 1,000.

    python -m benchmarks.personal_speed --json docs/benchmarks/personal_speed.json
    python -m benchmarks.personal_speed --data aol-like --users 100000 --cohort 1000 --steps 0

The second form measures one size alone. Each size has a process of its own, and one client's visit must give what the
plain twin gives before anything is timed. The device is a GPU where there is one. The first step is told apart: it
compiles, and makes the logs of those whom it visits. The others train users whose logs are in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.fresh import run_fresh
from hushrank.engine.device import choose_platform, describe_platform
from hushrank.engine.personal_model import fit_training
from hushrank.engine.personal_schedule import SearchStep
from hushrank.engine.personal_setting import PARAMS
from hushrank.engine.personal_store import PersonalStore
from hushrank.engine.personal_task import FlatSearch
from hushrank.federation.seen import SEARCHES
from hushrank.files import write_json
from hushrank.machine.bench import peak_memory
from hushrank.personal.models.parameters import OWN_WORDS
from hushrank.personal.models.peps import Peps
from hushrank.personal.training import train_peps
from hushrank.recipes.personal_setting import resolve_personal
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.personal_search import make_task
from hushrank.streams import Purpose, fold_in, stream
from hushrank.types import NamedArrays

SEED = 2001  # of the users. Why this one: no reported table uses it
SIZES = (  # data, users, K, timed steps
    ("aol-like", 300, 10, 10),
    ("aol-like", 300, 100, 4),
    ("personal-like", 300, 10, 5),
    ("personal-like", 300, 100, 2),
    ("aol-like", 100_000, 1000, 0),
)
_CLOSE = 0.02  # of the rate: numbers farther apart have parted
_MOST_PARTED = (
    0.01  # part of the numbers. Why some: Adam's step is as long for a gradient of rounding errors as for any
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--data", default="aol-like", help="population of one size")
    parser.add_argument("--users", type=int, help="measure this number of users alone, in this process")
    parser.add_argument("--cohort", type=int, default=10, help="K, of one size")
    parser.add_argument("--steps", type=int, default=5, help="timed steps, of one size; 0: the first step alone")
    chosen = parser.parse_args(arguments)
    if chosen.users is not None:
        found = measure(chosen.data, chosen.users, chosen.cohort, chosen.steps)
    else:
        found = {"personal_speed": [measure_fresh(*size) for size in SIZES]}
    if chosen.json:
        write_json(chosen.json, found)
    json.dump(found, sys.stdout, indent=1)
    return 0


def measure_fresh(data: str, users: int, cohort: int, steps: int) -> Any:
    size = {"data": data, "users": users, "cohort": cohort, "steps": steps}
    return run_fresh(
        "benchmarks.personal_speed", *(w for name, value in size.items() for w in (f"--{name}", str(value)))
    )


def measure(data: str, users: int, cohort: int, steps: int) -> dict[str, Any]:
    """One row."""
    changes = {"data": f"{data}:n_users={users},seed={SEED}", "cohort": cohort, "rounds": 1 + steps}
    _, setting = resolve_personal(change_recipe(NAMED["fedps"], changes))
    platform = choose_platform("auto")
    task = make_task(setting, 0, platform)
    assert isinstance(task, FlatSearch)
    began, busy = time.perf_counter(), time.process_time()
    state, _ = task.advance(task.start(), 1, 1)
    first_s, first_cpu_s = time.perf_counter() - began, time.process_time() - busy
    parted = compare_with_plain(task)
    if not parted < _MOST_PARTED:
        raise ValueError(f"{data}: {parted:.1%} of one client's numbers are not those of the plain twin; not timed.")
    return {
        "data": data,
        "list_size": setting.people.population.list_sizes.other,
        "n_users": users,
        "cohort": cohort,
        **(time_steps(task, state, steps) if steps else {}),
        "first_step_s": round(first_s, 1),
        "first_step_cpu_s": round(first_cpu_s, 1),
        "parted_from_plain": float(f"{parted:.1e}"),
        "peak_memory_mb": round(peak_memory() / 1e6),
        "device": describe_platform(platform),
        "processors": os.cpu_count(),
    }


def compare_with_plain(task: FlatSearch) -> float:
    """The part of one client's numbers, shared and personal, that a visit moves elsewhere than its plain twin does."""
    setting, arrays, step = task.setting, task.arrays, task.schedule.step_at(1)
    state, model = task.start(), arrays.model
    assert isinstance(model, Peps)
    place = min(range(len(step.ids)), key=lambda i: count_trained(task, step, i))
    client, span = int(step.ids[place]), step.spans[place]
    store, own = PersonalStore(state), arrays.first_personal(client)
    alone = step._replace(ids=np.array([client]), spans=[span])
    (message,) = task.visit_clients(state[PARAMS], store, alone)
    plain = train_peps(
        model,
        arrays.shared(state[PARAMS]),
        own,
        setting.people.inputs_of(client, span),
        training=fit_training(setting.training, task.platform),
        sharing=setting.sharing,
        key=fold_in(stream(arrays.key, Purpose.VISIT, step.round), np.array([client]))[0],
    )
    kept = store.read(client)
    assert kept is not None and message.weight == plain.n_pairs > 0
    gaps = [np.abs(message.delta - plain.delta), np.abs(kept - plain.personal[OWN_WORDS][: len(kept)]).ravel()]
    return float(np.mean(np.concatenate(gaps) > _CLOSE * setting.training.rate))


def count_trained(task: FlatSearch, step: SearchStep, place: int) -> int:
    """Searches of one client of a step; the plain twin is slow, and who has none says nothing."""
    return len(task.setting.people.searches_in(int(step.ids[place]), step.spans[place])) or sys.maxsize


def time_steps(task: FlatSearch, state: NamedArrays, n_steps: int) -> dict[str, Any]:
    """Steps after the first one, one by one."""
    steps = [task.schedule.step_at(number) for number in range(2, n_steps + 2)]
    for step in steps:  # Why: making logs is no training, and happens once
        task.count_searches(step)
    wall, cpu, searches = [], [], []
    for number in range(2, n_steps + 2):
        began, busy = time.perf_counter(), time.process_time()
        state, seen = task.advance(state, number, 1)
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - busy)
        searches.append(int(seen[SEARCHES][0]))
    users = [len(step.ids) for step in steps]
    rates = [n / seconds for n, seconds in zip(users, wall, strict=True)]
    return {
        "users_per_second": float(f"{median(rates):.3g}"),
        "spread_per_second": [float(f"{pick(rates):.3g}") for pick in (min, max)],
        "users_per_cpu_second": float(f"{sum(users) / sum(cpu):.3g}"),
        "interactions_per_cpu_second": float(f"{sum(searches) / sum(cpu):.3g}"),
        "n_steps": n_steps,
    }


if __name__ == "__main__":
    sys.exit(main())
