"""Why clients that search unequally often and look for different things rank worse together.

    python -m benchmarks.quantity --out DIR [--folds 1,2,3,4,5] [--repeats 4] [--rounds 10000] [--ways WAY ...]

Four clients with an intent each make 1, 3, 5 and 7 searches a round. A mean by searches counts them twice: a client
that searches more moves farther, and its move weighs more. So the client with 7 searches makes 49 of 84 parts of a
step, not a quarter. Compared are the ways to weigh them, and clients with four searches each that are weighed as if
they made 1, 3, 5 and 7. Prints JSON: nDCG@10 of the last ranker by user, of every training: by the clients' own
labels, by those of each client, by the union. Killed, it continues.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import hushrank
from hushrank.files import write_json
from hushrank.types import Array

USERS = ("perfect", "navigational", "informational")
SEARCHES = (1, 3, 5, 7)
EQUAL = {"partition": "intents", "interactions": 4}
UNEQUAL = {"partition": "intents+quantity", "quantities": list(SEARCHES)}
WAYS: dict[str, dict[str, Any]] = {
    "equal": EQUAL,  # four searches each
    "by searches": UNEQUAL,
    "alike": {**UNEQUAL, "aggregation": "weighed-alike"},
    "by step": {**UNEQUAL, "aggregation": "weighed-by-step"},
    "equal, as if unequal": {**EQUAL, "aggregation": "weighed-as-if-unequal"},
}


@hushrank.rule("weighed-alike")
def weigh_alike(updates: Array, weights: Array) -> Array:
    """The mean of the updates, however often a client searched."""
    del weights
    return np.asarray(updates.mean(axis=0))


@hushrank.rule("weighed-by-step")
def weigh_by_step(updates: Array, weights: Array) -> Array:
    """The mean move of one search of each client, times the mean number of searches."""
    return np.asarray((updates / weights[:, None]).mean(axis=0) * weights.mean())


@hushrank.rule("weighed-as-if-unequal")
def weigh_as_if_unequal(updates: Array, weights: Array) -> Array:
    """Client c counts as it would with SEARCHES[c]: once for how far it moved, once for its weight."""
    squares = np.square(np.array(SEARCHES, np.float64))
    return np.asarray((squares[:, None] * updates / weights[:, None]).sum(axis=0) / sum(SEARCHES))


def run_way(directory: Path, name: str, keys: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """{user: {metric: {"fold.repeat": value}}}, from the directory if it is there."""
    place = directory / f"{name.replace(', ', '-').replace(' ', '-')}.json"
    if not place.exists():
        usual: dict[str, Any] = {"data": "intent-change-like", "clicks": list(USERS), "n_clients": len(SEARCHES)}
        table = hushrank.run("fpdgd", out=place.with_suffix(""), resume=True, **usual, **keys).metrics
        columns = (table[name] for name in ("metric", "click", "fold", "repeat", "value"))
        found: dict[str, dict[str, dict[str, float]]] = {user: {} for user in USERS}
        for metric, user, fold, repeat, value in zip(*columns, strict=True):
            if metric.startswith(("offline/nDCG@10", "personal/nDCG@10")):
                found[user].setdefault(shorten(metric), {})[f"{fold}.{repeat}"] = float(value)
        write_json(place, found)
    return json.loads(place.read_text())


def shorten(metric: str) -> str:
    """own (the mean over clients), union, or the client's number."""
    whole = {"offline/nDCG@10": "union", "personal/nDCG@10": "own"}
    return whole.get(metric) or metric.rpartition("intent-")[2].partition("+")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folds", default="1,2,3,4,5")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS, metavar="WAY")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    size = {"folds": [int(fold) for fold in chosen.folds.split(",")], "repeats": chosen.repeats}
    size |= {"rounds": chosen.rounds, "eval_every": chosen.rounds}
    found = {name: run_way(chosen.out, name, {**size, **WAYS[name]}) for name in chosen.ways}
    print(json.dumps({"keys": {"data": "intent-change-like", "searches": SEARCHES, **size}, "ways": found}))


if __name__ == "__main__":
    main()
