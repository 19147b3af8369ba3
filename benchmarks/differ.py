"""Clients that differ, and what helps them: remedies beside federated averaging, local training and a ceiling.

    python -m benchmarks.differ --out DIR [--study four|many|private|network] [--seeds 11,12,13] [--data SHAPE] [--gpu]
    python -m benchmarks.differ --study network --out DIR --json docs/benchmarks/differ.json
    python -m benchmarks.differ --study opening --seeds 11 --out DIR --json docs/benchmarks/differ_opening.json

Every client searches by an intent of its own. Compared is `personal/nDCG@10`: each client's ranker on its own test
labels, the mean over clients. The ceiling is one federation for each intent, whose clients are known, each searching as
often. One generated data set for each seed; folds and users as in the study. Prints the means as JSON. --json adds what
each data set gave to a file, from which docs/measured_differ.py makes tables and tests: a row for each setting, user
and metric. --control: the same with clients that do not differ. Killed, it continues. The study `opening` has one
training of tastes with informational users, look by look.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np

import hushrank
from hushrank.files import Json, read_json, write_json
from hushrank.keys import above_zero, at_least, key
from hushrank.look.numbers import format_count, format_value
from hushrank.remedies.named import register_remedy
from hushrank.remedies.remedy import Begun, MeanMessage, Remedy, Turn
from hushrank.types import Array, NamedArrays

USERS = ("perfect", "navigational", "informational")
METRICS = ("personal/nDCG@10", "vali/personal/nDCG@10", "online/nDCG@10")
SHOWN = ("personal/nDCG@10", "online/nDCG@10")  # what the file keeps: settings were chosen on validation queries
LOOKS = 10  # of the study `opening`


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
    "opening": {"n_clients": 1000, "interactions": 4, "rounds": 1000, "folds": [1], "n_intents": 20},
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


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for, as one comparison."""

    study: str
    data: str  # a shape, without the seed and the number of intents
    carry: float
    changes: Mapping[str, Any]  # of every recipe
    tastes: Mapping[str, Any]  # of the remedy tastes
    control: bool
    users: tuple[str, ...] = USERS

    @property
    def keys(self) -> dict[str, Any]:
        return {**STUDIES[self.study], **self.changes}

    @property
    def n_intents(self) -> int:
        return int(self.keys.get("n_intents", 4))

    def data_of(self, seed: str) -> str:
        more = f"seed={seed}" + (f",n_intents={self.n_intents}" if self.n_intents != 4 else "")
        return f"{self.data}{',' if ':' in self.data else ':'}{more}"

    def recipe_of(self, remedy: str) -> dict[str, Any]:
        """The keys of a recipe; the number of intents is the data's."""
        keys = {name: value for name, value in self.keys.items() if name != "n_intents"}
        keys |= {"partition": "intents", "carry": self.carry, "eval_every": keys["rounds"], **REMEDIES[remedy]}
        keys |= {"n_groups": self.n_intents} if remedy == "ceiling" else {}
        keys |= self.tastes if remedy == "tastes" else {}
        rates = PRIVATE_RATES.get(remedy, {"server_rate": 10.0}) if "privacy" in keys else {}
        keys |= {name: value for name, value in rates.items() if name not in self.changes}
        return keys | ({"control": True} if self.control else {})

    def can_have(self, remedy: str) -> bool:
        return remedy != "fedper" or self.keys.get("ranker") == "mlp"


def name_setting(asked: Asked) -> str:
    """In words, which begin as those of SETTINGS in docs/measured_differ.py; any other change stands before them."""
    usual = {"n_intents"} if asked.study == "private" else {"ranker"} if asked.study == "network" else set[str]()
    others = {name: value for name, value in asked.changes.items() if name not in usual} | dict(asked.tastes)
    before = [f"with {', '.join(f'{name}={value}' for name, value in others.items())}"] if others else []
    before += ["clients alike (control)"] if asked.control else []
    shape, _, changed = asked.data.partition(":")
    before += [f"other data ({changed.replace('=0.', ' .').replace('=', ' ').replace(',', ', ')})"] if changed else []
    before += [f"data {shape}"] if shape != "intent-change-like" else []
    before += [f"carry {format_value(asked.carry, decimals=1 if asked.carry % 1 else 0)}"] if asked.carry != 0.5 else []
    return ": ".join([*before, name_study(asked)])


