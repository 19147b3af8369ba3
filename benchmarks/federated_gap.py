"""Why federated training ends below training in one place: HTPS with other steps, and lists of 5 and 50 documents.

    python -m benchmarks.federated_gap htps --out runs/gap --json docs/benchmarks/fedps_htps.json --device gpu
    python -m benchmarks.federated_gap lists --out runs/gap --json docs/benchmarks/fedps_lists.json --device cpu

All of it on generated users that no table reports (`SEEDS`). `htps`: lists of one length; federated training as in
Table 3 of [fedps], and with one thing changed at a time. The setting with the highest MAP on validation searches is
chosen. `lists`: lists of 5 documents in training and validation, of 50 in the test; MAP of the test at the round that
validation chooses, and at the round that is best in the test itself, which nobody could choose without looking. The
same with lists of 20 in training and validation, so that how long they are is all that changes. Trainings that `--out`
holds are read from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from hushrank.files import Json, write_json
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.summary import from_directory
from hushrank.reproduce.papers.fedps import CENTRAL_ROUNDS, EQUAL_LISTS, N_LOOKS, N_USERS, QUICK, QUICK_USERS, ROUNDS
from hushrank.reproduce.papers.fedps_reading import CLOSE, best_rounds
from hushrank.reproduce.verdicts import Finished
from hushrank.runs.personal_search import BEST, CHOSEN_BY, PRIMARY
from hushrank.runs.pool import Job, PoolOptions, run_jobs

SEEDS = (2000, 2001)  # Why: Table 3 has 11 to 13, `late_clients` 14 to 34
LOG = "aol"
ROUNDS_OF_HTPS = 2 * ROUNDS[LOG]
USUAL = "as other models, twice the rounds"
# {setting: keys}. Each says one possible reason: Adam begins anew at every visit, so that every number moves by about
# its rate, whatever the gradient's length. Where clients disagree, their mean is then a small step (a longer one, or
# Adam on the server, would help) that is mostly noise (a mean of more clients, or ever smaller steps, would help)
SETTINGS: Mapping[str, Json] = {
    USUAL: {},
    "steps of the server twice as long": {"server_rate": 2.0},
    "twice as long, falling to zero": {"server_rate": 2.0, "server_fade": True},
    "30 clients in a step, three times as long": {"cohort": 30, "server_rate": 3.0},
    "Adam on the server": {"server_optimiser": "adam", "server_rate": 0.001},
}
# (model, documents of a list in training and validation); 50 in the test. Why 20 with one model: the cheapest one
CASES_OF_LISTS = (("hrnn", 5), ("peps", 5), ("hrnn", 20))
_CENTRAL = "central"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("htps", "lists"))
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--choice", type=Path, help="htps: where the chosen keys go, as options of `reproduce`")
    parser.add_argument("--out", type=Path, required=True, help="where trainings are kept and continued")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, help="trainings at once; default one per processor")
    parser.add_argument("--quick", action="store_true", help="a few users for two rounds: shows that it works")
    chosen = parser.parse_args(arguments)
    cells = list_htps() if chosen.part == "htps" else list_lists()
    jobs = {(name, seed): make_job(keys, seed, chosen) for (name, seed), keys in cells.items()}
    errors = run_jobs(list(jobs.values()), PoolOptions(n_processes=chosen.jobs, run={"device": chosen.device}))
    if failed := [error for error in errors if error]:
        print(failed[0], file=sys.stderr)
        return 1
    found = {place: read_training(job) for place, job in jobs.items()}
    described = describe_htps(found) if chosen.part == "htps" else describe_lists(found)
    if chosen.json:
        write_json(chosen.json, described)
    if chosen.choice and chosen.part == "htps":
        options = [f"--set {key}={str(value).lower()}" for key, value in described["chosen_keys"].items()]
        chosen.choice.write_text(" ".join(options) + "\n", encoding="utf-8")
    json.dump(described, sys.stdout, indent=1)
    return 0


# What runs
def list_htps() -> dict[tuple[str, int], Json]:
    """{(setting, seed): keys}"""
    federated: Json = {"rounds": ROUNDS_OF_HTPS, "eval_every": ROUNDS_OF_HTPS // N_LOOKS}
    central: Json = {"topology": "central", "rounds": CENTRAL_ROUNDS, "eval_every": 1}
    every = {_CENTRAL: central, **{name: {**federated, **keys} for name, keys in SETTINGS.items()}}
    return {
        (name, seed): {"model": "htps", "lists": EQUAL_LISTS, **keys} for seed in SEEDS for name, keys in every.items()
    }


def list_lists() -> dict[tuple[str, int], Json]:
    """{(model, length and topology; seed): keys}; a look after every second round of clients, as in Table 3."""
    federated: Json = {"rounds": ROUNDS[LOG], "eval_every": ROUNDS[LOG] // N_LOOKS}
    central: Json = {"topology": "central", "rounds": CENTRAL_ROUNDS, "eval_every": 1}
    return {
        (name_case(model, length, topology), seed): {"model": model, "lists": f"n_short={length},", **keys}
        for model, length in CASES_OF_LISTS
        for topology, keys in ((_CENTRAL, central), ("flat", federated))
        for seed in SEEDS
    }


def name_case(model: str, length: int, topology: str) -> str:
    return f"{model} {length} {topology}"


def make_job(keys: Json, seed: int, chosen: argparse.Namespace) -> Job:
    own = {key: value for key, value in keys.items() if key != "lists"}
    size = {**own, **QUICK} if chosen.quick else own
    data = f"{LOG}-like:n_users={QUICK_USERS if chosen.quick else N_USERS},{keys['lists']}seed={seed}"
    words = [f"{key}-{value}" for key, value in keys.items()]
    name = "-".join([chosen.part, *words, str(seed), *(["quick"] if chosen.quick else [])]).replace(",", "")
    return Job(change_recipe(NAMED["fedps"], {**size, "data": data}), chosen.out / name)


# What they found
def read_training(job: Job) -> Json:
    """Curves over rounds, and the MAP of every user at the round that validation chooses."""
    trial = Finished({}, job.directory, json.loads((job.directory / "result.json").read_text(encoding="utf-8")))
    user = trial.users[0]
    ((place, best),) = best_rounds(trial, user).items()
    curves = {name: dict(trial.curve(user, name, along="round")[place]) for name in (CHOSEN_BY, PRIMARY)}
    users = from_directory(job.directory).users[f"{BEST}{PRIMARY}"]
    return {"best": best, "rounds": trial.result["recipe"]["rounds"], "users": users, **curves}


def describe_htps(found: Mapping[tuple[str, int], Json]) -> Json:
    """Every setting beside training in one place, and the one that validation searches choose."""
    rows = [describe_setting(name, found) for name in SETTINGS]
    best = max(rows, key=lambda row: row["validation"])
    return {
        "data": f"{LOG}-like, lists of 10",
        "n_users": N_USERS,
        "seeds": list(SEEDS),
        "central": {
            "validation": mean_at_best(found, _CENTRAL, CHOSEN_BY),
            "test": mean_at_best(found, _CENTRAL, PRIMARY),
            "best_rounds": [found[_CENTRAL, seed]["best"] for seed in SEEDS],
            "rounds": CENTRAL_ROUNDS,
        },
        "margin": round(CLOSE * fmean(v for seed in SEEDS for v in found[_CENTRAL, seed]["users"].values()), 4),
        "rows": rows,
        "chosen": best["setting"],
        "chosen_keys": dict(SETTINGS[best["setting"]]),
    }


def describe_setting(name: str, found: Mapping[tuple[str, int], Json]) -> Json:
    each = {seed: subtract_users(found[name, seed]["users"], found[_CENTRAL, seed]["users"]) for seed in SEEDS}
    every = [difference for one in each.values() for difference in one]
    return {
        "setting": name,
        "keys": dict(SETTINGS[name]),
        "validation": mean_at_best(found, name, CHOSEN_BY),
        "test": mean_at_best(found, name, PRIMARY),
        "best_rounds": [found[name, seed]["best"] for seed in SEEDS],
        "rounds": found[name, SEEDS[0]]["rounds"],
        "n_users": len(every),
        "difference": round(fmean(every), 4),
        "standard_error": round(stdev(every) / len(every) ** 0.5, 4),
        "by_population": {str(seed): round(fmean(one), 4) for seed, one in each.items()},
        "curves": {str(seed): {n: rounded(found[name, seed][n]) for n in (CHOSEN_BY, PRIMARY)} for seed in SEEDS},
    }


def describe_lists(found: Mapping[tuple[str, int], Json]) -> Json:
    """Federated training less training in one place, by the searches that choose the round; means over searches."""
    rows = []
    for model, length in CASES_OF_LISTS:
        sides = {name: [found[name_case(model, length, name), seed] for seed in SEEDS] for name in (_CENTRAL, "flat")}
        rows.append(
            {"model": model, "trained_on": length, **{name: describe_side(each) for name, each in sides.items()}}
        )
    return {"data": f"{LOG}-like", "n_users": N_USERS, "seeds": list(SEEDS), "rows": rows}


def describe_side(each: Sequence[Json]) -> Json:
    """MAP of the test, by the searches that choose the round."""
    best = [max(one[PRIMARY].values()) for one in each]
    firsts = [min(n for n, v in one[PRIMARY].items() if v == top) for one, top in zip(each, best, strict=True)]
    by_short = [one[PRIMARY][one["best"]] for one in each]
    return {
        "chosen_by_short": round(fmean(by_short), 4),
        "chosen_by_50": round(fmean(best), 4),
        "rounds_by_short": [one["best"] for one in each],
        "rounds_by_50": firsts,
        "by_population": [[round(v, 4) for v in values] for values in (by_short, best)],
        "curves": [{name: rounded(one[name]) for name in (CHOSEN_BY, PRIMARY)} for one in each],
    }


def mean_at_best(found: Mapping[tuple[str, int], Json], name: str, metric: str) -> float:
    """Over populations, at the round that validation searches choose."""
    return round(fmean(found[name, seed][metric][found[name, seed]["best"]] for seed in SEEDS), 4)


def subtract_users(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Sequence[float]:
    return [ours[user] - theirs[user] for user in sorted(ours.keys() & theirs.keys())]


def rounded(curve: Mapping[int, float]) -> dict[str, float]:
    return {str(round_): round(value, 4) for round_, value in curve.items()}


if __name__ == "__main__":
    sys.exit(main())
