"""Seeds and noise come from a key of the home: a copy says the same again, and never more."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripted_federation import ScriptedFederation
from scripted_server import serving

from hushrank.live.device import transport
from hushrank.live.device.client import Participant, answer_round
from hushrank.live.device.impressions import Impression
from hushrank.live.device.membership import hold_home, join_federation
from hushrank.live.device.named import make_learning
from hushrank.live.device.noise_key import bind_content, find_home_key
from hushrank.live.device.search import show_list
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.device.transport import Transport
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.privacy.draws import draw_discrete_gaussian, draw_discrete_laplace_share
from hushrank.streams import ENTROPY, KeyedEntropy, draw_bits, seed_key, stream
from hushrank.types import Array, DenseUpdate, SeedReward

SHARES = make_agreement(
    "shares", n_features=2, interactions=2, privacy="sound", noise_multiplier=2.0, n_clients=4, n_honest=4, rounds=3,
    placement="clients",
)  # fmt: skip
PAPER = make_agreement("paper", n_features=2, interactions=2, privacy="paper", epsilon=4.5, n_clients=4, rounds=3)
TRIES = make_agreement("tries", n_features=2, interactions=6, method="foltr-es", p=0.5, rounds=2)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def key() -> Array:
    return find_home_key(b"k" * 32, SHARES, "c")


def fill(store: Interactions, click: int) -> None:
    features, scores = np.eye(2, dtype=np.float32), np.array([0.1, -0.1], np.float32)
    store.add(Impression(1, features, scores, np.array([0, 1]), np.arange(2) == click))


def answer(agreement: Agreement, home: Path, *, click: int = 1, round: int = 1) -> bytes:
    """What leaves this home in a round."""
    federation = ScriptedFederation(agreement)
    federation.round = round
    with serving(federation) as (url, _), hold_home(home) as store, Transport(url) as way:
        join_federation(store, way, token="t")
        learning = make_learning(agreement)
        secret = find_home_key(store.identity().secret, agreement, way.credential or "")

        def search(_: object) -> None:
            for _ in range(agreement.interactions):
                if agreement.is_evolution:
                    number = show_list(learning, store, np.eye(2)).number
                    store.click(number, click)
                    store.finish(number)
                else:
                    fill(store, click)

        member = Participant(store, way, learning, None, key=secret, search=search)
        assert answer_round(member, round, None, waits=False)
    return federation.uploads[0].body


@pytest.mark.parametrize("agreement", [SHARES, PAPER, TRIES], ids=["sound", "paper", "foltr-es"])
def test_a_clone_repeats_its_bytes_and_other_data_have_other_noise(agreement: Agreement, tmp_path: Path) -> None:
    with Interactions(tmp_path / "home" / STORE) as store:
        store.identity()
    homes = [Path(shutil.copytree(tmp_path / "home", tmp_path / name)) for name in "abcd"]
    with hold_home(homes[0]) as store, serving(ScriptedFederation(agreement)) as (url, _), Transport(url) as way:
        join_federation(store, way, token="t")
    for home in homes[1:]:
        shutil.copy(homes[0] / STORE, home / STORE)
    first, clone, others, later = (
        answer(agreement, home, click=click, round=round)
        for home, click, round in zip(homes, (1, 1, 0, 1), (1, 1, 1, 2), strict=True)
    )
    assert first == clone
    assert len({first, others, later}) == 3
    if agreement.is_evolution:
        assert first[:4] == others[:4] != later[:4]  # the seed of a round is the home's, whatever was clicked


def test_two_homes_have_nothing_in_common(tmp_path: Path) -> None:
    assert len({answer(PAPER, tmp_path / name) for name in "abc"}) == 3


def test_noise_of_other_content_is_another_and_not_a_shifted_one() -> None:
    """What two answers of one round with different data have in common would be the difference of the data."""
    one, two = DenseUpdate(np.array([0.0, 1.0]), 1), DenseUpdate(np.array([0.0, 1.0 + 2**-52]), 1)
    noises = [draw_discrete_gaussian(bind_content(key(), raw), 64, variance=10**6) for raw in (one, two, one)]
    assert np.array_equal(noises[0], noises[2])
    assert len(set((noises[0] - noises[1]).tolist())) > 32
    assert not np.array_equal(
        draw_bits(bind_content(key(), SeedReward(1, np.zeros((2, 1)))), 8),
        draw_bits(bind_content(key(), SeedReward(1, np.zeros((1, 2)))), 8),
    )


def test_keys_of_simulators_and_entropy_are_not_bound() -> None:
    raw, seeded = DenseUpdate(np.zeros(2), 1), seed_key(3)
    assert bind_content(seeded, raw) is seeded and bind_content(ENTROPY, raw) is ENTROPY


def test_keys_differ_by_secret_federation_client_round_and_purpose() -> None:
    keys = [
        key(),
        find_home_key(b"l" * 32, SHARES, "c"),
        find_home_key(b"k" * 32, replace(SHARES, name="other"), "c"),
        find_home_key(b"k" * 32, SHARES, "d"),
        stream(key(), 1),
        stream(key(), 2),
        stream(key(), 1, 2),
        stream(key(), 2, 1),
    ]
    drawn = [draw_bits(each, 8).tobytes() for each in keys]
    assert len(set(drawn)) == len(keys) and drawn == [draw_bits(each, 8).tobytes() for each in keys]


@pytest.mark.parametrize("n_shares", [1, 5])
def test_exact_samplers_draw_from_the_key_and_have_the_same_law(n_shares: int) -> None:
    """Variance of a discrete Laplace number of scale t: 2 q / (1 - q)^2, q = e^(-1 / t); of a share 1 / n of it."""
    q = float(np.exp(-1 / 8))
    values = draw_discrete_laplace_share(key(), 20_000, scale=8, n_shares=n_shares)
    wanted = 2 * q / (1 - q) ** 2 / n_shares
    assert values.var() == pytest.approx(wanted, rel=0.15) and abs(values.mean()) < 5 * np.sqrt(wanted / 20_000)
    assert np.array_equal(values, draw_discrete_laplace_share(key(), 20_000, scale=8, n_shares=n_shares))


def test_bytes_of_a_key_never_repeat_while_they_are_read() -> None:
    read = KeyedEntropy(secret=b"k" * 32).reader()
    assert len({read(32) for _ in range(1000)}) == 1000
