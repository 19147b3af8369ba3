"""FedPer: what is personal is each client's own, and never leaves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from remedy_settings import change_method, follow, opposed, with_remedy
from tiny_settings import N_FEATURES

from hushrank.engine.inputs import cell_key
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import Population, find_groups
from hushrank.federation.personal import own_rankers, personal_places, study_personally
from hushrank.federation.state import OWN_PARAMETERS
from hushrank.remedies.personal_layers import FedPer
from hushrank.remedies.remedy import Remedy
from hushrank.types import Array, Client, DenseUpdate, PrivateUpdate

LAYERS = FedPer(personal=("output/weights", "hidden/bias"))
FOUR = Population(4, (2,))


def test_only_the_clients_that_took_part_have_moved_and_each_by_itself() -> None:
    setting = opposed(with_remedy(LAYERS, ranker="mlp", population=Population(8, (2,), cohort=3), n_folds=1))
    federation, states, rankers = follow(setting, 1)
    before, after = (state[OWN_PARAMETERS] for state in states)
    _, learnt = study_personally(federation, states[0], rankers[0], [], key=cell_key(setting, Cell(0, 0, 0)), round=1)
    assert learnt == []
    has_moved = (before != after).any(axis=1)
    assert has_moved.sum() == 3
    assert len(np.unique(after[has_moved], axis=0)) == 3
    assert not np.shares_memory(before, after)


def test_what_one_client_keeps_changes_nothing_of_another() -> None:
    setting = with_remedy(LAYERS, ranker="mlp", population=FOUR, n_folds=1)
    federation, (state, *_), (params, *_) = follow(setting, 0)
    key, client = cell_key(setting, Cell(0, 0, 0)), Client(2, 2)
    planted = state[OWN_PARAMETERS].copy()
    planted[1] = 1e6
    both = [
        study_personally(federation, {**state, OWN_PARAMETERS: own}, params, [client], key=key, round=1)
        for own in (state[OWN_PARAMETERS], planted)
    ]
    assert both[0][1][0][0].delta.tobytes() == both[1][1][0][0].delta.tobytes()
    assert both[0][0][OWN_PARAMETERS][2].tobytes() == both[1][0][OWN_PARAMETERS][2].tobytes()


def test_no_message_holds_what_is_personal_and_the_servers_copy_never_moves() -> None:
    setting = opposed(with_remedy(LAYERS, ranker="mlp", population=FOUR, n_folds=1))
    places, sent = personal_places(setting.method.ranker), list[DenseUpdate]()
    federation = make_federation(setting, Cell(0, 0, 0))

    def listen(update: DenseUpdate, **_: object) -> PrivateUpdate:
        sent.append(update)
        return PrivateUpdate(update.delta, 1.0, "")

    _, states, rankers = follow(setting, 3, federation=replace(federation, privatise=listen))
    assert len(sent) == 3 * 4 and len(places) == 5 + 5  # the biases and the output's weights of five hidden units
    assert not any(update.delta[places].any() for update in sent)
    assert all((params[places] == rankers[0][places]).all() for params in rankers)
    assert not (rankers[-1] == rankers[0]).all() and not (states[-1][OWN_PARAMETERS] == states[0][OWN_PARAMETERS]).all()


def test_a_ranker_that_is_personal_as_a_whole_is_local_learning() -> None:
    setting = opposed(with_remedy(FedPer(personal=("weights",)), population=FOUR, n_folds=1))
    _, states, _ = follow(setting, 5)
    found = own_rankers(setting.method.remedy, setting.method.ranker, states[-1], np.zeros(N_FEATURES, np.float32), 4)
    alone = change_method(setting, remedy=Remedy(), ranker=replace(setting.method.ranker, personal=()))
    for client in range(4):
        np.testing.assert_allclose(found[client], learn_alone(alone, client))


def learn_alone(setting: Setting, client: int) -> Array:
    """[n_params] of one client who never hears from others, after five rounds."""
    federation, key = make_federation(setting, Cell(0, 0, 0)), cell_key(setting, Cell(0, 0, 0))
    who = Client(client, 2, int(find_groups(setting.method.population, np.array([client]))[0]))
    params: Array = np.zeros(N_FEATURES, np.float32)
    for round in range(1, 6):
        params = params + federation.study(federation, params, who, key=key, round=round)[0].delta
    return params
