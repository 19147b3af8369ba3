r"""Attacks x rules x shares of malicious clients: offline nDCG@10 on test and validation queries, as one matrix.

    python -m benchmarks.attacks --data DIR/MQ2008 --json docs/benchmarks/attacks.json [--jobs 2] [--repeats 1]

The thesis' attacks at 10 to 40 % malicious clients, the others at 20 %, nobody at 0 %, each under every rule: ten
clients, five searches of each in 1,000 rounds, five folds, three users. Fang et al.'s attacks, Min-Max, Min-Sum and the
tailored attack are run with partial and with full knowledge (NAME:full). `fang-median` is `fang-trimmed-mean`,
`false-rewards` is for evolution strategies, which know no rules, and `opposite-model` is made to be noticed. Writes
JSON after every cell, and at the end one HTML page. Killed, it continues with --resume. `python -m
benchmarks.attacks_compare` judges a rule from the JSON. Five seeds of what that needs, many clients of whom a hundred
are asked in a round, and attacks that know `watchful`:

    ... --json docs/benchmarks/attacks_five.json --repeats 5 --shares 0,10,20,30 --rules mean,watchful --chosen-in \
        docs/benchmarks/attacks.json
    ... --json docs/benchmarks/attacks_many.json --set n_clients=1000 --set cohort=100 --set rounds=300 \
        --shares 0,1,5,10,20 --others-at 1,5,10,20 --rules mean,median,watchful \
        --attacks none,poisoned-clicks,sign-flip,little-is-enough,min-max
    ... --json docs/benchmarks/attacks_adaptive.json --shares 0 --others-at 10,30 --rules mean,watchful --attacks \
        none,sign-flip:rare,sign-flip:late,promote:rare,promote:late,min-max:disguised,sidestep,\
        sidestep:turning,framing
    ... --json docs/benchmarks/attacks_adaptive.json --resume --shares 0 --others-at 10,20,30 \
        --rules mean,norm-bound,multi-krum,watchful --attacks none,cycle,cycle:full,cycle:short,cycle:repaid
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks.attack_list import OTHERS, THESIS
from benchmarks.attacks_compare import JUDGED, choose_rivals
from hushrank.aggregation.named import RULES, aggregation_names
from hushrank.aggregation.tolerance import NotDefinedError, assumes_malicious
from hushrank.engine.evaluate import DivergedError
from hushrank.engine.plan import make_plan
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options, prepare, read_cell, run_batches, simulate
from hushrank.files import Json, JsonObject, read_json, write_text
from hushrank.look.numbers import format_duration, format_value
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.recipes.values import parse_assignments
from hushrank.reports.attack_matrix import DIVERGED, FORMAT, NOT_DEFINED, PEACE, RUN, read_matrix, write_matrix
from hushrank.runs.environment import now
from hushrank.types import Array

USERS = ("perfect", "navigational", "informational")
LATE = -50  # rounds from the end
# Attacks that know how `watchful` looks and stay below it: 4.5 lengths are not yet loud, what each learnt sets liars
# apart, honest rounds in between or before make up for lies, copies accuse whom they copy, a short push forwards pays
# for a long one backwards. {name: keys}
_BELOW_LOUD = 4.5
ADAPTIVE: dict[str, JsonObject] = {
    "sign-flip:rare": {"scale": _BELOW_LOUD, "attack_every": 6},
    "sign-flip:late": {"scale": _BELOW_LOUD, "attack_from": LATE},
    "promote:rare": {"length": _BELOW_LOUD, "attack_every": 10, "attack_disguise": True},
    "promote:late": {"length": _BELOW_LOUD, "attack_from": LATE, "attack_disguise": True},
    "min-max:disguised": {"knowledge": "full", "attack_disguise": True},
    "sidestep": {},
    "sidestep:turning": {"scale": 1.5, "turn_every": 10},
    "framing": {},
    "cycle": {},
    "cycle:full": {"knowledge": "full"},
    "cycle:short": {"knowledge": "full", "backwards": 3.0, "forwards": 2.25},
    "cycle:repaid": {"knowledge": "full", "forwards": 9.5},
}
SHARES, OTHERS_AT = (0.0, 10.0, 20.0, 30.0, 40.0), (20.0,)
TOLD = ("caught", "wronged")  # what rules that trust say of liars and of honest clients
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
    chosen: Mapping[str, str] = field(default_factory=dict)  # {attack: a rule that is run beside the others}

    @property
    def base(self) -> Recipe:
        size = {"data": self.data, "n_clients": 10, "interactions": 5, "rounds": 1000, "repeats": self.repeats}
        recipe = change_recipe(NAMED["fpdgd"], {**size, "clicks": USERS, "seed": 0, **self.changes})
        return change_recipe(recipe, {"eval_every": recipe.rounds})

    def shares_of(self, attack: str) -> Sequence[float]:
        if attack == PEACE:
            return [share for share in self.shares if share == 0]
        return [share for share in (self.shares if attack in THESIS else self.others_at) if share > 0]

    def rules_of(self, attack: str) -> Sequence[str]:
        more = [self.chosen[attack]] if attack in self.chosen else []
        return list(dict.fromkeys([*self.rules, *more]))

    def list_tasks(self) -> Iterator[Task]:
        base = self.base
        for attack in self.attacks:
            for share in self.shares_of(attack):
                for rule in self.rules_of(attack):
                    changes = {
                        "aggregation": rule,
                        **attack_keys(attack, round(share * base.n_clients / 100), base.rounds),
                    }
                    if assumes_malicious(RULES.get(rule)) and (attack == PEACE or base.cohort is not None):
                        # Why: rules see the clients that are asked in a round, of which the same share lies on average
                        assumed = self.assumed if attack == PEACE else share
                        changes["assumed_malicious"] = round(assumed * (base.cohort or base.n_clients) / 100)
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


def attack_keys(attack: str, n_malicious: int, rounds: int) -> Json:
    """Recipe keys of NAME, NAME:full or one that adapts."""
    if attack == PEACE:
        return {}
    name, _, variant = attack.partition(":")
    more = ADAPTIVE.get(attack, {"knowledge": variant} if variant else {})
    late = {"attack_from": max(1, rounds + 1 + LATE)} if more.get("attack_from") == LATE else {}
    return {"attack": name, "n_malicious": n_malicious, **more, **late}


def run_task(task: Task) -> Json:
    """A row of the JSON: test and validation nDCG@10 of every training, folds and repeats in order.

    A training that diverged counts as 0, and those beside it as what they reached.
    """
    began, cpu_began = time.perf_counter(), time.process_time()
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
    told = {name: mean_by_user(results, name) for name in TOLD}
    found |= {name: by_user for name, by_user in told.items() if by_user}
    spent = {"seconds": passed(began), "cpu_seconds": round(time.process_time() - cpu_began, 2)}
    return {**row, "state": state, **spent, **({"n_diverged": lost} if lost else {}), **found}


class Training(NamedTuple):
    """What one training reached."""

    user: str
    test: float | None  # nDCG@10 of the last ranker; None: it diverged
    vali: float | None
    caught: float | None = None  # part of the liars' updates that did not count, mean over rounds; None: not told
    wronged: float | None = None  # the same of the honest clients'


def read_last(training: Training, split: str) -> float:
    value = getattr(training, split)
    return 0.0 if value is None else round(value, _DIGITS)


def mean_by_user(trainings: Sequence[Training], name: str) -> Json:
    """{user: mean over trainings of what the rule tells}; users of whom it tells nothing are left out."""
    told = {user: [getattr(t, name) for t in trainings if t.user == user] for user in {t.user for t in trainings}}
    known = {user: [value for value in values if value is not None] for user, values in told.items()}
    return {user: round(fmean(values), _DIGITS) for user, values in sorted(known.items()) if values}


def train_all(setting: Setting, options: Options) -> list[Training]:
    """At once; fails where one training diverges."""
    results, _ = simulate(setting, options)
    return [read_training(each) for each in results]


def read_training(result: CellResult) -> Training:
    told = (mean_told(result.shown.get(f"evidence/{name}")) for name in TOLD)
    return Training(result.user, float(result.test[-1]), float(result.vali[-1]), *told)


def mean_told(rounds: Array | None) -> float | None:
    """Over the rounds that have it: none where nobody lies, or where the rule tells nothing."""
    return None if rounds is None or np.isnan(rounds).all() else float(np.nanmean(rounds))


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
            found.append(read_training(read_cell(setting, cell, done, 0)))
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
        attacks=split_words(chosen.attacks, (PEACE, *THESIS, *OTHERS), "attack", more=tuple(ADAPTIVE)),
        shares=split_numbers(chosen.shares),
        others_at=split_numbers(chosen.others_at),
        repeats=chosen.repeats,
        assumed=chosen.assumed,
        changes=parse_assignments(chosen.set),
        device=chosen.device,
        chosen=choose_rivals(read_matrix(read_json(chosen.chosen_in)), JUDGED) if chosen.chosen_in else {},
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
    parser.add_argument("--chosen-in", type=Path, help=f"a matrix: adds each attack's best rule there but {JUDGED}")
    parser.add_argument("--attacks", help=f"the same; {PEACE} is peace, NAME:full an attack with full knowledge")
    parser.add_argument("--shares", default="0,10,20,30,40", help="per cent malicious clients; 0: peace")
    parser.add_argument("--others-at", default="20", help="shares of the attacks that are not the thesis'")
    parser.add_argument("--assumed", type=float, default=20.0, help="per cent that rules reckon with in peace")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    return parser


def split_words(text: str | None, known: Sequence[str], what: str, *, more: Sequence[str] = ()) -> Sequence[str]:
    """Refuses what is not known; more: what is known and not taken unless it is named."""
    words = tuple(known) if text is None else tuple(text.split(","))
    if unknown := [word for word in words if word not in (*known, *more)]:
        raise ValueError(f"{', '.join(unknown)}: no such {what}. There are {', '.join((*known, *more))}.")
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
