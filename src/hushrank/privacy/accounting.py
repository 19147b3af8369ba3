"""What a whole training guarantees: the noise of all its rounds composed into one (epsilon, delta).

The composition is done by the `dp-accounting` library (of the `lab` extra), with privacy loss distributions (`pld`,
tight) or Renyi divergences (`rdp`, a bound that is quick and a little larger). From any two of epsilon, noise and
rounds the third follows. The unit is a client: all its searches and clicks together.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hushrank.extras import require_package
from hushrank.privacy.account_words import describe_account
from hushrank.privacy.banded import count_answers
from hushrank.privacy.discrete_account import NoiseGrid, discrete_epsilon
from hushrank.privacy.placement import Adjacency, Placement, Scheme
from hushrank.privacy.randomised_response import epsilon_bound, p_for_epsilon, total_epsilon
from hushrank.privacy.renyi import check_delta, check_epsilon

ACCOUNTANTS = ("pld", "rdp")
_CLOSE = 1e-3  # relative; Why: a found noise is on the safe side, and ten trials of a second each bring it this near
_MOST_ROUNDS = 10**9
_STEPS, _LEAST_STEP, _MEANINGLESS = 2000, 1e-5, 500.0  # Why: see _pld_epsilon


@dataclass(frozen=True, slots=True)
class Training:
    """What is composed: one noisy sum of clipped updates per round."""

    mechanism: str  # gaussian (updates clipped in L2) or laplace (in L1)
    noise_multiplier: float  # standard deviation or scale of the sum's noise / clip norm
    rounds: int
    sampling: float = 1.0  # probability that a client is in a round
    scheme: str = Scheme.poisson  # how they are drawn; with a sampling of 1 poisson is everybody
    adjacency: str = Adjacency.zero_out  # which two federations must look alike
    grid: NoiseGrid | None = None  # of which noise and updates are whole numbers; None: continuous
    separation: int = 1  # a client's rounds are at least so many apart

    def __post_init__(self) -> None:
        if self.mechanism not in ("gaussian", "laplace"):
            raise ValueError(f"the mechanism is {self.mechanism!r}, must be gaussian or laplace.")
        if not 0 < self.noise_multiplier < math.inf:
            raise ValueError(
                f"the noise multiplier is {self.noise_multiplier}, must be above 0 and finite: without noise there is "
                "no guarantee. To run without noise, set privacy=none."
            )
        if not 1 <= self.rounds <= _MOST_ROUNDS:
            raise ValueError(f"rounds is {self.rounds}, must be from 1 to {_MOST_ROUNDS:,}.")
        Scheme(self.scheme)
        Adjacency(self.adjacency)
        _check_sampling(self)
        if self.separation < 1 or (self.separation > 1 and self.adjacency == Adjacency.add_remove):
            raise ValueError(
                f"separation is {self.separation}, must be at least 1, and 1 for adjacency add-remove: who is added or "
                "removed changes whose turn it is in every round."
            )

    @property
    def answers(self) -> int:
        """The most rounds that a client is in."""
        return count_answers(self.rounds, self.separation)

    @property
    def ratio(self) -> float:
        """How far one client moves a sum / the noise."""
        return Adjacency(self.adjacency).factor(self.scheme) / self.noise_multiplier


def _check_sampling(training: Training) -> None:
    if not 0 < training.sampling <= 1:
        raise ValueError(f"sampling is {training.sampling}, must be a probability above 0 and at most 1.")
    if training.sampling < 1 and training.scheme != Scheme.poisson:
        raise ValueError(
            "sampling makes epsilon smaller only where each client is drawn independently (poisson): in a "
            "cohort of fixed size one client's place depends on the others. Draw so, or count every round in full "
            "with sampling 1, which holds however clients are drawn."
        )
    if training.sampling < 1 and training.adjacency == Adjacency.replace_one and training.mechanism == "laplace":
        raise ValueError(
            "no analysis of sampled Laplace noise for replacing a client is at hand: use adjacency zero-out, "
            "gaussian noise, or sampling 1."
        )


@dataclass(frozen=True, slots=True)
class Account:
    """What a training guarantees."""

    training: Training
    epsilon: float
    delta: float | None
    accountant: str
    found: str  # which of epsilon, noise and rounds followed from the other two

    def as_json(self, *, placement: str = Placement.server, n_honest: int | None = None) -> dict[str, Any]:
        training = self.training
        return {
            "mechanism": training.mechanism,
            "found": self.found,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise_multiplier": training.noise_multiplier,
            "rounds": training.rounds,
            **({"separation": training.separation, "answers": training.answers} if training.separation > 1 else {}),
            "sampling": training.sampling,
            "scheme": training.scheme,
            "adjacency": str(training.adjacency),
            "accountant": self.accountant,
            "guarantee": describe_account(self, placement=placement, n_honest=n_honest),
        }


def make_account(
    training: Training,
    *,
    epsilon: float | None = None,
    find: str = "epsilon",
    delta: float | None,
    accountant: str = "pld",
) -> Account:
    """The missing one of three: `find` epsilon of a training, or the noise or the rounds that an epsilon allows."""
    if find == "epsilon":
        return Account(
            training, training_epsilon(training, delta=delta, accountant=accountant), delta, accountant, find
        )
    finders = {"noise": find_noise, "rounds": find_rounds}
    if find not in finders or epsilon is None:
        raise ValueError(f"find is {find!r}, must be epsilon, or noise or rounds with an epsilon.")
    found = finders[find](training, epsilon=epsilon, delta=delta, accountant=accountant)
    return Account(found, training_epsilon(found, delta=delta, accountant=accountant), delta, accountant, find)


def explain_training(
    mechanism: str,
    *,
    epsilon: float | None = None,
    noise_multiplier: float | None = None,
    rounds: int | None = None,
    delta: float | None,
    n_clients: int | None = None,
    n_honest: int | None = None,
    accountant: str = "pld",
    **options: Any,
) -> dict[str, Any]:
    """The missing one of epsilon, noise and rounds, as JSON; options: sampling, scheme, adjacency.

    n_honest: among how many clients the noise is divided; None: the server adds it.
    """
    if [epsilon, noise_multiplier, rounds].count(None) != 1:
        raise ValueError("give two of epsilon, noise and rounds: the third follows from them.")
    if n_clients is not None and n_clients < 1:
        raise ValueError(f"clients is {n_clients}, must be at least 1.")
    if n_clients is not None and delta is not None and delta > 1 / n_clients:
        raise ValueError(
            f"delta is {delta:g}, more than 1 / clients = {1 / n_clients:g}: it would allow to publish everything "
            "about one client at random."
        )
    if n_honest is not None and options.get("adjacency") == Adjacency.add_remove:
        raise ValueError(
            "adjacency is add-remove, which does not hold where clients add the noise: a round needs their answers, so "
            "that one client can decide whether there is a step. Use zero-out or replace-one."
        )
    find = "epsilon" if epsilon is None else "noise" if noise_multiplier is None else "rounds"
    training = Training(
        mechanism, 1.0 if noise_multiplier is None else noise_multiplier, 1 if rounds is None else rounds, **options
    )
    account = make_account(training, epsilon=epsilon, find=find, delta=delta, accountant=accountant)
    return account.as_json(placement=Placement.server if n_honest is None else Placement.clients, n_honest=n_honest)


def training_epsilon(training: Training, *, delta: float | None, accountant: str = "pld") -> float:
    """epsilon of the whole training. delta None: pure epsilon, which only Laplace noise in every round has."""
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"the accountant is {accountant!r}, must be one of {', '.join(ACCOUNTANTS)}.")
    if delta is None:
        return _pure_epsilon(training)
    check_delta(delta)
    continuous = partial(_continuous_epsilon, training, accountant=accountant)
    grid = training.grid
    if grid is None or training.mechanism == "laplace":  # Why: discrete Laplace noise costs no more (`whole_scale`)
        return continuous(delta)
    deviation, n_values = training.noise_multiplier * grid.clip_steps, grid.n_params * training.rounds
    return discrete_epsilon(continuous, delta=delta, deviation=deviation, n_values=n_values, n_shares=grid.n_shares)


def _continuous_epsilon(training: Training, delta: float, *, accountant: str) -> float:
    if accountant == "rdp":
        return _rdp_epsilon(training, delta)
    if training.mechanism == "gaussian" and training.sampling == 1:
        return gaussian_epsilon(training.ratio * math.sqrt(training.answers), delta=delta)
    return _pld_epsilon(training, delta)


def gaussian_epsilon(ratio: float, *, delta: float) -> float:
    """epsilon of one Gaussian mechanism, exactly [balle2018, Theorem 8]; T of them are one of ratio * sqrt(T)."""
    with _quiet():
        return float(_library().get_epsilon_gaussian(1.0 / ratio, delta))


def _pure_epsilon(training: Training) -> float:
    """Laplace noise: T ratio, or T ln(1 + q (e^ratio - 1)) with sampling."""
    if training.mechanism != "laplace":
        raise ValueError("give delta, well below 1 / clients (for instance 1e-5): Gaussian noise has no pure epsilon.")
    q, ratio = training.sampling, training.ratio
    once = math.log1p(q * math.expm1(ratio)) if ratio < 1 else ratio + math.log(q + (1 - q) * math.exp(-ratio))
    return training.answers * once


def _rdp_epsilon(training: Training, delta: float) -> float:
    library = _library()
    if training.sampling < 1 and (training.mechanism == "laplace" or training.adjacency == Adjacency.replace_one):
        raise ValueError("the rdp accountant knows no sampling of Laplace noise or with replace-one: use pld.")
    # Why the ratio and not the library's own relation: it takes a Gaussian's sensitivity to be 1 whatever the relation.
    event = {"gaussian": library.GaussianDpEvent, "laplace": library.LaplaceDpEvent}[training.mechanism](
        1.0 / training.ratio
    )
    if training.sampling < 1:
        event = library.PoissonSampledDpEvent(training.sampling, event)
    try:
        with _quiet():
            composed = library.rdp.RdpAccountant().compose(event, training.answers).get_epsilon(delta)
    except OverflowError:  # Why: so little noise that sampling hardly matters, and without it is a bound
        return _rdp_epsilon(replace(training, sampling=1.0), delta)
    return min(float(composed), _pure_epsilon(training)) if training.mechanism == "laplace" else float(composed)


def _pld_epsilon(training: Training, delta: float) -> float:
    """Why a step of 1/2,000 of about epsilon: it errs by about as little, upwards only; the library's fixed one takes
    ten times as long for usual epsilons and all memory for large ones. Where nothing is promised a bound will do.
    """
    rough, found = math.inf, _rough_epsilon(training, delta)
    if found > _MEANINGLESS:
        return _rdp_epsilon(replace(training, sampling=1.0), delta)
    while found < rough / 2 and rough > _LEAST_STEP * _STEPS:
        rough = found
        found = _gridded_epsilon(training, delta, step=max(rough / _STEPS, _LEAST_STEP))
    return found


def _gridded_epsilon(training: Training, delta: float, *, step: float) -> float:
    library = _library()
    make = {
        "gaussian": library.pld.privacy_loss_distribution.from_gaussian_mechanism,
        "laplace": library.pld.privacy_loss_distribution.from_laplace_mechanism,
    }[training.mechanism]
    options: dict[str, Any] = {"sampling_prob": training.sampling, "value_discretization_interval": step}
    if training.sampling < 1 and training.adjacency == Adjacency.replace_one:
        relation = library.NeighboringRelation.REPLACE_ONE  # the library doubles what one client moves
        distribution = make(training.noise_multiplier, neighboring_relation=relation, **options)
    else:
        # Why the same for zero-out and add-remove: the sum with the client's clipped update, where it was drawn,
        # against the sum without it; zeros in its place, or nobody, are the same sum.
        distribution = make(1.0 / training.ratio, **options)
    with _quiet():
        return float(distribution.self_compose(training.answers).get_epsilon_for_delta(delta))


def _rough_epsilon(training: Training, delta: float) -> float:
    """About how large, in a moment."""
    if training.mechanism == "laplace":
        return min(_pure_epsilon(training), _rdp_epsilon(replace(training, sampling=1.0), delta))
    return _rdp_epsilon(replace(training, noise_multiplier=1 / training.ratio, adjacency=Adjacency.zero_out), delta)


def find_noise(training: Training, *, epsilon: float, delta: float | None, accountant: str = "pld") -> Training:
    """The training with the least noise multiplier that keeps to epsilon; its own is not looked at."""
    check_epsilon(epsilon)

    def keeps(noise: float) -> bool:
        spent = training_epsilon(replace(training, noise_multiplier=noise), delta=delta, accountant=accountant)
        return spent <= epsilon

    def roughly_keeps(noise: float) -> bool:
        return delta is None or _rough_epsilon(replace(training, noise_multiplier=noise), delta) <= epsilon

    guess = _find_least(roughly_keeps, 1.0, stride=2.0) if delta is not None else 1.0
    return replace(training, noise_multiplier=_find_least(keeps, guess, stride=1.1))


def find_rounds(training: Training, *, epsilon: float, delta: float | None, accountant: str = "pld") -> Training:
    """The training with the most rounds that keep to epsilon; its own are not looked at."""
    check_epsilon(epsilon)

    def spent(rounds: int) -> float:
        return training_epsilon(replace(training, rounds=rounds), delta=delta, accountant=accountant)

    def roughly_keeps(rounds: int) -> bool:
        return delta is None or _rough_epsilon(replace(training, rounds=rounds), delta) <= epsilon

    guess = _find_most(roughly_keeps, 1) if delta is not None else 1
    found = _find_most(lambda rounds: spent(rounds) <= epsilon, max(guess, 1))
    if found == 0:
        raise ValueError(f"one round alone spends epsilon {spent(1):.4g}, more than {epsilon:g}: add noise.")
    return replace(training, rounds=found)


def _find_least(keeps: Callable[[float], bool], guess: float, *, stride: float) -> float:
    """The least number that keeps, to within _CLOSE and never less; whatever is larger keeps too."""
    good = guess
    while not keeps(good):
        good *= stride
    bad = good / stride
    while keeps(bad):
        good, bad = bad, bad / stride
    while good / bad - 1 > _CLOSE:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if keeps(middle) else (good, middle)
    return good


def _find_most(keeps: Callable[[int], bool], guess: int) -> int:
    """The largest whole number that keeps, at most _MOST_ROUNDS, 0 if none does; whatever is smaller keeps too."""
    good, bad, at, stride = 0, _MOST_ROUNDS + 1, guess, max(1, guess // 16)
    while bad - good > 1:
        good, bad = (at, bad) if keeps(at) else (good, at)
        at = good + stride if bad > _MOST_ROUNDS else bad - stride if good == 0 else (good + bad) // 2
        at, stride = min(max(at, good + 1), bad - 1), 2 * stride
    return good


def responses_epsilon(p: float, n_values: int, *, n_responses: int, delta: float) -> float:
    """epsilon of all randomised responses of one client together, by Renyi divergences: less than their sum when many.

    Why not the library's loss distributions: its accountant (0.6.0) counts repeated responses once.
    """
    check_delta(delta)
    basic = total_epsilon(epsilon_bound(p, n_values), n_interactions=n_responses)
    if math.isinf(basic):
        return basic
    library = _library()
    event = library.RandomizedResponseDpEvent((1.0 - p) * n_values / (n_values - 1), n_values)
    accountant = library.rdp.RdpAccountant(neighboring_relation=library.NeighboringRelation.REPLACE_ONE)
    return min(basic, float(accountant.compose(event, n_responses).get_epsilon(delta)))


def find_responses(
    *, total: float, p: float | None, rounds: int | None, n_values: int, n_interactions: int, delta: float | None
) -> tuple[float, int]:
    """(p, rounds): the largest p, or the most rounds, with which a client's responses keep to a total epsilon."""
    check_epsilon(total)

    def keeps(p: float, rounds: int) -> bool:
        n = n_interactions * rounds
        if delta is None:
            return total_epsilon(epsilon_bound(p, n_values), n_interactions=n) <= total
        return responses_epsilon(p, n_values, n_responses=n, delta=delta) <= total

    if p is None and rounds is not None:
        total_epsilon(1.0, n_interactions=n_interactions, rounds=rounds)  # refuses counts below 1
        shyness = _find_least(lambda x: keeps(p_for_epsilon(1 / x, n_values), rounds), 1.0, stride=2.0)
        return p_for_epsilon(1 / shyness, n_values), rounds
    if p is None or rounds is not None:
        raise ValueError("give two of total, p and rounds: the third follows from them.")
    found = _find_most(lambda rounds: keeps(p, rounds), 1)
    if found == 0:
        raise ValueError(f"one round alone spends more than epsilon {total:g}: lower p or the interactions.")
    return p, found


def explain_together(responses: dict[str, Any], *, delta: float) -> dict[str, Any]:
    """What an explanation of responses leaves out: their composition, which costs less than the sum, but a delta."""
    n_responses = responses["interactions"] * responses["rounds"]
    together = responses_epsilon(responses["p"], responses["n_values"], n_responses=n_responses, delta=delta)
    return {"delta": delta, "epsilon_total_rdp": together if math.isfinite(together) else None}


@contextmanager
def _quiet() -> Iterator[None]:
    """The library warns of orders that it leaves out and of chances of 0: both err on the safe side."""
    logger = logging.getLogger("absl")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        logger.setLevel(before)


def _library() -> Any:
    require_package("dp_accounting")
    import dp_accounting

    return dp_accounting
