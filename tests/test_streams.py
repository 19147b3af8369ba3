"""Draws by name: the published bits of Threefry, our own pinned, the twins bit for bit, and the distributions."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import cos, log, pi, sqrt
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hushrank import streams, streams_fast
from hushrank.streams import (
    ENTROPY,
    Purpose,
    draw_below,
    draw_bits,
    draw_blocks,
    draw_normal,
    draw_uniform,
    fold_in,
    seed_key,
    stream,
    threefry,
    to_uniform,
)
from hushrank.types import Array

seeds = st.integers(0, 2**64 - 1)


def words(*values: int) -> Array:
    return np.array(values, dtype=np.uint32)


@pytest.mark.parametrize(
    ("key", "counter", "block"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(
    key: tuple[int, int], counter: tuple[int, int], block: tuple[int, int]
) -> None:
    """The known-answer vectors that come with Random123, the code of [salmon2011]."""
    x0, x1 = threefry(words(*key), words(counter[0]), words(counter[1]))
    assert (int(x0[0]), int(x1[0])) == block


def test_the_bits_of_old_runs_are_pinned() -> None:
    """Golden: whoever changes these lines makes every stored run and every sent seed unreadable."""
    assert draw_bits(seed_key(0), 4).tolist() == [0x6B200159, 0x99BA4EFE, 0x375F238F, 0xCDDB151D]
    assert stream(seed_key(1), Purpose.SHOW, 2, 3, 4).tolist() == [0x76B0A177, 0xB2703AE7]
    far = stream(seed_key(2**63 + 5), Purpose.CLICK, 1, 0, 0)
    assert draw_bits(far, 5).tolist() == [0x102F63DA, 0x143BD1B7, 0xBEDE2309, 0x5D7F9F0D, 0xE705FFDB]


def test_the_first_normal_numbers_by_hand() -> None:
    """Box and Muller's transform of the pinned bits, two by two: sqrt(-2 ln u) cos(2 pi v)."""
    u, v, w, x = (((bits >> 9) + 0.5) / 2**23 for bits in (0x6B200159, 0x99BA4EFE, 0x375F238F, 0xCDDB151D))
    assert (u, v, w, x) == (3510272.5 / 2**23, 5037351.5 / 2**23, 1814417.5 / 2**23, 6745482.5 / 2**23)
    by_hand = [sqrt(-2 * log(u)) * cos(2 * pi * v), sqrt(-2 * log(w)) * cos(2 * pi * x)]
    assert by_hand == pytest.approx([1.31999 * -0.80717, 1.74992 * 0.33356], abs=1e-5)  # -1.06545 and .58370
    assert draw_normal(seed_key(0), 2).tolist() == pytest.approx(by_hand, rel=1e-12)


def test_a_purpose_keeps_its_number_for_ever() -> None:
    """Golden: add lines, change none."""
    pinned = {
        "INITIAL": 1,
        "QUERY": 2,
        "SHOW": 3,
        "CLICK": 4,
        "STOP": 5,
        "COHORT": 6,
        "DROPOUT": 7,
        "SYNTHETIC": 8,
        "SHUFFLE": 9,
        "BOOTSTRAP": 10,
        "ATTACK": 11,
        "SEED": 12,
        "PERTURB": 13,
        "PRIVATISE": 14,
    }
    numbers = {name: int(purpose) for name, purpose in Purpose.__members__.items()}
    assert numbers.items() >= pinned.items()
    assert len(set(numbers.values())) == len(numbers)


def test_a_seed_is_the_two_halves_of_a_64_bit_number() -> None:
    assert seed_key(7).tolist() == [0, 7]
    assert seed_key(3 * 2**32 + 5).tolist() == [3, 5]
    assert fold_in(seed_key(0), np.asarray(3 * 2**32 + 5)).tolist() == [
        int(word[0]) for word in threefry(seed_key(0), words(3), words(5))
    ]


