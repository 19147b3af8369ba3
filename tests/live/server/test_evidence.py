"""What an aggregation rule says of clients: who is distrusted since when, told to the operator and to nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import suspicious_rule
from asking_people import dense, enrol_people
from in_process import Live, enrol, play
from live_processes import create_federation, run, serving
from suspicious_rule import NAME, Suspicious
from typer.testing import CliRunner

from hushrank.aggregation.named import RULES
from hushrank.aggregation.watchful import Watchful
from hushrank.cli.server import app
from hushrank.live.server import store
from hushrank.live.server.counters import Counters, as_text
from hushrank.live.server.creation import read_keys
from hushrank.live.server.events import describe_clients, describe_round, describe_status
from hushrank.live.server.evidence import Evidence, Trust, keep_evidence, read_evidence, read_trust
from hushrank.live.server.new_ranker import first_ranker
from hushrank.live.server.rounds import RoundState
from hushrank.live.server.schema import EVIDENCE
from hushrank.live.server.status import read_clients, read_status
from hushrank.live.wire import protocol
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.types import Array, Combined, Gathered, Rule


@pytest.fixture(autouse=True)
def _with_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, NAME, Suspicious)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sa.Connection]:
    agreement = make_agreement("library", n_features=3)
    store.create_store(tmp_path / "f.sqlite", agreement, *first_ranker(agreement))
    with store.open_store(tmp_path / "f.sqlite").begin() as connection:
        yield connection


def judge(connection: sa.Connection, round: int, trust: dict[int, float], **evidence: float) -> None:
    values = np.array(list(trust.values()))
    keep_evidence(connection, round, Combined(np.zeros(3), evidence, trust=values), list(trust))


def test_distrust_lasts_from_the_first_round_of_its_run(connection: sa.Connection) -> None:
    one, two, three = enrol(connection, 3)
    judge(connection, 1, {one: 0.1, two: 1.0, three: 1.0})
    judge(connection, 2, {one: 0.6, two: 1.0, three: 1.0})  # not below a half: the run is over
    judge(connection, 4, {one: 0.4, two: 1.0, three: 1.0})
    judge(connection, 5, {two: 1.0, three: 1.0})  # it did not answer
    judge(connection, 7, {one: 0.03, two: 1.0, three: 0.5}, spread=2.5)
    assert read_evidence(connection) == Evidence(7, {"spread": 2.5}, [Trust(one, 7, 0.03, 4, 2)])
    assert read_trust(connection)[three] == Trust(three, 7, 0.5, None, 0)


def test_a_rule_that_leaves_most_clients_out_accuses_nobody(connection: sa.Connection) -> None:
    """As Krum does, which uses one update. Of four clients two are half, of five a minority."""
    clients = enrol(connection, 5)
    judge(connection, 1, dict(zip(clients[:4], (0.0, 0.0, 1.0, 1.0), strict=True)))
    assert read_evidence(connection).distrusted == []
    judge(connection, 2, dict(zip(clients, (0.0, 0.0, 1.0, 1.0, 1.0), strict=True)))
    assert [each.client for each in read_evidence(connection).distrusted] == clients[:2]
    judge(connection, 3, dict(zip(clients, (0.0, 1.0, 0.0, 0.0, 0.0), strict=True)))
    assert read_evidence(connection).distrusted == [Trust(clients[0], 3, 0.0, 2, 1)]


def test_whoever_is_copied_is_not_named_and_the_operator_hears_of_copies(connection: sa.Connection) -> None:
    clients, draws, memory = enrol(connection, 8), np.random.default_rng(4), dict[str, Array]()
    for round in range(1, 41):
        updates = 0.3 + draws.standard_normal((8, 8))
        updates[:2] = updates[2]  # two liars copy one client
        found = Watchful()(Gathered(updates, np.ones(8), np.array(clients), np.zeros(8), round, memory))
        memory = dict(found.memory)
        keep_evidence(connection, round, found, clients)
    said = read_evidence(connection)
    assert said.distrusted == [] and said.named["alike"] == 2 and said.named["copies"] > 1
    assert {trust.trust for trust in read_trust(connection).values()} == {1.0}


def test_what_is_no_finite_number_is_left_out(connection: sa.Connection) -> None:
    one, two = enrol(connection, 2)
    judge(connection, 1, {one: np.nan, two: 1.0}, good=1.0, bad=np.nan, worse=np.inf)
    assert read_evidence(connection).named == {"good": 1.0} and list(read_trust(connection)) == [two]


def test_evidence_is_kept_for_a_hundred_rounds_and_its_names_are_few(connection: sa.Connection) -> None:
    one, two, three = enrol(connection, 3)
    judge(connection, 1, {one: 0.0, two: 1.0, three: 1.0}, spread=1.0)
    for round in range(2, 103):
        judge(connection, round, {two: 1.0, three: 1.0}, **{f"n{i}": 1.0 for i in range(40)})
    rounds = connection.execute(sa.select(sa.func.min(EVIDENCE.c.round), sa.func.count())).one()
    assert rounds == (3, 100 * 32) and set(read_trust(connection)) == {two, three}


def test_who_has_left_is_not_distrusted_any_more(connection: sa.Connection) -> None:
    one, two, three = enrol(connection, 3)
    judge(connection, 1, {one: 0.0, two: 1.0, three: 1.0})
    store.leave_client(connection, one, now=1.0)
    assert read_evidence(connection).distrusted == []


def agree(**settings: Any) -> Agreement:
    return make_agreement("library", n_features=3, aggregation=NAME, **settings)


async def answer_rounds(live: Live, clients: list[Any], n: int) -> None:
    """So many rounds in which the last client pulls against the others."""
    for _ in range(n):
        for client in clients[:-1]:
            await live.answer(client, 0.2, 0.1, 0)
        await live.answer(clients[-1], -1, 0, 0)
        await live.settle()


def test_the_operator_is_told_who_pulls_against_all_others_and_since_when(tmp_path: Path) -> None:
    """Forgiven in round 1: (2 * .2 - 1) / 3 = -.2; left out in 2 and 3: + .2 each. Clients' numbers begin with 1."""

    async def story(live: Live) -> str:
        await answer_rounds(live, await live.enrol(3), 3)
        assert live.params() == pytest.approx([0.2, 0.2 / 3 + 0.2, 0.0])
        closed = [facts for event, facts in live.said if event == "round-closed"]
        assert [facts.get("distrusted") for facts in closed] == [None, 1, 1]
        assert describe_round(closed[-1]).endswith("; 1 distrusted") and "client" not in json.dumps(closed)
        return as_text(live.c.counters, live.c.gauges(), live.c.rounds.state)

    text = play(tmp_path / "f", story, agreement=agree(), min_clients=3)
    assert "hushrank_clients_distrusted 1\n" in text and 'hushrank_evidence{name="opposed"} 1\n' in text
    status, clients = read_status(tmp_path / "f"), read_clients(tmp_path / "f")
    assert status["evidence"] == {"round": 3, "opposed": 1.0} and status["agreement"]["aggregation"] == NAME
    pseudonym = clients[2]["pseudonym"]
    assert status["distrusted"] == [
        {"client": 3, "round": 3, "trust": 0.0, "low_since": 2, "n_low": 2, "pseudonym": pseudonym}
    ]
    said = describe_status(status)
    assert "rule        suspicious, round 3: opposed 1\n" in said
    assert f"distrusted  since round 2: client 3 ({pseudonym}), trust 0.00 (2 updates in a row)" in said
    assert [(each["client"], each["trust"], each["distrusted_since"]) for each in clients] == [
        (1, 1.0, None),
        (2, 1.0, None),
        (3, 0.0, 2),
    ]
    number, name, *rest = describe_clients(clients).splitlines()[-1].split()
    assert (number, len(name), rest) == ("3", 16, ["3", "0", "3", "0.00", "round", "2"])


