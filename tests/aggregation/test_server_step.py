"""What the server does with the mean update: FedAvg, momentum, Adam, equal to optax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hushrank.aggregation.server_step import DEFAULT_RATES, ServerStep
from hushrank.streams import draw_normal, seed_key, stream
from hushrank.types import Array

N_STEPS = 20
START = draw_normal(stream(seed_key(121), 1), 5).astype(np.float32)
UPDATES = draw_normal(stream(seed_key(121), 2), N_STEPS * 5).reshape(N_STEPS, 5).astype(np.float32)
UPDATES[:, 4] = 0.0  # a parameter that never moves


def step_through(step: ServerStep, start: Any, updates: Any) -> Array:
    """[n_steps, n_params] the parameters after each step."""
    state, params, path = step.init(start), start, []
    for update in updates:
        state, params = step(state, params, update)
        path.append(params)
    return np.stack(path)


def optax_path(optimiser: Any) -> Array:
    """The same with optax, whose gradient is the update's negative."""

    def step(carry: Any, update: Any) -> tuple[Any, Any]:
        params, state = carry
        change, state = optimiser.update(-update, state, params)
        params = optax.apply_updates(params, change)
        return (params, state), params

    return np.asarray(jax.jit(lambda: jax.lax.scan(step, (jnp.asarray(START), optimiser.init(START)), UPDATES)[1])())


def test_sgd_at_rate_1_is_federated_averaging() -> None:
    path = step_through(ServerStep(), START, UPDATES)
    np.testing.assert_array_equal(path, np.cumsum([START, *UPDATES], axis=0)[1:])
    assert ServerStep() == ServerStep("sgd", DEFAULT_RATES["sgd"])


def test_momentum_by_hand() -> None:
    path = step_through(ServerStep("momentum", 0.5), np.array([1.0]), np.array([[2.0], [4.0]]))
    assert path.tolist() == [[1 + 0.5 * 2], [2 + 0.5 * (0.9 * 2 + 4)]]


def test_a_rate_that_fades_by_hand() -> None:
    path = step_through(ServerStep("sgd", 4.0, fade=4), np.array([0.0]), np.ones((4, 1)))
    assert path[:, 0].tolist() == [4, 4 + 3, 4 + 3 + 2, 4 + 3 + 2 + 1]
    with pytest.raises(ValueError, match="at least 1 step"):
        ServerStep(fade=0)


@pytest.mark.parametrize("optimiser", DEFAULT_RATES)
def test_a_rate_that_fades_is_the_schedule_of_optax(optimiser: str) -> None:
    schedule = optax.linear_schedule(0.1, 0.0, N_STEPS)
    theirs = {"sgd": optax.sgd(schedule), "momentum": optax.sgd(schedule, momentum=0.9), "adam": optax.adam(schedule)}
    ours = step_through(ServerStep(optimiser, 0.1, fade=N_STEPS), START, UPDATES)
    np.testing.assert_allclose(ours, optax_path(theirs[optimiser]), rtol=2e-5, atol=2e-6)


def test_the_first_step_of_adam_has_the_length_of_its_rate() -> None:
    path = step_through(ServerStep("adam", 0.01), np.zeros(3), np.array([[5.0, -1e-3, 0.0]]))
    np.testing.assert_allclose(path, [[0.01, -0.01, 0.0]], rtol=2e-5)  # 1e-8 / 1e-3 of it is lost to the small constant


@pytest.mark.parametrize(
    ("step", "optimiser"),
    [
        (ServerStep("sgd", 0.3), optax.sgd(0.3)),
        (ServerStep("momentum", 0.3), optax.sgd(0.3, momentum=0.9)),
        (ServerStep("adam", 0.05), optax.adam(0.05)),
    ],
)
def test_twenty_steps_equal_those_of_optax(step: ServerStep, optimiser: Any) -> None:
    np.testing.assert_allclose(step_through(step, START, UPDATES), optax_path(optimiser), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DEFAULT_RATES)
def test_numpy_and_jax_take_the_same_steps_for_one_ranker_or_many(name: str) -> None:
    step = ServerStep(name, DEFAULT_RATES[name])
    plain = step_through(step, START, UPDATES)
    many = np.stack([UPDATES, -UPDATES], axis=1)  # [n_steps, 2, n_params]

    def compiled_step(carry: Any, update: Any) -> tuple[Any, Any]:
        state, params = step(carry[0], carry[1], update)
        return (state, params), params

    start = jnp.stack([START, START])
    fast = jax.jit(lambda: jax.lax.scan(compiled_step, (step.init(start), start), many)[1])()
    np.testing.assert_allclose(fast[:, 0], plain, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fast[:, 1], step_through(step, START, -UPDATES), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DEFAULT_RATES)
def test_types_are_kept_and_the_steps_are_counted(name: str) -> None:
    step = ServerStep(name)
    state = step.init(START)
    for count in (1, 2):
        state, params = step(state, START, UPDATES[0])
        assert params.dtype == np.float32
        assert {part.dtype for part in state.values()} == {np.dtype(np.float32)}
        assert state["n_steps"].tolist() == [count]


def test_a_wrong_optimiser_or_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="server_optimiser is 'adagrad', must be one of sgd, momentum, adam"):
        ServerStep("adagrad")
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"server_rate is .*, must be > 0"):
            ServerStep("sgd", rate)
