"""The simulator gives what the plain round gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_settings import UNEQUAL, run_plainly, tiny_setting

from hushrank.aggregation.server_step import ServerStep
from hushrank.engine.inputs import cell_key, initial_memory, initial_params
from hushrank.engine.plan import Cell
from hushrank.engine.simulate import Options, simulate
from hushrank.federation.cohort import Population, sample_cohort
from hushrank.federation.local import learn
from hushrank.federation.round import Federation, run_round
from hushrank.learners.pdgd import pdgd_gradient
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_below, draw_uniform, stream
from hushrank.types import Array, Client

ENGINES = [Options(engine="numba"), Options(engine="xla"), Options(engine="plain")]


@pytest.mark.parametrize(
    ("ranker", "engine"), [("linear", "numba"), ("linear", "xla"), ("mlp", "numba"), ("mlp", "xla")]
)
def test_engine_equals_the_plain_round_for_three_users_unequal_interactions_and_dropouts(
    ranker: str, engine: str
) -> None:
    setting = tiny_setting(ranker=ranker)
    results, _ = simulate(setting, Options(engine=engine))
    assert len(results) == 6
    for result, (user, fold) in zip(results, [(u, f) for u in range(3) for f in range(2)], strict=True):
        params, online = run_plainly(setting, Cell(user, fold, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, atol=2e-6)
        np.testing.assert_allclose(result.online, online, atol=1e-6)


@pytest.mark.parametrize("options", ENGINES)
@pytest.mark.parametrize(
    "step", [ServerStep("momentum", 0.5), ServerStep("adam", 0.01), ServerStep("sgd", 2.0, fade=8)]
)
def test_engine_equals_the_plain_round_with_a_server_step(step: ServerStep, options: Options) -> None:
    setting = tiny_setting(server_step=step, users=("navigational",))
    results, _ = simulate(setting, options)
    for result in results:
        params, _ = run_plainly(setting, Cell(0, result.fold - 1, 0), setting.rounds)
        np.testing.assert_allclose(result.params, params, atol=2e-5)


@pytest.mark.parametrize("options", ENGINES)
def test_searches_are_counted_also_for_clients_that_drop_out(options: Options) -> None:
    setting = tiny_setting()
    results, _ = simulate(setting, options)
    key = cell_key(setting, Cell(0, 0, 0))
    expected = [sum(c.n_interactions for c in sample_cohort(UNEQUAL, key, r)) for r in range(1, setting.rounds + 1)]
    assert results[0].searches.tolist() == expected


@pytest.mark.parametrize("options", ENGINES)
def test_central_one_by_one_equals_a_federation_of_one_client(options: Options) -> None:
    central = tiny_setting(population=Population(1, (12,)), batch=1, users=("perfect",), rounds=2)
    results, _ = simulate(central, options)
    for result in results:
        params, online = run_plainly(central, Cell(0, result.fold - 1, 0), 2)
        np.testing.assert_allclose(result.params, params, atol=2e-6)
        np.testing.assert_allclose(result.online, online, atol=1e-6)


@pytest.mark.parametrize("options", ENGINES)
def test_central_batch_sums_the_gradients_of_its_interactions_at_the_same_weights(options: Options) -> None:
    setting = tiny_setting(population=Population(1, (12,)), batch=4, users=("perfect",), rounds=1)
    result = simulate(setting, options)[0][0]
    cell, method = Cell(0, 0, 0), setting.method
    queries = setting.dataset.folds[0].train
    federation = Federation(method.ranker, setting.users[0][1], queries, method.population)
    params = initial_params(setting, cell)
    for first in (0, 4, 8):
        params = params + sum(
            interaction_delta(federation, params, cell_key(setting, cell), i) for i in range(first, first + 4)
        )
    np.testing.assert_allclose(result.params, params, atol=2e-6)


def interaction_delta(federation: Federation, params: Array, key: Array, interaction: int) -> Array:
    """What one interaction alone adds: the stages one after the other, with that interaction's draws."""
    draw = {purpose: stream(key, purpose, 1, 0, interaction) for purpose in Purpose}
    rows = federation.queries.rows(int(draw_below(draw[Purpose.QUERY], federation.queries.n_queries, 1)[0]))
    features, grades = federation.queries.features[rows], federation.queries.grades[rows]
    scores = federation.ranker.score(params, features)
    ranking = sample_ranking(scores, draw_uniform(draw[Purpose.SHOW], len(scores)))
    draws = (draw_uniform(draw[purpose], len(ranking)) for purpose in (Purpose.CLICK, Purpose.STOP))
    clicks = federation.user(grades[ranking], *draws)
    return 0.1 * pdgd_gradient(federation.ranker, params, features, scores, ranking, clicks)


def test_the_weighted_mean_is_over_those_who_answered() -> None:
    setting = tiny_setting(users=("perfect",), population=Population(3, (1, 2, 3)))
    cell, method = Cell(0, 0, 0), setting.method
    federation = Federation(method.ranker, setting.users[0][1], setting.dataset.folds[0].train, method.population)
    params = initial_params(setting, cell)
    key = cell_key(setting, cell)
    deltas = [learn(federation, params, Client(i, i + 1), key=key, round=1)[0].delta for i in range(3)]
    expected = params + (1 * deltas[0] + 2 * deltas[1] + 3 * deltas[2]) / 6
    new = run_round(federation, initial_memory(setting, params), params, key=key, round=1)[1]
    np.testing.assert_allclose(new, expected, atol=1e-7)


@pytest.mark.parametrize("options", ENGINES)
def test_a_round_in_which_nobody_answers_changes_nothing(options: Options) -> None:
    silent = Population(2, (1,), dropout=0.999999)
    setting = tiny_setting(users=("perfect",), population=silent, server_step=ServerStep("momentum"))
    results, _ = simulate(setting, options)
    assert all(not result.params.any() for result in results)
    params, _ = run_plainly(setting, Cell(0, 0, 0), 2)
    assert not params.any()


@pytest.mark.parametrize("scale", [1.0, 300.0, 1e4])
def test_the_fused_kernel_learns_from_huge_scores_as_the_plain_round_does(scale: float) -> None:
    setting = tiny_setting(users=("informational",), population=Population(5, (3,)), n_folds=1)
    start = tuple(scale * weight for weight in (1.0, -0.5, 0.2, 0.0, -1.0, 0.7))
    setting = replace(setting, start=start)
    result = simulate(setting, Options(engine="numba"))[0][0]
    plain, _ = run_plainly(setting, Cell(0, 0, 0), setting.rounds)
    assert np.isfinite(result.params).all()
    np.testing.assert_allclose(result.params, plain, rtol=1e-6, atol=1e-5)


def test_the_fused_kernel_follows_a_position_based_user() -> None:
    setting = tiny_setting(users=("pbm-1",), population=Population(6, (3,)))
    result = simulate(setting, Options(engine="numba"))[0][0]
    plain, _ = run_plainly(setting, Cell(0, 0, 0), setting.rounds)
    np.testing.assert_allclose(result.params, plain, atol=2e-6)


def test_an_engine_that_cannot_run_is_refused() -> None:
    central = tiny_setting(population=Population(1, (4,)), batch=2, server_step=ServerStep("adam"))
    with pytest.raises(ValueError, match="engine=numba does not do server_optimiser=adam in central training: leave"):
        simulate(central, Options(engine="numba"))
    with pytest.raises(ValueError, match="engine is 'fast', must be one of auto, numba, xla"):
        simulate(tiny_setting(), Options(engine="fast"))
