"""How far one liar of ten lifts chosen documents for chosen queries, under every rule.

    python -m benchmarks.promote --data DIR/MQ2008 --json docs/benchmarks/promote.json [--malicious 1]

Attack `promote`: ten clients, five searches each in 1,000 rounds, five folds, three users. Measured on the last ranker:
the mean rank of the promoted documents among those of their queries, the part of them among the first ten, the same of
irrelevant documents of other queries, and nDCG@10 on test queries. `nobody` is the mean with nobody malicious, measured
on the same documents.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean

from hushrank.aggregation.named import aggregation_names
from hushrank.aggregation.tolerance import NotDefinedError
from hushrank.engine.simulate import Options, simulate
from hushrank.files import Json, write_json
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve

USERS = ("perfect", "navigational", "informational")
PREFIX = "promote/"
NOBODY = "nobody"  # lies


def measure(data: str, rule: str, n_malicious: int, changes: Json) -> Json:
    """{user: {measure: mean over the folds}}"""
    size = {"data": data, "n_clients": 10, "interactions": 5, "rounds": 1000, "clicks": list(USERS), **changes}
    attack = {"attack": "promote", "n_malicious": n_malicious, "aggregation": rule}
    recipe = change_recipe(NAMED["fpdgd"], {**size, **attack})
    results, _ = simulate(resolve(change_recipe(recipe, {"eval_every": recipe.rounds})), Options(workers=2))
    names = [name for name in results[0].looks if name.startswith(PREFIX) or name == "offline/nDCG@10"]
    return {
        user: {name: fmean(float(r.looks[name][-1]) for r in results if r.user == user) for name in names}
        for user in USERS
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--malicious", type=int, default=1, help="of ten")
    parser.add_argument("--rounds", type=int, default=1000)
    chosen = parser.parse_args()
    changes: Json = {"rounds": chosen.rounds}
    done: Json = {"data": Path(chosen.data).name.lower(), "n_malicious": chosen.malicious, **changes, "rules": {}}
    for rule in (NOBODY, *aggregation_names()):
        used, lying = ("mean", 0) if rule == NOBODY else (rule, chosen.malicious)
        try:
            done["rules"][rule] = measure(chosen.data, used, lying, changes)
        except NotDefinedError as refusal:
            done["rules"][rule] = {"not defined": str(refusal)}
        print(rule, done["rules"][rule], file=sys.stderr)
        write_json(chosen.json, done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
