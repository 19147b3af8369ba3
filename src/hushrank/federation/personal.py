"""Parameters that a client keeps for itself: taken from its own store before it learns, put back afterwards.

They are never part of an update. The store is [n_clients, n_personal], keyed by client id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hushrank.federation.state import OWN_PARAMETERS
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


def study_personally(
    federation: Federation, state: NamedArrays, params: Array, cohort: Sequence[Client], *, key: Array, round: int
) -> tuple[NamedArrays, list[tuple[Any, float]]]:
    """What every client of the cohort learnt, each from the shared parameters and its own."""
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
