"""Quality on MQ2008: FPDGD and central PDGD at 400,000 interactions, five folds, five seeds, three users.

    python -m benchmarks.quality --data DIR/MQ2008 --out runs/quality

Prints offline nDCG@10 on test (mean and spread over folds x seeds) beside the published values, and writes JSON. The
settings are the papers'; nothing is tuned here. Killed, it continues where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hushrank.cli.running import run_visibly
from hushrank.files import write_json
from hushrank.metrics.significance import equivalence_test
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.page import write_report
from hushrank.reports.summary import from_directory
from hushrank.runs.run import RunOptions

USERS = ("perfect", "navigational", "informational")
PUBLISHED = {"perfect": 0.701, "navigational": 0.696, "informational": 0.693}  # central PDGD in batches of 200, MQ2008


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/MQ2008")
    parser.add_argument("--out", type=Path, default=Path("runs/quality"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    same = {"data": arguments.data, "clicks": list(USERS), "rounds": arguments.rounds, "repeats": arguments.repeats}
    rows = {}
    for name in ("fpdgd", "pdgd"):
        options = RunOptions(out=arguments.out / name, resume=True, command="python -m benchmarks.quality")
        rows[name] = run_visibly(change_recipe(NAMED[name], same), options, quiet=False, title=name).result
    write_report([from_directory(arguments.out / name) for name in ("pdgd", "fpdgd")], arguments.out / "report.html")
    found = {"rows": [describe(name, user, result) for name, result in rows.items() for user in USERS]}
    write_json(arguments.out / "quality.json", found)
    json.dump(found, sys.stdout, indent=2)


def describe(name: str, user: str, result: dict) -> dict:  # type: ignore[type-arg] # Why: JSON
    metric = result["metrics"][user]["offline/nDCG@10"]
    values = [row["value"] for row in metric["values"]]
    near = equivalence_test(values, [PUBLISHED[user]] * len(values), margin=0.02)
    return {
        "recipe": name,
        "user": user,
        "ours": round(metric["mean"], 4),
        "std": round(metric["std"], 4),
        "n": len(values),
        "published": PUBLISHED[user],
        "within .02 of published, p": round(near.p, 4),
        "n_interactions": result["n_interactions"],
        "cpu_s": result["cpu_s"],
        "interactions_per_cpu_second": round(result["n_interactions"] / result["cpu_s"]),
    }


if __name__ == "__main__":
    main()
