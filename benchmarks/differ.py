"""Clients that differ, and what helps them: remedies beside federated averaging, local training and a ceiling.

    python -m benchmarks.differ --out DIR [--study four|many|private|network] [--seeds 11,12,13] [--data SHAPE] [--gpu]

Every client searches by an intent of its own. Compared is `personal/nDCG@10`: each client's ranker on its own test
labels, the mean over clients. The ceiling is one federation for each intent, whose clients are known, each searching as
often. One generated data set for each seed; folds and users as in the study. Prints JSON: mean and standard error over
data sets, the share of the gap between averaging and the ceiling that a remedy closes, and p of a paired test against
averaging and local training. --control: the same with clients that do not differ. Killed, it continues.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, ClassVar

import numpy as np

import hushrank
from hushrank.files import write_json
from hushrank.keys import above_zero, at_least, key
from hushrank.metrics.significance import paired_t_test
from hushrank.remedies.named import register_remedy
from hushrank.remedies.remedy import Begun, MeanMessage, Remedy, Turn
from hushrank.types import Array, NamedArrays

USERS = ("perfect", "navigational", "informational")
METRIC = "personal/nDCG@10"


@dataclass(frozen=True)
class KnownGroups(Remedy):
    """The ceiling: federated averaging within each of some groups of the same size, which everybody knows; client c is
    in group c modulo their number. The shared ranker stays as it was."""

    has_memory: ClassVar[bool] = True

    n_groups: int = key(4, "known-groups: how many there are", check=at_least(1))
    group_rate: float = key(1.0, "known-groups: of a group's steps, as server_rate is of everybody's", check=above_zero)

    def n_extra(self, n_params: int) -> int:
        return self.n_groups * n_params

    def first_shared(self, n_params: int) -> dict[str, Array]:
        return {"beyond": np.zeros((self.n_groups, n_params), np.float32)}

    def begin(self, turn: Turn) -> Begun:
        return Begun(turn.params + turn.shared["beyond"][turn.ids.astype(np.int32) % self.n_groups])

    def finish(self, turn: Turn, moved: Any) -> tuple[Any, dict[str, Any]]:
        xp, group = turn.xp, turn.ids.astype(np.int32) % self.n_groups
        is_mine = (group[:, None] == xp.arange(self.n_groups)).astype(np.float32)
        extra = (is_mine[:, :, None] * moved[:, None, :]).reshape(len(moved), -1)
        return xp.concatenate([0 * moved, extra], axis=1), {}

    def absorb(self, shared: NamedArrays, mean: MeanMessage) -> dict[str, Any]:
        told = mean.numbers[shared["beyond"].shape[1] :].reshape(self.n_groups, -1)
        return {"beyond": shared["beyond"] + np.float32(self.group_rate * self.n_groups) * told}


STUDIES: dict[str, dict[str, Any]] = {
    "four": {"n_clients": 4, "interactions": 5, "rounds": 10_000, "folds": [1, 2]},
    "many": {"n_clients": 1000, "interactions": 4, "rounds": 1000, "folds": [1], "n_intents": 20},
    # epsilon 4 of the whole training, delta 1e-5, by `hushrank privacy epsilon --mechanism gaussian --scheme everybody`
    "private": {
        "n_clients": 1000,
        "interactions": 4,
        "rounds": 500,
        "folds": [1],
        "privacy": "sound",
        "clip_norm": 0.1,
        "noise_multiplier": 24.177,
    },
    "network": {"n_clients": 4, "interactions": 5, "rounds": 5000, "folds": [1], "ranker": "mlp"},
}
# Chosen on validation queries of the data sets 1 and 2, which no result is from: 1, 3 or 10.
PRIVATE_RATES = {"ceiling": {"server_rate": 3.0, "group_rate": 3.0}, "local": {}}
REMEDIES: dict[str, dict[str, Any]] = {
    "averaging": {},
    "local": {"remedy": "interpolation", "own_share": 1.0},
    "ceiling": {"remedy": "known-groups"},
    "interpolation": {"remedy": "interpolation"},
    "control-variates": {"remedy": "control-variates"},
    "tastes": {"remedy": "tastes"},
    "fedper": {"remedy": "fedper"},
}


def run_one(directory: Path, name: str, data: str, keys: dict[str, Any], *, gpu: bool) -> dict[str, list[float]]:
    """{user: values over folds}, from the directory if it is there."""
    place = directory / f"{name}.json"
    if not place.exists():
        where: dict[str, Any] = {"device": "gpu"} if gpu else {}
        run = hushrank.run("fpdgd", data=data, clicks=list(USERS), out=directory / name, resume=True, **where, **keys)
        table = run.metrics
        rows = zip(table["metric"], table["click"], table["value"], strict=True)
        found: dict[str, list[float]] = {}
        for metric, user, value in rows:
            for wanted in (METRIC, f"vali/{METRIC}", "online/nDCG@10"):
                if metric == wanted:
                    found.setdefault(f"{user} {wanted}", []).append(float(value))
        write_json(place, found)
    return json.loads(place.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="four", choices=STUDIES)
    parser.add_argument("--seeds", default="11,12,13,14,15", help="of the generated data sets")
    parser.add_argument("--data", default="intent-change-like", help="shape of the data sets")
    parser.add_argument("--carry", default="0.5", help="one or more, separated by commas")
    parser.add_argument("--remedies", help="default: all that the study's ranker can have")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON", help="of every recipe")
    parser.add_argument("--tastes", action="append", default=[], metavar="KEY=JSON", help="of the remedy tastes")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    chosen = parser.parse_args()
    register_remedy("known-groups", KnownGroups)
    keys = dict(STUDIES[chosen.study]) | _pairs(chosen.set)
    n_intents = keys.pop("n_intents", 4)
    remedies = chosen.remedies.split(",") if chosen.remedies else [r for r in REMEDIES if _is_able(r, keys)]
    answer = {}
    for carry in chosen.carry.split(","):
        values: dict[str, dict[str, list[float]]] = {}
        for seed in chosen.seeds.split(","):
            more = f"seed={seed}" + (f",n_intents={n_intents}" if n_intents != 4 else "")
            data = chosen.data + ("," if ":" in chosen.data else ":") + more
            for remedy in remedies:
                own = {**REMEDIES[remedy], **({"n_groups": n_intents} if remedy == "ceiling" else {})}
                own |= _pairs(chosen.tastes) if remedy == "tastes" else {}
                own |= PRIVATE_RATES.get(remedy, {"server_rate": 10.0}) if "privacy" in keys else {}
                own |= {"control": True} if chosen.control else {}
                name = f"{chosen.study}-{carry}-{seed}-{remedy}"
                all_keys = {**keys, "partition": "intents", "carry": float(carry), "eval_every": keys["rounds"], **own}
                found = run_one(chosen.out, name, data, all_keys, gpu=chosen.gpu)
                for user, each in found.items():
                    values.setdefault(user, {}).setdefault(remedy, []).append(fmean(each))
        answer[carry] = {user: summarise(by_remedy) for user, by_remedy in values.items()}
        print(json.dumps({"carry": carry, **answer[carry]}), flush=True)
    write_json(chosen.out / f"{chosen.study}.json", {"keys": {**keys, "data": chosen.data}, "carry": answer})


def _is_able(remedy: str, keys: dict[str, Any]) -> bool:
    return remedy != "fedper" or keys.get("ranker") == "mlp"


def _pairs(texts: list[str]) -> dict[str, Any]:
    return {name: json.loads(value) for name, _, value in (text.partition("=") for text in texts)}


def summarise(values: dict[str, list[float]]) -> dict[str, Any]:
    """Mean, standard error, gap closed and p of each remedy, over data sets."""
    base, top = values.get("averaging"), values.get("ceiling")
    found = {}
    for remedy, each in values.items():
        n = len(each)
        found[remedy] = {"mean": round(fmean(each), 4), "se": round(stdev(each) / math.sqrt(n), 4) if n > 1 else None}
        if base and top and fmean(top) != fmean(base):
            found[remedy]["closed"] = round((fmean(each) - fmean(base)) / (fmean(top) - fmean(base)), 2)
        for other in ("averaging", "local"):
            if n > 1 and other in values and other != remedy:
                found[remedy][f"p against {other}"] = float(f"{paired_t_test(each, values[other]).p:.2g}")
    return found


if __name__ == "__main__":
    main()