@pytest.mark.parametrize(("seed", "halves"), [(0, [0, 0]), (128, [0, 128]), (2**64 - 1, [0xFFFFFFFF, 0xFFFFFFFF])])
def test_every_seed_of_64_bits_is_taken(seed: int, halves: list[int]) -> None:
    assert seed_key(seed).tolist() == halves


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_outside_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match=r"seed is .*, must be a whole number from 0 to 2\^64 - 1"):
        seed_key(seed)


@cache
def draws_of_both_twins() -> dict[str, tuple[Array, Array]]:
    """Everything that exists twice, for a batch of keys [3, 4, 2] and an odd and an even number of draws."""
    keys = fold_in(fold_in(seed_key(11), np.arange(3))[:, None], np.arange(12).reshape(3, 4))
    names = np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32)

    def compute(twin: Any, keys: Any, names: Any) -> dict[str, Any]:
        draws = {f"{draw} {n}": getattr(twin, draw)(keys, n) for draw in ("draw_bits", "draw_uniform") for n in (7, 8)}
        return draws | {"fold_in": twin.fold_in(keys, names), "one name": twin.fold_in(keys, names[0])}

    fast = jax.jit(lambda keys, names: compute(streams_fast, keys, names))(keys, names)
    return {name: (np.asarray(plain), np.asarray(fast[name])) for name, plain in compute(streams, keys, names).items()}


@pytest.mark.parametrize(
    "name", ["draw_bits 7", "draw_bits 8", "draw_uniform 7", "draw_uniform 8", "fold_in", "one name"]
)
def test_numpy_and_jax_give_the_same_bits(name: str) -> None:
    plain, fast = draws_of_both_twins()[name]
    assert plain.dtype == fast.dtype and plain.shape == fast.shape
    assert plain.tobytes() == fast.tobytes()


@settings(deadline=None)
@given(seeds, st.integers(1, 20), st.integers(0, 20))
def test_a_draw_does_not_depend_on_how_many_are_drawn(seed: int, n: int, more: int) -> None:
    assert draw_bits(seed_key(seed), n + more)[:n].tolist() == draw_bits(seed_key(seed), n).tolist()


def test_nobody_draws_nothing() -> None:
    nobody = fold_in(seed_key(1), np.arange(0))
    assert draw_bits(nobody, 3).shape == draw_uniform(nobody, 3).shape == (0, 3)


@settings(deadline=None)
@given(seeds, st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6))
def test_a_client_draws_the_same_alone_and_among_others(seed: int, ids: list[int]) -> None:
    together = draw_bits(fold_in(stream(seed_key(seed), Purpose.SHOW, 4), np.array(ids)), 3)
    alone = [draw_bits(stream(seed_key(seed), Purpose.SHOW, 4, i), 3) for i in ids]
    assert together.tolist() == np.array(alone).tolist()


def test_every_purpose_round_client_and_interaction_has_a_stream_of_its_own() -> None:
    names = list(product(Purpose, range(3), range(4), range(2)))
    keys = {tuple(stream(seed_key(3), *name).tolist()) for name in names}
    prefixes = {tuple(stream(seed_key(3), *name[:length]).tolist()) for name in names for length in (1, 2, 3)}
    assert len(keys) == len(names) == len(Purpose) * 3 * 4 * 2
    assert not keys & prefixes
    assert stream(seed_key(3), 1, 2).tolist() != stream(seed_key(3), 2, 1).tolist()


def test_uniform_numbers_are_strictly_between_0_and_1() -> None:
    lowest, highest = to_uniform(words(0, 0xFFFFFFFF))
    assert lowest == 0.5 / 2**23  # b = 0
    assert highest == 1 - 0.5 / 2**23 < 1  # b = 2^23 - 1, exact in float32
    assert lowest.dtype == np.float32


def test_uniform_numbers_are_uniform() -> None:
    n = 100_000
    draws = draw_uniform(stream(seed_key(21), 1), n).astype(np.float64)
    assert draws.mean() == pytest.approx(1 / 2, abs=4 * np.sqrt(1 / 12 / n))  # four standard errors
    assert draws.var() == pytest.approx(1 / 12, abs=4 * np.sqrt(1 / 180 / n))  # fourth moment 1/80, less (1/12)^2
    assert stats.kstest(draws, "uniform").statistic < 1.63 / np.sqrt(n)  # the critical value at 1 %
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / np.sqrt(n)