def name_study(asked: Asked) -> str:
    keys = asked.keys
    n_folds, rounds = len(keys["folds"]), format_count(keys["rounds"])
    size = f"{rounds} rounds of {keys['interactions']} searches; {n_folds} fold{'' if n_folds == 1 else 's'}"
    if asked.study == "private":
        guarantee = " (sound, delta 1e-5, clip norm .1): 1,000 clients," if asked.n_intents == 4 else ","
        return f"epsilon 4{guarantee} {asked.n_intents} intents; {size}"
    if asked.study == "network":
        ranker = "network of 64 units" if keys["ranker"] == "mlp" else "linear, as the network"
        return f"{ranker}: four clients; {size}"
    if asked.study == "four":
        return f"four clients; {size}"
    return f"1,000 clients, {asked.n_intents} intents; {size}"


def run_one(directory: Path, asked: Asked, remedy: str, seed: str, *, gpu: bool) -> dict[str, float]:
    """{"USER METRIC": mean over folds}, from the directory if it is there."""
    data, keys = asked.data_of(seed), asked.recipe_of(remedy)
    who = [] if asked.users == USERS else [list(asked.users)]
    known = hashlib.sha256(json.dumps([data, keys, *who], sort_keys=True).encode()).hexdigest()[:8]
    place = directory / f"{asked.study}-{seed}-{remedy}-{known}.json"
    if not place.exists():
        where: dict[str, Any] = {"device": "gpu"} if gpu else {}
        out = place.with_suffix("")
        table = hushrank.run(
            "fpdgd", data=data, clicks=list(asked.users), out=out, resume=True, **where, **keys
        ).metrics
        found: dict[str, list[float]] = {}
        for metric, user, value in zip(table["metric"], table["click"], table["value"], strict=True):
            if metric in METRICS:
                found.setdefault(f"{user} {metric}", []).append(float(value))
        write_json(place, {name: fmean(values) for name, values in found.items()})
    return dict(read_json(place))


def compare(
    directory: Path, asked: Asked, remedies: Sequence[str], seeds: Sequence[str], *, gpu: bool
) -> Iterator[Json]:
    """A row for each user and metric, with what each remedy reached on each data set."""
    found = {
        remedy: {seed: run_one(directory, asked, remedy, seed, gpu=gpu) for seed in seeds}
        for remedy in remedies
        if asked.can_have(remedy)
    }
    for user in asked.users:
        for metric in METRICS:
            values = {
                remedy: {seed: round(each[f"{user} {metric}"], 5) for seed, each in by_seed.items()}
                for remedy, by_seed in found.items()
            }
            cell = {"setting": name_setting(asked), "user": user, "metric": metric}
            yield {**cell, "remedies": {remedy: {"values": each} for remedy, each in values.items()}}


def add_rows(kept: Sequence[Json], rows: Sequence[Json]) -> list[Json]:
    """New rows among those that were kept, none of which may get less by it."""
    found = join_rows(kept, rows)
    refuse_less(kept, found)
    return found


def join_rows(kept: Sequence[Json], rows: Sequence[Json]) -> list[Json]:
    """Values join those of the same cell; a row without values is replaced."""
    before = {name_cell(row): row for row in kept}
    for row in rows:
        old = before.get(name_cell(row), {"remedies": {}})["remedies"]
        has_values = all("values" in found for found in old.values())
        remedies = dict(old) if has_values else {}
        for remedy, found in row["remedies"].items():
            values = {**remedies.get(remedy, {"values": {}})["values"], **found["values"]}
            remedies[remedy] = {"values": values}
        before[name_cell(row)] = {**row, "remedies": remedies}
    return list(before.values())


def refuse_less(kept: Sequence[Json], rows: Sequence[Json]) -> None:
    """Refuse a row that has fewer data sets, or lacks a remedy, of the row that it replaces.

    Why: a page would then compare less than before, and its verdict would rest on what is left.
    """
    new = {name_cell(row): row for row in rows}
    for old in kept:
        row = new[name_cell(old)]
        lost = [remedy for remedy in old["remedies"] if remedy not in row["remedies"]]
        before, after = count_sets(old), count_sets(row)
        if lost or after < before:
            without = f" and not {', '.join(lost)}" if lost else ""
            raise ValueError(
                f"{old['setting']}, {old['user']}, {old['metric']}: kept are {', '.join(old['remedies'])} on {before} "
                f"data sets, new are {after} that all remedies have{without}. Nothing was written. Run the rest, write "
                "to another file (benchmarks.differ_join joins parts), or take the row out of this one first."
            )


