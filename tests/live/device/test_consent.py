"""What a device refuses to join: decided by its owner, before anything is sent."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_federation import ScriptedFederation
from scripted_server import serving

from hushrank.live.device import transport
from hushrank.live.device.client import Ending, Listeners
from hushrank.live.device.consent import Consent, check_consent, parse_requirement, price_for, total_of
from hushrank.live.device.service import Device, serve_device
from hushrank.live.device.transport import Stop
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.terms import total_epsilon_of
from hushrank.privacy.chain import LedgerError
from hushrank.privacy.device_ledger import LIFETIME_EPSILON
from hushrank.privacy.ledger import read_ledger

NONE = make_agreement("open", n_features=2)
SOUND = make_agreement("sound", n_features=2, privacy="sound", epsilon=8.0, n_clients=50, rounds=20)
DEAR = make_agreement("dear", n_features=2, privacy="sound", noise_multiplier=0.01, n_clients=50, rounds=20)
SHARES = make_agreement(
    "shares", n_features=2, privacy="sound", epsilon=0.12, n_clients=10**6, n_honest=10**6, placement="clients",
    rounds=20, delta=1e-7,
)  # fmt: skip


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def join(agreement: Agreement, device: Device, *, round: int = 1) -> Ending:
    """Joins, or goes on, and ends after one answer."""
    federation = ScriptedFederation(agreement)
    federation.round = round
    with serving(federation) as (url, _):
        return serve_device(replace(device, url=url, token="t" * 43, rounds=1), Listeners(), Stop())


def refuse(agreement: Agreement, device: Device, said: str) -> None:
    """Nothing was sent, and no home is left."""
    with serving(ScriptedFederation(agreement)) as (url, requests):
        with pytest.raises(ValueError, match=said):
            serve_device(replace(device, url=url, token="t" * 43, rounds=1), Listeners(), Stop())
        assert {request.path for request in requests} == {"/v1/federation"}
    assert not device.home.exists()


def test_what_costs_more_than_the_owners_cap_is_refused_unless_more_was_typed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    total = total_epsilon_of(DEAR)
    assert LIFETIME_EPSILON == 8 and total is not None and total > 10_000
    refuse(DEAR, Device(home), rf"epsilon {re.escape(f'{total:.4g}')} over 20 rounds; a device spends at most 8")
    assert join(DEAR, Device(home, epsilon=20_000.0)) is Ending.enough
    assert read_ledger(home / "ledger.jsonl").budget.epsilon == 20_000.0


def test_a_federation_within_the_cap_needs_no_option(tmp_path: Path) -> None:
    assert join(SOUND, Device(tmp_path / "home")) is Ending.enough
    assert read_ledger(tmp_path / "home" / "ledger.jsonl").budget.epsilon == pytest.approx(8.0, rel=1e-4)


def test_the_published_evolution_strategy_is_dearer_than_a_device_allows(tmp_path: Path) -> None:
    refuse(
        make_agreement("es", n_features=2, method="foltr-es"), Device(tmp_path / "home"), "a device spends at most 8"
    )


def test_a_seeded_federation_is_refused_unless_the_owner_says_so(tmp_path: Path) -> None:
    seeded, home = replace(SOUND, seed=3), tmp_path / "home"
    refuse(seeded, Device(home), "is a simulation: its noise comes from a seed that everybody can know")
    assert join(seeded, Device(home, takes_seeded=True)) is Ending.enough
    assert join(seeded, Device(home), round=2) is Ending.enough  # it is remembered


def test_noise_shares_without_a_secure_sum_are_refused_or_paid_as_single_messages(tmp_path: Path) -> None:
    """By its agreement .12; what leaves the device hides behind a millionth of the noise: 1,000 times less."""
    home, price = tmp_path / "home", price_for(SHARES)
    honest = total_of(SHARES, price)
    assert price is not None and honest is not None and total_epsilon_of(SHARES) == pytest.approx(0.12, rel=1e-3)
    assert price.ratio == pytest.approx(1000 / (SHARES.noise_multiplier or 0)) and honest > 100
    refuse(SHARES, Device(home), rf"all its rounds cost epsilon {honest:.4g}, not 0.12\. Nothing was sent")
    refuse(SHARES, Device(home, takes_shares=True), rf"would cost this device epsilon {honest:.4g}")
    assert join(SHARES, Device(home, takes_shares=True, epsilon=1e4)) is Ending.enough
    assert read_ledger(home / "ledger.jsonl").budget.price == price


def test_a_share_of_laplace_noise_by_itself_promises_nothing() -> None:
    laplace = make_agreement(
        "l", n_features=2, privacy="sound", mechanism="laplace", epsilon=1.0, n_clients=9, n_honest=9,
        placement="clients", rounds=2,
    )  # fmt: skip
    with pytest.raises(ValueError, match="one share alone promises nothing"):
        check_consent(laplace, Consent(takes_shares=True))


@pytest.mark.parametrize("delta", [1e-2, 0.02])
def test_a_delta_of_one_in_n_is_refused(delta: float) -> None:
    agreement = make_agreement(
        "d", n_features=2, privacy="sound", noise_multiplier=9.0, n_clients=100, rounds=2, delta=delta
    )
    check_consent(replace(agreement, delta=9.9e-3), Consent())
    with pytest.raises(ValueError, match="with 1/n or more, it may give one client away entirely"):
        check_consent(agreement, Consent())


@pytest.mark.parametrize(
    ("agreement", "requirement", "said"),
    [
        (NONE, "privacy=sound", "requires privacy=sound, but open has agreed on privacy none"),
        (SOUND, "epsilon<=4", r"requires epsilon<=4, but sound has agreed on epsilon 8\b"),
        (NONE, "epsilon<=4", "has agreed on epsilon None"),
        (SOUND, "n_clients>=100", "has agreed on n_clients 50"),
        (SOUND, "adjacency=replace-one", "has agreed on adjacency None"),
        (SOUND, "privcy=sound", "no key of an agreement is called 'privcy'"),
        (SOUND, "epsilon<=little", "compares with 'little', which is no number"),
        (SOUND, "sound", "must be KEY=VALUE"),
    ],
)
def test_what_the_owner_requires_and_is_not_agreed_is_refused(
    agreement: Agreement, requirement: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        join(agreement, Device(tmp_path / "home", requires=(requirement,)))


def test_requirements_that_are_met_are_remembered_with_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    join(SOUND, Device(home, requires=("privacy=sound", "epsilon<=8", "n_clients>=50")))
    assert parse_requirement(" epsilon <= 4 ") == ("epsilon", "<=", "4")
    with pytest.raises(ValueError, match="requires rounds<=19"):
        join(SOUND, Device(home, requires=("rounds<=19",)))
    with pytest.raises(ValueError, match="has changed since this client joined"):  # and then would lack privacy=sound
        join(replace(NONE, name="sound"), Device(home))


def test_a_cap_that_was_typed_stays(tmp_path: Path) -> None:
    join(SOUND, Device(tmp_path / "home", epsilon=10.0))
    with pytest.raises(LedgerError, match=r"is epsilon 10\. Budgets are not changed in place"):
        join(SOUND, Device(tmp_path / "home", epsilon=11.0))
