"""Evolution strategies: learn from how well a slightly changed ranker served its user [foltr-es, section 3].

A client draws a seed, makes noise of it, ranks by params + noise (and, antithetically, by params - noise), and reports
the seed with one mean reward per direction. The server rebuilds the noise from the seed: 8 or 12 bytes say it all.
Shapes: p parameters, B interactions of a client in a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np

from hushrank.streams import Purpose, draw_below, draw_bits, draw_uniform, fold_in, stream
from hushrank.types import Array, Client, QuerySet, Ranker, Reward, SeedReward, User

_BLOCK = 256  # messages at a time. Why: a perturbation alone takes half a millisecond, 256 together not much longer


@dataclass(frozen=True, slots=True)
class EsConfig:
    """What stays the same from round to round for a client."""

    ranker: Ranker
    user: User  # how people click
    queries: QuerySet  # what people search for
    reward: Reward  # what is made larger
    quality: Callable[[Array, Array], float]  # nDCG@k of (ranked_grades, all_grades): what is reported, not learnt from
    sigma: float = 0.01  # standard deviation of the noise
    antithetic: bool = True  # the second half of the interactions is ranked by params - noise
    k: int = 10  # results on a page

    def __post_init__(self) -> None:
        check_sigma(self.sigma)


def es_learn(config: EsConfig, params: Array, client: Client, *, key: Array, round: int) -> tuple[SeedReward, float]:
    """What one client sees in a round, and the mean nDCG@k of the lists it showed [foltr-es, sections 3.2 and 5]."""
    signs = directions(client.n_interactions, antithetic=config.antithetic)
    seed = int(draw_bits(stream(key, Purpose.SEED, round, client.id), 1)[0])
    noise = perturbation(seed, len(params), sigma=config.sigma)

    def keys(purpose: Purpose) -> Array:
        return fold_in(stream(key, purpose, round, client.id), np.arange(len(signs)))  # one for each interaction

    queries = draw_below(keys(Purpose.QUERY), config.queries.n_queries, 1)[:, 0]
    click_draws, stop_draws = (draw_uniform(keys(purpose), config.k) for purpose in (Purpose.CLICK, Purpose.STOP))
    rewards, quality = np.zeros(len(signs)), 0.0
    for i, sign in enumerate(signs):
        shown, grades = show_list(config, params + sign * noise, int(queries[i]))

        is_clicked = config.user(shown, click_draws[i, : len(shown)], stop_draws[i, : len(shown)])

        rewards[i] = config.reward(shown, is_clicked, grades)
        quality += config.quality(shown, grades) / len(signs)
    return SeedReward(seed, rewards.reshape(2 if config.antithetic else 1, -1)), quality


def show_list(config: EsConfig, params: Array, query: int) -> tuple[Array, Array]:
    """The grades [k] of the page that a ranker shows for a query, and those of all its documents."""
    rows = config.queries.rows(query)
    grades = config.queries.grades[rows]
    scores = config.ranker.score(params, config.queries.features[rows])
    return grades[np.argsort(-scores, kind="stable")[: config.k]], grades


def directions(n_interactions: int, *, antithetic: bool) -> Array:
    """[B] float32: 1 where a list is ranked by params + noise, -1 by params - noise: the second half."""
    if n_interactions < 1 or (antithetic and n_interactions % 2):
        raise ValueError(
            f"interactions is {n_interactions}, must be "
            + (
                "even: antithetic halves are equally large. Or set antithetic to false."
                if antithetic
                else "at least 1."
            )
        )
    half = n_interactions // 2 if antithetic else n_interactions
    return np.repeat(np.array([1.0, -1.0], np.float32), [half, n_interactions - half])


def perturbation(seed: int | Array, n_params: int, *, sigma: float) -> Array:
    """[..., p] float32 normal noise of standard deviation sigma, for one seed or an array [...] of seeds.

    Numbers 2 i and 2 i + 1 are Box and Muller's cosine and sine of one pair of uniform draws. The draws are part of the
    wire version: every client and server must make the same noise of a seed. They are the same bits everywhere; the
    logarithm and the cosine are rounded from float64, so that machines differ in a last bit about once in 10^8.
    """
    check_sigma(sigma)
    words = check_seeds(seed)
    keys = np.stack([np.zeros(words.shape, np.uint32), words.astype(np.uint32)], axis=-1)
    n_draws = n_params + n_params % 2
    draws = draw_uniform(fold_in(keys, np.asarray(Purpose.PERTURB)), n_draws).astype(np.float64)
    radius, angle = np.sqrt(-2.0 * np.log(draws[..., 0::2])), 2.0 * np.pi * draws[..., 1::2]
    normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(*words.shape, n_draws)
    return np.asarray((sigma * normals[..., :n_params]).astype(np.float32))


class Perturb(Protocol):
    """How a seed becomes noise: `perturbation`, or the published code's."""

    def __call__(self, seed: int | Array, n_params: int, *, sigma: float) -> Array:
        """[..., p] for one seed or an array [...] of seeds."""