def test_a_restart_forgets_neither_the_rules_memory_nor_who_is_distrusted(tmp_path: Path) -> None:
    """Patience 2 is used up in the second round, though the server was started anew between the two."""
    credentials = list[Any]()

    async def first(live: Live) -> None:
        clients = await live.enrol(3)
        credentials.extend(key for key in live.c._clients)
        await answer_rounds(live, clients, 1)
        assert live.c.counters.evidence.distrusted == []

    async def second(live: Live) -> None:
        clients = [live.c._clients[key] for key in credentials]
        for client in clients:
            live.c.rounds.see(client.id, live.now)
        await live.move(0)
        await answer_rounds(live, clients, 1)
        assert [each.client for each in live.c.counters.evidence.distrusted] == [3]

    async def third(live: Live) -> str:
        return as_text(live.c.counters, live.c.gauges(), live.c.rounds.state)

    play(tmp_path / "f", first, agreement=agree(), min_clients=3)
    play(tmp_path / "f", second, min_clients=3)
    assert "hushrank_clients_distrusted 1\n" in play(tmp_path / "f", third, min_clients=3)


def test_a_round_that_is_held_back_teaches_the_rule_nothing(tmp_path: Path) -> None:
    """What the rule remembers commits with the ranker: without one, neither does."""

    async def story(live: Live) -> dict[str, Any]:
        clients = await live.enrol(3)
        for _ in range(6):
            for client in clients:
                await live.answer(client, 0.1, 0, 0)
            await live.settle()
        before = dict(live.c._state)
        await live.answer(clients[0], 50, 0, 0)
        await live.answer(clients[1], 50, 0, 0)
        await live.answer(clients[2], -1, 0, 0)
        await live.settle()
        assert live.said[-1][0] == "held-back"
        assert {name: part.tolist() for name, part in live.c._state.items()} == {
            name: part.tolist() for name, part in before.items()
        }
        return dict(live.c._state)

    state = play(tmp_path / "f", story, agreement=agree(), min_clients=3, hold_back=True)
    assert state["rule/ids"].tolist() == [] and read_status(tmp_path / "f")["evidence"]["round"] == 6


