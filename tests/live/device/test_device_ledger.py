"""One ledger for the whole device: a new, copied or restored home begins no new budget."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_federation import ScriptedFederation
from scripted_server import Request, Response, serving

from hushrank.live.device import account, transport
from hushrank.live.device.client import Ending, Listeners
from hushrank.live.device.service import Device, serve_device
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Stop
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.terms import price_of, total_epsilon_of
from hushrank.privacy.chain import LedgerError
from hushrank.privacy.device_ledger import FILE, Charge, charge_device, compose_charges, find_device, read_device
from hushrank.privacy.ledger import BudgetSpentError, read_ledger
from hushrank.privacy.renyi import Spend, composed_epsilon

SOUND = make_agreement("one", n_features=2, privacy="sound", epsilon=7.0, n_clients=2, rounds=6)
OTHER = make_agreement("two", n_features=2, privacy="sound", epsilon=7.0, n_clients=2, rounds=6, delta=1e-6)
LEDGER = "ledger.jsonl"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def answer(federation: ScriptedFederation, home: Path, n: int = 1, **chosen: float | bool) -> Ending:
    """So many answers of this home."""
    federation.is_finished = False
    with serving(federation) as (url, _):
        device = Device(home, url, f"token of {home.name}", rounds=n)
        return serve_device(replace(device, **chosen), Listeners(), Stop())  # type: ignore[arg-type]


def endless(federation: ScriptedFederation) -> ScriptedFederation:
    """One that goes on after three rounds, for any number of clients."""

    def accept(request: Request) -> Response:
        response = federation.accept(request)
        federation.is_finished, federation.accepted_updates = False, 0
        return response

    federation.on_update = accept
    return federation


def test_all_homes_of_a_device_spend_from_one_budget(tmp_path: Path) -> None:
    """Six rounds of one federation cost 7; a second home, in this or in another one, pays on top of that."""
    answer(endless(ScriptedFederation(SOUND)), tmp_path / "a", 6)
    spent = read_device(find_device())
    assert spent.epsilon_spent == pytest.approx(7.0, rel=1e-3) and len(spent.charges) == 6
    for agreement, home in ((SOUND, tmp_path / "b"), (OTHER, tmp_path / "c")):
        with pytest.raises(ValueError, match=r"with the 7 that this device has spent already, over 6 rounds"):
            answer(ScriptedFederation(agreement), home)
        assert not home.exists()
    assert answer(endless(ScriptedFederation(SOUND)), tmp_path / "b", 6, epsilon=7.5) is Ending.budget
    price = price_of(SOUND)
    assert price is not None
    n_more = len(read_device(find_device()).charges) - 6
    assert n_more == max(n for n in range(6) if composed_epsilon([price] * (6 + n), delta=SOUND.delta) <= 7.5)


def test_charges_are_composed_over_federations_at_the_smallest_delta() -> None:
    pure, sums = Spend("pure", 0.5), Spend("gaussian", 0.2)
    charges = [Charge("h", "f", 1, None, pure), Charge("h", "g", 1, 1e-5, sums), Charge("i", "k", 1, 1e-6, sums)]
    assert compose_charges(charges) == composed_epsilon([pure, sums, sums], delta=1e-6)
    assert compose_charges(charges[:1]) == 0.5


def test_no_error_offers_a_new_home_as_a_new_budget(tmp_path: Path) -> None:
    """What a person reads when a budget is used up, and when the home has left."""
    home = tmp_path / "a"
    assert answer(endless(ScriptedFederation(SOUND)), home, 9) is Ending.budget
    with pytest.raises(ValueError, match=r"Another --home may join again; what this device has spent stays spent"):
        answer(ScriptedFederation(SOUND), home)
    with pytest.raises(ValueError, match="that this device has spent already"):
        answer(ScriptedFederation(SOUND), tmp_path / "b")


def test_a_restored_home_is_noticed_on_this_device(tmp_path: Path) -> None:
    """Ledger and store go back together, and an older server does not help: it counts what it accepts, nothing here."""
    federation, home = endless(ScriptedFederation(SOUND)), tmp_path / "home"
    answer(federation, home)
    shutil.copytree(home, tmp_path / "backup")
    answer(federation, home)
    assert federation.accepted_updates == 0
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "backup", home)
    with pytest.raises(LedgerError, match=r"has charged 2 answers of this home, the home knows of 1: it was restored"):
        answer(federation, home)
    assert len(federation.uploads) == 2


def test_a_clone_in_lockstep_is_noticed_before_it_answers(tmp_path: Path) -> None:
    federation, home, clone = endless(ScriptedFederation(SOUND)), tmp_path / "home", tmp_path / "clone"
    answer(federation, home)
    shutil.copytree(home, clone)
    answer(federation, home)
    n_uploads = len(federation.uploads)
    with pytest.raises(LedgerError, match="or a copy of it takes part as this very client"):
        answer(federation, clone)
    assert len(federation.uploads) == n_uploads
    answer(federation, home)  # the one that goes on is not disturbed


def roll_back(path: Path, before: bytes) -> None:
    path.write_bytes(before)
    for side in ("-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("ledger", "lacks the last that the store knows of"),
        ("store", "the store was rolled back"),
        ("device", "the ledger of this device lacks answers that this home has given"),
    ],
)
def test_each_file_that_went_back_alone_is_noticed_without_a_server(which: str, said: str, tmp_path: Path) -> None:
    federation, home = endless(ScriptedFederation(SOUND)), tmp_path / "home"
    paths = {"ledger": home / LEDGER, "store": home / STORE, "device": find_device()}
    answer(federation, home)
    before = paths[which].read_bytes()
    answer(federation, home)
    roll_back(paths[which], before)
    with pytest.raises(LedgerError, match=rf"{said}.*--rebuild-ledger --home {home} counts every answer"):
        answer(federation, home)
    answer(federation, home, rebuilds_ledger=True)
    assert len(read_ledger(home / LEDGER).entries) == len(read_device(find_device()).charges) == 3
    answer(federation, home)


def test_a_device_ledger_that_was_deleted_is_noticed(tmp_path: Path) -> None:
    federation = endless(ScriptedFederation(SOUND))
    answer(federation, tmp_path / "home", 2)
    find_device().unlink()
    with pytest.raises(LedgerError, match="it was rolled back or deleted, or the home comes from another device"):
        answer(federation, tmp_path / "home")


def test_an_older_home_charges_the_device_for_what_it_spent_before(tmp_path: Path) -> None:
    federation, home = endless(ScriptedFederation(SOUND)), tmp_path / "home"
    answer(federation, home, 2)
    with Interactions(home / STORE) as store, store._database.transaction() as run:
        for table in ("heads", "identity", "consent"):
            run(f"DELETE FROM {table}")
    find_device().unlink()  # as before there was one
    answer(federation, home)
    assert [charge.round for charge in read_device(find_device()).charges] == [1, 2, 3]


def test_a_home_that_joined_before_there_was_a_cap_asks_its_owner_instead_of_leaving(tmp_path: Path) -> None:
    federation, home = endless(ScriptedFederation(SOUND)), tmp_path / "home"
    answer(federation, home, 5)
    with Interactions(home / STORE) as store, store._database.transaction() as run:
        for table in ("heads", "identity", "consent"):
            run(f"DELETE FROM {table}")
    others = [Charge("elsewhere", "f", n, 1e-5, Spend("gaussian", 0.5)) for n in range(12)]
    charge_device(find_device(), others, cap=None)
    with pytest.raises(ValueError, match=r"of 8 was spent .* To go on, type --epsilon X"):
        answer(federation, home)
    with Interactions(home / STORE) as store:
        assert store.membership().state == "member"  # type: ignore[union-attr]
    assert answer(federation, home, epsilon=30.0) is Ending.enough
    assert read_ledger(home / LEDGER).budget.epsilon == pytest.approx(7.0, rel=1e-3)  # the home's own stays


CHARGER = """
import sys
from hushrank.privacy.device_ledger import Charge, charge_device, find_device
from hushrank.privacy.renyi import Spend
for round in range(25):
    charge_device(find_device(), [Charge(sys.argv[1], "f", round, 1e-5, Spend("gaussian", 0.1))], cap=100.0)
