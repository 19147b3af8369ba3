"""What does privacy of a whole training cost? User-level differential privacy on MQ2008, five folds, three users.

    python -m benchmarks.private_training --data DIR/MQ2008 --out runs/private [--gpu]

`sound`: updates clipped in L2, Gaussian noise on the sum, 50 rounds, delta 1e-5, epsilon of the *whole* training, for
100, 1,000, 10,000 and (with --gpu) 100,000 clients. Clip norm, server rate and whether it fades are chosen on
validation queries for each epsilon at 100 and at 1,000 clients; larger federations take the choice that 1,000 clients
made at the nearest noise per client that is not smaller. Test queries are looked at once, with other seeds. The cost is
that of the noise: against the same training without it. Beside it stand the best training without noise, the published
mechanism with the noise that the same composed epsilon takes, and FPDGD unprotected. Differences are tested fold by
fold and seed by seed. Killed, it continues. `--chosen FILE` takes the settings that an earlier study chose on
validation queries, in place of choosing them again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hushrank.engine.simulate import Options, simulate
from hushrank.files import write_json
from hushrank.metrics.significance import equivalence_test, paired_t_test
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.renyi import composed_epsilon
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve

ROUNDS, DELTA, MARGIN = 50, 1e-5, 0.003
USERS = ("perfect", "navigational", "informational")
NOISE = {0.1: 217.56, 0.25: 93.99, 1.0: 26.388, 4.5: 6.908, math.inf: 0.0}  # `hushrank privacy epsilon`, 50 rounds
SEARCHES = 16  # of a client in a round; Why: privacy is per client, so more of its own searches make a better update
SEEDS = {100: 20, 1000: 20, 10_000: 5, 100_000: 1}
CHOOSING, REPORTING = 2, 3  # seeds; Why: the draws that chose a setting do not judge it
Found = dict[str, dict[str, list[float]]]  # {user: {"test", "vali"}: values, fold by fold and seed by seed}


class Setting(NamedTuple):
    clip: float
    rate: float
    fades: bool = False


SETTINGS = [Setting(clip, rate) for clip in (0.03, 0.1, 0.3) for rate in (3.0, 10.0, 30.0)]
SETTINGS += [Setting(clip, 30.0, fades=True) for clip in (0.1, 0.3)]


@dataclass(frozen=True)
class Task:
    """One training of every fold and user."""

    name: str
    data: str
    out: Path
    n_clients: int
    repeats: int
    seed: int
    keys: dict[str, Any]

    def run(self, device: str = "cpu", workers: int | None = 1) -> Found:
        """Trained, or remembered."""
        path = self.out / f"{self.name}-{self.n_clients}-{self.repeats}-seed{self.seed}.json"
        if path.is_file():
            return dict(json.loads(path.read_text()))
        same: dict[str, Any] = {"data": self.data, "clicks": list(USERS), "seed": self.seed}
        same |= {"rounds": ROUNDS, "eval_every": ROUNDS}
        size = {"n_clients": self.n_clients, "repeats": self.repeats}
        recipe = change_recipe(NAMED["fpdgd"], {**same, **size, **self.keys})
        results, _ = simulate(resolve(recipe), Options(device=device, workers=workers))
        found: Found = {
            user: {
                "test": [float(r.test[-1]) for r in results if r.user == user],
                "vali": [float(r.vali[-1]) for r in results if r.user == user],
            }
            for user in USERS
        }
        write_json(path, found)
        told = {user: round(fmean(v["vali"]), 4) for user, v in found.items()}
        print(path.stem, "validation", told, file=sys.stderr, flush=True)
        return found


class Lab:
    """Small trainings run side by side in processes, large ones on the GPU if there is one."""

    def __init__(self, data: str, out: Path, *, gpu: bool, jobs: int) -> None:
        self.data, self.out, self.gpu = data, out, gpu
        out.mkdir(parents=True, exist_ok=True)
        self.pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))

    def run(self, task: Task) -> Found:
        """One training after another: on the GPU, if there is one, or on all processors."""
        return task.run("gpu" if self.gpu else "cpu", None)

    def start(self, task: Task) -> Future[Found]:
        """On the GPU it is done when this returns."""
        if not self.gpu:
            return self.pool.submit(task.run)
        done: Future[Found] = Future()
        done.set_result(self.run(task))
        return done

    def task(self, name: str, keys: dict[str, Any], *, n_clients: int, repeats: int, seed: int) -> Task:
        return Task(name, self.data, self.out, n_clients, repeats, seed, keys)

    def sound(self, epsilon: float, setting: Setting, *, n_clients: int, repeats: int, seed: int) -> Task:
        fade = "-fading" if setting.fades else ""
        keys = {
            "privacy": "sound",
            "noise_multiplier": NOISE[epsilon],
            "clip_norm": setting.clip,
            "server_rate": setting.rate,
            "server_fade": setting.fades,
            "interactions": SEARCHES,
        }
        name = f"sound-{epsilon:g}-{setting.clip:g}-{setting.rate:g}{fade}"
        return self.task(name, keys, n_clients=n_clients, repeats=repeats, seed=seed)

    def report(self, wanted: list[tuple[float, Setting]], n_clients: int) -> list[Found]:
        """Each epsilon with its setting, on seeds that chose nothing."""
        size = {"n_clients": n_clients, "repeats": SEEDS[n_clients], "seed": REPORTING}
        tasks = [self.sound(epsilon, setting, **size) for epsilon, setting in dict.fromkeys(wanted)]
        made = [future.result() for future in [self.start(task) for task in tasks]]
        found = dict(zip(dict.fromkeys(wanted), made, strict=True))
        return [found[case] for case in wanted]

    def start_choosing(self, n_clients: int, epsilon: float) -> dict[Setting, Future[Found]]:
        return {s: self.start(self.sound(epsilon, s, n_clients=n_clients, repeats=2, seed=CHOOSING)) for s in SETTINGS}


def choose(started: Mapping[Setting, Future[Found]]) -> Setting:
    """The setting with the highest validation nDCG@10 over users and folds."""
    scores = {setting: fmean(fmean(v["vali"]) for v in future.result().values()) for setting, future in started.items()}
    return max(scores, key=lambda setting: scores[setting])


def choose_all(lab: Lab) -> dict[tuple[int, float], Setting]:
    """{(clients, epsilon): setting} for the sizes at which settings are chosen."""
    started = {(n, e): lab.start_choosing(n, e) for n in (1000, 100) for e in reversed(NOISE)}
    return {case: choose(futures) for case, futures in started.items()}


def read_chosen(path: Path) -> dict[tuple[int, float], Setting]:
    rows = [row for row in json.loads(path.read_text())["rows"] if row["mode"] == "sound"]
    return {
        (row["n_clients"], row["epsilon"] or math.inf): Setting(
            row["clip_norm"], row["server_rate"], fades=row["server_fade"]
        )
        for row in rows
    }


def like(n_clients: int, epsilon: float) -> float:
    """The epsilon at which 1,000 clients have the nearest noise per client that is not smaller."""
    share = NOISE[epsilon] / n_clients
    return max((e for e in NOISE if NOISE[e] / 1000 >= share), default=min(NOISE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--out", type=Path, default=Path("runs/private"))
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--chosen", type=Path, help="private_training.json of an earlier study")
    arguments = parser.parse_args()
    lab = Lab(arguments.data, arguments.out, gpu=arguments.gpu, jobs=arguments.jobs)
    settings = choose_all(lab) if arguments.chosen is None else read_chosen(arguments.chosen)
    others = start_published(lab)
    rows: list[dict[str, Any]] = []
    for n in (10_000, 1000, *((100_000,) if arguments.gpu else ()), 100):
        best = settings[min(n, 1000), math.inf]
        chosen = {e: settings[(n, e) if n <= 1000 else (1000, like(n, e))] for e in reversed(NOISE)}
        wanted = [((e, setting), (math.inf, setting), (math.inf, best)) for e, setting in chosen.items()]
        found = iter(lab.report([case for cases in wanted for case in cases], n))
        for epsilon, setting in chosen.items():
            results = [next(found) for _ in range(3)]
            rows += [describe(n, epsilon, setting, user, *results) for user in USERS]
        save(arguments.out, rows)
    rows += [row for made in others for row in made()]
    save(arguments.out, rows)
    json.dump({"rows": rows}, sys.stdout, indent=1)


def save(out: Path, rows: list[dict[str, Any]]) -> None:
    about = {"delta": DELTA, "rounds": ROUNDS, "searches": SEARCHES, "margin": MARGIN}
    write_json(out / "private_training.json", {**about, "rows": rows})


def start_published(lab: Lab) -> list[Any]:
    """The published mechanism with the noise that a composed epsilon takes, and no protection at all."""
    started: list[tuple[dict[str, Any], Future[Found]]] = []
    size = {"n_clients": 1000, "repeats": 5, "seed": REPORTING}
    same = {"interactions": SEARCHES}
    started.append(
        ({"mode": "none", "epsilon": None}, lab.start(lab.task("open", same, **size))),
    )
    for epsilon in (1.0, 4.5, 50.0, 500.0):
        stated = stated_epsilon(epsilon)
        keys = {**same, "privacy": "paper", "epsilon": stated, "sensitivity": 3.0}
        about = {"mode": "paper", "epsilon": epsilon, "stated_epsilon_of_a_round": round(stated, 5)}
        started.append((about, lab.start(lab.task(f"paper-{epsilon:g}", keys, **size))))

    def rows_of(about: dict[str, Any], future: Future[Found]) -> list[dict[str, Any]]:
        found = future.result()
        return [{**about, "n_clients": 1000, "clicks": user, **spread(found[user]["test"])} for user in USERS]

    return [partial(rows_of, *pair) for pair in started]


def stated_epsilon(wanted: float, *, n_params: int = 46) -> float:
    """The epsilon per round, as the paper counts, whose 50 rounds really compose to `wanted`."""
    low, high = 1e-6, 100.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        spend = PaperNoise(middle, 3.0, 1000).spend(n_params)
        low, high = (middle, high) if composed_epsilon([spend] * ROUNDS, delta=DELTA) <= wanted else (low, middle)
    return low


def describe(
    n: int, epsilon: float, setting: Setting, user: str, ours: Found, quiet: Found, best: Found
) -> dict[str, Any]:
    a, b, c = (found[user]["test"] for found in (ours, quiet, best))
    same = {"mode": "sound", "n_clients": n, "epsilon": None if math.isinf(epsilon) else epsilon, "clicks": user}
    row = {**same, "clip_norm": setting.clip, "server_rate": setting.rate, "server_fade": setting.fades, **spread(a)}
    if math.isinf(epsilon):
        return row
    test, equal = paired_t_test(a, b), equivalence_test(a, b, margin=MARGIN)
    return {
        **row,
        "cost": round(-test.mean_difference, 4),
        "interval": [round(-bound, 4) for bound in reversed(test.interval)],
        "p_equal_within_margin": round(equal.p, 5),
        "holds": bool(equal.p < 0.05 or (test.mean_difference > 0 and test.p < 0.05)),
        "below_best_without_noise": round(fmean(c) - fmean(a), 4),
        "p_equal_to_best_within_margin": round(equivalence_test(a, c, margin=MARGIN).p, 5),
    }


def spread(values: list[float]) -> dict[str, Any]:
    return {"nDCG@10": round(fmean(values), 4), "std": round(stdev(values), 4), "n": len(values)}


if __name__ == "__main__":
    main()
