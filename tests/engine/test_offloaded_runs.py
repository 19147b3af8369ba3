"""A run whose stragglers really are trained in two halves, on the client and at its proxy: the engine's run.

The engine trains whoever hands over its task as it trains everybody, in both ways of handing over. This is why it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from tiny_users import TinyUsers, tiny_personal, tiny_task

from hushrank.engine.personal_people import fit_inputs
from hushrank.engine.personal_proxies import ProxyLateness, ProxySetting
from hushrank.engine.personal_schedule import SearchStep
from hushrank.engine.personal_store import PersonalStore
from hushrank.engine.personal_task import FlatSearch
from hushrank.federation.hierarchy import Hierarchy
from hushrank.personal.models.parameters import OWN_WORDS
from hushrank.personal.models.peps import Peps
from hushrank.personal.offloading import train_offloaded
from hushrank.personal.training import ClientTraining
from hushrank.streams import Purpose, fold_in, stream
from hushrank.types import Array, DenseUpdate, NamedArrays, Weighted


@dataclass(frozen=True)
class HalvesSearch(FlatSearch):
    """Stragglers and their proxies train by `train_offloaded`; the others as ever."""

    trained: list[tuple[int, int]] = field(default_factory=list)  # (step, straggler)

    def visit_clients(self, params: Array, store: PersonalStore | None, step: SearchStep) -> Iterator[Weighted]:
        assert store is not None and isinstance(self.lateness, ProxyLateness)
        handed = [place for place, client in enumerate(step.ids) if self.lateness.is_offloaded[client]]
        halves = {place: self.train_halves(params, store, step, place) for place in handed}  # before stores change
        for place, message in enumerate(super().visit_clients(params, store, step)):
            if place not in halves:
                yield message
                continue
            client, found = int(step.ids[place]), halves[place]
            self.trained.append((step.number, client))
            self.arrays.keep_personal(store, client, found.personal)
            key = stream(self.arrays.key, Purpose.PRIVATISE, step.round, client)
            yield self.setting.exchange.privatise(DenseUpdate(found.delta, found.n_pairs), key=key)  # type: ignore[misc] # Why: updates are what this exchange sends

    def train_halves(self, params: Array, store: PersonalStore, step: SearchStep, place: int) -> ClientTraining:
        people, arrays, client = self.setting.people, self.arrays, int(step.ids[place])
        assert isinstance(arrays.model, Peps)
        return train_offloaded(
            arrays.model,
            arrays.shared(params),
            {OWN_WORDS: arrays.personal_of(store, [client], size=1)[OWN_WORDS][0]},
            fit_inputs(people.inputs_of(client, step.spans[place]), self.widths, title_words=people.title_words),
            training=self.setting.training,
            sharing=self.setting.sharing,
            key=fold_in(stream(arrays.key, Purpose.VISIT, step.round), np.asarray(client)),
        )


def finish(task: Any) -> tuple[NamedArrays, NamedArrays]:
    """The state after all steps, and the last look."""
    state, _ = task.advance(task.start(), 1, task.rounds)
    return state, task.examine(state)


def test_stragglers_trained_in_two_halves_give_the_run_of_the_engine() -> None:
    """Parameters and personal vectors to rounding, and the same measures of every user."""
    setting = tiny_personal(TinyUsers(n_users=6), topology="proxy", stragglers=0.34, cohort=6, rounds=2)
    tight = replace(setting.training, clip_norm=1e-4)  # so that the length of both halves' gradients counts
    task = tiny_task(replace(setting, training=tight, proxies=ProxySetting(Hierarchy(6, 3), 3)))
    halves = HalvesSearch(**{part.name: getattr(task, part.name) for part in fields(task)})
    (ours, ours_look), (engine, engine_look) = finish(halves), finish(task)
    late = np.flatnonzero(task.lateness.is_offloaded).tolist()
    assert halves.trained == [(step, client) for step in (1, 2) for client in late] and len(late) == 2
    assert np.abs(engine["params"] - task.start()["params"]).max() > 0.01
    for name in engine:
        np.testing.assert_allclose(ours[name], engine[name], rtol=0, atol=1e-5)  # a thousandth of a step of Adam
    assert set(ours_look) == set(engine_look) and "users/offline/MAP" in engine_look
    assert all(np.array_equal(ours_look[name], engine_look[name]) for name in engine_look)
