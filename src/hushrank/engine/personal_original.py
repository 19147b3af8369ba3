"""The general engine's own order as a task: nothing is trained, and it needs no JAX."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.engine.personal_examine import Examination, score_originally
from hushrank.engine.personal_schedule import measured_spans
from hushrank.engine.personal_setting import PARAMS, STEPS, PersonalSetting
from hushrank.federation.seen import SEARCHES
from hushrank.types import NamedArrays


@dataclass(frozen=True)
class OriginalOrder:
    """A `Task` that trains nothing: what personalisation has to beat."""

    setting: PersonalSetting
    examination: Examination
    eval_every: int = 1
    most_rounds: int = 1

    @property
    def rounds(self) -> int:
        return self.setting.settings.n_trainings

    def start(self) -> NamedArrays:
        return {PARAMS: np.zeros(0, np.float32), STEPS: np.asarray(0)}

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        return {**state, STEPS: np.asarray(first + n - 1)}, {SEARCHES: np.zeros(n, np.int64)}

    def examine(self, state: NamedArrays) -> NamedArrays:
        updating, periods = self.setting.settings.updating, self.setting.people.population.periods
        spans = measured_spans(periods, updating=updating, training=int(state[STEPS]))
        return self.examination.measure(score_originally, spans, trained=periods.train)
