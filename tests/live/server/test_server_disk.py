"""A disk that is full: 503, nothing half-written, and the same process goes on when there is room again."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import pytest
from asking_people import dense, enrol_people
from live_processes import create_federation, serving

from hushrank.live.server import store
from hushrank.live.wire import protocol

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits another process's files")


def test_a_full_disk_refuses_updates_and_room_lets_the_round_go_on(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, min_clients=3)
    with serving(tmp_path / "f") as server:
        one, two, three = enrol_people(server.url, tmp_path / "f", 3)
        one.poll()
        assert one.answer(1, dense(0.3, 0, 0)).status == 200
        pid, unlimited = server.process.pid, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # no file may grow beyond this
        refused = two.answer(1, dense(0, 0.3, 0))
        assert (refused.status, refused.reason) == (503, "disk") and refused.headers["retry-after"] == "5"
        assert one.ask("GET", protocol.HEALTH).reason == "disk"
        assert one.ask("GET", protocol.ME).json["accepted_updates"] == 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
        while one.ask("GET", protocol.HEALTH).status != 200:
            time.sleep(0.1)
        assert one.answer(1, dense(0.3, 0, 0)).json == {"accepted": True, "again": True}
        assert two.answer(1, dense(0, 0.3, 0)).json == {"accepted": True}
        assert three.answer(1, dense(0, 0, 0.3)).status == 200
        assert one.poll(after=1)["round"] == 2
        assert server.export().tolist() == pytest.approx([0.1, 0.1, 0.1])
    with store.open_store(tmp_path / "f" / store.FILE).begin() as connection:
        assert [member.accepted for member in store.read_members(connection)] == [1, 1, 1]


def test_a_disk_that_is_full_when_a_round_closes_stalls_nothing(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, deadline_s=2, min_clients=2)
    with serving(tmp_path / "f") as server:
        one, _ = enrol_people(server.url, tmp_path / "f", 2)
        one.poll()
        assert one.answer(1, dense(0.3, 0, 0)).status == 200
        limit = resource.RLIMIT_FSIZE
        resource.prlimit(server.process.pid, limit, (4096, resource.RLIM_INFINITY))
        while one.ask("GET", protocol.HEALTH).status == 200:  # until the deadline, when the round cannot be closed
            time.sleep(0.1)
        resource.prlimit(server.process.pid, limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert one.poll(after=1, wait=60)["last"] == {"round": 1, "outcome": "closed"}
        assert server.export().tolist() == pytest.approx([0.3, 0, 0])


def test_a_server_whose_disk_is_full_can_be_stopped_and_started_again(tmp_path: Path) -> None:
    create_federation(tmp_path / "f", "--features", 3, min_clients=2)
    with serving(tmp_path / "f") as server:
        one, two = enrol_people(server.url, tmp_path / "f", 2)
        one.poll()
        assert one.answer(1, dense(0.3, 0, 0)).status == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        assert two.answer(1, dense(0, 0.3, 0)).reason == "disk"
    with serving(tmp_path / "f") as server:
        one.url = two.url = server.url
        assert one.answer(1, dense(0.3, 0, 0)).json == {"accepted": True, "again": True}
        assert two.answer(1, dense(0, 0.3, 0)).json == {"accepted": True}
        assert one.poll(after=1)["last"] == {"round": 1, "outcome": "closed"}
        assert server.export().tolist() == pytest.approx([0.15, 0.15, 0])
