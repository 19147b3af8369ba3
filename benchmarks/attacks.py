"""Attacks x rules x shares of malicious clients: offline nDCG@10 on test and validation queries, as one matrix.

    python -m benchmarks.attacks --data DIR/MQ2008 --json docs/benchmarks/attacks.json [--jobs 2] [--repeats 1]

The thesis' attacks at 10 to 40 % malicious clients, the others at 20 %, nobody at 0 %, each under every rule: ten
clients, five searches of each in 1,000 rounds, five folds, three users. Fang et al.'s attacks, Min-Max, Min-Sum and the
tailored attack are run with partial and with full knowledge (NAME:full). `fang-median` is `fang-trimmed-mean`,
`false-rewards` is for evolution strategies, which know no rules, and `opposite-model` is made to be noticed. Writes
JSON after every cell, and at the end one HTML page. Killed, it continues with --resume. `python -m
benchmarks.attacks_compare` judges a rule from the JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from hushrank.aggregation.named import aggregation_names
from hushrank.aggregation.tolerance import NotDefinedError
from hushrank.engine.evaluate import DivergedError
from hushrank.engine.plan import make_plan
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, prepare, read_cell, run_batches, simulate
from hushrank.files import Json, JsonObject, read_json, write_text
from hushrank.look.numbers import format_duration, format_value
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.recipes.values import parse_assignments
from hushrank.reports.attack_matrix import DIVERGED, FORMAT, NOT_DEFINED, PEACE, RUN, write_matrix
from hushrank.runs.environment import now

USERS = ("perfect", "navigational", "informational")
THESIS = (
    *("poisoned-clicks", "little-is-enough", "fang-krum", "fang-krum:full", "fang-multi-krum", "fang-multi-krum:full"),
    *("fang-trimmed-mean", "fang-trimmed-mean:full"),
)
OTHERS = (
    *("sign-flip", "gaussian", "scaled", "min-max", "min-max:full", "min-sum", "min-sum:full"),
    *("tailored", "tailored:full", "at-bound", "promote"),
)
LEFT_OUT = ("fang-median", "false-rewards", "opposite-model")
SHARES, OTHERS_AT = (0.0, 10.0, 20.0, 30.0, 40.0), (20.0,)
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Task:
    """One cell of the matrix."""

    attack: str
    share: float
    rule: str
    base: Recipe
    changes: JsonObject  # to the base, made where the cell is run: the rule may not be defined there
    device: str = "cpu"

    @property
    def place(self) -> tuple[str, float, str]:
        return self.attack, self.share, self.rule


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which cells, and how large."""

    data: str
    rules: Sequence[str] = field(default_factory=aggregation_names)
    attacks: Sequence[str] = (PEACE, *THESIS, *OTHERS)
    shares: Sequence[float] = SHARES
    others_at: Sequence[float] = OTHERS_AT  # shares of attacks that are not the thesis'
    repeats: int = 1
    assumed: float = 20.0  # per cent of the clients, with nobody malicious
    changes: JsonObject = field(default_factory=dict)  # recipe keys
    device: str = "cpu"

    @property
    def base(self) -> Recipe:
        size = {"data": self.data, "n_clients": 10, "interactions": 5, "rounds": 1000, "repeats": self.repeats}
        recipe = change_recipe(NAMED["fpdgd"], {**size, "clicks": USERS, "seed": 0, **self.changes})
        return change_recipe(recipe, {"eval_every": recipe.rounds})

    def shares_of(self, attack: str) -> Sequence[float]:
        if attack == PEACE:
            return [share for share in self.shares if share == 0]
        return [share for share in (self.shares if attack in THESIS else self.others_at) if share > 0]

    def list_tasks(self) -> Iterator[Task]:
        base = self.base
        for attack in self.attacks:
            for share in self.shares_of(attack):
                for rule in self.rules:
                    changes = {"aggregation": rule, **attack_keys(attack, round(share * base.n_clients / 100))}
                    if attack == PEACE and rule != "mean":
                        changes["assumed_malicious"] = round(self.assumed * base.n_clients / 100)
                    yield Task(attack, share, rule, base, changes, self.device)

    def describe(self) -> Json:
        """What all cells have in common; files that differ in it are no parts of one matrix."""
        base = self.base
        return {
            "data": Path(self.data).name.lower(),
            "users": list(base.users),
            "n_clients": base.n_clients,
            "interactions": base.interactions,
            "rounds": base.rounds,
            "repeats": base.repeats,
            "folds": len(base.folds or range(5)),
            "seed": base.seed,
            "assumed": self.assumed,
            "changes": {key: str(value) for key, value in self.changes.items()},
        }