def test_the_first_draws_of_neighbouring_clients_are_uniform_too() -> None:
    n = 100_000
    draws = draw_uniform(fold_in(stream(seed_key(22), Purpose.QUERY, 1), np.arange(n)), 1)[:, 0].astype(np.float64)
    assert stats.kstest(draws, "uniform").statistic < 1.63 / np.sqrt(n)
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / np.sqrt(n)


def test_normal_numbers_are_normal() -> None:
    n = 100_000
    draws = draw_normal(stream(seed_key(23), 1), n)
    assert draws.mean() == pytest.approx(0, abs=4 / np.sqrt(n))  # four standard errors
    assert draws.var() == pytest.approx(1, abs=4 * np.sqrt(2 / n))
    assert stats.kstest(draws, "norm").statistic < 1.63 / np.sqrt(n)
    assert draws[:50].tolist() == draw_normal(stream(seed_key(23), 1), 50).tolist()


def test_whole_numbers_below_a_bound_are_equally_likely() -> None:
    n, bound = 70_000, 7
    counts = np.bincount(draw_below(stream(seed_key(24), 1), bound, n), minlength=bound)
    assert len(counts) == bound
    assert stats.chisquare(counts).pvalue > 0.01


def test_batched_keys_draw_what_single_ones_do() -> None:
    keys = fold_in(seed_key(5), np.arange(6).reshape(2, 3))
    for draw in (draw_bits, draw_uniform, draw_normal):
        assert draw(keys, 5).shape == (2, 3, 5)
        assert draw(keys, 5)[1, 2].tolist() == draw(keys[1, 2], 5).tolist()


def test_blocks_of_several_keys_are_those_of_each() -> None:
    keys = fold_in(seed_key(6), np.arange(4).reshape(2, 2))
    found = draw_blocks(keys, np.array([3, 1]), np.array([[0, 2], [1, 1]], np.uint32))
    assert found.shape == (2, 2, 2)
    assert found[0].ravel().tolist() == draw_bits(keys[1, 1], 6)[[0, 1, 4, 5]].tolist()
    assert found[1, 0].tolist() == found[1, 1].tolist() == draw_bits(keys[0, 1], 4)[2:].tolist()


def test_entropy_stays_entropy_and_never_draws_the_same_twice() -> None:
    folded = stream(ENTROPY, Purpose.PRIVATISE, 3, 7)
    assert folded == ENTROPY and folded.shape == (2,)
    draws = [draw_bits(key, 1000) for key in (ENTROPY, ENTROPY, folded)]
    assert all(d.dtype == np.uint32 and d.shape == (1000,) for d in draws)
    assert len({d.tobytes() for d in draws}) == 3
    assert not draw_bits(ENTROPY, 0).size


def test_entropy_draws_what_keys_do() -> None:
    keys = fold_in(ENTROPY, np.arange(6).reshape(2, 3))
    assert keys.shape == (2, 3, 2)
    assert draw_uniform(keys, 5).shape == draw_normal(keys, 5).shape == (2, 3, 5)
    assert set(draw_below(ENTROPY, 3, 1000).tolist()) == {0, 1, 2}
    assert draw_blocks(ENTROPY, np.zeros(4, int), np.zeros((4, 3), np.uint32)).shape == (4, 3, 2)


def test_entropy_is_uniform() -> None:
    n = 100_000
    draws = draw_uniform(ENTROPY, n).astype(np.float64)
    assert stats.kstest(draws, "uniform").statistic < 3.5 / np.sqrt(n)  # once in 20 thousand million times it is more


def test_what_does_not_know_entropy_fails_rather_than_draw_from_a_known_key() -> None:
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError)):
        threefry(ENTROPY, words(0), words(0))
    with pytest.raises((TypeError, ValueError)):
        np.asarray(ENTROPY, dtype=np.uint32)
