"""Does a step of the server's own help? Train with and without it, test the difference, write one report.

python examples/server_steps.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from pathlib import Path

from hushrank.metrics.significance import paired_t_test
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.page import write_report
from hushrank.reports.summary import from_directory
from hushrank.runs.run import Run, RunOptions, run_recipe

SAME = {"data": "tiny", "n_clients": 20, "interactions": 2, "rounds": 20, "repeats": 2, "seed": 7}
STEPS = {
    "fedavg": {"server_optimiser": "sgd"},
    "momentum": {"server_optimiser": "momentum"},
}


def main(directory: Path) -> None:
    runs = {name: train(directory / name, step) for name, step in STEPS.items()}
    for name, run in runs.items():
        metric = run.result["metrics"]["offline/nDCG@10"]
        print(f"{name:<9} nDCG@10 {metric['mean']:.3f} ± {metric['std']:.3f}")
    test = paired_t_test(read_values(runs["momentum"]), read_values(runs["fedavg"]))
    print(f"momentum minus fedavg {test.mean_difference:+.3f}, p = {test.p:.2g} over {test.n} pairs")
    write_report([from_directory(run.directory) for run in runs.values()], directory / "report.html")
    print(directory / "report.html")


def train(directory: Path, step: dict[str, str]) -> Run:
    """Begin, or continue what an earlier call began."""
    return run_recipe(change_recipe(NAMED["fpdgd"], SAME | step), RunOptions(out=directory, resume=True))


def read_values(run: Run) -> list[float]:
    """Fold by fold and repeat by repeat, in the same order for every run."""
    return [row["value"] for row in run.result["metrics"]["offline/nDCG@10"]["values"]]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/server-steps"))
