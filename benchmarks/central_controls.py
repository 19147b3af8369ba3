"""What people saw while central PDGD learnt, and its MaxRR: of the trials of `fpdgd.figure2`, which tells of neither.

    hushrank reproduce fpdgd.figure2 --data DIR/MQ2008 --out RUNS
    python -m benchmarks.central_controls --data DIR/MQ2008 --runs RUNS > docs/benchmarks/central_controls.json

Nothing is trained: the first command has done that.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hushrank.reproduce.reproduce import ReproduceOptions, prepare

RESULT = "fpdgd.figure2"
ONLINE, OFFLINE, MAX_RR = "online/nDCG@10", "offline/nDCG@10", "offline/MaxRR"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/reproduce"))
    chosen = parser.parse_args(arguments)
    prepared = prepare(RESULT, ReproduceOptions(out=chosen.runs, data=chosen.data))
    trials = [
        (trial, job) for trial, job in zip(prepared.trials, prepared.jobs, strict=True) if "control" in trial.cell
    ]
    for _, job in trials:
        if not job.is_finished:
            raise SystemExit(f"{job.directory} has not finished: run hushrank reproduce {RESULT} first.")
    rows = [
        describe(trial.cell["control"], user, metrics)
        for trial, job in trials
        for user, metrics in json.loads((job.directory / "result.json").read_text())["metrics"].items()
    ]
    json.dump({"data": prepared.data[0].label, "trials_of": RESULT, "rows": rows}, sys.stdout, indent=1)
    print()
    return 0


def describe(control: str, user: str, metrics: dict[str, Any]) -> dict[str, Any]:
    """`std` is that of what people saw."""
    return {
        "control": control,
        "clicks": user,
        ONLINE: round(metrics[ONLINE]["mean"], 4),
        "std": round(metrics[ONLINE]["std"], 4),
        OFFLINE: round(metrics[OFFLINE]["mean"], 4),
        MAX_RR: round(metrics[MAX_RR]["mean"], 4),
        "n": len(metrics[ONLINE]["values"]),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
