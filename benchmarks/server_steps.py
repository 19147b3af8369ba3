"""Can a federation rank as well as central training? A server step chosen on validation queries against central PDGD.

    python -m benchmarks.server_steps --data DIR/MQ2008 --out runs/server-steps

Both sides have 400,000 interactions, five folds and three users. First the server's optimiser and rate are chosen on
validation queries with five seeds (examples/server_steps.toml): strictly, per user and fold, and pooled, one for all
users and folds. Then the pooled choice and central PDGD as published (learning rate .1) are run again with other
seeds, as many as it takes to see .003 (--seeds). So that not only one side is tuned, a learning rate is chosen for
central PDGD in the same way. A claim holds when two one-sided tests find the federation equal within .003, or a paired
test finds it better. Killed, it continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from hushrank.cli.pool_display import PoolDisplay
from hushrank.files import write_json
from hushrank.metrics.significance import equivalence_test, paired_t_test
from hushrank.recipes.grid import Grid, expand, find_grid, make_grid
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.runs.pool import PoolOptions
from hushrank.runs.sweep import SweepOptions, run_sweep

MARGIN = 0.003
TEST, VALI = "offline/nDCG@10", "vali/nDCG@10"
RATES = [0.01, 0.03, 0.1, 0.3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--out", type=Path, default=Path("runs/server-steps"))
    parser.add_argument("--seeds", type=int, default=50)
    arguments = parser.parse_args()
    federated = find_grid("examples/server_steps.toml", axes={}, changes={"data": arguments.data})
    users = list(federated.recipe.users)
    same = {"data": arguments.data, "repeats": 5, "clicks": users}
    ours = sweep(federated, arguments.out / "federated")
    theirs = sweep(find_grid("pdgd", axes={"learning_rate": RATES}, changes=same), arguments.out / "central")
    default = read_metrics(arguments.out / "central", theirs, {"learning_rate": 0.1})
    best, rate = pooled_choice(ours), pooled_choice(theirs)
    fresh = {**same, "repeats": arguments.seeds, "seed": 1}
    last = {
        name: run_one(change_recipe(NAMED[kind], {**fresh, **settings}), arguments.out / name)
        for name, kind, settings in (("chosen", "fpdgd", best), ("published", "pdgd", {}), ("tuned", "pdgd", rate))
    }
    rows = []
    for user in users:
        strict = ours["selected"][user]
        rows += [
            compare(user, "chosen per fold", "central as published", strict[TEST], default[user][TEST]),
            compare(user, "chosen per fold", "central chosen per fold", strict[TEST], theirs["selected"][user][TEST]),
            compare(user, str(best), "central as published", last["chosen"][user][TEST], last["published"][user][TEST]),
            compare(user, str(best), f"central {rate}", last["chosen"][user][TEST], last["tuned"][user][TEST]),
        ]
    write_json(arguments.out / "server_steps.json", {"margin": MARGIN, "rows": rows})
    json.dump({"rows": rows}, sys.stdout, indent=2)


def sweep(grid: Grid, out: Path) -> dict[str, Any]:
    with PoolDisplay(out.name, [point.label for point in expand(grid)]) as display:
        pool = PoolOptions(run={"workers": 1, "device": "cpu"}, hear=display.hear)
        return run_sweep(grid, SweepOptions(out=out, resume=True, select="vali", pool=pool))[1]


def pooled_choice(table: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the highest validation nDCG@10 over all users and folds."""
    found: dict[str, Any] = max(table["runs"], key=lambda r: fmean(m[VALI]["mean"] for m in r["metrics"].values()))
    return dict(found["settings"])


def read_metrics(out: Path, table: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    directory = next(run["directory"] for run in table["runs"] if run["settings"] == settings)
    return dict(json.loads((out / directory / "result.json").read_text())["metrics"])


def run_one(recipe: Recipe, out: Path) -> dict[str, Any]:
    """One recipe, its users and folds in parallel processes."""
    grid = make_grid(recipe, {"clicks": list(recipe.users), "folds": [[fold] for fold in range(1, 6)]})
    if sweep(grid, out)["n_failed"]:
        raise ValueError(f"{out}: a run failed; see its table.json.")
    merged: dict[str, Any] = {user: {TEST: {"values": []}} for user in recipe.users}
    for point in expand(grid):
        metrics = json.loads((out / point.directory / "result.json").read_text())["metrics"]
        merged[str(point.settings["clicks"])][TEST]["values"] += metrics[TEST]["values"]
    return merged


def compare(
    user: str, ours_is: str, theirs_is: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> dict[str, Any]:
    pairs = [{(v["fold"], v["repeat"]): v["value"] for v in metric["values"]} for metric in (ours, theirs)]
    a, b = ([found[cell] for cell in sorted(pairs[0])] for found in pairs)
    better, equal = paired_t_test(a, b), equivalence_test(a, b, margin=MARGIN)
    is_better = better.mean_difference > 0 and better.p < 0.05
    return {
        "user": user,
        "federated": ours_is,
        "against": theirs_is,
        "ours": round(fmean(a), 4),
        "theirs": round(fmean(b), 4),
        "difference": round(better.mean_difference, 4),
        "interval": [round(bound, 4) for bound in better.interval],
        "n": better.n,
        "p_different": round(better.p, 5),
        "p_equal_within_margin": round(equal.p, 5),
        "holds": bool(is_better or equal.p < 0.05),
    }


if __name__ == "__main__":
    main()
