"""A client that fails before joining leaves nothing new; what may have joined, or was there before, stays."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from scripted_federation import ScriptedFederation, no
from scripted_server import Request, Response, saying, serving

from hushrank.clicks.named import named_user
from hushrank.data.load import load_dataset
from hushrank.live.device import membership, service, transport
from hushrank.live.device.client import Listeners
from hushrank.live.device.impressions import Impression
from hushrank.live.device.membership import JOINING, hold_home
from hushrank.live.device.search import open_home
from hushrank.live.device.service import Device, serve_device
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop, StoppedError
from hushrank.live.pretend.crowd import Pretence, pretend
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.refusals import Reason
from hushrank.locks import LOCK, Busy, lock_directory

Serve = Callable[[Request], Response]
AGREEMENT = make_agreement("homes", n_features=2, interactions=2)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(service, "_PATIENCE_S", 0.02)


def try_to_join(home: Path, url: str, token: str | None = "t", stop: Stop | None = None) -> None:
    serve_device(Device(home, url, token, is_once=True), Listeners(), stop or Stop())


def refusing(reason: Reason) -> Serve:
    federation = ScriptedFederation(AGREEMENT)
    return lambda request: no(reason) if request.path == "/v1/enrol" else federation(request)


@pytest.mark.parametrize(
    ("serve", "token", "said"),
    [
        (refusing(Reason.token), "t", "does not know this token"),
        (refusing(Reason.bad_request), "t", "no"),
        (ScriptedFederation(AGREEMENT), None, "is new to this device"),
        (lambda _: saying({"wire": 99}), "t", "speaks another version of the wire"),
        (lambda _: Response(502), "t", "does not answer"),
        (lambda _: Response(404, b"a web page"), "t", "does not answer"),
    ],
)
def test_who_fails_before_joining_leaves_nothing(tmp_path: Path, serve: Serve, token: str | None, said: str) -> None:
    with serving(serve) as (url, _), pytest.raises((ValueError, OSError), match=said):
        try_to_join(tmp_path / "far" / "home", url, token)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nonsense", "http://example.org"])
def test_a_wrong_address_leaves_nothing(tmp_path: Path, url: str) -> None:
    with pytest.raises((ValueError, OSError)):
        try_to_join(tmp_path / "home", url)
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_was_there_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with serving(refusing(Reason.token)) as (url, _), pytest.raises(ValueError, match="does not know this token"):
        try_to_join(tmp_path, url)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    shown = Impression(1, np.eye(2, dtype=np.float32), np.zeros(2, np.float32), np.arange(2), np.array([True, False]))
    with Interactions(tmp_path / STORE) as store:
        store.add(shown)
    with serving(refusing(Reason.token)) as (url, _), pytest.raises(ValueError, match="does not know this token"):
        try_to_join(tmp_path, url)
    with Interactions(tmp_path / STORE) as store:
        assert store.membership() is None and store.count_shown(round=1) == 1


def test_what_may_have_joined_keeps_its_credential(tmp_path: Path) -> None:
    """The server took the token, its answer was lost, and the person stopped the client before the next try."""
    federation, stop = ScriptedFederation(AGREEMENT), Stop()

    def lose_the_answer(request: Request) -> Response:
        response = federation(request)
        if request.path != "/v1/enrol":
            return response
        stop.set()
        return Response(502)

    with serving(lose_the_answer) as (url, _), pytest.raises(StoppedError):
        try_to_join(tmp_path / "home", url, stop=stop)
    with Interactions(tmp_path / "home" / STORE) as store:
        kept = store.membership()
    assert kept is not None and kept.state == JOINING and federation.tokens == {"t": f"Bearer {kept.credential}"}
    assert json.loads(kept.agreement)["name"] == "homes"


def test_nothing_of_another_client_is_taken_away(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with hold_home(home) as store:
        with pytest.raises(ValueError, match="another client is at work"), hold_home(home):
            pass
        assert (home / STORE).is_file() and store.is_empty()
    assert not home.exists()


def test_pretend_people_without_tokens_leave_nothing(tmp_path: Path) -> None:
    data = load_dataset("tiny", folds=[1])
    people = Pretence("http://127.0.0.1:9", tmp_path / "people", data.folds[0], named_user("perfect", n_grades=3))
    with pytest.raises(ValueError, match="there are 0 tokens"):
        pretend(people, range(3), stop=Stop(), show=print, greet=print, tell=print)
    assert list(tmp_path.iterdir()) == []


def test_an_application_that_looks_too_early_makes_no_home(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has not joined a federation"):
        open_home(tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


def test_what_is_new_is_taken_back_while_nobody_else_can_work_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, refused = tmp_path / "home", list[bool]()
    remove_new = membership.remove_new

    def look_and_remove(new: Sequence[Path]) -> None:
        with pytest.raises(Busy), lock_directory(home, refusal="busy"):
            pass
        refused.append(True)
        remove_new(new)

    monkeypatch.setattr(membership, "remove_new", look_and_remove)
    with hold_home(home):
        pass
    assert refused == [True] and list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_a_lock_that_its_holder_removed_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opened it just before would hold a file that nobody else can find."""
    flock = fcntl.flock

    def flock_too_late(file: BinaryIO, operation: int) -> None:
        (tmp_path / LOCK).unlink()
        (tmp_path / LOCK).touch()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock_too_late)
    with pytest.raises(Busy), lock_directory(tmp_path, refusal="busy"):
        pass
