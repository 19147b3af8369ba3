"""What an observer of uploads finds out on MQ2008: without protection, with noise, and through secure sums.

    python -m benchmarks.reconstruction --data DIR/MQ2008 --json reconstruction.json

Linear PDGD with 1 and 4 interactions per upload and FOLtR-ES messages, at the start of a training (all weights 0) and
after 50 rounds of 100 clients. Some minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.clicks.named import named_user
from hushrank.cohort import Population
from hushrank.data.load import load_dataset
from hushrank.evolution import Evolution
from hushrank.experiments.reconstruction import (
    Protect,
    draw_round,
    leak_curve,
    measure_leak,
    measure_reward_leak,
    watch_client,
)
from hushrank.files import write_json
from hushrank.privacy.none import send_openly
from hushrank.privacy.randomised_response import epsilon_bound
from hushrank.rankers.linear import LinearRanker
from hushrank.round import Federation
from hushrank.streams import draw_normal, seed_key
from hushrank.types import Array, DenseUpdate

DEVIATIONS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # of Gaussian noise on each coordinate of an upload
SUMMED = (10, 100, 1000)  # clients in a secure sum


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like", help="a shape, a catalogue name or a directory")
    parser.add_argument("--clicks", default="navigational")
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    options = parser.parse_args(arguments)
    dataset = load_dataset(options.data, folds=[1])
    federation = Federation(
        LinearRanker(dataset.n_features),
        named_user(options.clicks, n_grades=dataset.n_grades),
        dataset.folds[0].train,
        Population(100),
    )
    start = np.zeros(dataset.n_features, np.float32)
    states = {"start": start, "trained": train(federation, start)}
    rows = []
    for name, params in states.items():
        measure = partial(measure_all, federation, params, trials=options.trials, key=seed_key(options.seed))
        rows += [{"ranker": name, **row} for row in measure()]
    found = {"data": dataset.name, "clicks": options.clicks, "seed": options.seed, "rows": rows}
    if options.json:
        write_json(options.json, found)
    json.dump(found, sys.stdout, indent=2)
    return 0


def train(federation: Federation, params: Array) -> Array:
    """50 rounds of 100 clients with 4 interactions each, averaged."""
    for round in range(1, 51):
        draws = draw_round(federation, 100, 4, key=seed_key(1), round=round)
        learnt = [watch_client(federation, params, draws, client)[0].delta for client in range(100)]
        params = params + np.mean(learnt, axis=0, dtype=np.float32)
    return params


def measure_all(federation: Federation, params: Array, *, trials: int, key: Array) -> list[dict[str, Any]]:
    points: list[tuple[str, float | None, Protect]] = [("none", None, send_openly)]
    points += [(f"gaussian {deviation:g}", None, gaussian(deviation)) for deviation in DEVIATIONS]
    rows = []
    for n_interactions in (1, 4):
        same: dict[str, Any] = {"n_interactions": n_interactions, "n_trials": trials, "key": key}
        rows += leak_curve(federation, params, points, **same)
        for n_summed in SUMMED:
            few = {**same, "n_summed": n_summed, "n_trials": max(20, trials // n_summed)}
            rows.append(
                {"label": f"secure sum of {n_summed}", "epsilon": None, **measure_leak(federation, params, **few)}
            )
    for n_interactions, p, knows_grades in (
        (2, 1.0, False),
        (2, 1.0, True),
        (2, 0.9, True),
        (2, 0.5, True),
        (4, 1.0, True),
    ):
        row = measure_reward_leak(
            federation,
            Evolution(p=p),
            params,
            n_interactions=n_interactions,
            knows_grades=knows_grades,
            n_trials=trials,
            key=key,
        )
        epsilon = None if p == 1 else epsilon_bound(p, 11)
        rows.append({"label": f"evolution strategy, p = {p:g}", "epsilon": epsilon, **row})
    return rows


def gaussian(deviation: float) -> Callable[..., DenseUpdate]:
    """Noise of this deviation on every coordinate, and nothing else: no clipping, no account."""

    def protect(update: DenseUpdate, *, key: Array) -> DenseUpdate:
        return replace(update, delta=update.delta + deviation * draw_normal(key, len(update.delta)))

    return protect


if __name__ == "__main__":
    sys.exit(main())
