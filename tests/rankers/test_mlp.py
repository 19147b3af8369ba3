"""The network ranker, by hand, by finite differences, and its JAX twin."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.mlp_fast import FastMlpRanker
from hushrank.streams import draw_normal, seed_key, stream
from hushrank.types import Array


def normals(purpose: int, *shape: int) -> Array:
    return draw_normal(stream(seed_key(71), purpose), int(np.prod(shape))).reshape(shape)


def n_params(ranker: MlpRanker) -> int:
    return sum(part.size for part in ranker.parameters)


def test_scores_by_hand() -> None:
    # d = (1, 2), W = [[1, 0], [-1, 1]], b = (0.5, -1), v = (3, 2): d W + b = (1 - 2 + 0.5, 2 - 1) = (-0.5, 1)
    params, features = np.array([1.0, 0, -1, 1, 0.5, -1, 3, 2]), np.array([[1.0, 2.0]])
    assert MlpRanker(2, hidden=2, activation="relu").score(params, features).tolist() == [3 * 0 + 2 * 1]
    sigmoids = 3 / (1 + np.exp(0.5)) + 2 / (1 + np.exp(-1.0))
    assert MlpRanker(2, hidden=2, activation="sigmoid").score(params, features)[0] == pytest.approx(sigmoids)


def test_the_flat_vector_has_named_parts() -> None:
    ranker = MlpRanker(3, hidden=2)
    sizes = {part.name: part.size for part in ranker.parameters}
    assert sizes == {"hidden/weights": 6, "hidden/bias": 2, "output/weights": 2}
    weights, bias, output = ranker.split(np.arange(10))
    assert weights.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (bias.tolist(), output.tolist()) == ([6, 7], [8, 9])


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_the_gradient_equals_finite_differences(activation: str) -> None:
    ranker = MlpRanker(4, hidden=5, activation=activation)
    params, features, weights = normals(1, n_params(ranker)), normals(2, 6, 4), normals(3, 6)
    step = 1e-6 * np.eye(len(params))
    numeric = [
        (weights @ (ranker.score(params + h, features) - ranker.score(params - h, features))) / 2e-6 for h in step
    ]
    np.testing.assert_allclose(ranker.score_gradient(params, features, weights), numeric, atol=1e-7)


def test_relu_with_positive_inputs_is_a_linear_ranker() -> None:
    ranker = MlpRanker(3, hidden=2, activation="relu")
    params = np.abs(normals(4, n_params(ranker)))
    features = np.abs(normals(5, 7, 3))
    weights, bias, output = ranker.split(params)
    np.testing.assert_allclose(ranker.score(params, features), features @ (weights @ output) + bias @ output)


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_the_jax_twin_gives_the_same_scores_and_gradients(activation: str) -> None:
    plain = MlpRanker(4, hidden=5, activation=activation)
    fast = FastMlpRanker(plain)
    batch = [x.astype(np.float32) for x in (normals(6, 3, n_params(plain)), normals(7, 3, 6, 4), normals(8, 3, 6))]
    batch[1][0, 0] = 0.0  # with no bias at exactly 0 for ReLU, whose slope there is 0 in both
    batch[0][0, 20:25] = 0.0
    both = jax.jit(jax.vmap(lambda p, x, w: (fast.score(p, x), fast.score_gradient(p, x, w))))(*batch)
    for i, (params, features, weights) in enumerate(zip(*batch, strict=True)):
        np.testing.assert_allclose(both[0][i], plain.score(params, features), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(both[1][i], plain.score_gradient(params, features, weights), rtol=1e-5, atol=1e-5)


def test_first_weights_have_a_variance_of_one_over_the_fan_in() -> None:
    ranker = MlpRanker(50, hidden=200)
    weights, bias, output = ranker.split(ranker.initial(normals(9, n_params(ranker))))
    for part, fan_in in ((weights.ravel(), 50), (output, 200)):
        n = len(part)
        assert part.mean() == pytest.approx(0, abs=4 * np.sqrt(1 / fan_in / n))  # four standard errors
        assert part.var() * fan_in == pytest.approx(1, abs=4 * np.sqrt(2 / n))
    assert not bias.any()


def test_huge_inputs_neither_overflow_nor_warn() -> None:
    ranker = MlpRanker(1, hidden=1)
    params, features = np.array([1.0, 0.0, 2.0]), np.array([[-1e5], [1e5]])
    assert ranker.score(params, features).tolist() == [0.0, 2.0]
    assert ranker.score_gradient(params, features, np.ones(2)).tolist() == [0.0, 0.0, 1.0]


def test_an_unknown_activation_or_an_empty_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="activation is 'tanh', must be sigmoid or relu"):
        MlpRanker(3, activation="tanh")
    with pytest.raises(ValueError, match="hidden is 0, must be at least 1"):
        MlpRanker(3, hidden=0)
