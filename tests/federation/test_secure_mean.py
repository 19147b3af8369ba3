"""A round whose server sees only the sum: the whole protocol, with clients that fall silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hushrank.federation.secure_mean
from hushrank.federation.cohort import Population, answer_mask, sample_ids
from hushrank.federation.exchange import format_sum
from hushrank.federation.secure_mean import SecureMean
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.none import OpenUpdates, send_openly
from hushrank.privacy.quorum import Quorum
from hushrank.privacy.secure_messages import MaskedValues, SumPhase
from hushrank.privacy.secure_sum import run_secure_sum
from hushrank.streams import Purpose, seed_key, stream
from hushrank.types import DenseUpdate, PrivateUpdate

KEY, ROUND = seed_key(8), 3
CROWD = Population(12, (1, 2, 3), dropout=0.2)
ARRIVED: list[int] = np.flatnonzero(answer_mask(CROWD, KEY, ROUND, np.arange(12))).tolist()
OPEN = OpenUpdates()
SHARED = SoundGaussian(0.1, 2.0, "clients", 8)


def learnt(client: int) -> DenseUpdate:
    return DenseUpdate(np.random.default_rng(client).normal(0, 0.05, 4).astype(np.float32), 1 + client % 3)


def open_messages() -> list[PrivateUpdate]:
    return [send_openly(learnt(client)) for client in ARRIVED]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SumPhase, Any]]:
    """Every message of the protocol, as it runs."""
    seen: list[tuple[SumPhase, Any]] = []

    def run(*arguments: Any, **options: Any) -> Any:
        return run_secure_sum(*arguments, **options, watch=lambda phase, message: seen.append((phase, message)))

    monkeypatch.setattr(hushrank.federation.secure_mean, "run_secure_sum", run)
    return seen


def test_the_mean_is_the_weighted_one_of_those_who_answered() -> None:
    assert 9 <= len(ARRIVED) < 12
    mean = SecureMean(format_sum(OPEN, CROWD, n_params=4), CROWD, OPEN.quorum(is_secure=True), None)
    found = mean(open_messages(), n_params=4, key=KEY, round=ROUND)
    weights = np.array([1 + client % 3 for client in ARRIVED])
    updates = np.array([learnt(client).delta for client in ARRIVED])
    np.testing.assert_allclose(found, weights @ updates / weights.sum(), atol=mean.format.step)


def test_noisy_updates_are_summed_exactly_on_the_grid_of_the_whole_numbers() -> None:
    format = replace(format_sum(SHARED, CROWD, n_params=4), n_clients=2**16)  # coarse, as for so many clients
    mechanism = replace(SHARED, least_step=format.step)
    assert mechanism.step == format.step > SHARED.step
    sent = [mechanism.privatise(learnt(c), key=stream(KEY, Purpose.PRIVATISE, ROUND, c)) for c in ARRIVED]
    mean = SecureMean(format, CROWD, mechanism.quorum(is_secure=True), 12.0)
    found = mean(sent, n_params=4, key=KEY, round=ROUND)
    assert np.array_equal(found, np.sum([message.delta for message in sent], axis=0) / 12)


def test_the_server_sees_masked_words_only_and_others_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    mean = SecureMean(format_sum(OPEN, CROWD, n_params=4), CROWD, OPEN.quorum(is_secure=True), None)
    mean(open_messages(), n_params=4, key=KEY, round=ROUND)
    masked = {m.client_id: m.words for phase, m in seen if phase is SumPhase.MASK and isinstance(m, MaskedValues)}
    assert sorted(masked) == ARRIVED  # who never answers falls silent after sharing secrets
    for client, words in masked.items():
        plain = mean.format.add(learnt(client).delta[None], np.array([1 + client % 3]))
        assert not np.any(words == plain)
    seen.clear()
    calm = replace(mean, population=replace(CROWD, dropout=0.0))
    for round in (1, 2):
        calm([send_openly(learnt(client)) for client in range(12)], n_params=4, key=KEY, round=round)
    first, second = (m.words for _, m in seen if isinstance(m, MaskedValues) and m.client_id == 0)
    assert not np.any(first == second)


def test_the_protocol_itself_opens_no_sum_with_too_little_noise() -> None:
    """Its threshold is the quorum, so a driver that went on with fewer would get no sum."""
    strict = SecureMean(format_sum(OPEN, CROWD, n_params=4), CROWD, Quorum(12, is_most=True), 12.0)
    with pytest.raises(ValueError, match=f"{len(ARRIVED)} clients sent masked values, the threshold is 12"):
        strict(open_messages(), n_params=4, key=KEY, round=ROUND)


def test_noise_beyond_the_range_is_not_refused_because_that_would_tell() -> None:
    """Two numbers of 40 units each wrap on their way; their sum does not."""
    format = format_sum(SHARED, CROWD, n_params=4)
    mean = SecureMean(format, CROWD, OPEN.quorum(is_secure=True), 12.0)
    sent = [PrivateUpdate(np.zeros(4), 1.0, "") for _ in ARRIVED]
    sent[0], sent[1] = (PrivateUpdate(np.array([far, 0.0, 0.25, 0.0]), 1.0, "") for far in (40.0, -39.5))
    assert mean(sent, n_params=4, key=KEY, round=ROUND) == pytest.approx(np.array([0.5, 0.0, 0.5, 0.0]) / 12)


def test_the_range_holds_the_noise_of_everybody() -> None:
    shares = np.concatenate(
        [SHARED.client_noise(4, key=stream(KEY, Purpose.PRIVATISE, r, c)) for r in range(50) for c in range(12)]
    )
    format = format_sum(SHARED, CROWD, n_params=4)
    assert 0.1 + np.abs(shares).max() < format.largest < 0.1 + 9 * 0.2 / np.sqrt(8)
    assert sample_ids(CROWD, KEY, 1).size == format.n_clients
