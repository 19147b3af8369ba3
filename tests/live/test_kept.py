"""Versions that differ work together: a server with the files and clients of older ones, a client with a newer server.

The files in `kept` were written by the versions whose names they have, with `kept/record.py`.
"""

from __future__ import annotations

import http.client
import json
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from live_processes import finish, serving, start_person
from scripted_federation import ScriptedFederation
from scripted_server import Request, Response, saying
from scripted_server import serving as scripted

from hushrank.live.device.client import Ending, Listeners
from hushrank.live.device.outbox import SENT
from hushrank.live.device.service import Device, serve_device
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop
from hushrank.live.server import store
from hushrank.live.server.config import ServerConfig
from hushrank.live.server.creation import create_federation, lock_federation, make_tokens
from hushrank.live.server.status import export_newest, read_status
from hushrank.live.wire.agreement import make_agreement, parse_agreement
from hushrank.privacy.ledger import read_ledger
from hushrank.rankers.named import read_ranker, unpack_ranker
from hushrank.types import Array

KEPT = Path(__file__).parent / "kept"
VERSIONS = sorted(path.name for path in KEPT.iterdir() if path.is_dir() and path.name != "__pycache__")
TRANSCRIPTS = sorted(KEPT.glob("*/*.transcript.json"))
OTHERWISE = ("closes_in_s", "detail")  # keys whose values may be others: of time, and for people
MARGIN = 1e-6  # of the largest weight, as in test_live_equality.py


@pytest.fixture(params=VERSIONS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a version wrote."""
    return Path(shutil.copytree(KEPT / request.param, tmp_path / "kept"))


def assert_close(ours: Array, theirs: Array) -> None:
    np.testing.assert_allclose(ours, theirs, atol=MARGIN * np.abs(theirs).max(), rtol=0)


def test_a_kept_federation_and_its_clients_go_on_to_the_same_ranker(kept: Path) -> None:
    """Round 4 is open with one of two answers: what was acknowledged counts, and the optimiser goes on."""
    expected, homes = json.loads((kept / "expected.json").read_text()), kept / "people"
    ledgers = [(homes / str(id) / "ledger.jsonl").read_bytes() for id in range(2)]
    with serving(kept / "federation") as server:
        said = finish([start_person(server, homes, id) for id in range(2)])
        assert all("ended: the federation is finished" in words for words in said)
        assert_close(server.export(), np.array(expected["params"]))
    status = read_status(kept / "federation")
    assert (status["rounds_closed"], status["rounds_abandoned"]) == (expected["rounds"], 0)
    assert status["updates_accepted"] == 2 * expected["rounds"] and status["refused"] == {}
    for home, ledger in zip((homes / "0", homes / "1"), ledgers, strict=True):
        with Interactions(home / STORE) as device:
            assert [answer.round for answer in device.outbox.answers(SENT)] == [1, 2, 3, 4, 5, 6]
        assert (home / "ledger.jsonl").read_bytes() == ledger  # it is seeded: nothing is promised, nothing counted
        assert read_ledger(home / "ledger.jsonl").budget.adjacency == "add-remove"


def test_a_kept_federation_can_be_read_without_being_changed(kept: Path) -> None:
    path = kept / "federation" / store.FILE
    before = path.read_bytes()
    status = read_status(kept / "federation")
    assert (status["round"], status["state"], status["answers"], status["asked"]) == (4, "open", 1, 2)
    export_newest(kept / "federation", kept / "ranker.safetensors")
    assert np.abs(read_ranker(kept / "ranker.safetensors")[1]).max() > 0
    assert path.read_bytes() == before


def test_the_first_ranker_of_schema_1_is_gone_and_only_who_asks_for_it_is_told(tmp_path: Path) -> None:
    shutil.copy(KEPT / "schema-1" / "federation" / store.FILE, tmp_path)
    with store.open_store(tmp_path / store.FILE).begin() as connection:
        assert store.read_ranker(connection)[1]["optimiser/n_steps"].tolist() == [3]
        with pytest.raises(ValueError, match="the first ranker of this federation is gone"):
            store.read_first_ranker(connection)


def test_a_kept_file_is_not_changed_under_a_server_that_runs(kept: Path) -> None:
    directory = kept / "federation"
    before = (directory / store.FILE).read_bytes()
    with lock_federation(directory), pytest.raises(ValueError, match="another server is at work in"):
        make_tokens(directory, 1)
    assert (directory / store.FILE).read_bytes() == before
    assert len(make_tokens(directory, 1)) == 1


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name} {path.name.partition('.')[0]}")
def test_a_kept_client_is_answered_as_it_was(path: Path, tmp_path: Path) -> None:
    exchanges = json.loads(path.read_text())
    agreement = parse_agreement(exchanges[0]["answer"]["agreement"])
    create_federation(tmp_path / "f", agreement, ServerConfig(), n_tokens=1)
    admit(tmp_path / "f", json.loads(bytes.fromhex(exchanges[1]["body"]))["token"])
    with serving(tmp_path / "f") as server:
        for exchange in exchanges:
            check_answer(exchange, *ask(server.url, exchange))


def admit(directory: Path, token: str) -> None:
    """Make the token known that the kept client has."""
    engine = store.open_store(directory / store.FILE)
    with engine.begin() as connection:
        store.add_tokens(connection, [store.hash_secret(token)], expires_at=time.time() + 600)
    engine.dispose()


def ask(url: str, exchange: dict[str, Any]) -> tuple[int, bytes]:
    """Status and content of what is answered to the very same bytes."""
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=90)) as connection:
        body = bytes.fromhex(exchange["body"])
        connection.request(exchange["method"], exchange["path"], body or None, exchange["headers"])
        answer = connection.getresponse()
        return answer.status, answer.read()


def check_answer(exchange: dict[str, Any], status: int, content: bytes) -> None:
    """JSON may have more keys than the kept client knows; a ranker is equal up to rounding."""
    what, kept = f"{exchange['method']} {exchange['path']}", exchange["answer"]
    assert status == exchange["status"], (what, content)
    if isinstance(kept, dict):
        said = json.loads(content)
        assert set(kept) <= set(said), what
        assert [(key, said[key]) for key in kept if key not in OTHERWISE] == [
            (key, value) for key, value in kept.items() if key not in OTHERWISE
        ], what
    else:
        ranker, params, origin = unpack_ranker(content, name=what)
        their_ranker, their_params, their_origin = unpack_ranker(bytes.fromhex(kept), name=what)
        assert (ranker, origin) == (their_ranker, their_origin), what
        assert_close(params, their_params)


class NewerFederation(ScriptedFederation):
    """Says more than today's servers."""

    def __call__(self, request: Request) -> Response:
        response = super().__call__(request)
        if not response.body.startswith(b"{"):
            return response
        return saying({**json.loads(response.body), "phases": ["keys", "update"], "later": None}, response.status)


def test_a_client_passes_over_what_only_a_newer_server_says(tmp_path: Path) -> None:
    federation = NewerFederation(
        make_agreement("library", n_features=2, privacy="paper", epsilon=4.5, n_clients=1, rounds=3)
    )
    with scripted(federation) as (url, requests):
        device = Device(tmp_path, url, token="t" * 43, epsilon=20.0)
        assert serve_device(device, Listeners(), Stop()) is Ending.finished
    assert {urlsplit(request.path).path for request in requests} > {
        "/v1/federation",
        "/v1/enrol",
        "/v1/round",
        "/v1/me",
    }
    with Interactions(tmp_path / STORE) as kept:
        assert [answer.state for answer in kept.outbox.answers()] == [SENT] * 3
