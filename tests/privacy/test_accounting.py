"""Composition: hand-worked cases, a second accountant, and what must grow when something else does."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from hushrank.privacy.accounting import (
    Training,
    find_noise,
    find_rounds,
    gaussian_epsilon,
    make_account,
    responses_epsilon,
    training_epsilon,
)
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.randomised_response import epsilon_bound
from hushrank.privacy.renyi import ORDERS, Spend, composed_epsilon, laplace_curve, pure_curve

DELTA = 1e-5
few = settings(max_examples=12, deadline=None)


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """Phi(r/2 - eps/r) - e^eps Phi(-r/2 - eps/r) [balle2018, Theorem 8]: the second accountant."""
    return float(
        stats.norm.cdf(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * stats.norm.cdf(-ratio / 2 - epsilon / ratio)
    )


def sampled_delta(epsilon: float, ratio: float, q: float) -> float:
    """One round with Poisson sampling: q delta'(eps'), e^eps' = 1 + (e^eps - 1) / q, from the mixture's definition."""
    return q * gaussian_delta(math.log1p(math.expm1(epsilon) / q), ratio)


def test_the_textbook_noise_of_a_single_gaussian_keeps_its_promise() -> None:
    noise = math.sqrt(2 * math.log(1.25 / DELTA)) / 0.5  # sigma >= sqrt(2 ln(1.25 / delta)) / eps, for eps < 1
    assert training_epsilon(Training("gaussian", noise, 1), delta=DELTA) < 0.5  # which is not tight
    assert gaussian_delta(0.5, 1 / noise) < DELTA


@pytest.mark.parametrize(("noise", "rounds"), [(1.0, 1), (26.4, 50), (100.0, 1000)])
def test_many_gaussians_are_one_and_on_the_exact_curve(noise: float, rounds: int) -> None:
    epsilon = training_epsilon(Training("gaussian", noise, rounds), delta=DELTA)
    assert epsilon == training_epsilon(Training("gaussian", noise / math.sqrt(rounds), 1), delta=DELTA)
    assert gaussian_delta(epsilon, math.sqrt(rounds) / noise) == pytest.approx(DELTA, rel=1e-6)


def test_the_closed_form_is_the_librarys_loss_distribution() -> None:
    make = dp_accounting.pld.privacy_loss_distribution.from_gaussian_mechanism
    composed = make(7.0, value_discretization_interval=1e-3).self_compose(50).get_epsilon_for_delta(DELTA)
    assert training_epsilon(Training("gaussian", 7.0, 50), delta=DELTA) == pytest.approx(composed, rel=1e-3)


@pytest.mark.parametrize(("noise", "q"), [(0.8, 0.5), (1.0, 0.1), (2.0, 0.01)])
def test_one_sampled_gaussian_is_on_the_exact_curve(noise: float, q: float) -> None:
    epsilon = training_epsilon(Training("gaussian", noise, 1, sampling=q), delta=DELTA)
    exact = optimize.brentq(lambda e: sampled_delta(e, 1 / noise, q) - DELTA, 1e-6, 20)
    assert exact <= epsilon <= exact * 1.002


def test_a_single_laplace_is_on_the_exact_curve() -> None:
    """delta(eps) = 1 - e^((eps - eps0) / 2) for eps <= eps0 = 1 / scale, by integrating the two densities."""
    assert training_epsilon(Training("laplace", 0.5, 1), delta=None) == 2.0
    assert training_epsilon(Training("laplace", 0.5, 1), delta=0.1) == pytest.approx(2 + 2 * math.log(0.9), rel=1e-3)


def test_laplace_adds_up_and_sampling_makes_it_less() -> None:
    assert training_epsilon(Training("laplace", 100.0, 50), delta=None) == pytest.approx(50 / 100)
    sampled = training_epsilon(Training("laplace", 0.5, 3, sampling=0.1), delta=None)
    assert sampled == pytest.approx(3 * math.log(1 + 0.1 * (math.e**2 - 1)))
    assert training_epsilon(Training("laplace", 100.0, 1000), delta=DELTA) < 1000 / 100 / 5


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_replacing_a_client_is_half_the_noise(mechanism: str) -> None:
    replaced = Training(mechanism, 50.0, 20, adjacency="replace-one")
    for accountant in ("pld", "rdp"):
        assert training_epsilon(replaced, delta=DELTA, accountant=accountant) == pytest.approx(
            training_epsilon(Training(mechanism, 25.0, 20), delta=DELTA, accountant=accountant)
        )


def test_replacing_a_sampled_client_lies_between_one_and_two_unsampled_neighbours() -> None:
    one = Training("gaussian", 2.0, 10, sampling=0.1)
    replaced = replace(one, adjacency="replace-one")
    less, more = (training_epsilon(each, delta=DELTA) for each in (one, replaced))
    assert less < more < training_epsilon(replace(replaced, sampling=1.0), delta=DELTA)


@few
@given(st.floats(0.7, 50), st.integers(1, 200), st.sampled_from(["gaussian", "laplace"]))
def test_renyi_is_never_below_the_loss_distribution(noise: float, rounds: int, mechanism: str) -> None:
    training = Training(mechanism, noise, rounds)
    tight = training_epsilon(training, delta=DELTA)
    assert training_epsilon(training, delta=DELTA, accountant="rdp") >= tight * (1 - 1e-3)


@settings(max_examples=6, deadline=None)
@given(st.floats(0.7, 50), st.integers(1, 200), st.sampled_from([0.05, 1.0]), st.sampled_from(["pld", "rdp"]))
def test_more_noise_fewer_rounds_rarer_sampling_and_larger_delta_spend_less(
    noise: float, rounds: int, sampling: float, accountant: str
) -> None:
    training = Training("gaussian", noise, rounds, sampling=sampling)

    def spent(each: Training, delta: float = DELTA) -> float:
        return training_epsilon(each, delta=delta, accountant=accountant)

    base = spent(training) * (1 + 1e-3)  # Why: the step of a loss distribution
    assert spent(replace(training, noise_multiplier=1.1 * noise)) <= base
    assert spent(training, delta=10 * DELTA) <= base
    assert spent(replace(training, sampling=sampling / 2)) <= base
    assert spent(replace(training, rounds=2 * rounds)) * (1 + 1e-3) >= base


@few
@given(
    st.floats(0.05, 20), st.integers(1, 500), st.sampled_from(["gaussian", "laplace"]), st.sampled_from(["pld", "rdp"])
)
def test_from_any_two_the_third(epsilon: float, rounds: int, mechanism: str, accountant: str) -> None:
    training = find_noise(Training(mechanism, 1.0, rounds), epsilon=epsilon, delta=DELTA, accountant=accountant)
    less = replace(training, noise_multiplier=training.noise_multiplier * 0.995)
    assert training_epsilon(training, delta=DELTA, accountant=accountant) <= epsilon
    assert training_epsilon(less, delta=DELTA, accountant=accountant) > epsilon * (1 - 1e-3)
    found = find_rounds(replace(training, rounds=1), epsilon=epsilon, delta=DELTA, accountant=accountant)
    assert found.rounds == pytest.approx(rounds, rel=0.02, abs=1) and found.rounds >= rounds


def test_rounds_and_noise_of_pure_laplace_by_hand() -> None:
    assert find_rounds(Training("laplace", 100.0, 1), epsilon=1.005, delta=None).rounds == 100
    assert find_noise(Training("laplace", 1.0, 30), epsilon=2.0, delta=None).noise_multiplier == pytest.approx(
        15, rel=2e-3
    )


def test_sampled_training_finds_its_noise() -> None:
    found = find_noise(Training("gaussian", 1.0, 10, sampling=0.05), epsilon=1.0, delta=DELTA)
    assert 0.98 < training_epsilon(found, delta=DELTA) <= 1.0


@pytest.mark.parametrize("spend", [Spend("gaussian", 0.1), Spend("laplace", 0.3), Spend("laplace", 2.5)])
@pytest.mark.parametrize("rounds", [1, 37, 500])
def test_a_clients_ledger_counts_as_the_library_does(spend: Spend, rounds: int) -> None:
    training = Training(spend.mechanism, 1 / spend.ratio, rounds)
    rdp = training_epsilon(training, delta=DELTA, accountant="rdp")
    assert composed_epsilon([spend] * rounds, delta=DELTA) == pytest.approx(rdp)
    assert composed_epsilon([replace(spend, times=rounds)], delta=DELTA) == pytest.approx(rdp)


def test_nothing_costs_nothing_and_pure_epsilons_add_up() -> None:
    assert composed_epsilon([], delta=DELTA) == 0.0
    assert composed_epsilon([Spend("pure", 0.5), Spend("laplace", 0.25, times=2)], delta=None) == 1.0
    assert composed_epsilon([Spend("gaussian", 0.5)], delta=None) == math.inf


def test_the_cost_of_an_unknown_mechanism_is_the_worst_one() -> None:
    for epsilon, order in product((0.1, 1.0, 5.0), ORDERS[::10]):
        assert laplace_curve(epsilon, order) <= pure_curve(epsilon, order) <= epsilon
    for epsilon in (0.1, 1.0):  # by hand at order 2, p = e^eps / (1 + e^eps): ln(p^2 / q + q^2 / p)
        p = 1 / (1 + math.exp(-epsilon))
        assert pure_curve(epsilon, 2) == pytest.approx(math.log(p**2 / (1 - p) + (1 - p) ** 2 / p))


@given(st.lists(st.floats(0, 3), min_size=2, max_size=20), st.sampled_from(ORDERS))
def test_laplace_noise_costs_most_when_all_coordinates_move_alike(moves: list[float], order: float) -> None:
    """What PaperNoise.spend rests on, and why an L1 bound is the one that Laplace noise needs."""
    n, length, total = len(moves), float(np.linalg.norm(moves)), sum(moves)
    cost = sum(laplace_curve(move, order) for move in moves)
    assert cost <= n * laplace_curve(length / math.sqrt(n), order) + 1e-9
    assert cost <= laplace_curve(total, order) + 1e-9


def test_the_published_mechanism_honestly_composed() -> None:
    spend = PaperNoise(1.2, 3.0, 1000).spend(46)
    assert composed_epsilon([spend], delta=None) == pytest.approx(1.2 * math.sqrt(46))
    assert composed_epsilon([spend] * 50, delta=DELTA) > 50 * 1.2  # more than the paper's epsilon times the rounds
    wide = PaperNoise(1.2, 3.0, 1000).spend(10**6)  # many small moves: as Gaussian noise of ratio epsilon
    assert composed_epsilon([wide] * 50, delta=DELTA) == pytest.approx(
        composed_epsilon([Spend("gaussian", 1.2)] * 50, delta=DELTA), rel=1e-3
    )


def binary_responses_delta(epsilon: float, p: float, n: int) -> float:
    """Exactly, from the binomial numbers of true answers."""
    k = np.arange(n + 1)
    likely, unlikely = stats.binom.pmf(k, n, p), stats.binom.pmf(k, n, 1 - p)
    return float(np.maximum(likely - math.exp(epsilon) * unlikely, 0).sum())


@pytest.mark.parametrize(("p", "n"), [(0.55, 100), (0.6, 20), (0.9, 3)])
def test_many_responses_cost_less_than_their_sum_and_no_less_than_they_do(p: float, n: int) -> None:
    epsilon = responses_epsilon(p, 2, n_responses=n, delta=DELTA)
    assert epsilon <= n * epsilon_bound(p, 2)
    assert binary_responses_delta(epsilon, p, n) <= DELTA


def test_repeated_responses_are_not_counted_once() -> None:
    one, hundred = (responses_epsilon(0.25, 11, n_responses=n, delta=DELTA) for n in (1, 100))
    assert one <= epsilon_bound(0.25, 11) and 10 * one < hundred < 100 * epsilon_bound(0.25, 11)
    assert responses_epsilon(1.0, 11, n_responses=4, delta=DELTA) == math.inf


def test_an_account_says_in_words_how_much_of_what_against_whom_and_for_how_long() -> None:
    account = make_account(Training("gaussian", 1.0, 50), epsilon=1.0, find="noise", delta=DELTA)
    found = account.as_json()
    assert found["found"] == "noise" and found["noise_multiplier"] == pytest.approx(26.37, rel=2e-3)
    assert 0.99 < found["epsilon"] <= 1.0 and found["adjacency"] == "zero-out"
    words = found["guarantee"]
    assert "one client, that is of all its searches and clicks together, over all 50 rounds" in words
    assert (
        "delta 1e-05" in words
        and "if one client's data is replaced by none, while it stays and answers (zero-out)" in words
    )
    assert "not against the server" in words
    sampled = make_account(Training("laplace", 50.0, 2, sampling=0.1), delta=None)
    words = sampled.as_json(placement="clients", n_honest=90)["guarantee"]
    assert "as long as 90 clients add their noise honestly" in words and "with probability 0.1" in words


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mechanism": "other"}, "must be gaussian or laplace"),
        ({"noise_multiplier": 0.0}, "the noise multiplier is 0.0, must be above 0"),
        ({"noise_multiplier": math.nan}, "must be above 0"),
        ({"rounds": 0}, "rounds is 0, must be from 1"),
        ({"sampling": 0.0}, "sampling is 0.0, must be a probability"),
        ({"sampling": 1.5}, "sampling is 1.5, must be a probability"),
        ({"sampling": 0.1, "scheme": "fixed"}, "only where each client is drawn independently"),
        ({"scheme": "other"}, "must be one of poisson, fixed, rotation, everybody"),
        ({"adjacency": "other"}, "adjacency is 'other', must be one of zero-out, replace-one, add-remove"),
        ({"mechanism": "laplace", "sampling": 0.1, "adjacency": "replace-one"}, "no analysis of sampled Laplace"),
    ],
)
def test_trainings_without_a_guarantee_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**{"mechanism": "gaussian", "noise_multiplier": 1.0, "rounds": 1, **values})


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_that_promises_nothing_is_refused_with_the_reason(delta: float) -> None:
    with pytest.raises(ValueError, match=r"must be above 0 and below 1: at 0 Gaussian noise promises nothing"):
        training_epsilon(Training("gaussian", 1.0, 1), delta=delta)
    with pytest.raises(ValueError, match="must be above 0 and below 1"):
        composed_epsilon([Spend("gaussian", 1.0)], delta=delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_an_epsilon_that_nothing_keeps_is_refused_with_the_reason(epsilon: float) -> None:
    for find in (find_noise, find_rounds):
        with pytest.raises(ValueError, match="at 0 the result may not depend on anybody"):
            find(Training("gaussian", 1.0, 1), epsilon=epsilon, delta=DELTA)


def test_other_misuse_is_refused() -> None:
    one = Training("gaussian", 1.0, 1)
    with pytest.raises(ValueError, match="Gaussian noise has no pure epsilon"):
        training_epsilon(one, delta=None)
    with pytest.raises(ValueError, match=r"one round alone spends epsilon 4\.37"):
        find_rounds(one, epsilon=1.0, delta=DELTA)
    with pytest.raises(ValueError, match="must be one of pld, rdp"):
        training_epsilon(one, delta=DELTA, accountant="x")
    with pytest.raises(ValueError, match="the rdp accountant knows no sampling of Laplace noise or with replace-one"):
        training_epsilon(Training("laplace", 1.0, 1, sampling=0.1), delta=DELTA, accountant="rdp")
    with pytest.raises(ValueError, match="find is 'noise', must be epsilon, or noise or rounds with an epsilon"):
        make_account(one, find="noise", delta=DELTA)
    with pytest.raises(ValueError, match="must be one of gaussian, laplace, pure"):
        Spend("other", 1.0)
    with pytest.raises(ValueError, match="what costs nothing tells nothing"):
        Spend("pure", 0.0)
    with pytest.raises(ValueError, match="times is 0"):
        Spend("pure", 1.0, times=0)


def test_exact_epsilon_of_one_gaussian_by_the_second_accountant() -> None:
    for ratio in (0.1, 1.0, 5.0):
        assert gaussian_delta(gaussian_epsilon(ratio, delta=DELTA), ratio) == pytest.approx(DELTA, rel=1e-6)


@pytest.mark.parametrize("sampling", [1.0, 0.1])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("noise", [1e-4, 1e8])
def test_extremes_are_answered_at_once_and_without_a_warning(
    mechanism: str, sampling: float, noise: float, capfd: pytest.CaptureFixture[str]
) -> None:
    epsilon = training_epsilon(Training(mechanism, noise, 1000, sampling=sampling), delta=DELTA)
    assert epsilon > 1e6 if noise < 1 else epsilon < 1e-4
    assert capfd.readouterr() == ("", "")
