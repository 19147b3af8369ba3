"""One model of personalised search between its two forms: the flat vector that is sent, and the arrays that score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from hushrank.engine.personal_setting import PersonalSetting
from hushrank.engine.personal_store import PersonalStore
from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.named_fast import score_searches
from hushrank.personal.models.parameters import (
    OWN_WORDS,
    PersonalModel,
    flatten_parameters,
    initial_personal,
    initial_shared,
    join_shared,
    split_shared,
    unflatten_parameters,
)
from hushrank.personal.training import LocalTraining
from hushrank.personal.training_fast import REPEATABLE
from hushrank.types import Array


@dataclass(frozen=True)
class ModelArrays:
    """Of one repeat."""

    setting: PersonalSetting
    key: Array  # of the training

    @property
    def model(self) -> PersonalModel:
        assert self.setting.model is not None
        return self.setting.model

    @cached_property
    def first(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """What is sent and what stays as it is, before the first step."""
        shared = initial_shared(self.model, self.setting.vectors, key=self.key)
        return split_shared(shared, self.setting.sharing)

    @cached_property
    def kept(self) -> Any:
        """On the device."""
        return jax.device_put(self.first[1])

    @property
    def n_own(self) -> int:
        """Rows of a client's table of personal vectors, padding included."""
        return self.setting.people.n_own

    @property
    def has_personal(self) -> bool:
        return any(part.is_personal for part in self.model.parameters)

    def flatten_first(self) -> Array:
        """[n_sent]"""
        return flatten_parameters(self.first[0])

    def sent(self, params: Array) -> dict[str, Array]:
        return unflatten_parameters(params, self.first[0])

    def shared(self, params: Array) -> dict[str, Array]:
        """Everything that scores, but for what is personal."""
        return join_shared(self.sent(params), self.first[1], self.setting.sharing)

    def first_personal(self, client: int) -> dict[str, Array]:
        """{name: [n_own, dim]} before the client's first visit."""
        own_words = self.setting.people.record_of(client).own_words
        return initial_personal(self.model, self.setting.vectors[own_words], n_own=self.n_own)

    def personal_of(self, store: PersonalStore | None, clients: Sequence[int], *, size: int) -> dict[str, Array]:
        """{name: [size, n_own, dim]} of these clients, from their stores; what is left over is zeros."""
        if store is None:
            return {}
        stacked = np.zeros((size, self.n_own, self.model.dim), np.float32)
        for place, client in enumerate(clients):
            known = store.read(client)
            stacked[place] = self.first_personal(client)[OWN_WORDS]
            if known is not None:
                stacked[place, : len(known)] = known
        return {OWN_WORDS: stacked}

    def keep_personal(self, store: PersonalStore | None, client: int, personal: dict[str, Array]) -> None:
        """personal: {name: [n_own, dim]}"""
        if store is not None:
            store.write(client, personal[OWN_WORDS][: len(self.setting.people.record_of(client).own_words)])


def fit_training(training: LocalTraining, platform: str) -> LocalTraining:
    """As it is computed there: on a GPU a whole batch at a time. Why: it waits for small programs to begin."""
    return training if platform == "cpu" else replace(training, chunk=training.batch)


def count_at_once(platform: str, size: int) -> int:
    """How many of the clients of a block are computed side by side."""
    return 1 if platform == "cpu" else size


@partial(jax.jit, static_argnames=("model", "at_once"), compiler_options=REPEATABLE)
def score_rows(
    model: PersonalModel, shared: Any, personal: Any, inputs: PersonalInputs, *, at_once: int = 1
) -> jax.Array:
    """[n_rows, B, D] scores of searches of many users, so many at once: no user's bits depend on the others."""
    size = None if at_once == 1 else at_once
    return jax.lax.map(lambda row: score_searches(model, shared, row[0], row[1]), (personal, inputs), batch_size=size)
