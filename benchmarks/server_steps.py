"""Can a federation rank as well as central training? A server step chosen on validation queries against central PDGD.

    python -m benchmarks.server_steps --data DIR/MQ2008 --out runs/server-steps

Both have 400,000 interactions, five folds, five seeds, three users. The federation's server optimiser and rate are
chosen per user and fold on validation queries (examples/server_steps.toml). Central PDGD is as published (learning rate
.1), and, so that only one side is not tuned, also with a learning rate chosen in the same way. A claim holds when two
one-sided tests find the federation equal within .003, or a paired test finds it better. Killed, it continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hushrank.cli.pool_display import PoolDisplay
from hushrank.experiments.grid import Grid, expand, find_grid
from hushrank.experiments.pool import PoolOptions
from hushrank.experiments.sweep import SweepOptions, run_sweep
from hushrank.files import write_json
from hushrank.metrics.significance import equivalence_test, paired_t_test

MARGIN = 0.003
METRIC = "offline/nDCG@10"
RATES = [0.01, 0.03, 0.1, 0.3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--out", type=Path, default=Path("runs/server-steps"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    same = {"data": arguments.data, "rounds": arguments.rounds, "repeats": arguments.repeats}
    federated = find_grid("examples/server_steps.toml", axes={}, changes=same)
    users = list(federated.recipe.users)
    central = find_grid("pdgd", axes={"learning_rate": RATES}, changes={**same, "clicks": users})
    ours = sweep(federated, arguments.out / "federated")
    theirs = sweep(central, arguments.out / "central")
    published = json.loads((arguments.out / "central" / directory_of(central, 0.1) / "result.json").read_text())
    rows = []
    for user in users:
        mine = ours["selected"][user]
        rows.append(compare(user, "central PDGD as published", mine, published["metrics"][user][METRIC]))
        rows.append(compare(user, "central PDGD, rate chosen too", mine, theirs["selected"][user][METRIC]))
    write_json(arguments.out / "server_steps.json", {"margin": MARGIN, "rows": rows})
    json.dump({"rows": rows}, sys.stdout, indent=2)


def sweep(grid: Grid, out: Path) -> dict[str, Any]:
    with PoolDisplay(out.name, [point.label for point in expand(grid)]) as display:
        pool = PoolOptions(run={"workers": 1}, hear=display.hear)
        return run_sweep(grid, SweepOptions(out=out, resume=True, select="vali", pool=pool))[1]


def directory_of(grid: Grid, rate: float) -> str:
    return next(point.directory for point in expand(grid) if point.settings["learning_rate"] == rate)


def compare(user: str, with_what: str, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    pairs = [{(v["fold"], v["repeat"]): v["value"] for v in metric["values"]} for metric in (ours[METRIC], theirs)]
    a, b = ([found[cell] for cell in sorted(pairs[0])] for found in pairs)
    better, equal = paired_t_test(a, b), equivalence_test(a, b, margin=MARGIN)
    is_better = better.mean_difference > 0 and better.p < 0.05
    return {
        "user": user,
        "against": with_what,
        "federated": round(ours[METRIC]["mean"], 4),
        "federated_std": round(ours[METRIC]["std"], 4),
        "central": round(theirs["mean"], 4),
        "central_std": round(theirs["std"], 4),
        "difference": round(better.mean_difference, 4),
        "n": better.n,
        "p_better": round(better.p, 5),
        "p_equal_within_margin": round(equal.p, 5),
        "holds": is_better or equal.p < 0.05,
        "chosen": [fold["label"] for fold in ours["folds"]],
    }


if __name__ == "__main__":
    main()
