"""Personalised search as the simulator trains it: the users, the model, who is asked when, and what protects them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from hushrank.aggregation.named import CheckedRule
from hushrank.aggregation.server_step import ServerStep
from hushrank.attacks.tactics import Tactics
from hushrank.engine.personal_people import People
from hushrank.engine.personal_proxies import ProxyLateness, ProxySchedule, ProxySetting
from hushrank.engine.personal_schedule import Lateness, OnlineSchedule, RoundSchedule, Schedule, plan_online
from hushrank.federation.exchange import Exchange, UpdateExchange
from hushrank.personal.keys import PersonalSettings
from hushrank.personal.models.parameters import PersonalModel, WordSharing
from hushrank.personal.training import LocalTraining
from hushrank.streams import Purpose, draw_bits, fold_in, seed_key, stream
from hushrank.types import Array, Attack

PARAMS, STEPS = "params", "steps"  # of a state: [n_sent] what everybody has; [] steps taken
FOLD = 1  # logs are divided by time, in one way


@dataclass(frozen=True, slots=True)
class PersonalSetting:
    """Everything that one run depends on."""

    people: People
    settings: PersonalSettings
    model: PersonalModel | None  # None: the original order
    vectors: Array  # [n_words, dim] global word vectors, of the documents alone
    sharing: WordSharing
    training: LocalTraining
    cohort: int  # K
    rounds: int  # of one training; in each of them every client takes part once
    eval_every: int  # rounds
    repeats: int
    seed: int
    dropout: float = 0.0  # probability that a client misses the deadline of a step
    exchange: Exchange = UpdateExchange()  # noqa: RUF009 - frozen: updates leave as they are
    rule: CheckedRule | None = None  # None: the mean, weighted by pairs
    attack: Attack | Tactics[Attack] | None = None
    n_malicious: int = 0  # the clients with the lowest ids
    server_step: ServerStep = ServerStep()  # noqa: RUF009 - frozen: M += mean
    proxies: ProxySetting | None = None  # None: clients reach the server directly
    plans: dict[Hashable, OnlineSchedule] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_clients(self) -> int:
        return self.people.population.n_users

    def lateness_of(self, key: Array) -> Lateness:
        """key: of one training."""
        known = (self.n_clients, self.settings.stragglers, self.dropout, key)
        return Lateness(*known) if self.proxies is None else ProxyLateness(*known, self.proxies)

    def schedule_of(self, key: Array) -> Schedule:
        """Who is asked when, in the training of this key; planned once."""
        settings, people, lateness = self.settings, self.people, self.lateness_of(key)
        # Why: a promise holds where nobody's place in a step depends on what is in a log
        all_apply = self.proxies is None or self.exchange.protection.answers_always
        if settings.updating != "online":
            periods = people.population.periods
            size = (self.n_clients, self.cohort, self.rounds, settings.n_trainings)
            if not isinstance(lateness, ProxyLateness):
                return RoundSchedule(*size, periods, settings.updating, key)
            learners = None if all_apply else people.find_learners
            return ProxySchedule(*size, periods, settings.updating, key, lateness, learners)
        name = (key.tobytes(), self.cohort, self.dropout, settings, self.proxies)
        if name not in self.plans:
            applies = None if all_apply else people.has_pairs
            self.plans[name] = plan_online(
                people, lateness, cohort=self.cohort, trainings=settings.n_trainings, applies=applies
            )
        return self.plans[name]

    @property
    def measured_users(self) -> Array:
        """[n] ascending: those on whose searches models are measured, the same in all repeats and at all looks."""
        draws = draw_bits(fold_in(stream(seed_key(self.seed), Purpose.MEASURED), np.arange(self.n_clients)), 1)[:, 0]
        return np.sort(np.argsort(draws, kind="stable")[: self.settings.measured_users])

    def key_of(self, repeat: int) -> Array:
        """Of one training, from which all its draws come."""
        return stream(seed_key(self.seed), repeat, FOLD)
