"""The client's decisions: what it does with every answer that a server can give."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scripted_federation import ACCEPTED, ScriptedFederation, no
from scripted_server import Request, Response, saying, serving

from hushrank.live.device import account, client, transport
from hushrank.live.device.account import Purse, open_account
from hushrank.live.device.client import Ending, Participant, Report, take_part
from hushrank.live.device.impressions import Impression
from hushrank.live.device.membership import (
    AgreementChangedError,
    hold_home,
    join_federation,
    leave_federation,
)
from hushrank.live.device.named import make_learning
from hushrank.live.device.outbox import REFUSED, SENT, WAITING, Answer, Outbox
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop, StoppedError, Transport
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.refusals import Reason
from hushrank.privacy.chain import LedgerError
from hushrank.privacy.device_ledger import find_device
from hushrank.privacy.ledger import read_ledger

AGREEMENT = make_agreement("scripted", n_features=2, interactions=2)
SOUND_SETTINGS: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 2.0, "n_clients": 2}
SOUND = make_agreement("scripted", n_features=2, interactions=2, rounds=3, **SOUND_SETTINGS)
TRIES = make_agreement("scripted", n_features=2, interactions=2, method="foltr-es", p=0.5, rounds=2)
WayTo = Callable[..., Transport]


def federation_of(agreement: Agreement = AGREEMENT) -> ScriptedFederation:
    return ScriptedFederation(agreement)


@pytest.fixture
def way_to() -> Iterator[WayTo]:
    """Makes ways to servers, and closes them."""
    with ExitStack() as ways:
        yield lambda url, **options: ways.enter_context(Transport(url, **options))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


@contextmanager
def joined(federation: ScriptedFederation, home: Path, **options: Any) -> Iterator[tuple[Participant, list[Report]]]:
    """A member of the scripted federation, and what it reports."""
    reports, stop = list[Report](), Stop()
    timer = threading.Timer(60, stop.set)  # Why: a client that waits for ever fails the test instead
    timer.start()
    with (
        serving(federation) as (url, _),
        hold_home(home) as store,
        Transport(url, stop=stop) as way,
    ):
        agreement = join_federation(store, way, token="t" * 43)
        assert way.credential is not None
        purse = Purse(find_device(), math.inf)
        paid = open_account(store, agreement, way.credential, purse=purse, **options)
        yield Participant(store, way, make_learning(agreement), paid, report=reports.append), reports
    timer.cancel()


def fill(store: Interactions, n: int = 1, round: int = 1) -> list[int]:
    """So many lists to learn from."""
    features, scores = np.eye(2, dtype=np.float32), np.array([0.1, -0.1], np.float32)
    one = Impression(round, features, scores, np.array([0, 1]), np.array([False, True]))
    return [store.add(one) for _ in range(n)]


def test_it_answers_every_round_with_what_it_has_and_ends_with_the_federation(tmp_path: Path) -> None:
    federation = federation_of()
    with joined(federation, tmp_path) as (member, reports):
        fill(member.store, 5)
        assert take_part(member) is Ending.finished
        assert [(r.round, r.n_lists, r.n_bytes, r.state) for r in reports] == [
            (1, 2, 8, SENT),
            (2, 2, 8, SENT),
            (3, 1, 8, SENT),
        ]
        assert [answer.body for answer in member.store.outbox.answers(SENT)] == [u.body for u in federation.uploads]
        assert member.store.count_used() == {1: 2, 2: 2, 3: 1}
    sent = federation.uploads[0]
    assert (sent.method, sent.path) == ("PUT", "/v1/rounds/1/update")
    known = {"Hushrank-Agreement": AGREEMENT.digest, "Hushrank-Weight": "2", "Content-Type": "application/octet-stream"}
    assert sent.headers.items() >= known.items()
    around = {"Host", "Accept-Encoding", "Content-Length", "Authorization", "Hushrank-Wire"}
    assert set(sent.headers) == set(known) | around


def test_it_ends_after_as_many_rounds_as_wanted(tmp_path: Path) -> None:
    with joined(federation_of(), tmp_path) as (member, reports):
        fill(member.store, 9)
        assert take_part(member, rounds=2) is Ending.enough and len(reports) == 2


def test_once_it_answers_what_is_asked_now_and_waits_for_nothing(tmp_path: Path) -> None:
    federation = federation_of()
    with joined(federation, tmp_path) as (member, reports):
        assert take_part(member, is_once=True) is Ending.nothing  # asked, but nobody has searched
        fill(member.store, 5)
        assert take_part(member, is_once=True) is Ending.enough
        assert [(r.round, r.n_lists) for r in reports] == [(1, 2)]
        federation.is_asked = False
        assert take_part(member, is_once=True) is Ending.nothing
        federation.round = 0
        assert take_part(member, is_once=True) is Ending.nothing  # no round is open
        federation.is_finished = True
        assert take_part(member, is_once=True) is Ending.finished


def test_once_a_few_trials_are_enough(tmp_path: Path) -> None:
    agreement = make_agreement("scripted", n_features=2, interactions=8, method="foltr-es")
    with joined(federation_of(agreement), tmp_path) as (member, reports):
        assert take_part(search_when_asked(member), is_once=True) is Ending.enough
        assert [r.n_lists for r in reports] == [2]


def test_who_is_not_asked_does_nothing(tmp_path: Path) -> None:
    federation = federation_of()
    federation.is_asked = False

    def tell_and_finish(after: int) -> Response:
        federation.is_finished = after >= 1
        return federation.tell_round(after)

    federation.on_poll = tell_and_finish
    with joined(federation, tmp_path) as (member, reports):
        fill(member.store, 2)
        assert take_part(member) is Ending.finished
        assert not reports and member.store.newest_ranker() is None


def test_it_waits_for_something_to_learn_from_while_the_round_is_open(tmp_path: Path) -> None:
    federation = federation_of()
    polls = list[int]()

    def tell_and_search(after: int) -> Response:
        polls.append(after)
        if polls.count(1) == 3:  # the client listens for a second round; now somebody searches
            with Interactions(tmp_path / STORE) as store:
                fill(store, 1)
        return federation.tell_round(after)

    federation.on_poll = tell_and_search
    with joined(federation, tmp_path) as (member, _):
        assert take_part(member, rounds=1) is Ending.enough
    assert polls == [0, 1, 1, 1] and len(federation.uploads) == 1


@pytest.mark.parametrize(
    ("closes_in_s", "waits"),
    [
        (28.0, [10, 10, 3, 10, 10]),  # its last call is after .8 x 28 = 22.4 s: 10 + 10 + 2.4, rounded up
        (1.0, [1, 10, 10, 10, 10]),  # .8 s, rounded up
        (0.0, [10] * 5),  # it is past its last call
        (None, [10] * 5),  # it has none
    ],
)
def test_with_nothing_to_learn_from_it_looks_every_ten_seconds_and_at_the_last_call(
    closes_in_s: float | None, waits: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation, now = federation_of(), [0.0]
    federation.closes_in_s = closes_in_s

    def let_time_pass(after: int) -> Response:
        now[0] += federation.waits[-1]
        federation.is_finished = len(federation.waits) > len(waits)
        return federation.tell_round(after)

    federation.on_poll = let_time_pass
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with joined(federation, tmp_path) as (member, _):
        assert take_part(member) is Ending.finished
    assert federation.waits == [30, *waits, 30]  # for the round, in it, and for the next


def test_a_late_answer_frees_its_lists_for_the_next_round(tmp_path: Path) -> None:
    federation = federation_of()

    def be_late_once(_: Request) -> Response:
        federation.round, federation.on_update = 2, federation.accept
        return no(Reason.late)

    federation.on_update = be_late_once
    with joined(federation, tmp_path) as (member, reports):
        numbers = fill(member.store, 2)
        assert take_part(member, rounds=1) is Ending.enough
        assert [(r.round, r.state, r.reason) for r in reports] == [(1, REFUSED, "late"), (2, SENT, None)]
        assert member.store.count_used() == {2: len(numbers)}


def test_what_seems_late_but_had_arrived_counts_as_sent(tmp_path: Path) -> None:
    """The acknowledgement was lost, and the round closed before the answer was sent again."""
    federation = federation_of()

    def had_arrived(_: Request) -> Response:
        federation.last = {"round": 1, "outcome": "closed"}
        federation.is_finished = True
        return no(Reason.late)

    federation.on_update = had_arrived
    with joined(federation, tmp_path) as (member, _):
        fill(member.store, 2)
        assert take_part(member) is Ending.finished
        assert [a.state for a in member.store.outbox.answers()] == [SENT] and member.store.count_used() == {1: 2}


def test_an_abandoned_round_frees_its_lists(tmp_path: Path) -> None:
    federation = federation_of()

    def accept_and_abandon(request: Request) -> Response:
        response = federation.accept(request)
        federation.last, federation.on_update = {"round": 1, "outcome": "abandoned"}, federation.accept
        return response

    federation.on_update = accept_and_abandon
    with joined(federation, tmp_path) as (member, reports):
        fill(member.store, 2)
        assert take_part(member, rounds=2) is Ending.enough
        states = [(r.round, r.state, r.reason) for r in reports]
        assert states == [(1, SENT, None), (1, REFUSED, "abandoned"), (2, SENT, None)]
        assert member.store.count_used() == {2: 2}


@pytest.mark.parametrize("reason", [Reason.norm, Reason.shape, Reason.answered, Reason.weight])
def test_an_answer_that_is_wrong_is_not_tried_with_the_same_lists_again(tmp_path: Path, reason: Reason) -> None:
    federation = federation_of()

    def refuse_once(request: Request) -> Response:
        federation.accept(request)
        federation.on_update = federation.accept
        return no(reason)

    federation.on_update = refuse_once
    with joined(federation, tmp_path) as (member, reports):
        fill(member.store, 3)
        assert take_part(member, rounds=1) is Ending.enough
        assert [r.reason for r in reports] == [str(reason), None]
        assert member.store.count_used() == {1: 2, 2: 1}


@pytest.mark.parametrize("said", [{"accepted": False}, {}, {"accepted": "yes"}, {"accepted": 1}, [], None])
def test_what_does_not_say_accepted_is_not_taken_for_it_and_the_same_bytes_come_again(
    said: Any, tmp_path: Path
) -> None:
    federation = federation_of()

    def say_it_once(_: Request) -> Response:
        federation.on_update = federation.accept
        return saying(said)

    federation.on_update = say_it_once
    with joined(federation, tmp_path) as (member, reports):
        fill(member.store, 2)
        assert take_part(member, rounds=1) is Ending.enough
        assert [(r.round, r.state) for r in reports] == [(1, SENT)]
    assert len(federation.uploads) == 2 and len({(u.path, u.body) for u in federation.uploads}) == 1


def test_what_waits_in_the_outbox_is_sent_first_the_same_bytes(tmp_path: Path) -> None:
    federation = federation_of()
    with joined(federation, tmp_path) as (member, _):
        numbers = fill(member.store, 3)
        member.store.outbox.commit(Answer(1, b"8 bytes.", 1.0, ""), numbers[:1])  # and then the client was killed
        assert take_part(member, rounds=1) is Ending.enough
        assert federation.uploads[0].body == b"8 bytes."
        assert [a.state for a in member.store.outbox.answers()] == [SENT, SENT]


@pytest.mark.parametrize(
    ("reason", "error", "said"),
    [
        (Reason.agreement, AgreementChangedError, "agreement has changed since this client joined"),
        (Reason.credential, ValueError, "does not know this client any more"),
        (Reason.version, ValueError, "speaks another version of the wire: update hushrank"),
    ],
)
def test_some_answers_end_it_and_keep_what_waits(
    tmp_path: Path, reason: Reason, error: type[Exception], said: str
) -> None:
    federation = federation_of()
    federation.on_update = lambda _: no(reason)
    with joined(federation, tmp_path) as (member, _):
        fill(member.store, 1)
        with pytest.raises(error, match=said):
            take_part(member)
        assert [a.state for a in member.store.outbox.answers()] == [WAITING] and member.store.count_used() == {1: 1}


def test_every_answer_is_paid_before_it_is_sent(tmp_path: Path) -> None:
    federation = federation_of(SOUND)
    real = federation.accept

    def count_entries(request: Request) -> Response:
        entries = read_ledger(tmp_path / "ledger.jsonl").entries
        assert [entry.round for entry in entries] == list(range(1, len(federation.uploads) + 1))
        return real(request)

    federation.on_update = count_entries
    with joined(federation, tmp_path) as (member, reports):
        assert take_part(member) is Ending.finished
        assert [len(r.ledger.entries) for r in reports if r.ledger] == [1, 2, 3]
    assert "Hushrank-Weight" not in federation.uploads[0].headers


def test_a_server_that_asks_before_the_rest_is_over_hears_nothing(tmp_path: Path) -> None:
    """It asks in rounds 1, 2 and 3; the client answers in 1 and, three rounds later, in 4."""
    agreement = make_agreement(
        "scripted", n_features=2, interactions=2, rounds=9, separation=3, mechanism="correlated", **SOUND_SETTINGS
    )
    federation = federation_of(agreement)

    def ask_again_and_again(after: int) -> Response:
        federation.round, federation.is_finished = after + 1, after >= 4
        return federation.tell_round(after)

    federation.on_poll = ask_again_and_again
    with joined(federation, tmp_path) as (member, _):
        assert take_part(member) is Ending.finished
    assert [upload.path for upload in federation.uploads] == ["/v1/rounds/1/update", "/v1/rounds/4/update"]
    assert [entry.round for entry in read_ledger(tmp_path / "ledger.jsonl").entries] == [1, 4]


def test_when_the_budget_is_spent_it_leaves(tmp_path: Path, way_to: WayTo) -> None:
    federation = federation_of(TRIES)
    price = make_learning(TRIES).price
    assert price is not None
    with joined(federation, tmp_path, epsilon=1.5 * price.ratio * price.times) as (member, reports):
        member = search_when_asked(member)
        assert take_part(member) is Ending.budget
        assert [r.state for r in reports] == [SENT]
        assert member.store.membership().state == "left"  # type: ignore[union-attr]
    with serving(federation) as (url, requests), Interactions(tmp_path / STORE) as store:
        with pytest.raises(ValueError, match=r"has left its federation\. Another --home may join again; what"):
            join_federation(store, way_to(url), token="t" * 43)
        assert not requests


def search_when_asked(member: Participant) -> Participant:
    """A person who searches twice for each new ranker, once in each direction."""
    from hushrank.live.device.search import show_list

    def search(_: Any) -> None:
        for _ in range(2):
            shown = show_list(member.learning, member.store, np.eye(2))
            member.store.click(shown.number, 0)
            member.store.finish(shown.number)

    return replace(member, search=search)


def test_a_trial_keeps_its_seed_and_its_answer_is_twelve_bytes(tmp_path: Path) -> None:
    federation = federation_of(TRIES)
    with joined(federation, tmp_path) as (member, _):
        member = search_when_asked(member)
        seeds = [ranker.seed for _ in range(2) if (ranker := client.fetch_ranker(member, 1)) is not None]
        assert take_part(member, rounds=1) is Ending.enough
        (answer,) = member.store.outbox.answers()
        assert len(answer.body) == 12 and seeds == 2 * [int.from_bytes(answer.body[:4], "little")]


def test_a_ledger_that_was_rolled_back_is_noticed(tmp_path: Path) -> None:
    federation = federation_of(SOUND)
    federation.accepted_updates = 1
    with joined(federation, tmp_path) as (member, _), pytest.raises(LedgerError, match="was rolled back"):
        take_part(member)
    assert not federation.uploads


def test_stopped_while_it_waits_it_loses_nothing(tmp_path: Path) -> None:
    federation = federation_of()
    federation.round = 0  # nothing is open
    with joined(federation, tmp_path) as (member, _):
        threading.Timer(0.1, member.transport.stop.set).start()
        with pytest.raises(StoppedError):
            take_part(member)


def test_joining_again_is_the_same_client_and_needs_no_token(tmp_path: Path, way_to: WayTo) -> None:
    federation = federation_of()
    with serving(federation) as (url, requests), Interactions(tmp_path / STORE) as store:
        with pytest.raises(ValueError, match="is new to this device: ask whoever runs it for a token"):
            join_federation(store, way_to(url))
        ways = [way_to(url) for _ in range(2)]
        assert [join_federation(store, way, token=token) for way, token in zip(ways, ("a", None), strict=True)]
        assert ways[0].credential == ways[1].credential and len(ways[0].credential or "") == 43
        assert len([r for r in requests if r.path == "/v1/enrol"]) == 1


def test_a_credential_is_kept_before_it_is_sent(tmp_path: Path, way_to: WayTo) -> None:
    """The server took the token, but its answer was lost."""
    federation = federation_of()
    answers = iter([Response(502)])

    def lose_the_first(request: Request) -> Response:
        response = federation(request)
        return next(answers, response) if request.path == "/v1/enrol" else response

    with serving(lose_the_first) as (url, _), Interactions(tmp_path / STORE) as store:
        stop = Stop()
        way = way_to(url, stop=stop, tell=lambda _: stop.set())
        assert join_federation(store, way, token="a") == AGREEMENT
        assert federation.tokens == {"a": f"Bearer {way.credential}"}
        with Interactions(tmp_path / "other") as other, pytest.raises(ValueError, match="does not know this token"):
            join_federation(other, way_to(url), token="a")


def test_changed_terms_are_refused_and_named(tmp_path: Path, way_to: WayTo) -> None:
    federation = federation_of(SOUND)
    with serving(federation) as (url, requests), Interactions(tmp_path / STORE) as store:
        join_federation(store, way_to(url), token="a")
        federation.agreement = make_agreement(
            "scripted", n_features=2, interactions=2, privacy="sound", noise_multiplier=1.0, n_clients=2, rounds=3
        )
        before = len(requests)
        with pytest.raises(AgreementChangedError, match=r"\(noise_multiplier 2.0 -> 1.0\)\. Nothing was sent"):
            join_federation(store, way_to(url))
        assert [r.path for r in requests[before:]] == ["/v1/federation"]


def test_leaving_twice_is_leaving_once(tmp_path: Path, way_to: WayTo) -> None:
    with serving(federation_of()) as (url, requests), Interactions(tmp_path / STORE) as store:
        with pytest.raises(ValueError, match="belongs to no federation"):
            leave_federation(store, way_to(url))
        join_federation(store, way_to(url), token="a")
        for _ in range(2):
            leave_federation(store, way_to(url))
        assert [r.path for r in requests].count("/v1/leave") == 1


def test_two_clients_never_share_a_home(tmp_path: Path) -> None:
    with hold_home(tmp_path), pytest.raises(ValueError, match="another client is at work in"), hold_home(tmp_path):
        pass
    with hold_home(tmp_path):
        pass


def test_a_budget_where_nothing_is_promised_is_refused_and_one_that_is_kept_stays(tmp_path: Path) -> None:
    with Interactions(tmp_path / STORE) as store:
        with pytest.raises(ValueError, match="promises no privacy: leave it out"):
            open_account(store, AGREEMENT, "c", epsilon=1.0)
        assert open_account(store, AGREEMENT, "c") is None
        made = open_account(store, SOUND, "c", epsilon=20.0)
        assert made is not None and open_account(store, SOUND, "c") == made
        assert read_ledger(made.path).budget.epsilon == 20.0
        with pytest.raises(LedgerError, match="Budgets are not changed in place"):
            open_account(store, SOUND, "c", epsilon=21.0)


def test_by_default_the_budget_covers_the_agreed_rounds_and_no_more(tmp_path: Path) -> None:
    federation = federation_of(SOUND)
    with joined(federation, tmp_path) as (member, _):
        assert take_part(member) is Ending.finished  # three rounds, as agreed
        federation.is_finished, federation.round = False, 4
        assert take_part(member) is Ending.budget


class DiedError(Exception):
    """Stands for the end of a process; tests/live/device/test_client_kill.py ends real ones."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "place",
    ["keep_ranker", "commit", "confirm", "forget_before", "keep_heads", "charge_device", "reserve_round"],
)
def test_died_at_any_point_every_list_is_in_one_answer(
    place: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation, counted = federation_of(SOUND), dict[str, bytes]()

    def count_once(request: Request) -> Response:
        if request.path in counted:
            assert counted[request.path] == request.body  # the same bytes may come again, and change nothing
            return ACCEPTED
        counted[request.path] = request.body
        return federation.accept(request)

    federation.on_update = count_once
    owner: Any = next(owner for owner in (account, Outbox, Interactions) if hasattr(owner, place))
    real, calls = getattr(owner, place), list[str]()

    def die_the_second_time(*given: Any, **named: Any) -> Any:
        calls.append(place)
        if len(calls) == 2 and when == "before":
            raise DiedError
        result = real(*given, **named)
        if len(calls) == 2:
            raise DiedError
        return result

    monkeypatch.setattr(owner, place, die_the_second_time)
    with joined(federation, tmp_path, epsilon=100.0) as (member, _):
        fill(member.store, 6)
        with pytest.raises(DiedError):
            take_part(member)
    with joined(federation, tmp_path, epsilon=100.0) as (member, _):
        assert take_part(member) is Ending.finished
        assert [a.state for a in member.store.outbox.answers()] == [SENT] * 3 and len(counted) == 3
        assert member.store.count_used() == {1: 2, 2: 2, 3: 2}


class CountedStop(Stop):
    """Notes its pauses instead of making them."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses = list[float]()

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.mark.parametrize(
    ("is_asked", "seconds", "n_pauses"),
    [
        (False, 10, 3),  # between rounds
        (True, 10, 3),  # in one that waits for something to learn from
        (False, 0, 0),  # polls that end when they should
    ],
)
def test_a_server_that_does_not_wait_is_not_asked_without_a_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_asked: bool, seconds: int, n_pauses: int
) -> None:
    monkeypatch.setattr(client, "WAIT_S", seconds)
    monkeypatch.setattr(client, "LISTEN_S", seconds)
    federation, news = federation_of(), list[Response]()
    federation.closes_in_s = None
    federation.is_asked = is_asked
    news += [federation.tell_round(0), *[Response(204)] * 3, *[saying({"finished": True, "last": None})] * 2]
    federation.on_poll = lambda _: news.pop(0)
    with joined(federation, tmp_path) as (member, _):
        member.transport.stop = stop = CountedStop()
        assert take_part(member) is Ending.finished
    assert len(stop.pauses) == n_pauses and all(pause > 0 for pause in stop.pauses)


def test_an_answer_leaves_at_a_random_moment_of_the_agreed_part_of_its_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of 80 s: uniform over 20 s, in steps of the long polls in which the client waits meanwhile."""
    federation, now, left_after = federation_of(), [0.0], list[float]()
    federation.closes_in_s = 80.0

    def let_time_pass(after: int) -> Response:
        now[0] += federation.waits[-1] if after >= federation.round else 0.0
        return federation.tell_round(after)

    class Waiting(Stop):
        def wait(self, seconds: float) -> None:
            now[0] += seconds

    federation.on_poll = let_time_pass
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(client, "rest_if_early", lambda *_: None)
    with joined(federation, tmp_path) as (member, _):
        member.transport.stop = Waiting()
        member = replace(member, spread=0.25)
        for round in range(1, 41):
            federation.round, federation.is_finished, began = round, False, now[0]
            fill(member.store, 2, round)
            assert take_part(member, rounds=1) is Ending.enough
            left_after.append(now[0] - began)
    assert 0 < min(left_after) < 5 and 15 < max(left_after) < 21
    assert sum(seconds < 10 for seconds in left_after) in range(8, 33)  # of 40; 20 on average


def test_who_waits_for_its_moment_hears_that_the_round_is_over_and_pays_nothing(tmp_path: Path) -> None:
    federation, polls = federation_of(SOUND), list[int]()
    federation.closes_in_s = 1e6

    def end_it(after: int) -> Response:
        polls.append(after)
        federation.is_finished = len(polls) > 1
        return federation.tell_round(after)

    federation.on_poll = end_it
    with joined(federation, tmp_path) as (member, reports):
        assert take_part(replace(member, spread=0.25)) is Ending.finished
        assert not reports and not federation.uploads and read_ledger(tmp_path / "ledger.jsonl").entries == ()


@pytest.mark.parametrize("agreement", [make_agreement("scripted", n_features=2, interactions=12), SOUND, TRIES])
def test_an_answer_is_as_long_whatever_it_was_learnt_from(agreement: Agreement, tmp_path: Path) -> None:
    federation, lengths = federation_of(agreement), set[int]()
    with joined(federation, tmp_path, **({"epsilon": 100.0} if agreement.privacy != "none" else {})) as (member, _):
        for round, n in enumerate((1, 12), start=1):
            fill(member.store, n, round)
            federation.is_finished = False
            take_part(search_when_asked(member) if agreement is TRIES else member, rounds=1)
    for sent in federation.uploads:
        head = "".join(f"{name}: {value}\n" for name, value in sent.headers.items())
        lengths.add(len(f"{sent.method} {sent.path}\n{head}") + len(sent.body))
    assert len(federation.uploads) == 2 and len(lengths) == 1
