"""A file that is deleted or replaced under a running server: noticed, said, and everything acknowledged is saved."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from asking_people import Person, dense, enrol_people
from live_processes import HUSHRANK, Server, create_federation, serving

from hushrank.live.server import store
from hushrank.live.wire import protocol

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")


def lose(directory: Path, suffix: str) -> None:
    (directory / f"{store.FILE}{suffix}").unlink()


def said(directory: Path) -> str:
    return (directory.parent / "server.log").read_text()


def check_refused(server: Server, person: Person, update: bytes) -> None:
    """Neither this update nor anything else is accepted, and the operator can see why."""
    refused = person.answer(1, update)
    assert (refused.status, refused.reason, refused.headers["retry-after"]) == (503, "disk", "5")
    health = person.ask("GET", protocol.HEALTH)
    assert (health.status, health.reason) == (503, "disk") and "deleted or replaced" in health.json["detail"]
    late = Person(server.url)
    assert late.enrol((server.directory / "tokens.txt").read_text().split()[9]).reason == "disk"
    assert person.answer(1, update).reason == "disk"


def restore(directory: Path) -> None:
    """As the log says."""
    copy = directory / "federation.rescued-1.sqlite"
    assert copy.stat().st_mode & 0o777 == 0o600
    for suffix in ("", "-wal", "-shm"):
        (directory / f"{store.FILE}{suffix}").unlink(missing_ok=True)
    copy.rename(directory / store.FILE)


@pytest.mark.parametrize("suffix", ["-wal", "", "-shm"])
def test_after_the_file_was_deleted_nothing_is_acknowledged_and_nothing_acknowledged_is_lost(
    tmp_path: Path, suffix: str
) -> None:
    home = tmp_path / "f"
    create_federation(home, "--features", 3, min_clients=3)
    with serving(home) as server:
        one, two, three = enrol_people(server.url, home, 3)
        one.poll()
        assert one.answer(1, dense(0.3, 0, 0)).status == 200
        lose(home, suffix)
        check_refused(server, two, dense(0, 0.3, 0))
        status = subprocess.run([*HUSHRANK, "server", "status", home], capture_output=True, text=True, check=False)
        assert "All that was acknowledged is in" in status.stderr and "Traceback" not in status.stderr
        assert len(status.stderr.splitlines()) == 1
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server.process.returncode = 0  # Why: it is meant to die here
    assert f"{store.FILE}{suffix} was deleted while the server ran: nothing is accepted any more" in said(home)
    assert "the disk is full" not in said(home) and str(home / "federation.rescued-1.sqlite") in said(home)
    restore(home)
    with serving(home) as server:
        one.url = two.url = three.url = server.url
        assert one.answer(1, dense(0.3, 0, 0)).json == {"accepted": True, "again": True}
        assert two.answer(1, dense(0, 0.3, 0)).status == 200
        assert three.answer(1, dense(0, 0, 0.3)).status == 200
        assert one.poll(after=1)["last"] == {"round": 1, "outcome": "closed"}
        assert server.export().tolist() == pytest.approx([0.1, 0.1, 0.1])


def test_a_server_that_is_asked_nothing_notices_too_and_can_be_stopped(tmp_path: Path) -> None:
    home = tmp_path / "f"
    create_federation(home, "--features", 3, min_clients=3)
    with serving(home) as server:
        (one,) = enrol_people(server.url, home, 1)
        (home / "other").write_bytes(b"a copy of yesterday")
        (home / "other").rename(home / store.FILE)
        while one.ask("GET", protocol.HEALTH).status == 200:
            time.sleep(0.1)
        check_refused(server, one, dense(0, 0, 0))
    assert f"{store.FILE} was replaced by another file while the server ran" in said(home)
    assert (home / store.FILE).read_bytes() == b"a copy of yesterday"
    restore(home)
    with store.open_store(home / store.FILE).begin() as connection:
        assert len(store.read_members(connection)) == 1


def test_where_no_copy_can_be_written_that_is_said(tmp_path: Path) -> None:
    home = tmp_path / "f"
    create_federation(home, "--features", 3)
    with serving(home) as server:
        (one,) = enrol_people(server.url, home, 1)
        one.poll()
        home.rename(tmp_path / "elsewhere")
        assert one.answer(1, dense(0.3, 0, 0)).reason == "disk"
        assert "No copy could be saved" in said(home)


def test_a_file_that_is_overwritten_by_a_smaller_one_is_noticed(tmp_path: Path) -> None:
    """As `cp` does, which keeps the inode. What the server has open is spoilt, so that no copy of it is offered."""
    home = tmp_path / "f"
    create_federation(home, "--features", 3, min_clients=3)
    old = (home / store.FILE).read_bytes()[:-4096]
    with serving(home) as server:
        (one,) = enrol_people(server.url, home, 1)
        (home / store.FILE).write_bytes(old)
        for _ in range(100):  # Why not for ever: then it is not noticed
            if one.ask("GET", protocol.HEALTH).status != 200:
                break
            time.sleep(0.1)
        check_refused(server, one, dense(0, 0, 0))
    assert f"{store.FILE} was overwritten while the server ran" in said(home) and "No copy could be saved" in said(home)
    assert not list(home.glob("*rescued*"))