class RewardMessage(Protocol):
    """What a server needs of a message: a `PrivateReward`, or what was decoded from the wire."""

    @property
    def seed(self) -> int: ...

    @property
    def rewards(self) -> Sequence[float]: ...


class EsState(NamedTuple):
    """What has been added so far."""

    total: Array  # [p] float64, sum of the messages' estimates
    n_messages: int


def es_init(n_params: int) -> EsState:
    return EsState(np.zeros(n_params), 0)


def es_add(
    state: EsState, messages: Sequence[RewardMessage], *, sigma: float, perturb: Perturb = perturbation
) -> EsState:
    """Add noise (f+ - f-) / (2 sigma^2), or noise f / sigma^2 of a message with one reward [foltr-es, Eq. 6].

    Both have the gradient of the smoothed metric as their mean, so messages of either kind may be mixed.
    """
    gains = np.array([_gain(message.rewards) for message in messages])
    noise = perturb(np.array([m.seed for m in messages], np.int64), len(state.total), sigma=sigma)
    return EsState(state.total + gains / sigma**2 @ noise.astype(np.float64), state.n_messages + len(messages))


def _gain(rewards: Sequence[float]) -> float:
    """f, or (f+ - f-) / 2."""
    if len(rewards) not in (1, 2) or not np.isfinite(rewards).all():
        raise ValueError(f"a message carries {len(rewards)} rewards, must be one or two, finite.")
    return rewards[0] if len(rewards) == 1 else (rewards[0] - rewards[1]) / 2.0


def es_finish(state: EsState) -> Array:
    """[p] the mean over clients: an estimate of the gradient, to be followed upwards; zero where nobody answered."""
    return np.asarray(state.total / max(state.n_messages, 1))


def es_aggregate(
    messages: Iterable[RewardMessage], *, n_params: int, sigma: float, perturb: Perturb = perturbation
) -> Array:
    """[p] the estimate from the messages alone, whatever their number: a block of perturbations is in memory."""
    state, rest = es_init(n_params), iter(messages)
    while block := list(islice(rest, _BLOCK)):
        state = es_add(state, block, sigma=sigma, perturb=perturb)
    return es_finish(state)


def check_sigma(sigma: float) -> None:
    if not 0 < sigma < np.inf:
        raise ValueError(f"sigma is {sigma}, must be a number > 0: without noise there is nothing to compare.")


def check_seeds(seed: int | Array) -> Array:
    """[...] as an array; refuses what does not fit into a message."""
    words = np.asarray(seed)
    if not (np.issubdtype(words.dtype, np.integer) and np.all((words >= 0) & (words < 2**32))):
        raise ValueError("a seed must be a whole number from 0 to 2^32 - 1: it travels in four bytes.")
    return words
