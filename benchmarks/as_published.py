"""What the published code's variants do on MQ2008: FOLtR-ES with its seeds, FPDGD with its bound on the weights.

    python -m benchmarks.as_published --data DIR/MQ2008 --out runs/as-published [--only foltr-es ...]

FOLtR-ES, p = 1 as in the notebook behind the printed MQ2008 rows, is trained in both variants: two million searches,
five folds, three seeds (one for the two-layer ranker). FPDGD is trained with the bound Delta at the four published
budgets, and at epsilon 4.5 with other numbers of clients and searches; what it does with Delta/2 is known from
`hushrank reproduce fpdgd.table2` and its figures. Runs are kept below --out and continued if they were interrupted;
as_published.json lands beside them, in which a part that was not asked for stays as it was. Copied to docs/benchmarks,
it is what docs/findings.md shows. About an hour on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.methods import USERS, Lab, Row
from hushrank.files import read_json, write_json
from hushrank.privacy.named import PAPER_SETTINGS
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.verdicts import OFFLINE, ONLINE, Finished

VARIANTS = ("published-code", "paper")
REPEATS = {"linear": 3, "mlp": 1}
ROUNDS = {"foltr-es": 250, "fpdgd": 1000}  # of the papers
TRAIN, TEST = "train/MaxRR", "offline/MaxRR"
EARLY = 0.2  # share of the searches after which the curve is read, too [fpdgd, Figure 2]
EPSILON = 4.5  # of [fpdgd, Figures 4 to 6]
SIZES = [  # clients, searches, rounds
    *((10, 4, 1000), (100, 4, 1000), (1000, 2, 1000), (1000, 8, 1000)),
    *((1000, 4, 500), (1000, 8, 250)),
]


def describe_evolution(lab: Lab, ranker: str) -> list[Row]:
    size = {"rounds": ROUNDS["foltr-es"], "repeats": REPEATS[ranker], "eval_every": 10}
    same: dict[str, Any] = {"ranker": ranker, "privacy": "none", **size}
    runs = {name: lab.run(f"foltr-es {ranker} {name}", "foltr-es", variant=name, **same) for name in VARIANTS}
    return [
        {
            **{"ranker": ranker, "variant": name, "clicks": user, "n": len(run.values(user))},
            **{metric: describe(run, user, metric) for metric in (TRAIN, TEST, OFFLINE)},
            "early": {metric: mean_early(run, user, metric) for metric in (TEST, OFFLINE)},
            "printed": {"train": find_printed(ranker, user, "train"), "test": find_printed(ranker, user, "test")},
        }
        for name, run in runs.items()
        for user in USERS
    ]


def describe(run: Finished, user: str, metric: str) -> Row:
    found = run.metric(user, metric)
    return {"mean": round(found["mean"], 4), "std": round(found["std"], 4)}


def mean_early(run: Finished, user: str, metric: str) -> float:
    found = run.values_after(user, int(EARLY * run.n_interactions), metric)
    return round(sum(found.values()) / len(found), 4)


def find_printed(ranker: str, user: str, split: str) -> float:
    wanted = {"data": "mq2008", "method": "foltr-es", "ranker": ranker, "clicks": user, "split": split}
    return next(row.published for row in find_result("foltr-es.table3").rows if wanted.items() <= row.cell.items())


def describe_budgets(lab: Lab) -> list[Row]:
    """[fpdgd, Table 2 and Figures 2 and 3]"""
    return [row for s in PAPER_SETTINGS.values() for row in describe_noise(lab, s.epsilon, rounds=ROUNDS["fpdgd"])]


def describe_sizes(lab: Lab) -> list[Row]:
    """[fpdgd, Figures 4 to 6]"""
    return [
        row
        for n_clients, interactions, rounds in SIZES
        for row in describe_noise(lab, EPSILON, n_clients=n_clients, interactions=interactions, rounds=rounds)
    ]


def describe_noise(lab: Lab, epsilon: float, *, n_clients: int = 1000, interactions: int = 4, rounds: int) -> list[Row]:
    size = {"n_clients": n_clients, "interactions": interactions, "rounds": rounds}
    name = f"fpdgd {epsilon:g} {n_clients} {interactions} {rounds}"
    run = lab.run(name, "fpdgd", privacy="paper", epsilon=epsilon, variant="published-code", **size)
    about = {"epsilon": epsilon, **size}
    metrics = (ONLINE, OFFLINE, TEST)
    return [
        {**about, "clicks": user, "n": len(run.values(user)), **{m: describe(run, user, m) for m in metrics}}
        for user in USERS
    ]


PARTS: dict[str, Callable[[Lab], list[Row]]] = {
    "foltr-es": lambda lab: describe_evolution(lab, "linear"),
    "foltr-es two-layer": lambda lab: describe_evolution(lab, "mlp"),
    "fpdgd": describe_budgets,
    "fpdgd sizes": describe_sizes,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like", help="synthetic set (tiny), public set (mq2008) or directory")
    parser.add_argument("--out", type=Path, default=Path("runs/as-published"))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args(arguments)
    lab, path = Lab(options.data, options.out), options.out / "as_published.json"
    found = read_json(path) if path.exists() else {}
    for name in options.only:
        parts = {**found.get("parts", {}), name: PARTS[name](lab)}
        found = {
            "data": Path(options.data).name.lower(),
            "parts": {part: parts[part] for part in PARTS if part in parts},
        }
        write_json(path, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
