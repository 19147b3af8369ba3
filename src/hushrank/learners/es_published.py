"""Evolution strategies with the seeds of FOLtR-ES's published code, which explain its printed numbers.

There a client draws a number in each round, seeds its own generator with it, which then draws queries and clicks, *and*
makes the perturbation from a second generator that begins with the same number. Both give the same words in the same
order. So what a person clicks depends on the noise even where the ranking does not, and the mean of the estimates is
not the gradient. `es.py` draws each from a stream of its own; a test shows the difference where the gradient is 0.

Differs: the published client draws its next number from the generator that it has just used; here the number of every
client and round has a name, as in `es.py`. Answers are privatised from a stream of their own, as in the published code.
Shapes: p parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hushrank.learners.es import EsConfig, check_seeds, check_sigma, directions, show_list
from hushrank.streams import Purpose, draw_bits, stream
from hushrank.types import Array, Client, Parameter, SeedReward

Click = Callable[[Array, Callable[[], float]], Array]  # (grades [k] of the page, how to draw) -> [k] True where clicked


def start_generator(seed: int) -> np.random.RandomState:
    """The Mersenne twister of the published code. Why this old one: its words and their order are what matters."""
    return np.random.RandomState(seed)


def published_es_learn(
    config: EsConfig, params: Array, client: Client, *, click: Click, key: Array, round: int
) -> tuple[SeedReward, float]:
    """`es.es_learn`, with one number for the perturbation and for what the person does."""
    signs = directions(client.n_interactions, antithetic=config.antithetic)
    seed = int(draw_bits(stream(key, Purpose.SEED, round, client.id), 1)[0])
    order = published_order(config.ranker.parameters)
    noise = published_perturbation(seed, len(params), sigma=config.sigma, order=order)
    generator = start_generator(seed)
    rewards, quality = np.zeros(len(signs)), 0.0
    for i, sign in enumerate(signs):
        query = generator.randint(config.queries.n_queries)
        shown, grades = show_list(config, params + sign * noise, query)
        is_clicked = click(shown, generator.uniform)
        rewards[i] = config.reward(shown, is_clicked, grades)
        quality += config.quality(shown, grades) / len(signs)
    return SeedReward(seed, rewards.reshape(2 if config.antithetic else 1, -1)), quality


def published_order(parameters: Sequence[Parameter]) -> Array:
    """[p] which of the published ranker's parameters each of ours is: there a layer's weights are [outputs, inputs]."""
    orders, first = [], 0
    for part in parameters:
        orders.append(first + np.arange(part.size).reshape(part.shape[::-1]).T.ravel())
        first += part.size
    return np.concatenate(orders)


def published_perturbation(seed: int | Array, n_params: int, *, sigma: float, order: Array) -> Array:
    """[..., p] float32 normal noise of standard deviation sigma, for one seed or an array [...] of seeds."""
    check_sigma(sigma)
    words = check_seeds(seed)
    noise = [sigma * start_generator(int(word)).standard_normal(n_params)[order] for word in words.ravel()]
    return np.reshape(noise, (*words.shape, n_params)).astype(np.float32)
