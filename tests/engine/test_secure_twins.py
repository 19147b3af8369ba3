"""Secure sums in a run: the fast engines give what the protocol gives, to the bit where the updates are the same."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from tiny_settings import N_FEATURES, tiny_setting

from hushrank.engine.addition import add_words
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting, why_not_fast
from hushrank.engine.simulate import Options, simulate
from hushrank.federation.cohort import Population, answer_mask, sample_ids
from hushrank.federation.exchange import UpdateExchange, format_sum
from hushrank.federation.summation import MaskedSum, OpenSum
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.protection import UpdateProtection
from hushrank.privacy.secure_messages import SumConfig
from hushrank.privacy.secure_sum import run_secure_sum
from hushrank.privacy.sum_format import SumFormat

FLICKERING = Population(9, (1, 3, 2), cohort=7, dropout=0.25)
OPEN = OpenUpdates()
SHARED = SoundGaussian(0.05, 1.5, "clients", 6)  # needs 6 of 7 answers


def secret_setting(protection: UpdateProtection, population: Population = FLICKERING, *, rounds: int = 4) -> Setting:
    setting = tiny_setting(users=("perfect",), population=population, n_folds=1, rounds=rounds)
    format = format_sum(protection, population, n_params=N_FEATURES)
    exchange = UpdateExchange(protection.on_grid(format.step))
    return replace(setting, method=replace(setting.method, exchange=exchange, summation=MaskedSum(format)))


def count_answers(setting: Setting) -> list[int]:
    """Of each round."""
    key, population = cell_key(setting, Cell(0, 0, 0)), setting.method.population
    rounds = range(1, setting.rounds + 1)
    return [int(answer_mask(population, key, r, sample_ids(population, key, r)).sum()) for r in rounds]


def assert_equal_engines(setting: Setting, engine: str) -> None:
    plain, fast = (simulate(setting, Options(engine=name))[0][0] for name in ("plain", engine))
    assert np.abs(plain.params).max() > 0
    np.testing.assert_allclose(fast.params, plain.params, atol=1e-6)
    np.testing.assert_array_equal(fast.searches, plain.searches)


@pytest.mark.parametrize(
    "protection",
    [OPEN, SHARED, SoundLaplace(0.1, 0.7, "clients", 5), SoundGaussian(0.02, 0.0)],
    ids=["open", "gaussian", "laplace", "clipped only"],
)
def test_the_fused_loop_equals_the_protocol_with_dropouts(protection: UpdateProtection) -> None:
    setting = secret_setting(protection)
    assert min(count_answers(setting)) < 7
    assert_equal_engines(setting, "numba")


@pytest.mark.parametrize("protection", [OPEN, SHARED], ids=["open", "gaussian"])
def test_the_compiled_program_equals_the_protocol_also_in_lost_rounds(protection: UpdateProtection) -> None:
    setting = secret_setting(protection)
    assert min(count_answers(setting)) < 6 <= max(count_answers(setting))
    assert_equal_engines(setting, "xla")


@pytest.mark.parametrize("engine", ["plain", "numba"])
def test_a_secure_sum_changes_a_mean_by_its_rounding_alone(engine: str) -> None:
    setting = secret_setting(OPEN, replace(FLICKERING, dropout=0.0), rounds=1)
    coarse = SumFormat(1024.0, 9, 3)
    secret, seen = (
        simulate(replace(setting, method=replace(setting.method, summation=summation)), Options(engine=engine))[0][0]
        for summation in (MaskedSum(coarse), OpenSum())
    )
    assert 0 < np.abs(secret.params - seen.params).max() <= coarse.step / 2


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [3, 1, 2, 0]])
def test_numpy_jax_and_the_protocol_give_the_same_bits_for_the_same_updates(weights: list[int]) -> None:
    updates = np.random.default_rng(1).uniform(-0.7, 0.7, (4, 50)).astype(np.float32)
    format = SumFormat(0.75, n_clients=4, most_weight=3)
    words = format.add(updates, np.array(weights))
    fast, n_outside = add_words(format, jnp.asarray(updates)[None], jnp.asarray(weights)[None])
    assert np.asarray(fast)[0].view(np.uint32).tolist() == words[:-1].tolist() and int(n_outside) == 0
    config = SumConfig(b"one round of tests", 4, 51, format.encoding.bound, 3)
    values = {i: format.write(updates[i], weights[i]) for i in range(4)}
    total = run_secure_sum(values, config, entropy={i: bytes([i]) * 32 for i in range(4)}).total
    decoded, weight = format.decode(words, n_summed=4)
    assert np.array_equal(total[:-1], decoded) and weight == sum(weights) == format.read(total)[1]


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
def test_a_number_beyond_the_range_ends_the_run_instead_of_wrapping(engine: str) -> None:
    setting = secret_setting(OPEN)
    train = setting.dataset.folds[0].train
    huge = replace(setting.dataset.folds[0], train=replace(train, features=1e4 * train.features))
    with pytest.raises(ValueError, match="numbers of updates are beyond 1, the range of this secure sum"):
        simulate(replace(setting, dataset=replace(setting.dataset, folds=(huge,))), Options(engine=engine))


@pytest.mark.parametrize("engine", ["plain", "numba"])
@pytest.mark.parametrize("is_secure", [True, False])
def test_a_round_without_enough_noise_is_lost_and_not_opened(engine: str, is_secure: bool) -> None:
    setting = secret_setting(SHARED)
    method = setting.method if is_secure else replace(setting.method, summation=OpenSum())
    lost = 1 + next(i for i, n in enumerate(count_answers(setting)) if n < 6)
    upto = [replace(setting, method=method, rounds=n) for n in (max(lost - 1, 1), lost)]
    before, after = (simulate(each, Options(engine=engine))[0][0] for each in upto)
    assert np.array_equal(after.params, before.params if lost > 1 else np.zeros(N_FEATURES))
    assert after.searches[-1] > 0  # people did search


def test_a_secure_sum_needs_more_than_two_thirds_of_those_asked() -> None:
    quorum = secret_setting(OPEN).method.quorum
    assert [quorum.needed(n) for n in (0, 1, 2, 7, 9)] == [2, 2, 2, 5, 7]
    assert secret_setting(SHARED).method.quorum.needed(12) == 9 and secret_setting(SHARED).method.quorum.needed(7) == 6


def test_clients_noise_without_a_secure_sum_is_the_plain_rounds_too() -> None:
    setting = secret_setting(SHARED)
    setting = replace(setting, method=replace(setting.method, summation=OpenSum()))
    assert why_not_fast(setting) is None
    assert_equal_engines(setting, "numba")


def test_the_published_noise_goes_through_a_secure_sum() -> None:
    """With next to no noise: the noise itself is one draw in the fast engines."""
    assert_equal_engines(secret_setting(PaperNoise(1e9, 0.04, 6), Population(6, (2,))), "numba")
