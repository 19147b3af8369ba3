"""Clients of an evolution strategy, fused into one loop for processors: twin of `learners.es` for many clients.

Linear rankers and networks with one hidden layer, compiled by Numba. What the server would decode each message to is
handed out, a perturbation and a number: it is still at hand. A client's numbers do not depend on its neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from hushrank.engine.compiled import FLAGS, SUMS, array_type, f4, f8, i8, keep_compiled
from hushrank.engine.kernel import CLIENTS, QUERIES
from hushrank.engine.search import (
    Asked,
    click_list,
    derive,
    draw_query,
    first_word,
    judge_places,
    make_search,
    name_client,
    name_round,
    name_search,
    rank_places,
)
from hushrank.engine.vectors import multiply_rows, threefry
from hushrank.streams import Purpose

_SEED, _PERTURB, _PRIVATISE = (np.uint32(p) for p in (Purpose.SEED, Purpose.PERTURB, Purpose.PRIVATISE))
_ZERO, _ONE, _HALF = np.float32(0), np.float32(1), np.float32(0.5)
_STEP, _DROP = 2.0**-23, np.uint32(9)  # a word's upper 23 bits as a number in (0, 1)
MEASURES = {"MaxRR": 0, "LastRR": 1, "click-through": 2, "nDCG": 3, "DCG": 4}
ACTIVATIONS = {"relu": 0, "sigmoid": 1}


@njit(**FLAGS)
def fill_noise(noise: Any, seed: Any, sigma: float, words: Any) -> None:
    """noise[:]; twin of `es.perturbation`. words: room for [2, (p + 1) // 2]."""
    k0, k1 = threefry(np.uint32(0), seed, _PERTURB)
    for j in range(words.shape[1]):  # Why a loop of its own: without logarithms it uses vectors
        words[0, j], words[1, j] = threefry(k0, k1, np.uint32(j))
    for j in range(words.shape[1]):
        first, second = (
            (np.float64(words[0, j] >> _DROP) + 0.5) * _STEP,
            (np.float64(words[1, j] >> _DROP) + 0.5) * _STEP,
        )
        radius, angle = sigma * np.sqrt(-2.0 * np.log(first)), 2.0 * np.pi * second
        noise[2 * j] = np.float32(radius * np.cos(angle))
        if 2 * j + 1 < len(noise):
            noise[2 * j + 1] = np.float32(radius * np.sin(angle))


@njit(**SUMS)
def score_network(turned: Any, bias: Any, output: Any, activation: int, documents: Any, scores: Any) -> None:
    """scores[:length]; twin of `MlpRanker.score`. `turned` [hidden, n_features]: sums then run over neighbours."""
    for d in range(documents.shape[0]):
        score = _ZERO
        for h in range(turned.shape[0]):
            x = bias[h]
            for f in range(documents.shape[1]):
                x += turned[h, f] * documents[d, f]
            score += output[h] * (max(x, _ZERO) if activation == 0 else _HALF * (_ONE + np.tanh(_HALF * x)))
        scores[d] = score


@njit(**FLAGS)
def move(params: Any, noise: Any, sign: Any, local: Any) -> None:
    """local[:] = params + sign * noise"""
    for f in range(len(params)):
        local[f] = params[f] + sign * noise[f]


@njit(**FLAGS)
def weigh(plus: float, minus: float, sigma: float, antithetic: bool) -> float:
    """What a perturbation is multiplied with, for these mean rewards; twin of `es.es_add`."""
    first, second = np.float64(np.float32(plus)), np.float64(np.float32(minus))
    return ((first - second) / 2.0 if antithetic else first) / sigma**2  # [foltr-es, Eq. 6]


@njit(**FLAGS)
def turn_weights(local: Any, n_features: int, turned: Any) -> None:
    for h in range(turned.shape[0]):
        for f in range(n_features):
            turned[h, f] = local[f * turned.shape[0] + h]


@njit(**FLAGS)
def rank_query(
    local: Any,
    turned: Any,
    bias: Any,
    output: Any,
    hidden: int,
    activation: int,
    documents: Any,
    k: int,
    scores: Any,
    places: Any,
) -> int:
    """places[:n_shown] of one query's documents, scored by the ranker that is tried."""
    if hidden == 0:
        multiply_rows(documents, local, scores)
    else:
        score_network(turned, bias, output, activation, documents, scores)
    return rank_places(scores, len(documents), k, places)


@njit(**FLAGS)
def judge_list(measure: int, values: Any, clicked: Any, n_shown: int, gain: float, ideal: float, k: int) -> int:
    """The place of the list's reward among the values; twin of `rewards.FiniteReward`."""
    if measure >= 3:
        value = gain if measure == 4 else (gain / ideal if ideal > 0 else 0.0)
        best = 0
        for i in range(1, len(values)):
            best = i if abs(values[i] - value) < abs(values[best] - value) else best
        return best
    found = -1
    for i in range(n_shown):
        if clicked[i] and (found < 0 or measure == 1):
            found = i
    if measure == 2:
        return 1 if found >= 0 else 0
    return k - found if found >= 0 else 0


@njit(**FLAGS)
def answer(place: int, key: Any, interaction: int, n_values: int, threshold: Any) -> Any:
    """The place that is told; twin of `randomised_response.randomise_values`."""
    first, second = threefry(key[0], key[1], np.uint32(interaction))
    if np.uint64(first) < threshold:
        return place
    other = np.int64(second % np.uint32(n_values - 1))
    return other + 1 if other >= place else other


SIGNATURE = types.void(
    *(types.Array(f4, 2, "C"), types.Array(f8, 1, "C"), types.Array(f8, 1, "C")),
    *(array_type(f4, 2), *QUERIES, *CLIENTS),
    *(i8, i8, f8, types.boolean, i8, array_type(f8, 1), types.uint64),
)


@keep_compiled(SIGNATURE)
def evolve_clients(
    noises: Any,  # [n, p] written: each client's perturbation
    scales: Any,  # [n] written: by which it is multiplied to give what the client's message is decoded to
    qualities: Any,  # [n] written: the mean nDCG of what it saw
    params: Any,  # [C, p] the ranker that everybody in a cell has
    features: Any,  # [n_documents, n_features]
    grades: Any,  # [n_labels] of every group's documents, end to end
    starts: Any,  # [n_queries] first row of the features
    labels: Any,  # [n_queries] first row of the grades
    lengths: Any,  # [n_queries]
    ideals: Any,  # [n_queries] DCG@k of the best list
    first_query: Any,  # [n_groups]
    n_queries: Any,  # [n_groups]
    examine: Any,  # [n_groups, k] click tables
    click: Any,  # [n_groups, n_grades]
    stop: Any,  # [n_groups, n_grades]
    keys: Any,  # [C, 2] of the cells
    round: int,
    cells: Any,  # [n] whose clients these are
    ids: Any,  # [n] clients
    n_interactions: Any,  # [n]
    groups: Any,  # [n]
    hidden: int,  # units of the network; 0: linear
    activation: int,
    sigma: float,
    antithetic: bool,
    measure: int,
    values: Any,  # [n_values] of the reward
    threshold: Any,  # words below it tell the truth
) -> None:
    """Every client's round; the first three arrays are written."""
    asked = Asked(features, grades, starts, labels, lengths, ideals, first_query, n_queries, examine, click, stop)
    k, p, n_features = examine.shape[1], params.shape[1], features.shape[1]
    local, turned = np.empty(p, np.float32), np.empty((max(hidden, 1), n_features), np.float32)
    bias, output = local[n_features * hidden : p - hidden], local[p - hidden :]
    search, words = make_search(np.max(lengths), k, click.shape[1]), np.empty((2, (p + 1) // 2), np.uint32)
    for row in range(len(ids)):
        n, group, noise, key = n_interactions[row], groups[row], noises[row], keys[cells[row]]
        half, told_plus, told_minus, shown_quality = n // 2 if antithetic else n, 0.0, 0.0, 0.0
        who = (np.uint32(round), np.uint32(ids[row]))
        fill_noise(noise, first_word(derive(key, _SEED, who)), sigma, words)
        secret = derive(key, _PRIVATISE, who)
        if row == 0 or cells[row] != cells[row - 1]:
            name_round(search, key, np.uint32(round))
        name_client(search, ids[row])
        for interaction in range(n):
            if interaction == 0 or interaction == half:
                move(params[cells[row]], noise, _ONE if interaction < half else -_ONE, local)
                if hidden > 0:
                    turn_weights(local, n_features, turned)
            lane = name_search(search, interaction)
            query = draw_query(search, asked, group, lane)
            documents = features[starts[query] : starts[query] + lengths[query]]
            n_shown = rank_query(
                local, turned, bias, output, hidden, activation, documents, k, search.scores, search.places
            )
            gain = judge_places(search, grades, labels[query], n_shown)
            shown_quality += gain / ideals[query] if ideals[query] > 0 else 0.0
            click_list(search, asked, group, n_shown, lane)
            place = judge_list(measure, values, search.is_clicked, n_shown, gain, ideals[query], k)
            told = values[answer(place, secret, interaction, len(values), threshold)]
            told_plus += told if interaction < half else 0.0
            told_minus += 0.0 if interaction < half else told
        qualities[row] = shown_quality / n
        scales[row] = weigh(told_plus / half, told_minus / half, sigma, antithetic)
