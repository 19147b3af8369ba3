"""What an observer of uploads finds out, as curves over epsilon: no protection, published and sound noise, secure sums.

    python -m benchmarks.reconstruction --data DIR/MQ2008 --json docs/benchmarks/reconstruction.json

Linear PDGD and FOLtR-ES messages in the first round of a training (all weights 0), and some of it after 50 rounds of
100 clients. Each mode has an epsilon of its own kind: `sound` that of one client over 50 rounds at delta 1e-5, `paper`
what is published for one round, FOLtR-ES that of one search. About seven minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.clicks.named import named_user
from hushrank.data.load import load_dataset
from hushrank.federation.cohort import Population
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import protect
from hushrank.federation.round import Federation
from hushrank.files import write_json
from hushrank.leaks.reconstruction import (
    Protect,
    draw_round,
    leak_curve,
    measure_reward_leak,
    watch_client,
    watch_rounds,
)
from hushrank.privacy.accounting import Training, make_account
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.named import PAPER_SETTINGS, make_paper_noise
from hushrank.privacy.none import send_openly
from hushrank.privacy.randomised_response import epsilon_bound
from hushrank.rankers.linear import LinearRanker
from hushrank.streams import draw_normal, seed_key
from hushrank.types import Array, DenseUpdate

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.5, 10.0, math.inf)  # of one client, over all rounds
ROUNDS, DELTA, CLIP_NORM = 50, 1e-5, 0.1
PS = (0.25, 0.5, 0.9, 1.0)  # chance that a reward is told as it was
DEVIATIONS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # of Gaussian noise on each coordinate of an upload
SHARED = (100, 1000)  # clients that the noise of a round is divided among, each of whose uploads is seen
SUMMED = {10: 100, 100: 40, 1000: 20}  # {clients in a secure sum: rounds}
Row = dict[str, Any]
Point = tuple[str, float | None, Protect]


@dataclass(frozen=True, slots=True)
class Case:
    """Whom the observer watches."""

    federation: Federation
    params: Array
    ranker: str  # start or trained
    trials: int
    key: Array


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like", help="synthetic set (tiny), public set (mq2008) or directory")
    parser.add_argument("--clicks", default="navigational")
    parser.add_argument("--trials", type=int, default=200, help="uploads for each point; fewer where each takes long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where the numbers go; default stdout")
    options = parser.parse_args(arguments)
    dataset = load_dataset(options.data, folds=[1])
    user = named_user(options.clicks, n_grades=dataset.n_grades)
    federation = Federation(LinearRanker(dataset.n_features), user, dataset.folds[0].train, Population(100))
    zeros = np.zeros(dataset.n_features, np.float32)
    start = Case(federation, zeros, "start", options.trials, seed_key(options.seed))
    trained = replace(start, params=train(federation, zeros), ranker="trained")
    rows = []
    for row in measure_all(start, trained):
        rows.append(row)
        about = f"{row['ranker']}, {row['mode']}, epsilon {row['epsilon']}, {row['interactions']} searches"
        print(f"{about}: query {row['query_top1_if_learnt']:.3f}", file=sys.stderr)
    words = f"--data DIR/{dataset.name} --clicks {options.clicks} --trials {options.trials} --seed {options.seed}"
    found: Row = {
        "command": f"python -m benchmarks.reconstruction {words}",
        "data": dataset.name,
        "clicks": options.clicks,
        "seed": options.seed,
        "cpu_s": round(time.process_time()),
    }
    found |= {"rounds": ROUNDS, "delta": DELTA, "clip_norm": CLIP_NORM, "trials": options.trials, "rows": rows}
    if options.json:
        write_json(options.json, found)
    else:
        json.dump(found, sys.stdout, indent=2)
    return 0


def train(federation: Federation, params: Array) -> Array:
    """50 rounds of 100 clients with 4 interactions each, averaged."""
    for round in range(1, 51):
        draws = draw_round(federation, 100, 4, key=seed_key(1), round=round)
        learnt = [watch_client(federation, params, draws, client)[0].delta for client in range(100)]
        params = params + np.mean(learnt, axis=0, dtype=np.float32)
    return params


def measure_all(start: Case, trained: Case) -> Iterator[Row]:
    noise = {epsilon: find_noise(epsilon) for epsilon in EPSILONS}
    yield from single_uploads(start, noise)
    yield from four_searches(start, noise)
    yield from secure_sums(start, noise)
    yield from published_noise(start)
    yield from single_uploads(trained, noise)
    for case in (start, trained):
        yield from rewards(case)


def find_noise(epsilon: float) -> float:
    """The noise multiplier that keeps epsilon over all rounds; 0 for none."""
    if math.isinf(epsilon):
        return 0.0
    account = make_account(Training("gaussian", 1.0, ROUNDS), epsilon=epsilon, find="noise", delta=DELTA)
    return account.training.noise_multiplier


def single_uploads(case: Case, noise: dict[float, float]) -> Iterator[Row]:
    """One search each: nothing, noise at the server, a share of the noise, and plain noise of some size."""
    watched = watch_rounds(case.federation, case.params, n_trials=case.trials, key=case.key)
    modes: dict[str, list[Point]] = {
        "none": [("the update", None, send_openly)],
        "gaussian": [(f"deviation {size:g}", None, add_gaussian(size)) for size in DEVIATIONS],
        "sound-server": at_each_epsilon("before the server's noise", noise),
        **{f"sound-clients-{n}": at_each_epsilon(f"with 1 of {n:,} shares", noise, n_shares=n) for n in SHARED},
    }
    for mode, points in modes.items():
        yield from describe(leak_curve(watched, points, key=case.key), mode, case)


def four_searches(case: Case, noise: dict[float, float]) -> Iterator[Row]:
    watched = watch_rounds(case.federation, case.params, n_interactions=4, n_trials=case.trials, key=case.key)
    points: list[Point] = [("the update", None, send_openly)]
    yield from describe(leak_curve(watched, points, key=case.key), "none", case)
    points = at_each_epsilon("with 1 of 1,000 shares", noise, n_shares=1000)
    yield from describe(leak_curve(watched, points, key=case.key), "sound-clients-1000", case)


def at_each_epsilon(label: str, noise: dict[float, float], *, n_shares: int | None = None) -> list[Point]:
    """The sound mechanism with its noise at the server, or in shares at the clients."""
    placement = "server" if n_shares is None else "clients"
    return [(label, e, SoundGaussian(CLIP_NORM, z, placement, n_shares).privatise) for e, z in noise.items()]


def secure_sums(case: Case, noise: dict[float, float]) -> Iterator[Row]:
    """Nothing but the sum is seen: of updates as they are, and with each client's share of the noise."""
    for n, n_rounds in SUMMED.items():
        n_trials = max(2, n_rounds * case.trials // 200)
        watched = watch_rounds(case.federation, case.params, n_summed=n, n_trials=n_trials, key=case.key)
        points: list[Point] = [("sum of updates", None, send_openly)]
        yield from describe(leak_curve(watched, points, key=case.key), f"secure-sum-{n}", case)
        points = at_each_epsilon("sum of clipped updates and shares", noise, n_shares=n)
        yield from describe(leak_curve(watched, points, key=case.key), f"secure-sum-noise-{n}", case)


def published_noise(case: Case) -> Iterator[Row]:
    """One of 1,000 clients' uploads with the published pairs of epsilon and Delta; epsilon is what the paper states."""
    for setting in PAPER_SETTINGS.values():
        noise = make_paper_noise({"epsilon": setting.epsilon, "n_clients": 1000})
        federation = protect(case.federation, noise)
        # Why fewer: noise of uneven size takes the observer a hundred times as long.
        watched = watch_rounds(federation, case.params, n_trials=max(2, case.trials // 4), key=case.key)
        label = f"with 1 of 1,000 shares, Delta {setting.sensitivity:g}"
        yield from describe(
            leak_curve(watched, [(label, setting.epsilon, federation.privatise)], key=case.key), "paper", case
        )


def rewards(case: Case) -> Iterator[Row]:
    """Messages of FOLtR-ES, read by one who knows the relevance of every document; epsilon is of one search."""
    for n_interactions in (2, 4) if case.ranker == "start" else (2,):
        for p in PS:
            row = measure_reward_leak(
                case.federation,
                Evolution(p=p),
                case.params,
                n_interactions=n_interactions,
                knows_grades=True,
                n_trials=case.trials,
                key=case.key,
            )
            bound = epsilon_bound(p, 11)
            yield from describe([{"label": f"p = {p:g}", "epsilon": bound, **row}], "foltr-es", case)


def describe(rows: list[Row], mode: str, case: Case) -> Iterator[Row]:
    """JSON knows no infinity: an epsilon of "inf" is a text, one of null means that the mode has none."""
    for row in rows:
        epsilon = row["epsilon"]
        shown = epsilon if epsilon is None else "inf" if math.isinf(epsilon) else round(epsilon, 4)
        numbers = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
        yield {"mode": mode, "ranker": case.ranker, **numbers, "epsilon": shown}


def add_gaussian(deviation: float) -> Callable[..., DenseUpdate]:
    """Noise of this deviation on every coordinate, and nothing else: no clipping, no account."""

    def add(update: DenseUpdate, *, key: Array) -> DenseUpdate:
        return replace(update, delta=update.delta + deviation * draw_normal(key, len(update.delta)))

    return add


if __name__ == "__main__":
    sys.exit(main())
