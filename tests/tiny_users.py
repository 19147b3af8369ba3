"""A handful of users with logs made by hand, for tests of personalised search: one small shape, one program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hushrank.engine.personal_examine import Examination
from hushrank.engine.personal_people import People
from hushrank.engine.personal_schedule import WEEK
from hushrank.engine.personal_setting import PersonalSetting
from hushrank.personal.bm25 import make_index
from hushrank.personal.features import N_FEATURES, FeatureSource
from hushrank.personal.keys import PersonalSettings
from hushrank.personal.log import (
    Collection,
    ListSizes,
    Periods,
    Search,
    SearchLog,
    make_collection,
    make_log,
    pad_words,
    slice_log,
)
from hushrank.personal.models.parameters import WordSharing
from hushrank.personal.topics import make_topics
from hushrank.personal.training import LocalTraining

N_WORDS, DIM = 12, 4
LISTS = ListSizes(4, 4)
PERIODS = Periods(2 * WEEK, 5 * WEEK, 6 * WEEK)


@dataclass(frozen=True)
class TinyUsers:
    """`twins`: all users have the same log. `newcomer`: user 0 has made one search, before training begins. `eager`:
    users who click on all documents that they see, so that there is no pair to learn from."""

    n_users: int = 5
    twins: bool = False
    newcomer: bool = False
    eager: tuple[int, ...] = ()
    name: str = "tiny-users"
    description: str = "users made by hand"
    periods: Periods = PERIODS
    is_generated: bool = True
    list_sizes: ListSizes = LISTS
    n_query_words: int = 2

    @property
    def identity(self) -> str:
        return self.name

    @cached_property
    def collection(self) -> Collection:
        generator = np.random.default_rng(7)
        titles = [generator.choice(np.arange(2, N_WORDS), 3, replace=False).tolist() for _ in range(20)]
        return make_collection(pad_words(titles, 50), ("", "?", *(f"word{n}" for n in range(2, N_WORDS))))

    def log_of(self, user: int) -> SearchLog:
        generator = np.random.default_rng(0 if self.twins else user)
        searches = []
        for number in range(21):  # three a week, for seven weeks
            listed = generator.choice(20, 4, replace=False)
            query = generator.choice(np.arange(2, N_WORDS), 2, replace=False)
            clicked = (int(listed[generator.integers(4)]),)
            shown = tuple(map(int, listed))
            searches.append(Search(number * WEEK // 3, tuple(query), shown, shown if user in self.eager else clicked))
        log = make_log(searches, np.arange(21) // 2)
        return slice_log(log, 0, 1) if self.newcomer and user == 0 else log


def tiny_people(population: TinyUsers | None = None, *, end: float = PERIODS.validation) -> People:
    population = population or TinyUsers()
    topics = make_topics(population.collection, tiny_vectors(), n_topics=3)
    return People(population, FeatureSource(population.collection, make_index(population.collection), topics), end)


def tiny_vectors() -> np.ndarray:
    vectors = np.random.default_rng(3).normal(size=(N_WORDS, DIM)).astype(np.float32)
    vectors[:2] = 0
    return vectors


def tiny_personal(population: TinyUsers | None = None, **changes: Any) -> PersonalSetting:
    """PEPS of the smallest size; changes: of the setting, or of its keys."""
    from hushrank.personal.models.peps import Peps

    own = {name: changes.pop(name) for name in list(changes) if name in PersonalSettings.__dataclass_fields__}
    settings = PersonalSettings(word_dim=DIM, **own)
    end = PERIODS.train + settings.n_trainings * WEEK if settings.is_staged else PERIODS.validation
    setting = PersonalSetting(
        tiny_people(population, end=end),
        settings,
        Peps(n_features=N_FEATURES, dim=DIM, heads=1, head_size=2, encoded=3),
        tiny_vectors(),
        WordSharing(),
        LocalTraining(epochs=settings.epochs, batch=4, chunk=4, rate=0.01),
        cohort=2,
        rounds=2,
        eval_every=1,
        repeats=1,
        seed=1,
    )
    return replace(setting, **changes)


def tiny_task(setting: PersonalSetting) -> Any:
    from hushrank.runs.personal_search import make_task

    return make_task(setting, 0, "cpu")


def tiny_examination(setting: PersonalSetting) -> Examination:
    return Examination(setting.people, has_lists=False)
