"""Central training of a personalised search model, as a task: one place has all logs, the baseline of federations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from hushrank.engine.device import computing_on
from hushrank.engine.personal_examine import Examination
from hushrank.engine.personal_model import ModelArrays, count_at_once, fit_training, score_rows
from hushrank.engine.personal_people import Span, fit_inputs, narrow_widths
from hushrank.engine.personal_schedule import end_of_training, measured_spans, train_span
from hushrank.engine.personal_setting import PARAMS, STEPS, PersonalSetting
from hushrank.federation.seen import SEARCHES
from hushrank.federation.state import PERSONAL
from hushrank.personal.inputs import InputWidths, PersonalInputs, stack_inputs
from hushrank.personal.models.parameters import OWN_WORDS
from hushrank.personal.training_fast import CentralState, start_central, train_centrally
from hushrank.streams import Purpose, stream
from hushrank.types import Array, NamedArrays

OWN = f"{PERSONAL}/{OWN_WORDS}"  # [n_ids, n_own, dim]
_ADAM = ("first", "second")


@dataclass(frozen=True)
class CentralSearch:
    """A `Task`, whose rounds are epochs over all users' searches: the same loss, steps and batches as on clients."""

    setting: PersonalSetting
    arrays: ModelArrays
    examination: Examination
    platform: str
    most_rounds: int = 1

    @property
    def rounds(self) -> int:
        return self.setting.settings.n_trainings * self.setting.rounds

    @property
    def eval_every(self) -> int:
        return self.setting.rounds if self.setting.settings.is_staged else self.setting.eval_every

    def span_of(self, round: int) -> Span:
        training = (round - 1) // self.setting.rounds + 1
        periods = self.setting.people.population.periods
        return train_span(periods, updating=self.setting.settings.updating, training=training)

    @cached_property
    def widths(self) -> InputWidths:
        spans = [self.span_of(round) for round in range(1, self.rounds + 1, self.setting.rounds)]
        return narrow_widths(self.setting.people, spans)

    @cached_property
    def known_inputs(self) -> dict[Span, PersonalInputs]:
        return {}

    def inputs_of(self, span: Span) -> PersonalInputs:
        """[n_users, ...] everybody's searches."""
        if span not in self.known_inputs:
            self.known_inputs.clear()
            people = self.setting.people
            every = (people.inputs_of(user, span) for user in range(self.setting.n_clients))
            self.known_inputs[span] = jax.device_put(
                stack_inputs([fit_inputs(one, self.widths, title_words=people.title_words) for one in every])
            )
        return self.known_inputs[span]

    @cached_property
    def first_state(self) -> CentralState:
        own: dict[str, Array] = {}
        if self.arrays.has_personal:
            _, firsts = np.unique(self.setting.people.ids, return_index=True)  # a user of each id
            own = {OWN_WORDS: np.stack([self.arrays.first_personal(int(user))[OWN_WORDS] for user in firsts])}
        return start_central(self.arrays.first[0], own)

    def start(self) -> NamedArrays:
        return self.flatten(self.first_state, done=0)

    def flatten(self, state: CentralState, *, done: int) -> NamedArrays:
        own = {OWN: np.asarray(state.personal[OWN_WORDS])} if state.personal else {}
        memory = {f"adam/{part}": np.asarray(ravel_pytree(getattr(state.adam, part))[0]) for part in _ADAM}
        counts = {"adam/n_steps": np.asarray(state.adam.n_steps), STEPS: np.asarray(done)}
        return {PARAMS: np.asarray(ravel_pytree(state.sent)[0]), **own, **memory, **counts}

    def unflatten(self, arrays: NamedArrays) -> CentralState:
        first = self.first_state
        memory = {part: ravel_pytree(getattr(first.adam, part))[1](arrays[f"adam/{part}"]) for part in _ADAM}
        own = {OWN_WORDS: arrays[OWN]} if first.personal else {}
        return CentralState(
            self.arrays.sent(arrays[PARAMS]), own, first.adam._replace(**memory, n_steps=arrays["adam/n_steps"])
        )

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        setting, searches = self.setting, []
        with computing_on(self.platform):
            for round in range(first, first + n):
                begins = setting.settings.updating == "retrain" and (round - 1) % setting.rounds == 0
                inputs = self.inputs_of(self.span_of(round))
                trained = train_centrally(
                    self.arrays.model,
                    self.unflatten(self.start() if begins else state),
                    self.arrays.kept,
                    inputs,
                    stream(self.arrays.key, Purpose.VISIT, round),
                    training=fit_training(setting.training, self.platform),
                    sharing=setting.sharing,
                    ids=None if setting.people.hidden is None else setting.people.ids,
                )
                state = self.flatten(trained, done=round)
                searches.append(int(np.sum(inputs.is_query)))
        return state, {SEARCHES: np.array(searches)}

    def examine(self, state: NamedArrays) -> NamedArrays:
        settings, arrays = self.setting.settings, self.arrays
        training = int(state[STEPS]) // self.setting.rounds
        periods = self.setting.people.population.periods
        spans = measured_spans(periods, updating=settings.updating, training=training)
        trained = end_of_training(periods, updating=settings.updating, training=training)
        with computing_on(self.platform):
            shared = jax.device_put(arrays.shared(state[PARAMS]))

            def score(users: Sequence[int], inputs: PersonalInputs) -> Array:
                rows = np.array([*users, *[0] * (len(inputs.is_query) - len(users))])
                own = {OWN_WORDS: state[OWN][self.setting.people.ids[rows]]} if OWN in state else {}
                at_once = count_at_once(self.platform, len(rows))
                return np.asarray(score_rows(arrays.model, shared, own, inputs, at_once=at_once))

            return self.examination.measure(score, spans, trained=trained)
