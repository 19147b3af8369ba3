"""On how many of FedPS's generated users its tables rest: those who clicked in the test week.

    python -m benchmarks.measured_users --json docs/benchmarks/fedps_users.json

Nothing is trained; half a minute on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from hushrank.files import Json, write_json
from hushrank.personal.log import TEST, SearchPopulation
from hushrank.personal.population import population_named
from hushrank.reproduce.papers.fedps import EQUAL_LISTS, FIRST_SEED, N_POPULATIONS, N_USERS

DATA = (("aol-like", ""), ("aol-like", EQUAL_LISTS), ("commercial-like", ""))  # (kind, sizes of lists)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--users", type=int, default=N_USERS, help="of a population")
    chosen = parser.parse_args(arguments)
    seeds = range(FIRST_SEED, FIRST_SEED + N_POPULATIONS)
    rows = [count_measured(kind, lists, seed, chosen.users) for kind, lists in DATA for seed in seeds]
    if chosen.json:
        write_json(chosen.json, {"rows": rows})
    json.dump({"rows": rows}, sys.stdout, indent=1)
    return 0


def count_measured(kind: str, lists: str, seed: int, n_users: int) -> Json:
    """Users and searches that MAP is a mean of: those of the test week with a click."""
    population = population_named(f"{kind}:n_users={n_users},{lists}seed={seed}")
    counts = [count_searches(population, user) for user in range(population.n_users)]
    return {
        "data": kind,
        "lists": lists.rstrip(","),
        "population": seed,
        "n_users": n_users,
        "n_measured": sum(count > 0 for count in counts),
        "n_searches": sum(counts),
    }


def count_searches(population: SearchPopulation, user: int) -> int:
    log = population.log_of(user)
    has_click = np.zeros(log.n_searches, dtype=bool)
    has_click[log.owners()[log.is_clicked]] = True
    return int((has_click & (population.periods.of(log.times) == TEST)).sum())


if __name__ == "__main__":
    sys.exit(main())
