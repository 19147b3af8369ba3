"""A training whose impressions are recorded is the same training, and the log says what happened in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import run_plainly, tiny_setting

from hushrank.data.clicklog import ClickLog
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.federation.cohort import Population, sample_ids
from hushrank.federation.local import learn
from hushrank.federation.recording import record
from hushrank.federation.replay import Replay
from hushrank.federation.round import run_round
from hushrank.leaks.membership import record_training
from hushrank.leaks.reconstruction import draw_round, watch_client
from hushrank.types import Client

CELL = Cell(1, 0, 0)


def impressions_of(log: ClickLog, client: int) -> list[int]:
    return np.flatnonzero(log.clients == client).tolist()


@pytest.mark.parametrize("ranker", ["linear", "mlp"])
def test_recording_changes_no_bit(ranker: str) -> None:
    setting = tiny_setting(ranker=ranker)
    params, log = record_training(setting, CELL)
    np.testing.assert_array_equal(params, run_plainly(setting, CELL, setting.rounds)[0])
    federation, key = make_federation(setting, CELL), cell_key(setting, CELL)
    asked = [client for round in range(1, 5) for client in sample_ids(federation.population, key, round).tolist()]
    assert [len(impressions_of(log, client)) for client in range(10)] == [
        asked.count(client) * (1, 3, 2)[client % 3] for client in range(10)
    ]


def test_the_log_has_the_queries_and_clicks_of_one_who_looks_over_a_shoulder() -> None:
    setting = tiny_setting(population=Population(4, (3,)), rounds=1)
    _, log = record_training(setting, CELL)
    federation, key = make_federation(setting, CELL), cell_key(setting, CELL)
    draws = draw_round(federation, 4, 3, key=key, round=1)
    for client in range(4):
        _, truth = watch_client(federation, initial_params(setting, CELL), draws, client)
        own = impressions_of(log, client)
        assert tuple(log.queries[own].tolist()) == truth.queries
        rows = [federation.queries.rows(int(log.queries[i])).start + log.shown[log.places(i)] for i in own]
        marks = [log.is_clicked[log.places(i)] for i in own]
        assert set(np.concatenate(rows)[np.concatenate(marks)].tolist()) == truth.clicked


def test_a_client_that_replays_its_first_impression_learns_the_same() -> None:
    setting = tiny_setting(population=Population(5, (1,)), rounds=1)
    _, log = record_training(setting, CELL)
    federation, start, key = make_federation(setting, CELL), initial_params(setting, CELL), cell_key(setting, CELL)
    own = tuple(np.flatnonzero(log.clients == client) for client in range(5))
    for client in range(5):
        first, again = (
            study(federation, start, Client(client, 1), key=key, round=1)[0].delta
            for study in (learn, Replay(log, own))
        )
        np.testing.assert_allclose(again, first, atol=1e-6)


def test_what_is_not_recorded_is_said() -> None:
    setting = tiny_setting(population=Population(2, (1,)))
    federation, recording = record(make_federation(setting, CELL))
    with pytest.raises(ValueError, match="nothing was recorded"):
        recording.as_log()
    start = initial_params(setting, CELL)
    run_round(federation, federation.start(start), start, key=cell_key(setting, CELL), round=1)
    log = recording.as_log()
    with pytest.raises(ValueError, match="only simulated searches"):
        record(replace(federation, study=Replay(log, ())))
