"""What a client keeps for itself: taken from its own store before it learns, put back afterwards.

Personal parameters are never part of an update. What a remedy keeps is its own business (`remedies/remedy.py`). Stores
are [n_clients, ...], keyed by client id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hushrank.federation.cohort import Population
from hushrank.federation.state import OWN_PARAMETERS, PERSONAL, REMEDY, part_of, replace_owner, with_owner
from hushrank.remedies.remedy import MeanMessage, Remedy, Turn
from hushrank.types import Array, Client, DenseUpdate, NamedArrays, Ranker

if TYPE_CHECKING:
    from hushrank.federation.round import Federation


def personal_places(ranker: Ranker) -> Array:
    """[n_personal] where the personal parameters stand in the flat vector."""
    marks = [np.full(part.size, part.is_personal) for part in ranker.parameters]
    return np.flatnonzero(np.concatenate(marks))


def first_personal(ranker: Ranker, params: Array, n_clients: int) -> dict[str, Array]:
    """Every client begins with the ranker's first ones; empty where nothing is personal. params [..., n_params]"""
    places = personal_places(ranker)
    if not len(places):
        return {}
    own = params[..., None, places]
    return {OWN_PARAMETERS: np.repeat(own, n_clients, axis=-2)}


def first_memory(remedy: Remedy, params: Array, n_clients: int) -> dict[str, Array]:
    """What a remedy's server and clients remember before the first round; params [n_params]."""
    shared, own = remedy.first_shared(len(params)), remedy.first_own(params, n_clients)
    return {**with_owner(REMEDY, shared), **with_owner(PERSONAL, own)}


def first_kept(remedy: Remedy, ranker: Ranker, params: Array, n_clients: int) -> dict[str, Array]:
    """What clients keep, and a remedy's server remembers, before the first round; params [..., n_params]."""
    cells = [first_memory(remedy, each, n_clients) for each in np.atleast_2d(params)]
    memory = {name: np.stack([cell[name] for cell in cells]) for name in cells[0]} if params.ndim > 1 else cells[0]
    return {**first_personal(ranker, params, n_clients), **memory}


def study_personally(
    federation: Federation, state: NamedArrays, params: Array, cohort: Sequence[Client], *, key: Array, round: int
) -> tuple[NamedArrays, list[tuple[Any, float]]]:
    """What every client of the cohort learnt, each from the shared parameters and its own."""
    if federation.remedy.has_memory:
        return study_with_memory(federation, state, params, cohort, key=key, round=round)
    if OWN_PARAMETERS not in state:
        return state, [federation.study(federation, params, client, key=key, round=round) for client in cohort]
    places, own, learnt = personal_places(federation.ranker), state[OWN_PARAMETERS].copy(), []
    for client in cohort:
        start = params.copy()
        start[places] = own[client.id]
        update, quality = federation.study(federation, start, client, key=key, round=round)
        own[client.id] = start[places] + update.delta[places]
        shared = update.delta.copy()
        shared[places] = 0
        learnt.append((DenseUpdate(shared, update.n_interactions), quality))
    return {**state, OWN_PARAMETERS: own}, learnt


def study_with_memory(
    federation: Federation, state: NamedArrays, params: Array, cohort: Sequence[Client], *, key: Array, round: int
) -> tuple[NamedArrays, list[tuple[DenseUpdate, float]]]:
    """The same, where a remedy says where a client begins, what it sends and what it keeps."""
    remedy, shared = federation.remedy, part_of(state, REMEDY)
    stores, learnt = {name: array.copy() for name, array in part_of(state, PERSONAL).items()}, []
    for client in cohort:
        own = {name: array[[client.id]] for name, array in stores.items()}
        steps = (np.array([client.id]), np.array([client.n_interactions]), federation.learning_rate)
        turn = Turn(np, params, shared, own, *steps)
        begun = remedy.begin(turn)
        shift = None if begun.shifts is None else begun.shifts[0]
        update, quality = federation.study(
            replace(federation, shift=shift), begun.starts[0].copy(), client, key=key, round=round
        )
        message, kept = remedy.finish(turn, update.delta[None])
        for name, rows in kept.items():
            stores[name][client.id] = rows[0]
        learnt.append((DenseUpdate(message[0], update.n_interactions), quality))
    return {**state, **with_owner(PERSONAL, stores)}, learnt


def local_pull(remedy: Remedy, shift: Array | None) -> Callable[[Array, Array], Array] | None:
    """A term of every local gradient, from the weights and those that the client began with; None: none."""
    if not remedy.pull:
        return None if shift is None else lambda local, start: shift  # noqa: ARG005
    other = 0 if shift is None else shift
    return lambda local, start: np.float32(-remedy.pull) * (local - start) + other


def remember_remedy(remedy: Remedy, population: Population, state: NamedArrays, combined: Array) -> NamedArrays:
    """The state in which the server has absorbed what a remedy's clients sent beside their updates."""
    if not remedy.has_memory:
        return state
    mean = MeanMessage(np, combined.astype(np.float32), population.n_clients, population.cohort_size)
    return replace_owner(state, REMEDY, remedy.absorb(part_of(state, REMEDY), mean))


def own_rankers(remedy: Remedy, ranker: Ranker, state: NamedArrays, params: Array, n_clients: int) -> Array:
    """[n_clients or 1, n_params] the rankers that clients have between rounds; one where all have the same."""
    if remedy.has_memory:
        everybody = (np.arange(n_clients), np.ones(n_clients, np.int64), 0.0)
        turn = Turn(np, params, part_of(state, REMEDY), part_of(state, PERSONAL), *everybody)
        return np.asarray(remedy.begin(turn).starts)
    if OWN_PARAMETERS not in state:
        return params[None]
    rankers = np.repeat(params[None], n_clients, axis=0)
    rankers[:, personal_places(ranker)] = state[OWN_PARAMETERS]
    return rankers
