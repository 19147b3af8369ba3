"""A ledger that was lost is noticed before anything is answered, and rebuilt so that nothing is spent twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripted_federation import ScriptedFederation, no
from scripted_server import Request, Response, serving

from hushrank.clicks.named import named_user
from hushrank.data.load import load_dataset
from hushrank.live.device import transport
from hushrank.live.device.account import LEDGER, SET_ASIDE, describe_spending, open_account
from hushrank.live.device.client import Ending, Listeners
from hushrank.live.device.service import Device, serve_device
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop
from hushrank.live.pretend.crowd import Pretence, pretend
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.refusals import Reason
from hushrank.privacy.chain import LedgerError
from hushrank.privacy.ledger import read_ledger, write_ledger

SOUND = make_agreement(
    "scripted", n_features=2, interactions=2, privacy="sound", noise_multiplier=2.0, n_clients=2, rounds=6
)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def serve(federation: ScriptedFederation, device: Device, said: list[str] | None = None) -> Ending:
    tell = said.append if said is not None else lambda _: None
    with serving(federation) as (url, _):
        home = device.home
        joining = Device(home, url, "t" * 43, device.epsilon, None, device.rounds, False, device.rebuilds_ledger)
        return serve_device(joining, Listeners(tell), Stop())


def late_in_round_two(federation: ScriptedFederation) -> Callable[[Request], Response]:
    """The second answer arrives, and does not count."""

    def answer(request: Request) -> Response:
        response = federation.accept(request)
        if "/2/" not in request.path:
            return response
        federation.accepted_updates -= 1
        federation.last = None
        return no(Reason.late)

    return answer


def spend_three(home: Path, **options: float) -> ScriptedFederation:
    """Answers to rounds 1, 2 (late) and 3; the federation is then open for more."""
    federation = ScriptedFederation(SOUND)
    federation.on_update = late_in_round_two(federation)
    assert serve(federation, Device(home, epsilon=options.get("epsilon"), rounds=2)) is Ending.enough
    federation.is_finished = False
    assert federation.accepted_updates == 2 and len(read_ledger(home / LEDGER).entries) == 3
    return federation


def lose(path: Path) -> None:
    path.unlink()


def cut_back(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))  # 2 entries, as many as were accepted


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"round":2', b'"round":7'))


@pytest.mark.parametrize(
    ("harm", "said"), [(lose, "is missing"), (cut_back, "was rolled back"), (damage, "was edited after")]
)
def test_a_lost_ledger_is_noticed_and_a_rebuilt_one_counts_every_answer(
    harm: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    federation = spend_three(tmp_path, epsilon=10.0)
    before = read_ledger(tmp_path / LEDGER)
    harm(tmp_path / LEDGER)
    n_uploads = len(federation.uploads)
    with pytest.raises(LedgerError, match=rf"{said}.*hushrank client --rebuild-ledger"):
        serve(federation, Device(tmp_path, rounds=1))
    assert len(federation.uploads) == n_uploads
    told = list[str]()
    assert serve(federation, Device(tmp_path, rounds=1, rebuilds_ledger=True), told) is Ending.enough
    after = read_ledger(tmp_path / LEDGER)
    assert after.budget == before.budget and after.epsilon_spent > before.epsilon_spent
    assert [entry.round for entry in after.entries] == [1, 2, 3, 4]
    assert any("3 answers count as given, epsilon" in line for line in told)
    assert (tmp_path / SET_ASIDE).exists() == (harm is not lose)
    assert serve(federation, Device(tmp_path, rounds=1)) is Ending.finished  # and it goes on


def test_what_only_the_server_knows_counts_too(tmp_path: Path) -> None:
    federation = spend_three(tmp_path)
    federation.accepted_updates = 4  # the store was restored from a copy that lacks two of them
    (tmp_path / LEDGER).unlink()
    serve(federation, Device(tmp_path, rounds=1, rebuilds_ledger=True))
    entries = read_ledger(tmp_path / LEDGER).entries
    assert [entry.round for entry in entries] == [1, 2, 3, None, None, 4]  # 4 accepted, 1 refused, and the new one


def test_a_budget_that_is_spent_stays_spent(tmp_path: Path) -> None:
    federation = spend_three(tmp_path)
    federation.accepted_updates = 6
    (tmp_path / LEDGER).unlink()
    assert serve(federation, Device(tmp_path, rebuilds_ledger=True)) is Ending.budget


def test_the_budget_is_remembered_and_not_changed_by_losing_the_ledger(tmp_path: Path) -> None:
    federation = ScriptedFederation(SOUND)
    federation.is_finished = True
    assert serve(federation, Device(tmp_path, epsilon=10.0)) is Ending.finished  # and nothing was answered
    (tmp_path / LEDGER).unlink()
    with pytest.raises(LedgerError, match="Budgets are not changed in place"):
        serve(federation, Device(tmp_path, epsilon=11.0))
    assert serve(federation, Device(tmp_path)) is Ending.finished
    assert read_ledger(tmp_path / LEDGER).budget.epsilon == 10.0


def forget_newer_tables(home: Path) -> None:
    """A home as versions left it that noted neither where ledgers ended nor who the home is."""
    with Interactions(home / STORE) as store, store._database.transaction() as run:
        for table in ("heads", "identity", "consent"):
            run(f"DELETE FROM {table}")


def test_the_ledger_of_an_older_home_goes_on(tmp_path: Path) -> None:
    """It says add-remove, as all did; the price, and so what is left, is as it was."""
    federation, path = spend_three(tmp_path), tmp_path / LEDGER
    newer = read_ledger(path)
    assert newer.budget.adjacency == "zero-out"
    older = write_ledger(path, replace(newer.budget, adjacency="add-remove"), newer.entries)
    forget_newer_tables(tmp_path)
    serve(federation, Device(tmp_path, rounds=1))
    after = read_ledger(path)
    assert after.budget == older.budget and len(after.entries) == 4
    assert "(add-remove, against readers of rankers, not the server)" in describe_spending(after)


def test_a_seeded_federation_has_no_account(tmp_path: Path) -> None:
    with Interactions(tmp_path / STORE) as store:
        assert open_account(store, replace(SOUND, seed=3), "c") is None
        with pytest.raises(ValueError, match="this federation promises no privacy: leave it out"):
            open_account(store, replace(SOUND, seed=3), "c", epsilon=1.0)


def test_a_whole_ledger_is_not_rebuilt(tmp_path: Path) -> None:
    federation, told = spend_three(tmp_path), list[str]()
    serve(federation, Device(tmp_path, rounds=1, rebuilds_ledger=True), told)
    assert any("is whole, with 3 answers; nothing was rebuilt" in line for line in told)
    assert len(read_ledger(tmp_path / LEDGER).entries) == 4 and not (tmp_path / SET_ASIDE).exists()


def test_a_server_cannot_fill_the_disk_with_answers_that_nobody_gave(tmp_path: Path) -> None:
    federation = spend_three(tmp_path)
    federation.accepted_updates = 10**17
    (tmp_path / LEDGER).unlink()
    with pytest.raises(ValueError, match="which nobody gave"):
        serve(federation, Device(tmp_path, rebuilds_ledger=True))


def test_the_budget_of_an_older_home_is_read_from_the_first_line(tmp_path: Path) -> None:
    federation = spend_three(tmp_path, epsilon=10.0)
    with Interactions(tmp_path / STORE) as store, store._database.transaction() as run:
        run("DELETE FROM budget")  # as a home of an older version
    damage(tmp_path / LEDGER)
    assert json.loads((tmp_path / LEDGER).read_bytes().splitlines()[0])["epsilon"] == 10.0
    serve(federation, Device(tmp_path, rounds=1, rebuilds_ledger=True))
    assert read_ledger(tmp_path / LEDGER).budget.epsilon == 10.0


def test_a_ledger_is_rebuilt_from_a_server_that_has_seen_the_newest_receipt(tmp_path: Path) -> None:
    """A server whose file was restored from an older copy would tell of fewer answers."""
    federation = spend_three(tmp_path)
    with Interactions(tmp_path / STORE) as store:
        store.keep_receipt("of-round-3")
    with serving(federation) as (url, requests):
        serve_device(Device(tmp_path, url, is_once=True, rebuilds_ledger=True), Listeners(), Stop())
    asked = [request.headers.get("Hushrank-Receipt") for request in requests if request.path == "/v1/me"]
    assert asked and set(asked) == {"of-round-3"}


def test_pretend_people_rebuild_their_ledgers_too(tmp_path: Path) -> None:
    data = load_dataset("tiny", folds=[1])
    agreement = replace(SOUND, n_features=data.folds[0].train.n_features)
    federation = ScriptedFederation(agreement, np.zeros(agreement.n_features, np.float32))
    with serving(federation) as (url, _):
        people = Pretence(url, tmp_path, data.folds[0], named_user("perfect", n_grades=3), tokens=["t" * 43], rounds=1)
        pretend(people, [0], stop=Stop(), show=print, greet=print, tell=print)
        (tmp_path / "0" / LEDGER).unlink()
        with pytest.raises(LedgerError, match="--rebuild-ledger"):
            pretend(people, [0], stop=Stop(), show=print, greet=print, tell=print)
        told = list[str]()
        again = replace(people, rebuilds_ledger=True)
        pretend(again, [0], stop=Stop(), show=print, greet=print, tell=told.append)
    assert "was rebuilt: 1 answers count as given" in told[0]
    assert len(read_ledger(tmp_path / "0" / LEDGER).entries) == 2
