"""Networks in the fused loop give what the plain round gives, whatever their width and the method around them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from remedy_settings import change_method, results
from tiny_settings import N_FEATURES, UNEQUAL, run_plainly, tiny_setting

from hushrank.aggregation.named import find_rule
from hushrank.aggregation.server_step import ServerStep
from hushrank.attacks.named import find_attack
from hushrank.engine import fused
from hushrank.engine.kernel import kernel_for
from hushrank.engine.lanes import LANES
from hushrank.engine.network_kernel import make_network_room, network_parts, sigmoid
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.vectors import add_products, multiply
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import UpdateExchange, format_sum
from hushrank.federation.summation import MaskedSum
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.none import OpenUpdates
from hushrank.rankers.mlp import MlpRanker
from hushrank.remedies.prox import FedProx
from hushrank.types import Array, Dataset, Fold, QuerySet

WIDTHS = (1, 7, 16, 64, 130)
SECRET = MaskedSum(format_sum(OpenUpdates(), UNEQUAL, n_params=7 * (N_FEATURES + 2), largest=4.0))
METHODS: dict[str, dict[str, Any]] = {
    "clipped": {"exchange": UpdateExchange(OpenUpdates(0.03))},
    "noisy": {"exchange": UpdateExchange(SoundGaussian(0.05, 1.5))},
    "secure": {"summation": SECRET},
    "rule": {"rule": find_rule("median")},
    "attack": {"attack": find_attack("sign-flip"), "n_malicious": 2},
    "pulled": {"remedy": FedProx(mu=0.3)},
    "kept": {"keep_every": 2},
    "adam": {"server_step": ServerStep("adam", 0.01)},
}


def network_setting(hidden: int = 7, activation: str = "sigmoid", **changes: Any) -> Setting:
    setting = tiny_setting(ranker="mlp", users=("navigational",), n_folds=1, **changes)
    return change_method(setting, ranker=MlpRanker(N_FEATURES, hidden, activation))


def assert_plain(setting: Setting, *, engine: str = "numba", atol: float = 2e-6) -> None:
    for fast, plain in zip(results(setting, engine), results(setting, "plain"), strict=True):
        assert np.abs(fast.params - fast.first).max() > 0
        np.testing.assert_allclose(fast.params, plain.params, atol=atol)
        np.testing.assert_allclose(fast.online, plain.online, atol=1e-6)
        np.testing.assert_allclose(fast.test, plain.test, atol=1e-6)
        for name, kept in plain.kept.items():
            np.testing.assert_allclose(fast.kept[name], kept, atol=atol)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("hidden", WIDTHS)
def test_every_width_is_the_plain_round_with_cohorts_and_dropouts(hidden: int, activation: str) -> None:
    assert_plain(network_setting(hidden, activation))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_around_the_network_is_the_plain_one(name: str) -> None:
    assert_plain(change_method(network_setting(), **METHODS[name]), atol=1e-5)


@pytest.mark.parametrize(("hidden", "activation"), [(7, "sigmoid"), (130, "relu")])
def test_the_fused_loop_and_the_compiled_program_agree(hidden: int, activation: str) -> None:
    setting = network_setting(hidden, activation)
    for fused_one, compiled in zip(results(setting, "numba"), results(setting, "xla"), strict=True):
        np.testing.assert_allclose(fused_one.params, compiled.params, atol=2e-6)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_central_network_is_the_plain_one(batch: int, activation: str) -> None:
    assert_plain(network_setting(activation=activation, population=Population(1, (12,)), batch=batch, rounds=2))


@pytest.mark.parametrize("personal", ["hidden/weights", "hidden/bias", "output/weights"])
@pytest.mark.parametrize("hidden", [7, 20])
def test_every_layer_can_be_personal(hidden: int, personal: str) -> None:
    setting = network_setting(hidden)
    assert_plain(change_method(setting, ranker=replace(setting.method.ranker, personal=(personal,))), atol=5e-6)


def short_queries(n_queries: int) -> QuerySet:
    """Lists of one document, two and three: fewer than are worked on at once, and than a page shows."""
    generator = np.random.default_rng(8)
    starts = np.concatenate([[0], np.cumsum(1 + np.arange(n_queries) % 3)])
    features = generator.random((starts[-1], N_FEATURES), dtype=np.float32)
    grades = generator.integers(0, 3, starts[-1]).astype(np.uint8)
    return QuerySet(features, grades, starts, tuple(map(str, range(n_queries))))


def test_lists_shorter_than_a_page_and_of_one_document() -> None:
    folds = (Fold(1, short_queries(12), short_queries(6), short_queries(6)),)
    setting = replace(network_setting(), dataset=Dataset("short", folds, "none", "short"))
    assert_plain(setting)


def test_a_start_of_ones_own_and_huge_scores_are_followed() -> None:
    setting = network_setting(activation="relu")
    start = tuple(30.0 * value for value in np.sin(np.arange(7 * (N_FEATURES + 2))))
    setting = replace(setting, start=start)
    fast = results(setting, "numba")[0]
    plain, _ = run_plainly(setting, Cell(0, 0, 0), setting.rounds)
    assert np.isfinite(fast.params).all()
    np.testing.assert_allclose(fast.params, plain, rtol=1e-5, atol=1e-4)


def test_what_is_held_at_once_and_the_neighbours_in_a_block_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = network_setting(20)
    whole = results(setting, "numba")[0].params
    monkeypatch.setattr(fused, "_HELD_BYTES", 1)  # the updates of one client
    np.testing.assert_array_equal(results(setting, "numba")[0].params, whole)


def with_room(array: Array) -> Array:
    """The same numbers, with ones after them where registers reach beyond the end."""
    room = np.ones(array.size + LANES, np.float32)
    room[: array.size] = array.ravel()
    return room[: array.size].reshape(array.shape)


def draw_normals(*shapes: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(sum(map(sum, shapes)))
    return [with_room(generator.standard_normal(shape).astype(np.float32)) for shape in shapes]


def in_registers(width: int) -> int:
    return (width + LANES - 1) // LANES * LANES


@pytest.mark.parametrize("n", [1, 5, 6, 7, 13])
@pytest.mark.parametrize("width", [1, 7, 16, 17, 64, 130])
@pytest.mark.parametrize("m", [1, 6, 46])
def test_a_product_is_the_matrix_product_and_its_rows_do_not_depend_on_each_other(n: int, width: int, m: int) -> None:
    left, right, first = draw_normals((n, m), (m, width), (width,))
    out, alone = (np.full((rows, in_registers(width)), np.nan, np.float32) for rows in (n, 1))
    multiply(out, left, right, first)
    np.testing.assert_allclose(out[:, :width], first + left @ right, atol=1e-5)
    for row in range(n):
        multiply(alone, left[row : row + 1], right, first)
        np.testing.assert_array_equal(alone[0, :width], out[row, :width])


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7, 13])
@pytest.mark.parametrize("width", [1, 7, 16, 17, 64, 130])
@pytest.mark.parametrize("m", [1, 6, 46])
def test_products_of_rows_are_added_and_nothing_beyond_the_end_changes(n: int, width: int, m: int) -> None:
    total, left, some = draw_normals((m, width), (20, m), (n, width))
    right, places = np.zeros((n, in_registers(width)), np.float32), np.random.default_rng(n).permutation(20)[:n]
    right[:, :width] = some
    expected = total + 0.5 * left[places].T @ some
    add_products(total, np.float32(0.5), left, places, right, n, np.full((m, LANES), np.nan, np.float32))
    np.testing.assert_allclose(total, expected, atol=1e-5)
    assert (np.asarray(total.base)[total.size :] == 1).all()


def test_the_fast_sigmoid_is_the_rankers_to_the_last_bits() -> None:
    x = np.linspace(-40, 40, 20_001).astype(np.float32)
    plain, _ = MlpRanker(1, 1)._activate(x)
    np.testing.assert_allclose(
        [sigmoid(each) for each in x], plain, rtol=0, atol=1.2e-7
    )  # two last bits of a number near 1


def test_the_fast_sigmoid_has_both_ends_and_hides_no_nan() -> None:
    ends = [sigmoid(np.float32(x)) for x in (-np.inf, -1e30, 0.0, 1e30, np.inf)]
    np.testing.assert_allclose(ends, [0, 0, 0.5, 1, 1], atol=1e-37)
    assert np.isnan(sigmoid(np.float32(np.nan)))


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_scores_and_gradients_of_one_list_are_the_rankers(activation: str) -> None:
    ranker, (params, documents) = MlpRanker(5, 20, activation), draw_normals((5 * 20 + 40,), (9, 5))
    places, pulls = np.array([4, 0, 8, 2]), np.array([0.5, 0.0, -1.0, 0.25], np.float32)
    parts, room = network_parts(activation), make_network_room(params, 5, 9, 4)
    scores, gradient = np.empty(9, np.float32), with_room(np.ones_like(params))
    parts.score_list(params, documents, scores, room)
    parts.pull_list(gradient, np.float32(1), params, documents, places, pulls, 4, room)
    np.testing.assert_allclose(scores, ranker.score(params, documents), atol=2e-6)
    expected: Array = 1 + ranker.score_gradient(params, documents[places], pulls)
    np.testing.assert_allclose(gradient, expected, atol=2e-6)
    moved = params + 0.5 * (expected - 1)
    parts.pull_list(params, np.float32(0.5), params, documents, places, pulls, 4, room)  # a step of its own parameters
    np.testing.assert_allclose(params, moved, atol=2e-6)


def test_a_diverged_network_is_no_finite_one() -> None:
    for activation in ("sigmoid", "relu"):
        params, scores = with_room(np.full(3 * 4 + 8, np.nan, np.float32)), np.zeros(2, np.float32)
        parts = network_parts(activation)
        parts.score_list(params, np.ones((2, 3), np.float32), scores, make_network_room(params, 3, 2, 2))
        assert np.isnan(scores).all()


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_a_later_process_finds_the_compiled_loop_on_the_disk(activation: str) -> None:
    parts = network_parts(activation)
    kernel_for(None, parts)
    again: Any = kernel_for.__wrapped__(None, parts)
    assert sum(again.stats.cache_hits.values()) == 1 and not again.stats.cache_misses