@dataclass(frozen=True)
class Broken:
    """Fails with what it has seen."""

    error: type[Exception]

    def __call__(self, gathered: Gathered) -> Combined:
        raise self.error(f"secret {gathered.updates}")


def fail_with(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said of a round whose rule fails."""
    monkeypatch.setitem(RULES, "broken", rule)

    async def story(live: Live) -> str:
        (one,) = await live.enrol()
        await live.answer(one, 0.123, 0, 0)
        await live.settle()
        event, facts = next((event, facts) for event, facts in live.said if event.startswith("round-"))
        assert event == "round-abandoned" and live.c.rounds.number == 2 and not live.c.is_in_trouble
        return str(facts["failure"])

    return play(tmp_path / "f", story, agreement=make_agreement("library", n_features=3, aggregation="broken"))


@pytest.mark.parametrize("error", [KeyError, ValueError, np.linalg.LinAlgError])
def test_a_rule_that_fails_abandons_the_round_and_tells_nothing_of_updates(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail_with(Broken(error), tmp_path, monkeypatch)
    assert said == f"aggregation=broken failed with {error.__name__}."


def test_a_rule_whose_result_is_no_update_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = fail_with(lambda gathered: Combined(gathered.updates[0, :2]), tmp_path, monkeypatch)
    assert said == "aggregation=broken gave (2,) numbers or infinities, must be 3."


def test_a_server_without_the_agreed_rule_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(live: Live) -> None:
        pass

    play(tmp_path / "f", nothing, agreement=agree())
    monkeypatch.delitem(RULES, NAME)
    with pytest.raises(ValueError, match="aggregation is 'suspicious'; available: mean"):
        play(tmp_path / "f", nothing)


def test_names_of_evidence_cannot_break_the_metrics() -> None:
    counters = Counters()
    counters.evidence = Evidence(1, {'a"b\\c\nd': 0.5})
    assert 'hushrank_evidence{name="a\\"b\\\\c\\nd"} 0.5\n' in as_text(counters, {}, RoundState.idle)


def test_the_commands_tell_it(tmp_path: Path) -> None:
    async def story(live: Live) -> None:
        await answer_rounds(live, await live.enrol(3), 2)

    play(tmp_path / "f", story, agreement=agree(), min_clients=3)
    hushrank = [sys.executable, suspicious_rule.__file__, "server"]
    status, named, clients, listed = [
        subprocess.run([*hushrank, word, str(tmp_path / "f"), *more], capture_output=True, text=True, check=True).stdout
        for word in ("status", "clients")
        for more in ([], ["--json"])
    ]
    third = json.loads(listed)["clients"][2]
    assert f"distrusted  since round 2: client 3 ({third['pseudonym']}), trust 0.00" in status
    assert [each["pseudonym"] for each in json.loads(named)["distrusted"]] == [third["pseudonym"]]
    assert clients.splitlines()[0] == "client  pseudonym         accepted  refused  last round  trust  distrusted since"
    assert third["distrusted_since"] == 2 and third["pseudonym"] in clients


def test_a_real_server_survives_lies_and_names_the_liar(tmp_path: Path) -> None:
    """Multi-Krum leaves out one of five; no number of it reaches the rule that is none."""
    create_federation(tmp_path / "f", "--features", 3, min_clients=5, aggregation="multi-krum", assumed_malicious=1)
    with serving(tmp_path / "f") as server:
        people = enrol_people(server.url, tmp_path / "f", 5)
        for round in (1, 2):
            assert people[0].poll(after=round - 1)["round"] == round
            assert people[4].answer(round, dense(np.nan, 0, 0)).reason == "not-finite"
            assert people[4].answer(round, dense(0, np.inf, 0)).reason == "not-finite"
            bodies = [dense(0.3, 0.01 * i, 0) for i in range(4)]
            for person, body in zip(people, [*bodies, dense(-1, 0, 0)], strict=True):
                assert person.answer(round, body).status == 200
        people[0].poll(after=2)
        token = read_keys(tmp_path / "f").operator_token
        metrics = people[0].ask("GET", protocol.METRICS, Authorization=f"Bearer {token}").content.decode()
        assert server.export().tolist() == pytest.approx([0.6, 0.03, 0])
    assert "hushrank_clients_distrusted 1\n" in metrics
    status = json.loads(run("server", "status", tmp_path / "f", "--json"))
    assert status["refused"] == {"not-finite": 4} and status["rounds_closed"] == 2
    assert [(each["client"], each["low_since"]) for each in status["distrusted"]] == [(5, 1)]
    name = status["distrusted"][0]["pseudonym"]
    assert f"since round 1: client 5 ({name}), trust 0.00 (2 updates in a row)" in run(
        "server", "status", tmp_path / "f"
    )
    log = (tmp_path / "server.log").read_text(encoding="utf-8")
    assert "; 1 distrusted" in log and "client 5" not in log and name not in log


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"aggregation": "krum"}, "aggregation=krum needs assumed_malicious"),
        ({"aggregation": "median", "assumed_malicious": 1}, "aggregation=median does not ask how many clients lie"),
        ({"aggregation": "krum", "assumed_malicious": 2, "quorum": 4}, "needs 5 answers: aggregation=krum is not def"),
        ({"aggregation": "krum", "assumed_malicious": 2, "cohort": 4}, "krum is not defined for 4 clients"),
    ],
)
def test_a_federation_whose_rule_could_not_work_is_not_made(chosen: dict[str, Any], why: str, tmp_path: Path) -> None:
    words = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    done = CliRunner().invoke(app, ["init", str(tmp_path / "f"), *words])
    assert isinstance(done.exception, ValueError) and why in str(done.exception)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(("quorum", "is_told"), [(None, True), (6, True), (7, False)])
def test_who_makes_a_federation_hears_that_a_rule_is_proven_for_more_answers(
    quorum: int | None, is_told: bool, tmp_path: Path
) -> None:
    """Krum with two liars: defined from 5 answers on, proven from 2 * 2 + 3 = 7."""
    words = ["--set", "aggregation=krum", "--set", "assumed_malicious=2"]
    words += [] if quorum is None else ["--set", f"quorum={quorum}"]
    done = CliRunner().invoke(app, ["init", str(tmp_path / "f"), *words])
    assert done.exit_code == 0
    assert (f"from 7 answers on, and a round may close with {quorum or 5}" in done.output) is is_told


@pytest.mark.parametrize(("quorum", "is_told"), [(None, True), (4, True), (5, False)])
def test_who_makes_a_federation_hears_that_a_rule_judges_nobody_among_few_answers(
    quorum: int | None, is_told: bool, tmp_path: Path
) -> None:
    words = ["--set", "aggregation=watchful"] + ([] if quorum is None else ["--set", f"quorum={quorum}"])
    done = CliRunner().invoke(app, ["init", str(tmp_path / "f"), *words])
    assert done.exit_code == 0
    said = f"watchful judges nobody in a round of fewer than 5 answers, and a round may close with {quorum or 1}."
    assert (said in done.output) is is_told


def test_a_round_with_too_few_answers_for_its_rule_is_abandoned(tmp_path: Path) -> None:
    """Krum that reckons with two liars needs five; the quorum follows, also where the operator names none."""

    async def story(live: Live) -> None:
        clients = await live.enrol(5)
        assert live.c.rules.quorum == live.c.rules.fewest == 5
        for client in clients[:4]:
            await live.answer(client, 0.1, 0, 0)
        await live.settle()
        assert live.c.rounds.is_open
        await live.move(61)
        assert ("round-abandoned", 1) in [(event, facts.get("round")) for event, facts in live.said]

    agreement = make_agreement("library", n_features=3, aggregation="krum", assumed_malicious=2)
    play(tmp_path / "f", story, agreement=agreement)
