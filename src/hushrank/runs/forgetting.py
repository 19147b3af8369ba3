"""Forget clients of a finished run: the training that does it, as an experiment in a directory of its own.

The directory is that of a run, but for `forgetting.json` in the place of `recipe.json`: which run, which clients, how.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hushrank.data.source import digest_file
from hushrank.engine.batch import PREFIXES, SPLITS
from hushrank.engine.evaluate import examine, prepare_examiner
from hushrank.engine.inputs import table_of
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import CellResult, Options
from hushrank.files import Json, JsonObject, read_json, write_json
from hushrank.recipes.recipe import Recipe, as_json
from hushrank.runs.directory import FORGETTING, FORMAT, begin_directory, locked, read_recipe_file, refuse_existing
from hushrank.runs.forget_charge import ForgetCharge, agree_charge
from hushrank.runs.forget_methods import (
    METHODS,
    Forgetting,
    RunMemory,
    find_residues,
    hash_forgetting,
    plan_forgetting,
    subtract_sums,
)
from hushrank.runs.kept import Cells, stack_cells
from hushrank.runs.rankers import read_result
from hushrank.runs.result import KEPT_FILE, RANKERS_FILE, read_kept, read_rankers
from hushrank.runs.run import START, Run, RunOptions, close_run, engine_options, train_run
from hushrank.runs.simulation import Simulation, prepare_simulation


class ForgetRequest(NamedTuple):
    """Which clients are forgotten in which finished run, and how."""

    run: Path
    forgetting: Forgetting


@dataclass(frozen=True)
class ForgettingExperiment(Simulation):
    """An `Experiment`: the recipe is that of the run, the setting that of the training which forgets."""

    forgetting: Forgetting
    memory: str  # digest of what the run has left
    trained: Cells  # the run's rankers
    charge: ForgetCharge | None  # what it spends; None: not agreed to yet, and nothing is trained

    @property
    def identity(self) -> str:
        return f"{super().identity}-{self.memory}-{hash_forgetting(self.forgetting)}"

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        if self.charge is None:
            raise ValueError("nobody has agreed to what this training spends of the privacy of those who stay.")
        results, device = super().carry_out(options)
        if METHODS[self.forgetting.method].subtracts:
            check_same({(r.user, r.fold, r.repeat): r.params for r in results}, self.trained)
            results = [subtract_from(self.setting, result, self.forgetting.clients) for result in results]
        return results, device

    def describe(self) -> Json:
        assert self.charge is not None
        found = super().describe()
        return {
            **found,
            "recipe": describe_recipe(self.recipe, self.setting, self.forgetting),
            "guarantee": self.charge.guarantee,
            "privacy_spent": self.charge.spent,
            "forgetting": write_forgetting(self.forgetting),
            "is_exact": not find_residues(self.setting, self.forgetting),
        }


def describe_recipe(recipe: Recipe, setting: Setting, forgetting: Forgetting) -> Json:
    """The run's recipe, with the rounds of the training that forgets and what is special about it."""
    chosen = {key: value for key, value in asdict(forgetting).items() if key in METHODS[forgetting.method].takes}
    special = {"forget": forgetting.method, "forget_clients": list(forgetting.clients), **chosen}
    return {**as_json(recipe), "rounds": setting.rounds, **special}


def write_forgetting(forgetting: Forgetting) -> Json:
    return {**asdict(forgetting), "clients": list(forgetting.clients)}


def write_request(request: ForgetRequest) -> Json:
    """As JSON; `read_request` is the way back."""
    return {"run": str(request.run.resolve()), **write_forgetting(request.forgetting)}


def read_request(values: JsonObject) -> ForgetRequest:
    chosen = {key: value for key, value in values.items() if key in {field.name for field in fields(Forgetting)}}
    return ForgetRequest(Path(values["run"]), Forgetting(**{**chosen, "clients": tuple(values["clients"])}))


def forget_clients(request: ForgetRequest, options: RunOptions) -> Run:
    """Train so that the clients are forgotten, in the directory `options.out`. The run's ledger is charged first, and
    what exceeds the epsilon that the run promised is refused."""
    assert options.out is not None
    if not options.resume:
        refuse_existing(options.out)
    experiment = prepare_forgetting(request, options.tell)
    placed = experiment.check(engine_options(options))
    charge = agree_charge(request.run, experiment.recipe, experiment.setting, request.forgetting)
    experiment = replace(experiment, charge=charge)
    begin_directory(options.out)
    with locked(options.out):
        note_request(options.out, request, request.run)
        return close_run(options.out, train_run(experiment, placed, options.out, options))


def prepare_forgetting(request: ForgetRequest, tell: Callable[[str], None]) -> ForgettingExperiment:
    run, forgetting = request
    trained = read_trained(run, tell)
    planned = plan_forgetting(trained.setting, forgetting, read_memory(run, trained.setting))
    digest = digest_file(run / RANKERS_FILE)[:8]
    return ForgettingExperiment(trained.recipe, planned, forgetting, digest, read_rankers(run), None)


