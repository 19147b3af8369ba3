"""What `privacy=sound` costs personalised search: the same training without noise and with it, for three epsilons.

    python -m benchmarks.private_search --json docs/benchmarks/private_search.json

300 generated users of a seed on which none of these settings was chosen, HRNN, some four minutes on one core. Models
are measured after the last round. Why not after the best one: choosing a round by users' validation clicks would tell
about them, too. The cost is that of noise, of clipping, and of weighing all clients alike.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hushrank.files import Json, write_json
from hushrank.metrics.significance import paired_t_test
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.summary import from_directory
from hushrank.runs.personal_search import PRIMARY
from hushrank.runs.run import RunOptions, run_recipe

DATA = "commercial-like:n_users=300,seed=11"
EPSILONS = (8.0, 2.0, 0.5)
CLIP = 0.3
# For training with noise, by reasoning and by ten trainings on seed 2000. Why everybody in each step: K clients share
# its noise. Why word vectors of 8 numbers: noise grows with the parameters, of which 32 numbers make 15 times as many
TRAINING: Json = {
    "model": "hrnn",
    "word_dim": 8,
    "local_rate": 0.01,
    "cohort": 300,
    "rounds": 30,
    "eval_every": 30,
    "server_rate": 4.0,
}
ORIGINAL, NONE, SOUND = "original", "none", "sound"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--rounds", type=int, default=TRAINING["rounds"])
    chosen = parser.parse_args(arguments)
    training = {**TRAINING, "data": chosen.data, "rounds": chosen.rounds, "eval_every": chosen.rounds}
    with TemporaryDirectory() as place:
        runs = {name: run_case(Path(place), keys) for name, keys in list_cases(training).items()}
    found = {"data": chosen.data, "training": training, "clip_norm": CLIP, "rows": describe_runs(runs)}
    if chosen.json:
        write_json(chosen.json, found)
    json.dump(found, sys.stdout, indent=1)
    return 0


def list_cases(training: Json) -> dict[tuple[str, float | None], Json]:
    """{(protection, epsilon): keys}"""
    sound = {"privacy": "sound", "clip_norm": CLIP}
    return {
        (ORIGINAL, None): {"data": training["data"], "model": "original"},
        (NONE, None): training,
        **{(SOUND, epsilon): {**training, **sound, "epsilon": epsilon} for epsilon in EPSILONS},
    }


def run_case(place: Path, keys: Json) -> Json:
    """What is reported of one run, with MAP of every user."""
    out = place / str(len(list(place.iterdir())))
    run = run_recipe(change_recipe(NAMED["fedps"], keys), RunOptions(out=out))
    return {"result": run.result, "users": from_directory(out).users[PRIMARY]}


def describe_runs(runs: dict[tuple[str, float | None], Json]) -> list[dict[str, Any]]:
    """Each beside the training without noise, over the users who searched in the test period."""
    open_users = runs[NONE, None]["users"]
    rows = []
    for (protection, epsilon), run in runs.items():
        users = sorted(open_users.keys() & run["users"].keys())
        test = paired_t_test([run["users"][u] for u in users], [open_users[u] for u in users])
        row = {
            "protection": protection,
            "asked_epsilon": epsilon,
            "MAP": round(run["result"]["metrics"][PRIMARY]["mean"], 4),
            "n_users": len(users),
        }
        if protection != NONE:
            row |= {"difference_of_users": round(test.mean_difference, 4), "p": float(f"{test.p:.2g}")}
        if protection == SOUND:
            keep = ("epsilon", "delta", "noise_multiplier", "clip_norm", "rounds", "adjacency", "guarantee")
            row |= {name: run["result"]["guarantee"][name] for name in keep}
        rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
