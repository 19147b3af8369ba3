"""An observer who guesses from an evolution strategy's message: a seed and one or two mean rewards.

The seed gives away the perturbation, so the observer knows which list each query would have shown. A MaxRR of 1/r says
that the first click was at rank r of *some* query with a list that long; nothing says which. The observer ranks queries
by P(message | query), where every reward of a list is equally likely if it does not know the relevance grades, and
follows from the click model if it does (the worst case). Rewards told by randomised response are taken as they are,
which is the likeliest reading. Shapes: Q queries, K values of the reward, m lists per direction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hushrank.clicks.table import TableUser
from hushrank.federation.evolution import Evolution
from hushrank.federation.round import Federation
from hushrank.leaks.observer import Guess
from hushrank.metrics.max_rr import max_rr_distribution
from hushrank.types import Array, PrivateReward

_LONGEST = 4  # lists per direction. Why: K^m combinations are tried


@dataclass(frozen=True, slots=True)
class RewardGuess:
    """What the observer makes of one direction of a message."""

    rewards: tuple[float, ...]  # [m] the lists' rewards, in no order
    likelihoods: Array  # [Q] P(mean reward | query of one of the lists)
    shown: tuple[Array, ...]  # [Q] document rows as each query would have shown them


def guess_rewards(
    federation: Federation, evolution: Evolution, params: Array, message: PrivateReward, *, m: int, knows_grades: bool
) -> list[RewardGuess]:
    """One guess for each direction; m: interactions of a direction."""
    if evolution.reward != "MaxRR" or not 1 <= m <= _LONGEST:
        raise ValueError(
            f"the attack reads MaxRR of 1 to {_LONGEST} lists per direction; {evolution.reward}, {m} came."
        )
    noise = evolution.perturb(federation.ranker, message.seed)
    values = np.array(evolution.finite.values)
    guesses = []
    for sign, mean in zip((1, -1), message.rewards, strict=False):
        shown = show_all(federation, params + np.float32(sign) * noise, evolution.k)
        chances = reward_chances(federation, evolution, shown, knows_grades=knows_grades)  # [Q, K]
        tuples = consistent_tuples(values, mean, m=m)  # [n, m] places among the values
        typical = chances.mean(axis=0)
        rest = np.prod(typical[tuples[:, 1:]], axis=1)  # the other lists are of any query
        best = tuples[int(np.argmax(rest * typical[tuples[:, 0]]))]
        guesses.append(RewardGuess(tuple(values[best]), chances[:, tuples[:, 0]] @ rest, shown))
    return guesses


def show_all(federation: Federation, params: Array, k: int) -> tuple[Array, ...]:
    """[Q] document rows of each query's first page, by decreasing score."""
    queries = federation.queries
    scores = federation.ranker.score(params, queries.features)
    ranges = (queries.rows(q) for q in range(queries.n_queries))
    return tuple(rows.start + np.argsort(-scores[rows], kind="stable")[:k] for rows in ranges)


def reward_chances(
    federation: Federation, evolution: Evolution, shown: tuple[Array, ...], *, knows_grades: bool
) -> Array:
    """[Q, K] how likely each told reward is for each query's list."""
    k, user = evolution.k, federation.user
    chances, lengths = np.zeros((len(shown), k + 1)), np.array([len(rows) for rows in shown])
    for n in np.unique(lengths):  # all lists of a length at once
        same = np.flatnonzero(lengths == n)
        if knows_grades and isinstance(user, TableUser):
            grades = federation.queries.grades[np.array([shown[q] for q in same])]
            chances[same] = max_rr_distribution(grades, user.as_table(k), k=k)
        else:
            possible = [0, *range(k - n + 1, k + 1)]  # no click, or a first click at one of the ranks shown
            chances[np.ix_(same, possible)] = 1.0 / len(possible)
    return evolution.p * chances + (1.0 - evolution.p) * (1.0 - chances) / k


def consistent_tuples(values: Array, mean: float, *, m: int) -> Array:
    """[n, m] places of values whose mean is nearest to `mean`: all that the message can stand for."""
    tuples = np.array(list(product(range(len(values)), repeat=m)))
    gaps = np.abs(values[tuples].mean(axis=1) - mean)
    return tuples[gaps <= gaps.min() + 1e-6]


def choose_guess(guesses: Sequence[RewardGuess], *, told: int) -> Guess:
    """The queries by likelihood, the first click of the likeliest, and that of the query told (by params + noise)."""
    likelihoods = np.array([found.likelihoods for found in guesses])
    ranked = np.argsort(-likelihoods.max(axis=0), kind="stable")
    best = guesses[int(np.argmax(likelihoods[:, ranked[0]]))]
    return Guess(ranked, _first_click(best, int(ranked[0])), _first_click(guesses[0], told))


def _first_click(guess: RewardGuess, query: int) -> Array:
    """[0 or 1] the document row of this query that was clicked first, if the highest reward is its list's."""
    reward = max(guess.rewards)
    rank = round(1.0 / reward) if reward > 0 else 0
    return guess.shown[query][rank - 1 : rank] if rank else np.empty(0, np.int64)


def share_right(read: Sequence[Sequence[Sequence[float]]], real: Sequence[Sequence[Sequence[float]]]) -> float:
    """The share of rewards that were guessed, whatever their order; both by message, direction and list."""
    n_right = n = 0
    for guessed, true in ((g, t) for pair in zip(read, real, strict=True) for g, t in zip(*pair, strict=True)):
        common = Counter(np.round(guessed, 6).tolist()) & Counter(np.round(true, 6).tolist())
        n_right, n = n_right + common.total(), n + len(true)
    return n_right / n