"""


def test_homes_at_work_at_once_lose_no_charge() -> None:
    working = [subprocess.Popen([sys.executable, "-c", CHARGER, name]) for name in ("a", "b", "c")]
    assert [process.wait(timeout=120) for process in working] == [0, 0, 0]
    found = read_device(find_device())
    assert len(found.charges) == 75 and {found.count(name) for name in ("a", "b", "c")} == {25}


class DiedError(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("place", ["charge_device", "reserve_round"])
@pytest.mark.parametrize("n_deaths", [1, 3])
def test_dying_while_it_pays_is_not_taken_for_a_copy(
    place: str, n_deaths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation, home = endless(ScriptedFederation(SOUND)), tmp_path / "home"
    answer(federation, home)
    real: Callable[..., object] = getattr(account, place)

    def pay_and_die(*given: object, **named: object) -> None:
        real(*given, **named)
        raise DiedError

    for _ in range(n_deaths):
        with monkeypatch.context() as deadly:
            deadly.setattr(account, place, pay_and_die)
            with pytest.raises(DiedError):
                answer(federation, home)
    answer(federation, home)
    answer(federation, home)
    assert len(read_device(find_device()).charges) == 3 + n_deaths


def test_what_is_cut_off_counts_as_the_dearest_and_what_was_edited_is_refused(tmp_path: Path) -> None:
    path, cheap, dear = tmp_path / FILE, Spend("gaussian", 0.1), Spend("gaussian", 0.3)
    charge_device(path, [Charge("h", "f", 1, 1e-5, cheap), Charge("h", "f", 2, 1e-5, dear)], cap=None)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"entry":3')
    assert [charge.spend for charge in read_device(path).charges] == [cheap, dear, dear]
    after = charge_device(path, [Charge("i", "f", 3, 1e-5, cheap)], cap=None)
    assert read_device(path) == after and (len(after.charges), after.count("h"), after.count("")) == (4, 2, 1)
    with pytest.raises(BudgetSpentError, match="the privacy budget of this device is used up"):
        charge_device(path, [Charge("i", "f", 4, 1e-5, dear)], cap=after.epsilon_spent)
    path.write_bytes(whole.replace(b'"round":1', b'"round":7'))
    with pytest.raises(LedgerError, match="was edited after it was written"):
        read_device(path)


def test_the_device_has_one_place_for_every_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert find_device().name == FILE
    monkeypatch.delenv("HUSHRANK_DEVICE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert find_device() == tmp_path / "hushrank" / FILE
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_device() == tmp_path / ".local" / "state" / "hushrank" / FILE


def test_the_server_that_forgot_answers_is_told_of_and_they_stay_spent(tmp_path: Path) -> None:
    """Its file was restored from an older copy: what it acknowledged counts here all the same."""
    federation, home, told = ScriptedFederation(SOUND), tmp_path / "home", list[str]()
    answer(federation, home, 2)
    federation.accepted_updates, federation.is_finished = 0, False
    with serving(federation) as (url, _):
        serve_device(Device(home, url, rounds=1), Listeners(told.append), Stop())
    assert any("has acknowledged 2 answers of this client that it no longer knows of" in line for line in told)
    assert total_epsilon_of(SOUND) is not None and len(read_ledger(home / LEDGER).entries) == 3


def test_bodies_that_did_not_count_are_counted_by_the_server_and_compared(tmp_path: Path) -> None:
    """A home and its ledger were restored on another device; the server saw two bodies and accepted one."""
    federation, home = endless(ScriptedFederation(SOUND)), tmp_path / "home"
    answer(federation, home)
    me = federation.__class__.__call__

    def tell_received(request: Request) -> Response:
        if request.path != "/v1/me":
            return me(federation, request)
        return Response(body=b'{"accepted_updates": 1, "last": null, "received_updates": 2}')

    federation.is_finished = False
    with (
        serving(tell_received) as (url, _),
        pytest.raises(
            LedgerError, match=r"has 1 entries, but the server has seen 2 updates .* or a copy of this client"
        ),
    ):
        serve_device(Device(home, url, rounds=1), Listeners(), Stop())