def attack_keys(attack: str, n_malicious: int) -> Json:
    """Recipe keys of NAME or NAME:full."""
    if attack == PEACE:
        return {}
    name, _, knowledge = attack.partition(":")
    return {"attack": name, "n_malicious": n_malicious, **({"knowledge": knowledge} if knowledge else {})}


def run_task(task: Task) -> Json:
    """A row of the JSON: test and validation nDCG@10 of every training, folds and repeats in order.

    A training that diverged counts as 0, and those beside it as what they reached.
    """
    began = time.perf_counter()
    row: Json = {"attack": task.attack, "share": task.share, "rule": task.rule}
    options = Options(device=task.device, workers=1)
    try:
        setting = resolve(change_recipe(task.base, task.changes))
        results = train_all(setting, options)
    except NotDefinedError as error:
        return {**row, "state": NOT_DEFINED, "why": str(error), "seconds": 0.0}
    except DivergedError:
        results = train_each(setting, options)
    lost = sum(result.test is None for result in results)
    found = {
        split: {user: [read_last(r, split) for r in results if r.user == user] for user in task.base.users}
        for split in ("test", "vali")
    }
    state = DIVERGED if lost == len(results) else RUN
    return {**row, "state": state, "seconds": passed(began), **({"n_diverged": lost} if lost else {}), **found}


class Training(NamedTuple):
    """What one training reached."""

    user: str
    test: float | None  # nDCG@10 of the last ranker; None: it diverged
    vali: float | None


def read_last(training: Training, split: str) -> float:
    value = getattr(training, split)
    return 0.0 if value is None else round(value, _DIGITS)


def train_all(setting: Setting, options: Options) -> list[Training]:
    """At once; fails where one training diverges."""
    results, _ = simulate(setting, options)
    return [Training(each.user, float(each.test[-1]), float(each.vali[-1])) for each in results]


def train_each(setting: Setting, options: Options) -> list[Training]:
    """The same, one after another, each to its own end."""
    prepared = prepare(setting, options)
    found = []
    for cell in (cell for plan in prepared.plans for cell in plan.cells):
        alone = replace(prepared, plans=(make_plan(setting, (cell,), prepared.platform, 1),))
        try:
            (done,) = run_batches(setting, alone, options)
        except DivergedError:
            found.append(Training(setting.users[cell.user][0], None, None))
        else:
            each = read_cell(setting, cell, done, 0)
            found.append(Training(each.user, float(each.test[-1]), float(each.vali[-1])))
    return found


def passed(began: float) -> float:
    return round(time.perf_counter() - began, 2)


def run_tasks(tasks: Sequence[Task], *, jobs: int, keep: Callable[[Json], None]) -> None:
    """Each row is kept as soon as it is there."""
    if jobs == 1:
        for task in tasks:
            keep(run_task(task))
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), leave_with_parent, (os.getpid(),))
    waiting: list[Future[Json]] = [pool.submit(run_task, task) for task in tasks]
    try:
        for done in as_completed(waiting):
            keep(done.result())
    finally:
        pool.shutdown(cancel_futures=True)


