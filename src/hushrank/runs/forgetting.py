"""Forget clients of a finished run: the training that does it, as an experiment in a directory of its own.

The directory is that of a run, but for `forgetting.json` in the place of `recipe.json`: which run, which clients, how.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
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
from hushrank.recipes.guarantee import explain_guarantee
from hushrank.recipes.recipe import Recipe, as_json
from hushrank.reports.summary import from_directory
from hushrank.runs.directory import FORGETTING, FORMAT, begin_directory, locked, read_recipe_file, refuse_existing
from hushrank.runs.forget_methods import METHODS, Forgetting, RunMemory, plan_forgetting, subtract_sums
from hushrank.runs.result import KEPT_FILE, read_kept, read_rankers
from hushrank.runs.run import START, Run, RunOptions, engine_options, finish_run
from hushrank.runs.simulation import Simulation, prepare_simulation
from hushrank.types import Array


class ForgetRequest(NamedTuple):
    """Which clients are forgotten in which finished run, and how."""

    run: Path
    forgetting: Forgetting


@dataclass(frozen=True)
class ForgettingExperiment(Simulation):
    """An `Experiment`: the recipe is that of the run, the setting that of the training which forgets."""

    forgetting: Forgetting
    memory: str  # digest of what the run has left

    @property
    def identity(self) -> str:
        return f"{super().identity}-{self.memory}-{hash_forgetting(self.forgetting)}"

    def carry_out(self, options: Options) -> tuple[list[CellResult], str]:
        results, device = super().carry_out(options)
        if METHODS[self.forgetting.method].subtracts:
            results = [subtract_from(self.setting, result, self.forgetting.clients) for result in results]
        return results, device

    def describe(self) -> Json:
        found = super().describe()
        both = replace(self.recipe, rounds=self.recipe.rounds + self.setting.rounds)  # what was and is published
        return {
            **found,
            "recipe": describe_recipe(self.recipe, self.setting, self.forgetting),
            "guarantee": explain_guarantee(both, self.setting.method),
            "forgetting": write_forgetting(self.forgetting),
            "is_exact": METHODS[self.forgetting.method].is_exact(self.forgetting),
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
    chosen = {key: value for key, value in values.items() if key != "run"}
    return ForgetRequest(Path(values["run"]), Forgetting(**{**chosen, "clients": tuple(values["clients"])}))


def forget_clients(request: ForgetRequest, options: RunOptions) -> Run:
    """Train so that the clients are forgotten, in the directory `options.out`."""
    assert options.out is not None
    if not options.resume:
        refuse_existing(options.out)
    experiment = prepare_forgetting(request, options.tell)
    placed = experiment.check(engine_options(options))
    begin_directory(options.out)
    with locked(options.out):
        note_request(options.out, request)
        return finish_run(experiment, placed, options.out, options)


def prepare_forgetting(request: ForgetRequest, tell: Callable[[str], None]) -> ForgettingExperiment:
    run, forgetting = request
    from_directory(run)  # refuses what is not a finished run
    recipe = read_recipe_file(run)
    if recipe is None:
        raise ValueError(f"{run} is itself a run that forgets: to forget more clients, name them all in the first run.")
    start = run / START
    trained = prepare_simulation(recipe, tell, start if start.exists() else None)
    planned = plan_forgetting(trained.setting, forgetting, read_memory(run, trained.setting))
    return ForgettingExperiment(trained.recipe, planned, forgetting, digest_file(run / "rankers.safetensors")[:8])


def read_memory(run: Path, setting: Setting) -> RunMemory:
    """What the trainings of a finished run have left."""
    lengths = stack_cells(setting, read_kept(run)) if (run / KEPT_FILE).is_file() else None
    return RunMemory(stack_cells(setting, read_rankers(run)), lengths)


def stack_cells(setting: Setting, arrays: dict[tuple[str, int, int], Array]) -> Array:
    """[n_users, n_folds, repeats, ...] of what is there by user, fold and repeat."""
    folds = [fold.number for fold in setting.dataset.folds]
    users = [user for user, _ in setting.users]
    return np.array(
        [[[arrays[user, fold, n] for n in range(setting.repeats)] for fold in folds] for user in users], np.float32
    )


def note_request(out: Path, request: ForgetRequest) -> None:
    """What is forgotten in this directory; one that was begun otherwise is refused."""
    said, path = {"format": FORMAT, **write_request(request)}, out / FORGETTING
    if path.exists() and {**read_json(path), "run": said["run"]} != said:  # Why not the place: a run may be moved
        raise ValueError(f"{out} forgets others, or in another way. Resume as it began, or choose another --out.")
    write_json(path, said)


def hash_forgetting(forgetting: Forgetting) -> str:
    """Eight hex digits that differ when anything about it does."""
    return hashlib.sha256(json.dumps(asdict(forgetting), sort_keys=True).encode()).hexdigest()[:8]


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
