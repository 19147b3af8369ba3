"""Does correlated noise serve clients that rest? User-level differential privacy on MQ2008, five folds, three users.

    python -m benchmarks.resting --data DIR/MQ2008 --out runs/resting [--gpu]

1,000 and 10,000 clients, a tenth of them in each of 200 rounds, so that a client answers 20 times. Four ways to keep
epsilon 1 and .25 of the whole training, delta 1e-5, zero-out: clients take turns and the noise is independent, or
correlated; each client is drawn independently with probability .1, which makes epsilon smaller only against those who
do not know who was drawn; and no noise. The server rate is chosen on validation queries for each way and epsilon at
1,000 clients. Test queries are looked at once, with other seeds. The cost is that of the noise: against the same
training without it. Killed, it continues. --gpu: on a GPU; --choose: stop when settings are chosen.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.private_training import CHOOSING, REPORTING, SEARCHES, USERS, Lab, Setting, Task, describe
from hushrank.files import write_json

ROUNDS, SHARE, DELTA = 200, 10, 1e-5
SEEDS = {1000: 3, 10_000: 3}
# {way: {epsilon: noise multiplier}}, by `hushrank privacy epsilon`: 20 answers in full, or 200 sampled at .1
IN_TURN, DRAWN = {1.0: 16.687, 0.25: 59.432}, {1.0: 5.4281, 0.25: 18.907}
WAYS: dict[str, tuple[dict[str, Any], dict[float, float]]] = {
    "independent": ({"sampling": "rotation"}, IN_TURN),
    "correlated": ({"sampling": "rotation", "mechanism": "correlated"}, IN_TURN),
    "sampled": ({"sampling": "poisson"}, DRAWN),
}
SETTINGS = [Setting(0.1, rate) for rate in (1.0, 3.0, 10.0, 30.0)]


def make_task(lab: Lab, way: str, epsilon: float, setting: Setting, *, n_clients: int, repeats: int, seed: int) -> Task:
    keys, noise = WAYS[way]
    if math.isinf(epsilon):  # Why: without noise there is nothing to correlate
        keys = {key: value for key, value in keys.items() if key != "mechanism"}
    common = {"privacy": "sound", "interactions": SEARCHES, "rounds": ROUNDS, "eval_every": ROUNDS}
    own = {"cohort": n_clients // SHARE, "clip_norm": setting.clip, "server_rate": setting.rate}
    kind = "turns" if math.isinf(epsilon) and way != "sampled" else way
    name = f"{kind}-{epsilon:g}-{setting.clip:g}-{setting.rate:g}"
    all_keys = {**common, **own, **keys, "noise_multiplier": noise.get(epsilon, 0.0)}
    return lab.task(name, all_keys, n_clients=n_clients, repeats=repeats, seed=seed)


def choose(lab: Lab, way: str, epsilon: float) -> Setting:
    """The setting with the highest validation nDCG@10 over users and folds, at 1,000 clients."""
    scores = {}
    for setting in SETTINGS:
        found = lab.run(make_task(lab, way, epsilon, setting, n_clients=1000, repeats=2, seed=CHOOSING))
        scores[setting] = fmean(fmean(values["vali"]) for values in found.values())
    return max(scores, key=lambda setting: scores[setting])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--out", type=Path, default=Path("runs/resting"))
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SEEDS), help="numbers of clients to report")
    arguments = parser.parse_args()
    lab = Lab(arguments.data, arguments.out, gpu=arguments.gpu, jobs=1)
    cases = [(way, epsilon) for way, (_, noise) in WAYS.items() for epsilon in noise]
    chosen = {case: choose(lab, *case) for case in cases}
    if arguments.choose:
        return
    rows: list[dict[str, Any]] = []
    for n in arguments.sizes:
        for way, epsilon in cases:
            setting = chosen[way, epsilon]
            tasks = [
                make_task(lab, way, each, setting, n_clients=n, repeats=SEEDS[n], seed=REPORTING)
                for each in (epsilon, math.inf)
            ]
            noisy, quiet = (lab.run(task) for task in tasks)
            rows += [{"way": way, **describe(n, epsilon, setting, user, noisy, quiet, quiet)} for user in USERS]
            about = {"delta": DELTA, "rounds": ROUNDS, "searches": SEARCHES, "answers": ROUNDS // SHARE}
            write_json(arguments.out / "resting.json", {**about, "rows": rows})
    json.dump({"rows": rows}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
