"""What does privacy of a whole training cost? User-level differential privacy on MQ2008, five folds, three users.

    python -m benchmarks.private_training --data DIR/MQ2008 --out runs/private [--gpu]

`sound`: updates clipped in L2, Gaussian noise on the sum, 50 rounds, delta 1e-5, epsilon of the
*whole* training, for 100, 1,000, 10,000 and (with --gpu) 100,000 clients. Clip norm and server rate are chosen on
validation queries for each epsilon and size (10,000 clients and more take the choice of 1,000 at the next larger
epsilon: their noise is as much smaller). Beside it the published mechanism with the noise that the same composed
epsilon takes, unprotected FPDGD, and clipping without noise. Differences are tested fold by fold and seed by seed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from hushrank.engine.simulate import Options, simulate
from hushrank.experiments.recipe import NAMED, change_recipe
from hushrank.experiments.resolve import resolve
from hushrank.files import write_json
from hushrank.metrics.significance import equivalence_test, paired_t_test
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.renyi import composed_epsilon

ROUNDS, DELTA, MARGIN = 50, 1e-5, 0.003
USERS = ("perfect", "navigational", "informational")
NOISE = {0.1: 217.56, 0.25: 93.99, 1.0: 26.388, 4.5: 6.908, math.inf: 0.0}  # `hushrank privacy epsilon`, 50 rounds
GRID = [(clip, rate) for clip in (0.03, 0.1, 0.3) for rate in (3.0, 10.0, 30.0)]
SEARCHES = 16  # of a client in a round; Why: privacy is per client, so more of its own searches make a better update
LIKE = {0.1: 0.25, 0.25: 1.0, 1.0: 4.5, 4.5: math.inf, math.inf: math.inf}
Found = dict[str, dict[str, list[float]]]  # {user: {"test", "vali"}: values, fold by fold and seed by seed}


class Lab:
    """Trains a recipe, or remembers what it found."""

    def __init__(self, data: str, out: Path, *, device: str) -> None:
        self.data, self.out, self.device = data, out, device
        out.mkdir(parents=True, exist_ok=True)

    def train(self, name: str, *, n_clients: int, repeats: int, device: str = "cpu", **changes: Any) -> Found:
        path = self.out / f"{name}-{n_clients}-{repeats}.json"
        if path.is_file():
            return dict(json.loads(path.read_text()))
        same = {"data": self.data, "clicks": list(USERS), "rounds": ROUNDS, "eval_every": ROUNDS, "seed": 2}
        recipe = change_recipe(NAMED["fpdgd"], {**same, "n_clients": n_clients, "repeats": repeats, **changes})
        results, _ = simulate(resolve(recipe), Options(device=device))
        found: Found = {
            user: {
                "test": [float(r.test[-1]) for r in results if r.user == user],
                "vali": [float(r.vali[-1]) for r in results if r.user == user],
            }
            for user in USERS
        }
        write_json(path, found)
        print(name, n_clients, {user: round(fmean(v["test"]), 4) for user, v in found.items()}, file=sys.stderr)
        return found

    def sound(self, epsilon: float, clip: float, rate: float, **more: Any) -> Found:
        name = f"sound-{epsilon:g}-{clip:g}-{rate:g}-{SEARCHES}"
        keys: dict[str, Any] = {
            "privacy": "sound",
            "noise_multiplier": NOISE[epsilon],
            "clip_norm": clip,
            "server_rate": rate,
            "interactions": SEARCHES,
        }
        return self.train(name, **keys, **more)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--out", type=Path, default=Path("runs/private"))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--gpu", action="store_true")
    arguments = parser.parse_args()
    lab = Lab(arguments.data, arguments.out, device="gpu" if arguments.gpu else "cpu")
    chosen = choose(lab)
    rows = []
    for n in (1000, 10_000, 100, *((100_000,) if arguments.gpu else ())):
        device, repeats = ("cpu", arguments.repeats) if n <= 1000 else (lab.device, arguments.repeats)
        repeats = 1 if n == 100_000 else repeats
        for epsilon in NOISE:
            clip, rate = chosen[n, epsilon] if n <= 1000 else chosen[1000, LIKE[epsilon]]
            how = {"n_clients": n, "repeats": repeats, "device": device}
            ours, quiet = (lab.sound(e, clip, rate, **how) for e in (epsilon, math.inf))
            rows += [describe(n, epsilon, clip, rate, user, ours, quiet) for user in USERS]
        write_json(arguments.out / "private_training.json", {"delta": DELTA, "rounds": ROUNDS, "rows": rows})
    others = published(lab)
    write_json(arguments.out / "private_training.json", {"delta": DELTA, "rounds": ROUNDS, "rows": rows + others})
    json.dump({"rows": rows + others}, sys.stdout, indent=1)


def choose(lab: Lab) -> dict[tuple[int, float], tuple[float, float]]:
    """{(clients, epsilon): (clip norm, server rate)} with the highest validation nDCG@10 over users and folds."""
    chosen = {}
    for n in (100, 1000):
        for epsilon in NOISE:
            scores = {
                setting: fmean(
                    v for found in lab.sound(epsilon, *setting, n_clients=n, repeats=2).values() for v in found["vali"]
                )
                for setting in GRID
            }
            chosen[n, epsilon] = max(scores, key=lambda setting: scores[setting])
    return chosen


def published(lab: Lab) -> list[dict[str, Any]]:
    """The published mechanism with the noise that a composed epsilon takes, and no protection at all."""
    rows = []
    open_ = lab.train("open", n_clients=1000, repeats=5)
    for user in USERS:
        rows.append({"mode": "none", "n_clients": 1000, "epsilon": None, "clicks": user, **spread(open_[user]["test"])})
    for epsilon in (1.0, 4.5, 50.0, 500.0):
        stated = stated_epsilon(epsilon)
        keys: dict[str, Any] = {"privacy": "paper", "epsilon": stated, "sensitivity": 3.0}
        found = lab.train(f"paper-{epsilon:g}", n_clients=1000, repeats=5, **keys)
        about = {"mode": "paper", "n_clients": 1000, "epsilon": epsilon, "stated_epsilon_of_a_round": round(stated, 5)}
        rows += [{**about, "clicks": user, **spread(found[user]["test"])} for user in USERS]
    return rows


def stated_epsilon(wanted: float, *, n_params: int = 46) -> float:
    """The epsilon per round, as the paper counts, whose 50 rounds really compose to `wanted`."""
    low, high = 1e-6, 100.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        spend = PaperNoise(middle, 3.0, 1000).spend(n_params)
        low, high = (middle, high) if composed_epsilon([spend] * ROUNDS, delta=DELTA) <= wanted else (low, middle)
    return low


def describe(
    n: int, epsilon: float, clip: float, rate: float, user: str, ours: Mapping[str, Any], quiet: Mapping[str, Any]
) -> dict[str, Any]:
    a, b = ours[user]["test"], quiet[user]["test"]
    same = {"mode": "sound", "n_clients": n, "epsilon": None if math.isinf(epsilon) else epsilon, "clicks": user}
    row = {**same, "clip_norm": clip, "server_rate": rate, **spread(a)}
    if math.isinf(epsilon):
        return row
    test, equal = paired_t_test(a, b), equivalence_test(a, b, margin=MARGIN)
    return {
        **row,
        "cost": round(-test.mean_difference, 4),
        "interval": [round(-bound, 4) for bound in reversed(test.interval)],
        "p_equal_within_margin": round(equal.p, 5),
        "holds": equal.p < 0.05 or test.mean_difference > 0,
    }


def spread(values: list[float]) -> dict[str, Any]:
    return {"nDCG@10": round(fmean(values), 4), "std": round(stdev(values), 4), "n": len(values)}


if __name__ == "__main__":
    main()
