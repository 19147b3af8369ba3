"""A batch of simulated federations as a task: rounds by one of the engines, quality on the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from hushrank.attacks.aim import measure_attack
from hushrank.attacks.timed import Timed
from hushrank.clicks.table import ClickTable
from hushrank.engine.evaluate import Examiner, examine, examine_many, prepare_examiner
from hushrank.engine.inputs import PARAMS, Advance, initial_state, person_table, table_of
from hushrank.engine.plan import CHUNK, Cell, Plan
from hushrank.engine.record import stack_named
from hushrank.engine.setting import Setting, attacks_of
from hushrank.federation.cohort import find_groups
from hushrank.federation.groups import Group, measured_groups
from hushrank.federation.personal import own_rankers, personal_places
from hushrank.federation.state import OWN_PARAMETERS, RULE
from hushrank.types import Array, Attack, NamedArrays

SPLITS = ("test", "vali")
PREFIXES = {"test": "offline", "vali": "vali"}  # of the metrics' names
METRICS = ("nDCG@10", "MaxRR")
OWN = {"test": "personal/nDCG@10", "vali": "vali/personal/nDCG@10"}  # of each client's own ranker, by its own labels
OFFLINE, VALI = "offline/nDCG@10", "vali/nDCG@10"
# {(fold, repeat, split, group): how to examine a ranker}; group None: everybody's queries, at repeat 0
Examiners: TypeAlias = Mapping[tuple[int, int, str, int | None], Examiner]
STANDARD = tuple(f"{prefix}/{metric}" for prefix in PREFIXES.values() for metric in METRICS)  # that every run has
KnownQualities: TypeAlias = dict[tuple[int, int, ClickTable | None], tuple[float, float]]  # of a cell at one look


def prepare_examiners(setting: Setting) -> Examiners:
    """Of every fold and split, and of every group that has queries of its own."""
    k = setting.method.k
    found: dict[tuple[int, int, str, int | None], Examiner] = {}
    repeats = setting.repeats if setting.is_divided_anew else 1
    for number, fold in enumerate(setting.dataset.folds):
        for split in SPLITS:
            found[number, 0, split, None] = prepare_examiner(getattr(fold, split), k=k)
            for repeat in range(repeats):
                for g, group in enumerate(setting.groups_of(number, repeat)):
                    if (own := getattr(group, split)) is not None:
                        found[number, repeat, split, g] = prepare_examiner(own, k=k)
    return found


@dataclass
class SimulationBatch:
    """A `Task`. Not frozen: the engine is loaded (and compiled) when the first round is asked for."""

    setting: Setting
    plan: Plan
    examiners: Examiners
    make_advance: Callable[[Setting, Plan], Advance]
    most_rounds: int = field(default=CHUNK)

    @property
    def rounds(self) -> int:
        return self.setting.rounds

    @property
    def eval_every(self) -> int:
        return self.setting.eval_every

    @cached_property
    def _advance(self) -> Advance:
        return self.make_advance(self.setting, self.plan)

    def start(self) -> NamedArrays:
        return initial_state(self.setting, self.plan)

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        return self._advance(state, first, n)

    def examine(self, state: NamedArrays) -> NamedArrays:
        """nDCG@k and expected MaxRR@k [C] by split: of everybody, and of the groups that differ."""
        groups = self.setting.groups_of(0, 0)
        measured = measured_groups(groups) if self.setting.groups is not None else []
        found: dict[str, Array] = {}
        known: KnownQualities = {}
        for group in (None, *measured):
            rows = {split: self._examine_split(state, split, group, known) for split in SPLITS}
            suffix = "" if group is None else f"/{groups[group].name}"
            for column, metric in enumerate(METRICS):
                found |= {f"{PREFIXES[split]}/{metric}{suffix}": rows[split][:, column] for split in SPLITS}
        if measured or self.setting.method.has_own_rankers:
            for split, name in OWN.items():
                found[name] = np.array([self._examine_own(state, c, split) for c in range(len(self.plan.cells))])
        risen = [measure_attack(attack, state[PARAMS][c]) for c, attack in enumerate(self._attacks)]
        return found | stack_named(risen)

    @cached_property
    def _attacks(self) -> tuple[Attack | Timed[Attack] | None, ...]:
        """[C] which may have measures of their own."""
        return attacks_of(self.setting, [cell.fold for cell in self.plan.cells])

    def _examine_own(self, state: NamedArrays, c: int, split: str) -> float:
        """The mean over clients of how well each client's own ranker orders that client's own queries, by nDCG@k; over
        those clients who have a query with a relevant document."""
        cell, method = self.plan.cells[c], self.setting.method
        own = {name: array[c] for name, array in state.items() if not name.startswith(RULE)}  # a rule's have no cells
        n_clients, total, n_measured = method.population.n_clients, 0.0, 0
        rankers = own_rankers(method.remedy, method.ranker, own, own[PARAMS], n_clients)
        of_client = find_groups(method.population, np.arange(n_clients))
        groups = self.setting.groups_of(cell.fold, cell.repeat)
        for group in (number for number, each in enumerate(groups) if each.is_honest):
            members = rankers if len(rankers) == 1 else rankers[of_client == group]
            unique, counts = np.unique(members, axis=0, return_counts=True)  # Why: many clients may have the same
            place = self.setting.place_of(cell.fold, cell.repeat)
            examiner = self.examiners.get((*place, split, group)) or self.examiners[cell.fold, 0, split, None]
            if (examiner.ideals > 0).any():
                n_members = int(np.count_nonzero(of_client == group))
                n_measured += n_members
                total += float(examine_many(examiner, method.ranker, unique) @ counts) * n_members / counts.sum()
        return total / n_measured if n_measured else float("nan")

    def _examine_split(self, state: NamedArrays, split: str, group: int | None, known: KnownQualities) -> Array:
        """[C, 2] nDCG and MaxRR of every cell."""
        return np.array([self._examine_cell(state, c, split, group, known) for c in range(len(self.plan.cells))])

    def _examine_cell(
        self, state: NamedArrays, c: int, split: str, group: int | None, known: KnownQualities
    ) -> tuple[float, float]:
        """Why what is known: groups that differ in nothing measured here would be measured again and again."""
        cell, method = self.plan.cells[c], self.setting.method
        place = self.setting.place_of(cell.fold, cell.repeat)
        examiner = self.examiners.get((*place, split, group)) or self.examiners[cell.fold, 0, split, None]
        own = None if group is None else self.setting.groups_of(cell.fold, cell.repeat)[group]
        table = self._table(cell, own)
        same = (c, id(examiner), table)
        if same not in known or OWN_PARAMETERS in state:
            known[same] = examine(examiner, method.ranker, mean_params(self.setting, state, c, group), table)
        return known[same]

    def _table(self, cell: Cell, group: Group | None) -> ClickTable | None:
        if group is None or group.user is None:
            return person_table(self.setting, cell)
        return table_of(group.user, self.setting.method.k)


def mean_params(setting: Setting, state: NamedArrays, cell: int, group: int | None) -> Array:
    """[p] the shared parameters; in the place of personal ones their mean over the clients (of a group)."""
    params = state[PARAMS][cell]
    if OWN_PARAMETERS not in state:
        return params
    population = setting.method.population
    of_client = find_groups(population, np.arange(population.n_clients))
    own = state[OWN_PARAMETERS][cell]
    own = own if group is None else own[of_client == group]
    params = params.copy()
    params[personal_places(setting.method.ranker)] = own.mean(axis=0)
    return params