def read_trained(run: Path, tell: Callable[[str], None]) -> Simulation:
    """A finished run of clients that send updates, with the data that it was trained with."""
    result = read_result(run)  # refuses what is not a finished run
    recipe = read_recipe_file(run)
    if recipe is None:
        raise ValueError(f"{run} is itself a run that forgets: to forget more clients, name them all in the first run.")
    if recipe.is_central or recipe.is_offline or recipe.is_evolution:
        raise ValueError(
            f"{run} is a run of {recipe.recipe}: only clients that send updates can be forgotten, those of fpdgd."
        )
    start = run / START
    trained = prepare_simulation(recipe, tell, start if start.exists() else None)
    if trained.setting.dataset.fingerprint != result["data"]["fingerprint"]:
        raise ValueError(
            f"the data of {run} ({recipe.data}) have changed since it was trained: nothing that is learnt from them "
            "now can replace its rankers. Restore them, or run the experiment again."
        )
    return trained


def read_memory(run: Path, setting: Setting) -> RunMemory:
    """What the trainings of a finished run have left."""
    lengths = stack_cells(setting, read_kept(run), what=str(run / KEPT_FILE)) if (run / KEPT_FILE).is_file() else None
    return RunMemory(stack_cells(setting, read_rankers(run), what=str(run / RANKERS_FILE)), lengths)


def check_same(found: Cells, wanted: Cells) -> None:
    """Refuse a run that was to be repeated, and became another one."""
    if any(found[cell].tobytes() != wanted[cell].tobytes() for cell in wanted):
        raise ValueError(
            "the run was repeated and gave other rankers: it was made on another device, or by another engine or "
            "version. Choose those with --device and --engine, or take a method that repeats nothing, such as fresh."
        )


def note_request(out: Path, request: ForgetRequest, root: Path, wishes: JsonObject | None = None) -> None:
    """What is forgotten in this directory; one that was begun otherwise is refused.

    root: the run in which everybody took part; what lies in it is named relative to it. wishes: what may change later.
    """
    refuse_other(out, request)
    run, here = request.run.resolve(), out.resolve()
    is_inside = all(path.is_relative_to(root.resolve()) for path in (run, here))
    place = os.path.relpath(run, here) if is_inside else str(run)  # Why: a run may be moved, with all that is in it
    said = {"format": FORMAT, **write_request(request), "run": place, "of": identify_run(run)}
    if (out / FORGETTING).exists():
        check_origin(out, request.run)
    write_json(out / FORGETTING, {**said, **(wishes or {})})


def refuse_other(out: Path, request: ForgetRequest) -> None:
    """Refuse a directory in which others are forgotten, or in another way."""
    if (out / FORGETTING).exists() and read_noted(out).forgetting != request.forgetting:
        raise ValueError(f"{out} forgets others, or in another way. Resume as it began, or choose another --out.")


def read_noted(out: Path) -> ForgetRequest:
    """What is forgotten in this directory."""
    noted = read_request(read_json(out / FORGETTING))
    return noted._replace(run=(out / noted.run).resolve())


def check_origin(out: Path, run: Path) -> None:
    """Refuse to go on in a directory with another run than the one in which it forgot clients."""
    if read_json(out / FORGETTING).get("of") != identify_run(run):
        raise ValueError(
            f"{run} is not the run of which {out} forgot clients: its recipe, data or rankers are others. Put that run "
            "back where it was, or forget everybody in this one, with another --out."
        )


def identify_run(run: Path) -> Json:
    """What no other finished run has."""
    result = read_result(run)
    recipe = hashlib.sha256(json.dumps(result["recipe"], sort_keys=True).encode()).hexdigest()
    return {"recipe": recipe, "data": result["data"]["fingerprint"], "rankers": digest_file(run / RANKERS_FILE)}


def subtract_from(setting: Setting, result: CellResult, clients: tuple[int, ...]) -> CellResult:
    """A training whose last ranker has lost what the leavers added, measured once more."""
    params = subtract_sums(result.params, result.kept["sums"], clients)
    fold = next(fold for fold in setting.dataset.folds if fold.number == result.fold)
    table = table_of(dict(setting.users)[result.user], setting.method.k)
    looks = dict(result.looks)
    for split in SPLITS:
        examiner = prepare_examiner(getattr(fold, split), k=setting.method.k)
        found = examine(examiner, setting.method.ranker, params, table)
        for metric, value in zip(("nDCG@10", "MaxRR"), found, strict=True):
            looks[f"{PREFIXES[split]}/{metric}"] = np.append(looks[f"{PREFIXES[split]}/{metric}"][:-1], value)
    return replace(result, params=params, looks=looks)
