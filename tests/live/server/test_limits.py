"""Limits on what a client may send: honest updates pass, others are refused with the reason."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from hushrank.federation.evolution import Evolution
from hushrank.live.server.limits import RateLimit, check_weight, limits_of
from hushrank.live.wire.agreement import Agreement, as_json, make_agreement
from hushrank.live.wire.body_formats import RewardBody
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.live.wire.terms import exchange_of
from hushrank.streams import draw_normal, seed_key, stream
from hushrank.types import DenseUpdate, PrivateUpdate

SOUND: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 2.0, "n_clients": 20}
CLIENTS: dict[str, Any] = {**SOUND, "placement": "clients", "n_honest": 4}


def make(**settings: Any) -> Agreement:
    return make_agreement("library", **{"n_features": 6, **settings})


def refusal(agreement: Agreement, body: bytes, *, max_norm: float = 10.0) -> Reason:
    with pytest.raises(RefusedError) as refused:
        limits_of(agreement, max_norm=max_norm).check(body)
    return refused.value.reason


def dense(*numbers: float) -> bytes:
    return np.array(numbers, "<f4").tobytes()


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("settings", [SOUND, CLIENTS])
def test_honest_updates_pass_however_far_they_were_clipped(settings: dict[str, Any], mechanism: str) -> None:
    agreement = make(**{**settings, "mechanism": mechanism, "n_features": 46})
    exchange, limits = exchange_of(agreement), limits_of(agreement, max_norm=1.0)
    for i in range(200):
        update = DenseUpdate(np.full(46, 9.0), 4)
        limits.check(limits.encode(exchange.privatise(update, key=stream(seed_key(1), i))))


def test_a_norm_above_the_agreed_clipping_is_refused() -> None:
    assert refusal(make(**SOUND), dense(0.0708, 0.0708, 0, 0, 0, 0)) is Reason.norm  # L2 .1001 of .1
    limits_of(make(**SOUND), max_norm=1.0).check(dense(0.06, 0.06, 0, 0, 0, 0))  # L2 .085
    assert refusal(make(**SOUND, mechanism="laplace"), dense(0.06, 0.06, 0, 0, 0, 0)) is Reason.norm  # L1 .12
    assert refusal(make(**CLIENTS), dense(5, 0, 0, 0, 0, 0)) is Reason.norm


def test_a_bound_that_was_agreed_without_privacy_is_kept_by_honest_clients_and_checked() -> None:
    agreement = make(update_norm=0.5, n_features=46)
    exchange, limits = exchange_of(agreement), limits_of(agreement, max_norm=100.0)
    draws = draw_normal(stream(seed_key(1)), 46 * 200).reshape(200, 46)
    for numbers in draws:
        limits.check(limits.encode(exchange.privatise(DenseUpdate(numbers.astype(np.float32), 4), key=seed_key(1))))
    short = DenseUpdate(np.array([0.1, *[0.0] * 45]), 4)
    kept = exchange.privatise(short, key=seed_key(1))
    assert isinstance(kept, PrivateUpdate) and kept.delta.tolist() == short.delta.tolist()
    assert refusal(agreement, dense(0.51, *[0.0] * 45), max_norm=100.0) is Reason.norm
    assert agreement.digest != make(n_features=46).digest and as_json(agreement)["essential"] == ["update_norm"]
    for other in ({"privacy": "paper", "epsilon": 1.2, "n_clients": 3}, {"method": "foltr-es"}):
        with pytest.raises(ValueError, match="update_norm is no matter of"):
            make(update_norm=0.5, **other)


def test_without_clipping_the_operator_bounds_the_norm() -> None:
    limits_of(make(), max_norm=5.0).check(dense(3, 4, 0, 0, 0, 0))
    assert refusal(make(), dense(3, 4.01, 0, 0, 0, 0), max_norm=5.0) is Reason.norm
    paper = make(privacy="paper", epsilon=1.2, n_clients=3)
    assert refusal(paper, dense(3, 4.01, 0, 0, 0, 0), max_norm=5.0) is Reason.norm


def test_other_shapes_and_numbers_are_refused() -> None:
    assert refusal(make(), dense(1, 2, 3, 4, 5)) is Reason.shape
    assert refusal(make(), dense(1, 2, 3, 4, 5, np.nan)) is refusal(make(), dense(1, 2, 3, 4, 5, np.inf))
    assert refusal(make(), dense(1, 2, 3, 4, 5, np.nan)) is Reason.not_finite


def test_rewards_have_their_length_and_range() -> None:
    both, one = make(method="foltr-es"), make(method="foltr-es", antithetic=False)
    limits_of(both, max_norm=1.0).check(struct.pack("<Iff", 1, 0.0, 1.0))
    assert refusal(both, struct.pack("<If", 1, 0.5)) is Reason.shape
    assert refusal(one, struct.pack("<Iff", 1, 0.5, 0.5)) is Reason.shape
    assert refusal(one, struct.pack("<If", 1, 1.5)) is Reason.reward
    assert refusal(one, struct.pack("<If", 1, np.nan)) is Reason.not_finite
    limits, values = limits_of(both, max_norm=1.0), Evolution().finite.values
    assert isinstance(limits, RewardBody) and (limits.low, limits.high) == (values[0], values[-1])


@pytest.mark.parametrize(("header", "weight"), [("1", 1), ("4", 4)])
def test_updates_weigh_the_searches_they_were_learnt_from(header: str, weight: int) -> None:
    assert check_weight(limits_of(make(), max_norm=1.0), header) == weight


@pytest.mark.parametrize("header", [None, "", "0", "5", "-1", "1.0", "²", "9" * 20, "NaN"])
def test_other_weights_are_refused(header: str | None) -> None:
    with pytest.raises(RefusedError, match="a whole number from 1 to 4"):
        check_weight(limits_of(make(), max_norm=1.0), header)


@pytest.mark.parametrize("settings", [SOUND, {"method": "foltr-es"}])
def test_where_clients_count_alike_the_weight_is_one_or_left_out(settings: dict[str, Any]) -> None:
    limits = limits_of(make(**settings), max_norm=1.0)
    assert check_weight(limits, None) == check_weight(limits, "1") == 1
    with pytest.raises(RefusedError, match="a whole number from 1 to 1"):
        check_weight(limits, "2")


def test_requests_are_limited_for_each_on_their_own() -> None:
    """10 a second, 3 at once: after three, a tenth of a second makes room for one more."""
    limit = RateLimit(per_second=10, burst=3)
    for _ in range(3):
        limit.check("a", 0.0)
    with pytest.raises(RefusedError) as refused:
        limit.check("a", 0.05)
    assert refused.value.retry_after_s == 1 and refused.value.status == 429
    limit.check("b", 0.05)
    limit.check("a", 0.15)


def test_a_crowd_of_strangers_does_not_fill_the_memory() -> None:
    limit = RateLimit(per_second=1, burst=2, most_known=10)
    for stranger in range(1000):
        limit.check(stranger, stranger / 100)
    assert len(limit._buckets) <= 10