def leave_with_parent(parent: int) -> None:
    """A process whose parent was killed ends too, instead of waiting for its next task for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def carry_out(wanted: Wanted, path: Path, *, jobs: int, resume: bool) -> Json:
    """The whole matrix, as the file has it."""
    about, tasks = wanted.describe(), list(wanted.list_tasks())
    rows = {(row["attack"], row["share"], row["rule"]): row for row in read_done(path, about, resume=resume)}
    left = [task for task in tasks if task.place not in rows]
    order = {task.place: number for number, task in enumerate(tasks)}
    began, n_done = time.perf_counter(), 0

    def found() -> Json:
        known = sorted(rows.values(), key=lambda r: order.get((r["attack"], r["share"], r["rule"]), len(order)))
        return {"format": FORMAT, "about": about, "when": now(), "cells": known}

    def keep(row: Json) -> None:
        nonlocal n_done
        n_done += 1
        rows[row["attack"], row["share"], row["rule"]] = row
        write_matrix_json(path, found())
        spent = time.perf_counter() - began
        tell(row, n_done, len(left), left_s=spent / n_done * (len(left) - n_done))

    # Why the costly ones first: what is left at the end is short, and no process waits for another
    run_tasks(sorted(left, key=lambda task: not task.attack.startswith("tailored")), jobs=jobs, keep=keep)
    write_matrix_json(path, found())
    return found()


def read_done(path: Path, about: Json, *, resume: bool) -> list[Json]:
    """Cells of an earlier run; refuses a file of another matrix, and one that nobody asked to continue."""
    if not path.exists():
        return []
    if not resume:
        raise ValueError(f"{path} exists. Continue it with --resume, or remove it.")
    before = read_json(path)
    differing = [key for key in about if before["about"].get(key) != about[key]]
    if differing:
        raise ValueError(f"{path} has another {', '.join(differing)}: name another file, or run as it was run.")
    return list(before["cells"])


def write_matrix_json(path: Path, found: Json) -> None:
    """A line for each cell."""
    cells = ",\n  ".join(json.dumps(row, separators=(", ", ": ")) for row in found["cells"])
    head = json.dumps({key: value for key, value in found.items() if key != "cells"}, indent=1)[:-2]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, f'{head},\n "cells": [\n  {cells}\n ]\n}}\n')


def tell(row: JsonObject, n_done: int, n_tasks: int, *, left_s: float) -> None:
    quality = " ".join(format_value(fmean(values)) for values in row.get("test", {}).values()) or row["state"]
    where = f"{row['attack']} {row['share']:g} % {row['rule']}"
    rest = f"{row['seconds']:.1f} s; about {format_duration(left_s)} left"
    print(f"[{n_done}/{n_tasks}] {where}: {quality} ({rest})", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    chosen = make_parser().parse_args(arguments)
    wanted = Wanted(
        chosen.data,
        rules=split_words(chosen.rules, aggregation_names(), "rule"),
        attacks=split_words(chosen.attacks, (PEACE, *THESIS, *OTHERS), "attack"),
        shares=split_numbers(chosen.shares),
        others_at=split_numbers(chosen.others_at),
        repeats=chosen.repeats,
        assumed=chosen.assumed,
        changes=parse_assignments(chosen.set),
        device=chosen.device,
    )
    found = carry_out(wanted, chosen.json, jobs=chosen.jobs, resume=chosen.resume)
    print(f"{chosen.json}; page: {write_matrix(found, chosen.html)}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like")
    parser.add_argument("--json", type=Path, default=Path("runs/attacks/attacks.json"))
    parser.add_argument("--html", type=Path, default=Path("runs/attacks/report.html"))
    parser.add_argument("--resume", action="store_true", help="keep the cells that the JSON has; run the others")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 1: in this one, as a GPU wants it")
    parser.add_argument("--device", default="cpu", help="cpu or gpu")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rules", help="some of them, with commas between; default: all")
    parser.add_argument("--attacks", help=f"the same; {PEACE} is peace, NAME:full an attack with full knowledge")
    parser.add_argument("--shares", default="0,10,20,30,40", help="per cent malicious clients; 0: peace")
    parser.add_argument("--others-at", default="20", help="shares of the attacks that are not the thesis'")
    parser.add_argument("--assumed", type=float, default=20.0, help="per cent that rules reckon with in peace")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    return parser


def split_words(text: str | None, known: Sequence[str], what: str) -> Sequence[str]:
    """Refuses what is not known."""
    words = tuple(known) if text is None else tuple(text.split(","))
    if unknown := [word for word in words if word not in known]:
        raise ValueError(f"{', '.join(unknown)}: no such {what}. There are {', '.join(known)}.")
    return words


def split_numbers(text: str) -> Sequence[float]:
    return tuple(float(word) for word in text.split(",") if word)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        sys.exit(f"attacks: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; what was done is kept. Continue with --resume.")
