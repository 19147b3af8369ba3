"""Federated training of a personalised search model, as a task [fedps, Algorithm 1].

A step asks K clients. Each takes the model, trains it on its own log, with its own vectors, and sends how the shared
parameters moved: M += sum n_j / n delta_j over those who answered in time, n_j their numbers of pairs. What a client
keeps stays in its store. Blocks of clients are trained one after another, so that memory does not grow with K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np

from hushrank.engine.device import computing_on
from hushrank.engine.personal_combine import StreamedMessages, SumBelow, combine_step
from hushrank.engine.personal_examine import Examination
from hushrank.engine.personal_model import ModelArrays, count_at_once, fit_training, score_rows
from hushrank.engine.personal_people import count_cut, stack_block, training_widths
from hushrank.engine.personal_proxies import ProxyLateness
from hushrank.engine.personal_schedule import Lateness, Schedule, SearchStep, end_of_training, measured_spans
from hushrank.engine.personal_setting import PARAMS, STEPS, PersonalSetting
from hushrank.engine.personal_store import PersonalStore
from hushrank.engine.record import stack_named
from hushrank.federation.gathering import prefix_evidence
from hushrank.federation.seen import SEARCHES
from hushrank.federation.state import OPTIMISER, RULE, part_of, replace_owner, with_owner
from hushrank.personal.inputs import InputWidths, PersonalInputs
from hushrank.personal.training_fast import train_clients
from hushrank.streams import Purpose, fold_in, stream
from hushrank.types import Array, Combined, DenseUpdate, NamedArrays, Weighted

_BLOCK = {
    "cpu": 16,
    "gpu": 128,
}  # clients whose inputs and updates are held at once. Why more: a GPU trains them at once


@dataclass(frozen=True)
class FlatSearch:
    """A `Task`, whose rounds are steps of the server."""

    setting: PersonalSetting
    schedule: Schedule
    arrays: ModelArrays
    examination: Examination
    platform: str
    most_rounds: int = 1000

    @property
    def rounds(self) -> int:
        return self.setting.settings.n_trainings * self.schedule.steps_each

    @property
    def eval_every(self) -> int:
        """Steps: so many rounds, or a whole training of those that follow one another."""
        each = self.schedule.steps_each
        return each if self.setting.settings.is_staged else self.setting.eval_every * each // self.setting.rounds

    @cached_property
    def widths(self) -> InputWidths:
        """Of all trainings. Why all at once: one program trains everybody."""
        return training_widths(self.setting.people)

    @property
    def may_be_late(self) -> bool:
        settings = self.setting.settings
        return self.setting.dropout > 0 or settings.stragglers > 0 or settings.proxy_dropout > 0

    @cached_property
    def lateness(self) -> Lateness:
        return self.setting.lateness_of(self.arrays.key)

    def start(self) -> NamedArrays:
        params = self.arrays.flatten_first()
        optimiser = with_owner(OPTIMISER, self.setting.server_step.init(params))
        return {PARAMS: params, STEPS: np.asarray(0), **optimiser}

    def advance(self, state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        shown = []
        with computing_on(self.platform):
            for number in range(first, first + n):
                state, seen = self.take_step(state, number)
                shown.append(seen)
        return state, stack_named(shown)

    def take_step(self, state: NamedArrays, number: int) -> tuple[NamedArrays, dict[str, float]]:
        """The state after one step, and what it showed."""
        step, setting = self.schedule.step_at(number), self.setting
        if step.begins and setting.settings.updating == "retrain":
            state = self.start()
        state = {**state, STEPS: np.asarray(number)}
        if not len(step.ids):
            return state, {SEARCHES: 0}
        answers, attempts = self.lateness.find_answers(step.ids, step=step.number)
        seen = prefix_evidence({"attempts": attempts, "answers": int(answers.sum())}) if self.may_be_late else {}
        if not answers.any():
            return state, {**seen, SEARCHES: 0}
        store = PersonalStore(state) if self.arrays.has_personal else None
        ids, spans = step.ids[answers], [span for span, came in zip(step.spans, answers, strict=True) if came]
        asked = step._replace(ids=ids, spans=spans)
        messages = StreamedMessages(len(ids), lambda: self.visit_clients(state[PARAMS], store, asked))
        combined, evidence = combine_step(
            setting,
            messages,
            ids,
            state[PARAMS],
            part_of(state, RULE),
            key=self.arrays.key,
            n_asked=len(step.ids),
            number=number,
            round=step.round,
            sum_below=self.sum_below,
        )
        searches, n_cut = self.count_searches(asked)
        evidence |= prefix_evidence({"cut_searches": n_cut}) if n_cut else {}
        own = {} if store is None else store.state()
        state = {**state, **own} if combined is None else self.move({**state, **own}, combined)
        return state, {**seen, **evidence, SEARCHES: searches}

    @property
    def sum_below(self) -> SumBelow | None:
        """What proxies make of messages; None without them."""
        proxies, lateness = self.setting.proxies, self.lateness
        if proxies is None or not isinstance(lateness, ProxyLateness):
            return None
        return lambda messages, ids, step: proxies.sum_messages(messages, ids, lateness.is_offloaded[ids], step=step)

    def count_searches(self, step: SearchStep) -> tuple[int, int]:
        """That clients have in a step; and how many of them they had to cut or to leave out."""
        visits = zip(step.ids.tolist(), step.spans, strict=True)
        every = [self.setting.people.inputs_of(client, span) for client, span in visits]
        return sum(len(inputs.is_query) for inputs in every), sum(count_cut(inputs, self.widths) for inputs in every)

    def move(self, state: NamedArrays, combined: Combined) -> NamedArrays:
        """The state with the new model."""
        state, params = replace_owner(state, RULE, combined.memory), state[PARAMS]
        mean = combined.update.astype(params.dtype)
        step, params = self.setting.server_step(part_of(state, OPTIMISER), params, mean)
        return {**replace_owner(state, OPTIMISER, step), PARAMS: params}

    def visit_clients(self, params: Array, store: PersonalStore | None, step: SearchStep) -> Iterator[Weighted]:
        """What each client sends; what it keeps goes into its store."""
        size = min(_BLOCK[self.platform], self.setting.cohort)
        sent, people = self.arrays.sent(params), self.setting.people
        for first in range(0, len(step.ids), size):
            ids = [int(i) for i in step.ids[first : first + size]]
            inputs = [people.inputs_of(i, span) for i, span in zip(ids, step.spans[first : first + size], strict=True)]
            yield from self._visit_block(sent, store, ids, inputs, round=step.round, size=size)

    def _visit_block(
        self,
        sent: dict[str, Array],
        store: PersonalStore | None,
        ids: list[int],
        inputs: list[PersonalInputs],
        *,
        round: int,
        size: int,
    ) -> Iterator[Weighted]:
        setting, arrays = self.setting, self.arrays
        names = np.array([*ids, *[0] * (size - len(ids))])
        trained = train_clients(
            arrays.model,
            sent,
            arrays.kept,
            arrays.personal_of(store, ids, size=size),
            stack_block(setting.people, inputs, self.widths, size=size),
            fold_in(stream(arrays.key, Purpose.VISIT, round), names),
            training=fit_training(setting.training, self.platform),
            sharing=setting.sharing,
            at_once=count_at_once(self.platform, size),
        )
        deltas, n_pairs = np.asarray(trained.deltas), np.asarray(trained.n_pairs)
        personal = {name: np.asarray(part) for name, part in trained.personal.items()}
        for place, client in enumerate(ids):
            arrays.keep_personal(store, client, {name: part[place] for name, part in personal.items()})
            update = DenseUpdate(deltas[place], int(n_pairs[place]))
            yield setting.exchange.privatise(update, key=stream(arrays.key, Purpose.PRIVATISE, round, client))  # type: ignore[misc] # Why: updates are what this exchange sends

    def examine(self, state: NamedArrays) -> NamedArrays:
        settings, arrays = self.setting.settings, self.arrays
        training = int(state[STEPS]) // self.schedule.steps_each
        periods = self.setting.people.population.periods
        spans = measured_spans(periods, updating=settings.updating, training=training)
        trained = end_of_training(periods, updating=settings.updating, training=training)
        store = PersonalStore(state) if self.arrays.has_personal else None
        with computing_on(self.platform):
            shared = jax.device_put(arrays.shared(state[PARAMS]))

            def score(users: Sequence[int], inputs: PersonalInputs) -> Array:
                n_rows = len(inputs.is_query)
                own = arrays.personal_of(store, users, size=n_rows)
                at_once = count_at_once(self.platform, n_rows)
                return np.asarray(score_rows(arrays.model, shared, own, inputs, at_once=at_once))

            return self.examination.measure(score, spans, trained=trained)


def make_flat(setting: PersonalSetting, arrays: ModelArrays, examination: Examination, platform: str) -> FlatSearch:
    """With the schedule that the setting asks for."""
    return FlatSearch(setting, setting.schedule_of(arrays.key), arrays, examination, platform)
