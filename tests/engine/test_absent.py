"""Clients that left: their seats stay empty on every engine, and nobody else's draws or participation change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from remedy_settings import change_method, results
from tiny_settings import tiny_setting

from hushrank.aggregation.named import find_rule
from hushrank.engine.inputs import cell_key
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting, without_clients
from hushrank.federation.cohort import Population, answer_mask, draw_groups, is_present, sample_ids
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.correlated import CorrelatedGaussian
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.placement import Scheme

LEFT = (0, 3, 4)
EVERYBODY = Population(9, (1, 3, 2), groups=(0, 1), regroup=True)
POPULATIONS = {
    "everybody": replace(EVERYBODY, regroup=False, groups=(0,)),
    "fixed": Population(9, (1, 3, 2), cohort=4, dropout=0.2),
    "poisson": Population(9, (1, 3, 2), cohort=3, dropout=0.2, sampling="poisson"),
    "rotation": Population(9, (1, 3, 2), cohort=2, sampling="rotation"),
}
SOUND = UpdateExchange(SoundGaussian(0.05, 2.0))


def left_setting(population: Population, *, rounds: int = 8) -> Setting:
    return tiny_setting(users=("perfect",), population=population, n_folds=1, rounds=rounds)


KEY = cell_key(left_setting(POPULATIONS["fixed"]), Cell(0, 0, 0))


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_others_take_part_and_answer_as_if_nobody_had_left(name: str) -> None:
    whole, left = POPULATIONS[name], replace(POPULATIONS[name], absent=LEFT)
    seen = set[int]()
    for round in range(1, 40):
        ids, others = sample_ids(whole, KEY, round), sample_ids(left, KEY, round)
        np.testing.assert_array_equal(others, ids[~np.isin(ids, LEFT)])
        stays = np.isin(ids, others)
        np.testing.assert_array_equal(answer_mask(left, KEY, round, others), answer_mask(whole, KEY, round, ids)[stays])
        seen |= set(ids.tolist())
    assert seen == set(range(9))


def test_groups_that_are_drawn_anew_stay() -> None:
    whole, others = np.arange(9), np.flatnonzero(is_present(replace(EVERYBODY, absent=LEFT)))
    for round in range(1, 10):
        drawn = draw_groups(EVERYBODY, KEY, round, whole)
        np.testing.assert_array_equal(draw_groups(EVERYBODY, KEY, round, others), drawn[others])


@pytest.mark.parametrize("engine", ["numba", "xla"])
@pytest.mark.parametrize("exchange", [UpdateExchange(), SOUND], ids=["open", "sound"])
@pytest.mark.parametrize("name", POPULATIONS)
def test_engines_equal_the_plain_round(name: str, exchange: UpdateExchange, engine: str) -> None:
    setting = change_method(left_setting(replace(POPULATIONS[name], absent=LEFT)), exchange=exchange)
    plain, fast = (results(setting, each)[0] for each in ("plain", engine))
    assert np.abs(plain.params).max() > 0
    np.testing.assert_allclose(fast.params, plain.params, atol=2e-6)
    np.testing.assert_allclose(fast.online, plain.online, atol=1e-6)
    np.testing.assert_array_equal(fast.searches, plain.searches)
    asked = [sample_ids(setting.method.population, KEY, round) for round in range(1, 9)]
    assert plain.searches.tolist() == [sum((1, 3, 2)[client % 3] for client in ids) for ids in asked]


@pytest.mark.parametrize("engine", ["numba", "xla"])
def test_a_rule_sees_those_who_are_there(engine: str) -> None:
    population = replace(POPULATIONS["fixed"], absent=LEFT)
    setting = change_method(left_setting(population), rule=find_rule("median"))
    plain, fast = (results(setting, each)[0] for each in ("plain", engine))
    np.testing.assert_allclose(fast.params, plain.params, atol=2e-6)


def test_a_sound_sum_is_divided_by_those_who_are_left_or_by_the_seats() -> None:
    everybody, fixed = (replace(POPULATIONS[name], absent=LEFT) for name in ("everybody", "fixed"))
    assert (everybody.cohort_size, everybody.most_sampled, everybody.n_seats) == (6, 6, 9)
    assert (fixed.cohort_size, fixed.most_sampled, fixed.n_seats) == (4, 4, 4)
    assert replace(fixed, cohort=8).most_sampled == 6
    assert replace(EVERYBODY, cohort=9, absent=LEFT).cohort_size == 6
    method = left_setting(everybody).method
    assert replace(method, exchange=SOUND).divisor == 6


@pytest.mark.parametrize("name", POPULATIONS)
def test_accountants_hear_of_the_same_draws(name: str) -> None:
    whole, left = POPULATIONS[name], replace(POPULATIONS[name], absent=LEFT)
    same = ("scheme", "sampling_rate", "threshold", "separation", "is_complete")
    assert [getattr(left, each) for each in same] == [getattr(whole, each) for each in same]
    assert (whole.scheme == Scheme.everybody) == (name == "everybody")


@pytest.mark.parametrize(
    ("absent", "message"),
    [((9,), "client 9 is absent, but clients are 0 to 8"), ((1, 1), "each client once"), (tuple(range(9)), "all 9")],
)
def test_who_cannot_leave_is_refused(absent: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(EVERYBODY, absent=absent)


def test_noise_that_all_make_together_is_made_by_those_who_are_left() -> None:
    paper = UpdateExchange(PaperNoise(2.0, 1.0, 9))
    setting = change_method(left_setting(replace(POPULATIONS["everybody"], interactions=(2,))), exchange=paper)
    with pytest.raises(ValueError, match="6 clients are left, but 9 must make the noise"):
        change_method(setting, population=replace(setting.method.population, absent=LEFT))
    left = replace(setting, method=without_clients(setting.method, LEFT))
    assert left.method.protection.n_makers == 6
    assert np.abs(results(left, "plain")[0].params).max() > 0


def test_leaving_twice_leaves_both() -> None:
    method = left_setting(POPULATIONS["fixed"]).method
    assert without_clients(without_clients(method, (4, 0)), (3, 0)).population.absent == LEFT


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
@pytest.mark.parametrize("exchange", [UpdateExchange(), SOUND], ids=["open", "sound"])
def test_a_training_continued_at_a_later_round_is_the_training_in_one(exchange: UpdateExchange, engine: str) -> None:
    setting = change_method(left_setting(POPULATIONS["rotation"]), exchange=exchange)
    whole, half = results(setting, engine)[0], results(replace(setting, rounds=5), engine)[0]
    rest = replace(setting, rounds=3, start=tuple(map(float, half.params)))
    after = results(change_method(rest, first_round=6), engine)[0]
    assert after.params.tobytes() == whole.params.tobytes()
    np.testing.assert_array_equal(after.searches, whole.searches[5:])


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
def test_a_step_has_the_draws_of_its_round(engine: str) -> None:
    """Steps 1 and 2 with stride 3 are rounds 1 and 4."""
    setting = change_method(left_setting(POPULATIONS["fixed"]), exchange=SOUND)
    strided = results(change_method(replace(setting, rounds=2), stride=3), engine)[0]
    first = results(replace(setting, rounds=1), engine)[0]
    again = replace(setting, rounds=1, start=tuple(map(float, first.params)))
    second = results(change_method(again, first_round=4), engine)[0]
    assert strided.params.tobytes() == second.params.tobytes()
    assert strided.searches.tolist() == [first.searches[0], second.searches[0]]


@pytest.mark.parametrize("engine", ["numba", "xla"])
def test_strides_are_the_same_with_rules(engine: str) -> None:
    setting = change_method(left_setting(POPULATIONS["fixed"], rounds=3), rule=find_rule("median"), stride=4)
    plain, fast = (results(setting, each)[0] for each in ("plain", engine))
    np.testing.assert_allclose(fast.params, plain.params, atol=2e-6)
    np.testing.assert_array_equal(fast.searches, plain.searches)


def test_rounds_that_cannot_be_are_refused() -> None:
    setting = left_setting(POPULATIONS["rotation"])
    with pytest.raises(ValueError, match="must be at least 1"):
        change_method(setting, stride=0)
    with pytest.raises(ValueError, match="with sampling=rotation no round can be left out"):
        change_method(setting, stride=2)
    correlated = UpdateExchange(CorrelatedGaussian(0.05, 2.0, separation=4))
    with pytest.raises(ValueError, match="taken back in the next rounds"):
        change_method(left_setting(POPULATIONS["fixed"]), exchange=correlated, stride=2)


@pytest.mark.parametrize("engine", ["plain", "numba", "xla"])
@pytest.mark.parametrize("exchange", [SOUND, UpdateExchange(PaperNoise(2.0, 1.0, 9))], ids=["sound", "paper"])
def test_a_training_that_repeats_rounds_has_noise_of_its_own(exchange: UpdateExchange, engine: str) -> None:
    """Rankers of both are known in the end: the same noise would cancel in their difference."""
    usual = change_method(left_setting(Population(9, (2,)), rounds=1), exchange=exchange, learning_rate=0.0)
    first, again, other = (
        results(change_method(usual, noise_number=number), engine)[0].params for number in (None, 7, 8)
    )
    assert (first != again).all() and (first != other).all() and (again != other).all()
    if exchange is SOUND:  # paper's noise is that of the plain round in law only
        twin = results(change_method(usual, noise_number=7), "plain")[0].params
        np.testing.assert_allclose(again, twin, rtol=1e-5, atol=1e-6)
