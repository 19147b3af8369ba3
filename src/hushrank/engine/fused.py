"""Rounds of one batch of cells on a processor: `kernel.learn_clients` for the clients, NumPy for the rest.

Twin of `program.run_rounds`. Clients are summed in blocks of a fixed size and the blocks in order, so that the number
of threads changes no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hushrank.engine.evaluate import ideal_gains
from hushrank.engine.gather import Advance, Seen, State, cell_key, click_table
from hushrank.engine.kernel import learn_clients
from hushrank.engine.noise import local_norms, mean_noise
from hushrank.engine.plan import Cell, Plan
from hushrank.engine.secure_words import Cohort, Work, average_words, no_words, secure_block
from hushrank.engine.setting import Method, Setting
from hushrank.federation.cohort import answer_mask, count_interactions, sample_ids
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import Array

_BLOCK = 256  # clients; Why: a millisecond of work, long against handing it to a thread
_WORTH_HANDING_OVER = 256  # searches; Why: a millisecond, below which waking a thread costs more than it brings


def fuse_rounds(setting: Setting, plan: Plan, *, threads: int = 1) -> Advance:
    """`advance(state, first, n)`: the state after n rounds, and what they showed."""
    fixed = [_fixed_arguments(setting, cell) for cell in plan.cells]
    method = setting.method
    work = evolution_block(method) if method.evolution else learning_block(method)
    work = work if method.secure_sum is None else secure_block(work, method.secure_sum)
    keys = [cell_key(setting, cell) for cell in plan.cells]
    searches_per_block = min(_BLOCK, method.population.cohort_size) * max(method.population.interactions)
    threads = threads if searches_per_block >= _WORTH_HANDING_OVER else 1

    def advance(state: State, first: int, n: int) -> tuple[State, Seen]:
        quality, searches = np.zeros((n, len(fixed)), np.float32), np.zeros((n, len(fixed)), np.int32)
        with ThreadPoolExecutor(threads) as pool:
            run: Callable[..., Iterable[Any]] = pool.map if threads > 1 else map
            for i in range(n):
                cohorts = [gather_cohort(method, key, first + i) for key in keys]
                totals = np.zeros_like(state.params) if method.secure_sum is None else no_words(method, len(fixed))
                quality[i] = _learn(work, totals, fixed, keys, cohorts, state.params, first + i, run)
                searches[i] = [cohort.n_interactions.sum() for cohort in cohorts]
                average = _average if method.secure_sum is None else average_words
                state = _take_step(method, state, average(method, totals, cohorts, keys, first + i), cohorts)
        return state, Seen(quality, searches)

    return advance


def gather_cohort(method: Method, key: Array, round: int) -> Cohort:
    if method.batch is not None:  # central: one learner, all of the round's interactions
        return Cohort(np.zeros(1, np.int64), np.array(method.population.interactions, np.int64), np.ones(1, np.float32))
    ids = sample_ids(method.population, key, round)
    n_interactions = count_interactions(method.population, ids)
    arrives = answer_mask(method.population, key, round, ids)
    each = np.ones_like(n_interactions) if method.counts_alike else n_interactions
    return Cohort(ids, n_interactions, np.where(arrives, each, 0).astype(np.float32))


def _fixed_arguments(setting: Setting, cell: Cell) -> tuple[Any, ...]:
    """What the kernel needs to know of a cell in every round: its queries and its person."""
    train, table = setting.dataset.folds[cell.fold].train, click_table(setting, cell)
    ideals = ideal_gains(train, setting.method.k).astype(np.float32)
    queries = (train.features, train.grades, train.starts[:-1], train.lengths, ideals)
    person = tuple(np.array(part, np.float32) for part in (table.examine, table.click, table.stop))
    return (*(np.ascontiguousarray(np.asarray(part)) for part in queries), *person)


def learning_block(method: Method) -> Work:
    """PDGD on a block of clients."""
    rate = method.learning_rate * (1.0 if method.batch is None else method.server_step.rate)
    return lambda *arguments: learn_clients(*arguments, np.float32(rate), method.batch or 1, *local_norms(method))


def evolution_block(method: Method) -> Work:
    """Evolution strategies on a block of clients."""
    from hushrank.engine.es_kernel import ACTIVATIONS, MEASURES, evolve_clients

    evolution, ranker = method.evolution, method.ranker
    assert evolution is not None
    network = (ranker.hidden, ACTIVATIONS[ranker.activation]) if isinstance(ranker, MlpRanker) else (0, 0)
    values = np.array(evolution.finite.values)
    threshold = np.uint64(math.floor(evolution.p * 2**32))
    tried = (evolution.sigma, evolution.antithetic, MEASURES[evolution.reward], values, threshold)
    return lambda *arguments: evolve_clients(*arguments, *network, *tried)


def _learn(
    work: Work,
    totals: Array,
    fixed: list[Any],
    keys: list[Array],
    cohorts: list[Cohort],
    params: Array,
    round: int,
    run: Any,
) -> Array:
    """Adds the weighted sum of each cell's updates to totals [C, ...]; [C] the mean nDCG of what was shown."""
    tasks = [(c, first) for c, cohort in enumerate(cohorts) for first in range(0, len(cohort.ids), _BLOCK)]

    def learn_block(task: tuple[int, int]) -> tuple[Array, float]:
        cell, first = task
        cohort, part = cohorts[cell], slice(first, first + _BLOCK)
        clients = (cohort.ids[part], cohort.n_interactions[part], cohort.weights[part])
        return work(params[cell], *fixed[cell], keys[cell], round, *clients)

    quality = np.zeros(len(cohorts))
    for (cell, _), (total, shown) in zip(tasks, run(learn_block, tasks), strict=True):
        totals[cell] += total
        quality[cell] += shown
    return quality / [max(len(cohort.ids), 1) for cohort in cohorts]


def _average(method: Method, totals: Array, cohorts: list[Cohort], keys: list[Array], round: int) -> Array:
    """[C, p] float32 the mean of each cell, with its noise; a central batch is no mean."""
    if method.batch is not None:
        return totals
    weights = np.array([cohort.weights.sum() for cohort in cohorts])
    shares = np.full_like(weights, method.divisor) if method.divisor else np.maximum(weights, 1)
    means = (totals / shares[:, None]).astype(np.float32)
    if method.protection.has_noise:
        means += np.stack([mean_noise(method, key, round) for key in keys])
    return means


def _take_step(method: Method, state: State, means: Array, cohorts: list[Cohort]) -> State:
    """The server's step in every cell that heard from enough clients."""
    if method.batch is not None:
        return State(state.params + means, state.server)
    server, params = method.server_step(state.server, state.params, means)
    heard = np.array([[cohort.n_answered >= method.quorum.needed(len(cohort.ids))] for cohort in cohorts])
    kept = [
        np.where(heard, new, old).astype(old.dtype)
        for new, old in zip((params, *server), (state.params, *state.server), strict=True)
    ]
    return State(kept[0], type(state.server)(*kept[1:]))
