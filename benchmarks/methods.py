"""Methods beside each other on MQ2008: the numbers of four tables of docs/findings.md that no single run holds.

    python -m benchmarks.methods --data DIR/MQ2008 --out runs/methods [--only labels ...]

Runs are kept below --out and continued if they were interrupted; the tables land beside them as JSON: `methods`,
`method_pairs`, `labels` and `antithetic`. Copied to docs/benchmarks, they are what the page
shows. About two hours on one core; `labels` alone takes a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hushrank.cli.running import run_visibly
from hushrank.files import write_json
from hushrank.metrics.significance import paired_t_test
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reproduce.verdicts import OFFLINE, Finished
from hushrank.runs.run import RunOptions

USERS = ("perfect", "navigational", "informational")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {  # two million searches each
    "pdgd": ("pdgd", {"interactions": 4000, "rounds": 500}),
    "fpdgd": ("fpdgd", {"rounds": 500}),
    "fpdgd, server rate 30": ("fpdgd", {"rounds": 500, "server_rate": 30.0}),
    "foltr-es linear, not privatised": ("foltr-es", {"privacy": "none"}),
    "foltr-es linear, p = .9": ("foltr-es", {}),
    "foltr-es mlp 10, p = .9": ("foltr-es", {"ranker": "mlp"}),
}
PAIRS = [
    ("fpdgd", "pdgd"),
    ("fpdgd, server rate 30", "pdgd"),
    *((name, other) for name in list(METHODS)[3:] for other in ("pdgd", "fpdgd")),
]
LOOKS = (0, 1, 5, 12, 25, 50)  # rounds after which antithetic perturbations are held against one direction
Row = dict[str, Any]


class Lab:
    """Runs recipes, or continues them where they were left."""

    def __init__(self, data: str, out: Path) -> None:
        self.data, self.out = data, out

    def run(self, name: str, recipe: str, **changes: Any) -> Finished:
        place = self.out / name.replace(" ", "-").replace(",", "").replace("=", "")
        chosen = change_recipe(NAMED[recipe], {"data": self.data, "clicks": list(USERS), **changes})
        done = run_visibly(chosen, RunOptions(out=place, resume=True), quiet=False, title=name)
        print(f"{name}: {done.result['cpu_s']:.0f} CPU-seconds", file=sys.stderr)
        return Finished({"data": self.data}, place, done.result)


def methods(lab: Lab) -> dict[str, Finished]:
    return {name: lab.run(name, recipe, repeats=5, **keys) for name, (recipe, keys) in METHODS.items()}


def describe_methods(lab: Lab) -> list[Row]:
    return [
        {
            "method": name,
            "clicks": user,
            "n_interactions_per_training": run.n_interactions,
            **describe_quality(run, user),
            "offline/MaxRR": round(run.metric(user, "offline/MaxRR")["mean"], 4),
            "n": len(run.values(user)),
            "cpu_s": run.result["cpu_s"],
        }
        for name, run in methods(lab).items()
        for user in USERS
    ]


def describe_quality(run: Finished, user: str) -> Row:
    found = run.metric(user, OFFLINE)
    return {OFFLINE: round(found["mean"], 4), "std": round(found["std"], 4)}


def describe_pairs(lab: Lab) -> list[Row]:
    runs = methods(lab)
    return [
        {"method": ours, "against": theirs, "clicks": user, **compare(runs[ours], runs[theirs], user)}
        for ours, theirs in PAIRS
        for user in USERS
    ]


def compare(ours: Finished, theirs: Finished, user: str) -> Row:
    """Fold by fold and repeat by repeat."""
    a, b = (run.values(user) for run in (ours, theirs))
    test = paired_t_test([a[cell] for cell in sorted(a)], [b[cell] for cell in sorted(a)])
    return {
        "difference": round(test.mean_difference, 4),
        "interval": [round(bound, 4) for bound in test.interval],
        "p": float(f"{test.p:.2g}"),
        "n": len(a),
    }


def describe_labels(lab: Lab) -> list[Row]:
    rows = []
    for name in ("mse", "ranking-svm", "lambdamart"):
        run = lab.run(name, name)
        max_rr = {f"offline/MaxRR {user}": round(run.metric(user, "offline/MaxRR")["mean"], 4) for user in USERS}
        rows.append({"method": name, **describe_quality(run, USERS[0]), "n": len(run.values(USERS[0])), **max_rr})
    return rows


def describe_antithetic(lab: Lab) -> list[Row]:
    """MaxRR on validation queries on the way, in both directions and in one; not privatised."""
    same: dict[str, Any] = {"rounds": LOOKS[-1], "eval_every": 1, "repeats": 5, "privacy": "none"}
    both, one = (lab.run(f"antithetic {on}", "foltr-es", antithetic=on, **same) for on in (True, False))
    rows = []
    for user in USERS:
        for n in (8000 * look for look in LOOKS):
            a, b = (run.values_after(user, n, "vali/MaxRR") for run in (both, one))
            test = paired_t_test([a[cell] for cell in sorted(a)], [b[cell] for cell in sorted(a)])
            means = {name: round(sum(v.values()) / len(v), 4) for name, v in (("antithetic", a), ("one_direction", b))}
            found = {"n": len(a), "difference": round(test.mean_difference, 4), "p": float(f"{test.p:.2g}")}
            rows.append({"clicks": user, "n_interactions": n, **means, **found})
    return rows


TABLES: dict[str, tuple[Callable[[Lab], list[Row]], Row]] = {
    "methods": (describe_methods, {}),
    "method_pairs": (describe_pairs, {"metric": OFFLINE}),
    "labels": (describe_labels, {}),
    "antithetic": (describe_antithetic, {"metric": "vali/MaxRR", "ranker": "linear", "p": 1}),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like", help="synthetic set (tiny), public set (mq2008) or directory")
    parser.add_argument("--out", type=Path, default=Path("runs/methods"))
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(TABLES))
    options = parser.parse_args(arguments)
    lab = Lab(options.data, options.out)
    for name in options.only:
        describe, about = TABLES[name]
        rows = describe(lab)
        write_json(options.out / f"{name}.json", {"data": Path(options.data).name.lower(), **about, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
