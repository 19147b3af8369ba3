"""A malicious server can waste a client's time, and nothing else: what it says is bounded, checked and said."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_federation import ScriptedFederation
from scripted_server import Request, Response, saying, serving

from hushrank.live.device import transport
from hushrank.live.device.account import open_account
from hushrank.live.device.client import Ending, Participant, take_part
from hushrank.live.device.impressions import Impression
from hushrank.live.device.membership import ask_agreement, hold_home, join_federation
from hushrank.live.device.named import make_learning
from hushrank.live.device.rankers import MOST_PARAMETER
from hushrank.live.device.search import show_list
from hushrank.live.device.transport import Stop, Transport
from hushrank.live.wire.agreement import as_json, make_agreement
from hushrank.live.wire.terms import ranker_of
from hushrank.live.wire.untrusted import MOST_DEPTH, parse_untrusted
from hushrank.rankers.named import pack_ranker

AGREEMENT = make_agreement("scripted", n_features=2, interactions=1)
SOUND = make_agreement(
    "scripted", n_features=2, interactions=2, privacy="sound", noise_multiplier=2.0, n_clients=2, rounds=3
)
DEEP = b"[" * 200_000


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


@contextmanager
def joined(serve: Callable[[Request], Response], home: Path) -> Iterator[tuple[Participant, list[str]]]:
    """A member, and what it says to its owner."""
    said, stop = list[str](), Stop()
    timer = threading.Timer(60, stop.set)  # Why: a client that waits for ever fails the test instead
    timer.start()
    with serving(serve) as (url, _), hold_home(home) as store, Transport(url, stop=stop, tell=said.append) as way:
        agreement = join_federation(store, way, token="t" * 43)
        ledger = open_account(store, agreement, way.credential or "")
        member = Participant(store, way, make_learning(agreement), ledger)
        features, scores = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
        for _ in range(3):
            store.add(Impression(1, features, scores, np.array([0, 1]), np.array([False, True])))
        yield member, said
    timer.cancel()


def bending(federation: ScriptedFederation, path: str, *bad: Response) -> Callable[[Request], Response]:
    """The federation, whose first answers at a path are these."""
    left = list(bad)
    return lambda request: left.pop(0) if left and path in request.path else federation(request)


@pytest.mark.parametrize("status", [200, 403, 503])
@pytest.mark.parametrize("path", ["/v1/federation", "/v1/enrol", "/v1/me", "/v1/round?", "/v1/rounds/1/update"])
def test_json_of_any_depth_is_nonsense_like_any_other(path: str, status: int, tmp_path: Path) -> None:
    federation = ScriptedFederation(SOUND)
    with joined(bending(federation, path, Response(status, DEEP)), tmp_path) as (member, _):
        assert take_part(member) is Ending.finished
    assert len({upload.path for upload in federation.uploads}) == 3


@pytest.mark.parametrize(
    "news",
    [
        '{"round": 1180591620717411303424, "closes_in_s": 1, "is_asked": true}',  # 2^70
        '{"round": 1, "closes_in_s": 1' + "0" * 400 + ', "is_asked": true}',
        '{"round": 1, "closes_in_s": 1e999, "is_asked": true}',
        '{"round": 1, "closes_in_s": 1e300, "is_asked": true}',
        '{"round": 1, "closes_in_s": NaN, "is_asked": true}',
        '{"round": 1, "closes_in_s": 1, "is_asked": true, "last": {"round": 1' + "0" * 21 + ', "outcome": "open"}}',
        '{"round": 1' + "0" * 18 + ', "closes_in_s": 1, "is_asked": true}',
    ],
)
def test_numbers_beyond_all_bounds_are_nonsense(news: str, tmp_path: Path) -> None:
    federation = ScriptedFederation(AGREEMENT)
    with joined(bending(federation, "/v1/round?", Response(200, news.encode())), tmp_path) as (member, _):
        assert take_part(member) is Ending.finished
    assert [upload.path[:12] for upload in federation.uploads] == [f"/v1/rounds/{n}" for n in (1, 2, 3)]


def test_what_is_deep_or_large_is_not_read_and_what_we_say_ourselves_is() -> None:
    at_most = b"[" * MOST_DEPTH + b"]" * MOST_DEPTH
    assert parse_untrusted(at_most) and parse_untrusted(b'{"a": [1, -999999999999999999, 1e300, null, true]}')
    whole, fractions = b"[1000000000000000000]", (b"[Infinity]", b"[1e999]", b"[NaN]")
    for bad in (b"[" + at_most + b"]", whole, whole.replace(b"[", b"[-"), *fractions):
        with pytest.raises(ValueError, match=r"^JSON (of more than 16 levels|with)"):
            parse_untrusted(bad)


def ranker_bytes(about: dict[str, Any] | str, numbers: tuple[float, float] = (0.1, 0.2)) -> bytes:
    """A safetensors file with any text in the place of what it says about itself."""
    text = about if isinstance(about, str) else json.dumps({"format": 1, "ranker": "linear", "n_features": 2, **about})
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    head = json.dumps({"weights": tensor, "__metadata__": {"hushrank": text}}).encode()
    return struct.pack("<Q", len(head)) + head + np.array(numbers, "<f4").tobytes()


def from_round(round: object) -> dict[str, Any]:
    return {"origin": {"round": round, "agreement": AGREEMENT.digest}}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (ranker_bytes(from_round(2**70)), "does not say of which round"),
        (ranker_bytes(from_round(True)), "does not say of which round"),
        (ranker_bytes(from_round(3)), "is of round 3, asked for was that of round 2"),
        (ranker_bytes({"origin": []}), "does not say where it comes from"),
        (ranker_bytes("[" * 20_000), "is not a ranker"),
        (ranker_bytes({**from_round(2), "n_features": 3}), "lacks the tensor"),
        (ranker_bytes(from_round(2), (3e38, -3e38)), "parameters beyond 1,000,000"),
        (ranker_bytes(from_round(2), (float("inf"), 0)), "not finite"),
        (b"<html>", "is not a ranker"),
    ],
)
def test_a_ranker_that_cannot_be_used_is_left_out_and_the_last_good_one_stays(
    content: bytes, why: str, tmp_path: Path
) -> None:
    federation = ScriptedFederation(AGREEMENT)

    def bend(request: Request) -> Response:
        if "/v1/ranker" in request.path and federation.round == 2:
            federation.round = 3  # while the bad one travels
            return Response(body=content)
        return federation(request)

    with joined(bend, tmp_path) as (member, said):
        assert take_part(member, rounds=1) is Ending.enough  # round 1, whose ranker is good
        federation.on_poll = lambda after: federation.tell_round(after) if federation.round < 3 else Response(204)
        assert take_part(member, is_once=True) is Ending.nothing
        kept = member.store.newest_ranker()
        assert kept is not None and kept.round == 1 and kept.params.tolist() == federation.params.tolist()
        assert sorted(show_list(member.learning, member.store, np.eye(2)).ranking.tolist()) == [0, 1]
        assert [line for line in said if why in line and "round 2 is left out" in line and "last good" in line], said
        federation.on_poll = federation.tell_round
        assert take_part(member) is Ending.finished
    assert [upload.path[:12] for upload in federation.uploads] == ["/v1/rounds/1", "/v1/rounds/3"]


def test_the_largest_parameters_that_are_taken_give_finite_scores(tmp_path: Path) -> None:
    federation = ScriptedFederation(AGREEMENT, np.array([MOST_PARAMETER, -MOST_PARAMETER], np.float32))
    with joined(federation, tmp_path) as (member, _):
        assert take_part(member, rounds=1) is Ending.enough
        kept = member.store.newest_ranker()
        assert kept is not None and np.isfinite(member.learning.ranker.score(kept.params, np.full((2, 2), 1e3))).all()
    assert pack_ranker(ranker_of(AGREEMENT), kept.params, origin={})


def test_pages_that_nobody_shows_are_refused_before_anything_is_counted() -> None:
    agreement = make_agreement("scripted", n_features=2, method="foltr-es", p=0.5, k=20_000)
    said = {"agreement": as_json(agreement), "digest": agreement.digest, "wire": 1}
    with (
        serving(lambda _: saying(said)) as (url, _),
        Transport(url) as way,
        pytest.raises(ValueError, match="wants pages of 20000 results, at most 10000"),
    ):
        ask_agreement(way)
