"""The detector leaves out who keeps sending what nobody could expect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gathered_rounds import make_round

from hushrank.aggregation.detector import Detector, curvature_times, find_suspects, scale_errors
from hushrank.aggregation.gap import divide_line, find_upper_group
from hushrank.aggregation.named import find_rule
from hushrank.aggregation.tolerance import BadResultError
from hushrank.types import Array, Combined, Gathered, NamedArrays


def test_a_line_is_divided_where_the_squares_are_smallest() -> None:
    # The mean is 10/3. Around 0.5 and 9 the squares are 0.25 + 0.25 + 0.
    (spreads,), (begins,) = divide_line(np.array([[0.0, 1.0, 9.0]]))
    assert begins == 2 and spreads[1] == pytest.approx(0.5)
    assert spreads[0] == pytest.approx((10 / 3) ** 2 + (7 / 3) ** 2 + (17 / 3) ** 2)


def test_two_groups_are_found_and_one_is_left_alone() -> None:
    assert find_upper_group(np.array([1.0, 1.1, 0.9, 1.05, 5.0, 5.1, 1.0])).tolist() == [0, 0, 0, 0, 1, 1, 0]
    assert not find_upper_group(np.linspace(0, 1, 12)).any()
    assert not find_upper_group(np.ones(5)).any()


def test_the_lowest_of_the_upper_group_belongs_to_it() -> None:
    """However its number is rounded on the way."""
    for seed in range(200):
        values = np.random.default_rng(seed).random(12) + np.repeat([13.0, 0.3], [3, 9])
        assert find_upper_group(values).tolist() == [True] * 3 + [False] * 9


def test_half_of_the_clients_are_never_suspected() -> None:
    assert find_suspects(np.array([1.0, 1.1, 9.0, 9.1, 9.05])).tolist() == [False] * 5
    assert find_suspects(np.array([1.0, 1.1, 0.9, 9.1, 9.05])).tolist() == [False] * 3 + [True] * 2
    assert find_suspects(np.array([np.nan] * 4)).tolist() == [False] * 4  # nobody has been measured yet


def test_the_curvature_of_a_quadratic_is_found_from_its_moves() -> None:
    hessian = np.diag([3.0, 1.0, 0.5])
    moves = np.eye(3) + 0.1
    changes = moves @ hessian
    np.testing.assert_allclose(curvature_times(moves, changes, moves[-1:]), changes[-1:], rtol=1e-9)  # the secant
    assert not curvature_times(np.empty((0, 3)), np.empty((0, 3)), np.ones((2, 3))).any()


def rounds(n: int, n_rounds: int, *, liars: int, absent: int = 0, noise: float = 0.1) -> list[Gathered]:
    """Clients that climb a hill from where the ranker is; liars go elsewhere, each time somewhere new."""
    generator, params, found = np.random.default_rng(7), np.zeros(6), []
    for number in range(1, n_rounds + 1):
        updates = 0.1 * (1 - params) + noise * generator.normal(size=(n, 6)) * 0.1
        updates[:liars] = 0.2 * generator.normal(size=(liars, 6))
        who = np.sort(generator.permutation(n)[: n - absent])
        found.append(Gathered(updates[who], np.ones(len(who)), 10 * who, params.copy(), number))
        params = params + updates[who][who >= liars].mean(axis=0)
    return found


def play(rule: Detector, played: list[Gathered]) -> list[Combined]:
    combined, memory = [], dict[str, Array]()
    for each in played:
        got = Gathered(each.updates, each.weights, each.ids, each.params, each.round, memory)
        combined.append(rule(got))
        memory = dict(combined[-1].memory)
    return combined


@pytest.mark.parametrize("absent", [0, 3])  # clients come and go
def test_liars_are_left_out_once_the_window_is_full(absent: int) -> None:
    played = rounds(12, 30, liars=3, absent=absent)
    combined = play(Detector(5), played)
    assert all(each.trust is not None and each.trust.all() for each in combined[:5])
    last = combined[-1]
    assert last.trust is not None and last.evidence["suspects"] == (last.trust == 0).sum()
    assert (last.trust == (played[-1].ids >= 30)).all()  # ids are tens: the liars' are 0, 10 and 20
    honest = played[-1].updates[played[-1].ids >= 30].mean(axis=0)
    np.testing.assert_allclose(last.update, honest)


@pytest.mark.parametrize("factors", [(1e18, 1e18), (1e20, 1e20), (1e30, 1e30), (1e20, 1e30), (1e3, 1e30)])
def test_however_enormous_liars_are_they_are_left_out(factors: tuple[float, float]) -> None:
    """In float32, as engines have updates, with a ranker that stands still: the square of 1e20 is beyond it."""
    played = rounds(10, 12, liars=2)
    for each in played:
        each.updates[:2] *= np.array(factors)[:, None]
    still = np.zeros(6, np.float32)
    played = [replace(each, updates=each.updates.astype(np.float32), params=still) for each in played]
    last = play(Detector(5), played)[-1]
    assert last.trust is not None and last.trust.tolist() == [0] * 2 + [1] * 8
    np.testing.assert_allclose(last.update, played[-1].updates[2:].mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("size", [1e200, 1e300])  # their squares are beyond float64, and so is 1e300 x 1e20
@pytest.mark.parametrize("step", [0.0, 1.0, 1e20])
def test_an_error_beyond_all_numbers_is_the_largest_and_not_missing(size: float, step: float) -> None:
    """However far the ranker moves meanwhile, and without a warning: one would be an error here."""
    played = rounds(10, 12, liars=2)
    for each in played:
        each.updates[:2] = np.sign(each.updates[:2]) * size
    played = [replace(each, params=step * each.params) for each in played]
    last = play(Detector(5), played)[-1]
    assert last.trust is not None and last.trust.tolist() == [0] * 2 + [1] * 8
    np.testing.assert_allclose(last.update, played[-1].updates[2:].mean(axis=0))


def test_lies_that_add_up_to_no_number_before_anybody_is_suspected_are_refused_without_a_warning() -> None:
    (first, *_), rule = rounds(10, 1, liars=2), find_rule("detector")
    first.updates[:2] = 1.7e308
    assert rule is not None
    with pytest.raises(BadResultError, match="aggregation=detector gave"):
        rule(first)


def test_one_liar_does_not_set_the_scale_of_errors() -> None:
    # the median of 1, 2, 3 and 8 is 2.5; without a limit 8e9 would be the same to the others
    calm, shaken = (scale_errors(np.array([1.0, 2.0, 3.0, lie]), np.ones(4, dtype=bool)) for lie in (8.0, 8e9))
    assert calm.tolist() == [0.4, 0.8, 1.2, 3.2] and shaken.tolist() == [0.4, 0.8, 1.2, 100]
    some = scale_errors(np.array([0.0, 0.0, 0.0, 2.0, np.inf]), np.ones(5, dtype=bool))
    assert some.tolist() == [0, 0, 0, 1, 100]


def test_before_anything_is_known_it_is_the_weighted_mean() -> None:
    round = make_round(np.array([[1, 2], [3, 4]]), weights=[1, 3])
    assert Detector()(round).update.tolist() == [2.5, 3.5]


def test_the_order_of_the_clients_does_not_matter() -> None:
    played = rounds(12, 20, liars=3)
    order = np.random.default_rng(1).permutation(12)
    mixed = [Gathered(each.updates[order], each.weights, each.ids[order], each.params, each.round) for each in played]
    straight, turned = play(Detector(5), played), play(Detector(5), mixed)
    for a, b in zip(straight, turned, strict=True):
        assert a.trust is not None and b.trust is not None and (a.trust[order] == b.trust).all()
        np.testing.assert_allclose(a.update, b.update, rtol=1e-10)


def test_who_stayed_away_is_remembered() -> None:
    first, second = make_round(np.array([[1, 1], [2, 2]]), ids=[4, 9]), make_round(np.array([[1, 1]]), ids=[7])
    memory: NamedArrays = Detector(3)(first).memory
    later = Detector(3)(Gathered(second.updates, second.weights, second.ids, second.params, 2, memory)).memory
    assert later["ids"].tolist() == [4, 7, 9] and later["updates"].tolist() == [[1, 1], [1, 1], [2, 2]]
    assert later["errors"].shape == (3, 3)