def count_sets(row: Json) -> int:
    """Data sets that all remedies of a row have."""
    values = [set(found["values"]) for found in row["remedies"].values() if "values" in found]
    return len(set.intersection(*values)) if values else int(row.get("data_sets", 0))


def name_cell(row: Json) -> tuple[str, str, str]:
    """Why the setting's first words only: a row that was kept without values may describe the rest otherwise."""
    return row["setting"].partition(";")[0], row["user"], row["metric"]


def watch_opening(directory: Path, asked: Asked, seed: str, *, gpu: bool) -> list[Json]:
    """Round by round, how well the clients' own rankers do by their own labels, and how well the shared ranker does."""
    keys = asked.recipe_of("tastes") | {"clicks": "informational"}
    keys["eval_every"] = max(1, keys["rounds"] // LOOKS)
    where: dict[str, Any] = {"device": "gpu"} if gpu else {}
    out = directory / f"opening-{seed}"
    hushrank.run("fpdgd", data=asked.data_of(seed), out=out, resume=True, **where, **keys)
    own: dict[int, float] = {}
    shared: dict[int, list[float]] = {}
    for row in map(json.loads, (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()):
        if row["name"] == "personal/nDCG@10":
            own[row["round"]] = row["value"]
        elif row["name"].startswith("offline/nDCG@10/intent-"):
            shared.setdefault(row["round"], []).append(row["value"])
    return [{"round": n, "own": round(own[n], 4), "shared": round(fmean(shared[n]), 4)} for n in sorted(own)]


def read_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="four", choices=STUDIES)
    parser.add_argument("--seeds", default="11,12,13,14,15", help="of the generated data sets")
    parser.add_argument("--data", default="intent-change-like", help="shape of the data sets")
    parser.add_argument("--carry", default="0.5", help="one or more, separated by commas")
    parser.add_argument("--remedies", default=",".join(REMEDIES), help="default: all that the study's ranker can have")
    parser.add_argument("--users", default=",".join(USERS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON", help="of every recipe")
    parser.add_argument("--tastes", action="append", default=[], metavar="KEY=JSON", help="of the remedy tastes")
    parser.add_argument("--out", type=Path, required=True, help="where runs are kept and continued")
    parser.add_argument("--json", type=Path, help="a file to add the rows to, such as docs/benchmarks/differ.json")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = read_arguments(arguments)
    register_remedy("known-groups", KnownGroups)
    chosen.out.mkdir(parents=True, exist_ok=True)
    changes, tastes = (read_pairs(texts) for texts in (chosen.set, chosen.tastes))
    rows: list[Json] = []
    for carry in map(float, chosen.carry.split(",")):
        users = tuple(chosen.users.split(","))
        asked = Asked(chosen.study, chosen.data, carry, changes, tastes, chosen.control, users)
        if chosen.study == "opening":
            rows = watch_opening(chosen.out, asked, chosen.seeds.partition(",")[0], gpu=chosen.gpu)
            print(json.dumps(rows), flush=True)
            continue
        for row in compare(chosen.out, asked, chosen.remedies.split(","), chosen.seeds.split(","), gpu=chosen.gpu):
            means = {remedy: round(fmean(each["values"].values()), 4) for remedy, each in row["remedies"].items()}
            print(json.dumps({**row, "remedies": means}), flush=True)
            rows += [row] if row["metric"] in SHOWN else []
    if chosen.json is not None:
        keep_rows(chosen.json, rows, is_whole=chosen.study == "opening")


def keep_rows(path: Path, rows: Sequence[Json], *, is_whole: bool) -> None:
    """is_whole: instead of what the file has."""
    kept: Json = read_json(path) if path.exists() else {"about": "python -m benchmarks.differ", "rows": []}
    write_json(path, {**kept, "rows": list(rows) if is_whole else add_rows(kept["rows"], rows)})


def read_pairs(texts: Sequence[str]) -> dict[str, Any]:
    return {name: json.loads(value) for name, _, value in (text.partition("=") for text in texts)}


if __name__ == "__main__":
    main()
