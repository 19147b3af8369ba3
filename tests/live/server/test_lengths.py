"""How long updates were: told where nothing is promised, kept from everybody where something is."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking_people import Person, dense, enrol_people
from live_processes import create_federation, run, serving

from hushrank.live.server import store
from hushrank.live.server.creation import bound_influence, read_keys
from hushrank.live.server.lengths import measure_lengths
from hushrank.live.server.new_ranker import Body
from hushrank.live.wire import protocol
from hushrank.live.wire.agreement import make_agreement

SOUND: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 2.0, "n_clients": 3}


def test_lengths_are_worked_out_by_hand() -> None:
    bodies = [Body(1, dense(0.3, 0.4)), Body(1, dense(0.3, 0)), Body(1, dense(-1, 0))]
    found = measure_lengths(make_agreement("x", n_features=2), bodies, np.array([0.1, 0.0], np.float32))
    assert found is not None and found == pytest.approx((0.5, 1.0, -1.0, 0.1))


@pytest.mark.parametrize(
    "agreed", [SOUND, {"privacy": "paper", "epsilon": 1.2, "n_clients": 1}, {"method": "foltr-es"}]
)
def test_nothing_is_measured_where_something_is_promised(agreed: dict[str, Any]) -> None:
    agreement = make_agreement("x", n_features=2, **agreed)
    assert measure_lengths(agreement, [Body(1, dense(0.3, 0.4))], np.array([0.1, 0.0], np.float32)) is None


def test_a_new_federation_bounds_what_one_client_can_do(tmp_path: Path) -> None:
    """2.5 times learning rate and searches: 1 by default; where something else bounds it, nothing is added."""
    assert bound_influence(make_agreement("x", n_features=2)).update_norm == 1.0
    assert bound_influence(make_agreement("x", n_features=2, learning_rate=0.01, interactions=2)).update_norm == 0.05
    assert bound_influence(make_agreement("x", n_features=2, update_norm=7.0)).update_norm == 7.0
    for agreed in (SOUND, {"method": "foltr-es"}):
        agreement = make_agreement("x", n_features=2, **agreed)
        assert bound_influence(agreement) == agreement
    create_federation(tmp_path / "f", "--features", 3)
    create_federation(tmp_path / "free", "--features", 3, update_norm="none")
    found = [json.loads(run("server", "status", tmp_path / name, "--json"))["agreement"] for name in ("f", "free")]
    assert found[0]["update_norm"] == 1.0 and "update_norm" not in found[1]


def close_round(people: list[Person], number: int, *bodies: bytes) -> None:
    assert people[0].poll(after=number - 1)["round"] == number
    assert [p.answer(number, body).status for p, body in zip(people, bodies, strict=True)] == [200] * len(bodies)
    while people[0].ask("GET", protocol.ME).json["last"]["outcome"] == "open":
        time.sleep(0.02)


def test_a_poisoner_is_refused_beyond_the_bound_and_stands_out_within_it(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, min_clients=3)
    with serving(tmp_path / "f") as server:
        people = enrol_people(server.url, tmp_path / "f", 3)
        people[0].poll()
        assert people[2].answer(1, dense(-100, 0, 0)).reason == "norm"
        close_round(people, 1, dense(0.3, 0.1, 0), dense(0.35, 0, 0.1), dense(-1, 0, 0))
        status = json.loads(run("server", "status", tmp_path / "f", "--json"))
        assert status["lengths"]["longest"] == pytest.approx(1.0) and status["refused"] == {"norm": 1}
        assert status["lengths"]["median"] == pytest.approx(0.364, abs=1e-3)
        assert "longest 1," in run("server", "status", tmp_path / "f")
        token = read_keys(tmp_path / "f").operator_token
        metrics = people[0].ask("GET", protocol.METRICS, Authorization=f"Bearer {token}").content.decode()
        assert "hushrank_update_longest 1\n" in metrics and "hushrank_update_least_cosine -" in metrics
    assert "longest 1, least cosine" in (tmp_path / "server.log").read_text(encoding="utf-8")


def test_a_step_that_jumps_is_held_back_if_the_operator_wants_it(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, min_clients=2, hold_back="true", update_norm="none")
    with serving(tmp_path / "f") as server:
        people = enrol_people(server.url, tmp_path / "f", 2)
        for number in range(1, 6):
            close_round(people, number, dense(0.1, 0, 0), dense(0.1, 0, 0))
        close_round(people, 6, dense(5, 0, 0), dense(5, 0, 0))
        assert people[0].ask("GET", protocol.ME).json["last"] == {"round": 6, "outcome": "abandoned"}
        close_round(people, 7, dense(0.2, 0, 0), dense(0.2, 0, 0))
        assert server.export().tolist() == pytest.approx([0.7, 0, 0])
        for number in range(8, 12):  # three are held back, so that a federation never stands still for ever
            close_round(people, number, dense(5, 0, 0), dense(5, 0, 0))
        assert server.export().tolist() == pytest.approx([5.7, 0, 0])
    assert "round 6 was held back: its step of 5" in (tmp_path / "server.log").read_text(encoding="utf-8")
    with store.open_store(tmp_path / "f" / store.FILE).begin() as connection:
        assert store.restore_rounds(connection).abandoned == {6, 8, 9, 10}
