"""Pretend people: what a client sends is, bit for bit, what the simulator's client sends in the plain round."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_settings import N_FEATURES, tiny_dataset

from hushrank.clicks.named import named_user
from hushrank.federation.cohort import Population
from hushrank.federation.local import learn
from hushrank.federation.round import Federation
from hushrank.live.device.learning import MAX_AGE, Learning
from hushrank.live.device.named import make_learning
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.pretend import person as simulated
from hushrank.live.pretend.person import Page, Person, draw_keys, open_page, search_enough
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.bodies import encode_reward, encode_update
from hushrank.live.wire.terms import key_of, server_step_of
from hushrank.streams import Purpose, draw_normal, stream
from hushrank.types import Client, PrivateReward

QUERIES = tiny_dataset().folds[0].train
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "mlp": {"ranker": "mlp", "hidden": 5},
    "paper": {"privacy": "paper", "epsilon": 4.5, "sensitivity": 0.2, "n_clients": 3},
    "sound": {"privacy": "sound", "noise_multiplier": 1.0, "n_clients": 3, "clip_norm": 0.05},
    "clients' noise": {
        "privacy": "sound",
        "noise_multiplier": 1.0,
        "n_clients": 3,
        "mechanism": "laplace",
        "placement": "clients",
        "n_honest": 2,
    },
    "foltr-es": {"method": "foltr-es", "p": 0.7, "sigma": 0.2},
    "foltr-es, one direction": {"method": "foltr-es", "privacy": "none", "antithetic": False, "interactions": 3},
}


def agree(name: str) -> Agreement:
    return make_agreement("tiny", n_features=N_FEATURES, seed=5, **SETTINGS[name])


def make_person(agreement: Agreement, id: int = 7) -> Person:
    return Person(id, QUERIES, named_user("navigational", n_grades=3), key_of(agreement))


def some_ranker(learning: Learning, person: Person, round: int = 4) -> KeptRanker:
    """Not the first one, and with the seed that the simulator would draw."""
    n_params = sum(part.size for part in learning.ranker.parameters)
    params = (0.3 * draw_normal(stream(person.key, 99), n_params)).astype(np.float32)
    return KeptRanker(round, params, learning.draw_seed(stream(person.key, Purpose.SEED, round, person.id)))


def message_of_the_simulator(learning: Learning, person: Person, ranker: KeptRanker) -> tuple[bytes, float, float]:
    """Body, weight and mean nDCG of the lists seen, by `round.py`'s own stages."""
    agreement = learning.agreement
    federation = Federation(
        learning.ranker,
        person.user,
        person.queries,
        Population(20, (agreement.interactions,)),
        learning_rate=agreement.learning_rate,
        server_step=server_step_of(agreement),
        k=agreement.k,
    )
    federation = learning.exchange.equip(federation)
    client = Client(person.id, agreement.interactions)
    learnt, quality = (federation.study or learn)(federation, ranker.params, client, key=person.key, round=ranker.round)
    message = federation.privatise(learnt, key=stream(person.key, Purpose.PRIVATISE, ranker.round, person.id))
    encode: Any = encode_reward if isinstance(message, PrivateReward) else encode_update
    return encode(message), message.weight, quality


def sealed(learning: Learning, person: Person, store: Interactions, ranker: KeptRanker) -> tuple[bytes, float]:
    draft = learning.draft(store, ranker, is_last_call=False)
    assert draft is not None
    answer = learning.seal(draft, key=stream(person.key, Purpose.PRIVATISE, ranker.round, person.id))
    return answer.body, answer.weight


@pytest.mark.parametrize("name", SETTINGS)
def test_a_message_is_the_simulators_bit_for_bit(name: str, tmp_path: Path) -> None:
    learning = make_learning(agree(name))
    person = make_person(learning.agreement)
    ranker = some_ranker(learning, person)
    with Interactions(tmp_path / "client.sqlite") as store:
        seen = search_enough(person, learning, store, ranker)
        body, weight, quality = message_of_the_simulator(learning, person, ranker)
        assert sealed(learning, person, store, ranker) == (body, weight)
    assert len(seen) == learning.agreement.interactions and np.mean(seen) == pytest.approx(quality)
    assert quality > 0 and any(np.frombuffer(body[4:], "<f4"))  # something was seen and learnt


class KilledError(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("name", ["none", "paper", "foltr-es"])
@pytest.mark.parametrize("lists_before", [0, 1, 3])
def test_killed_in_the_middle_of_a_round_the_message_is_the_same(
    name: str, lists_before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = make_learning(agree(name))
    person = make_person(learning.agreement)
    ranker = some_ranker(learning, person)
    left = iter(range(lists_before))

    def search_and_die(*arguments: Any) -> Page:
        if next(left, None) is None:
            raise KilledError
        return open_page(*arguments)

    monkeypatch.setattr(simulated, "open_page", search_and_die)
    with Interactions(tmp_path / "client.sqlite") as store, pytest.raises(KilledError):
        search_enough(person, learning, store, ranker)
    monkeypatch.undo()
    with Interactions(tmp_path / "client.sqlite") as store:
        assert len(search_enough(person, learning, store, ranker)) == learning.agreement.interactions - lists_before
        assert store.count_shown(round=ranker.round) == learning.agreement.interactions
        assert sealed(learning, person, store, ranker)[0] == message_of_the_simulator(learning, person, ranker)[0]


def test_freed_lists_are_learnt_from_before_the_person_searches_again(tmp_path: Path) -> None:
    learning = make_learning(agree("none"))
    person = make_person(learning.agreement)
    first = some_ranker(learning, person)
    with Interactions(tmp_path / "client.sqlite") as store:
        search_enough(person, learning, store, first)
        free = partial(store.find_free, policy="plackett-luce", oldest_round=0, limit=9)
        draft = learning.draft(store, first, is_last_call=False)
        assert draft is not None
        store.outbox.commit(learning.seal(draft, key=person.key), draft.used)
        assert not free()
        store.outbox.refuse(first.round, "late", frees=True)
        assert len(free()) == 4
        later = replace(first, round=first.round + 1)
        assert search_enough(person, learning, store, later) == []  # four lists are enough
        far = replace(first, round=first.round + MAX_AGE + 1)
        assert len(search_enough(person, learning, store, far)) == 4


def test_keys_drawn_together_are_those_drawn_one_by_one() -> None:
    person = make_person(agree("none"))
    keys = draw_keys(person, 9, 3)
    purposes = (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP)
    alone = [[stream(person.key, purpose, 9, person.id, i).tolist() for purpose in purposes] for i in range(3)]
    assert keys.tolist() == alone
