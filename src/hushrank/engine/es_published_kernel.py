"""Clients of an evolution strategy with the published code's seeds, in one loop: twin of `learners.es_published`.

As `es_kernel`, with NumPy's old generator (Mersenne twister) instead of streams: its words, in their order, make the
perturbation first and then, from the beginning again, queries and clicks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hushrank.engine.compiled import FLAGS, keep_compiled
from hushrank.engine.es_kernel import (
    SIGNATURE,
    answer,
    judge_list,
    move,
    rank_query,
    turn_weights,
    weigh,
)
from hushrank.engine.search import derive, first_word, judge_places, make_search
from hushrank.streams import Purpose

_SEED, _PRIVATISE = (np.uint32(p) for p in (Purpose.SEED, Purpose.PRIVATISE))
_ONE = np.float32(1)
_SIZE, _AHEAD = 624, 397  # of the twister's state; how far ahead it looks


@njit(**FLAGS)
def start(state: Any, seed: Any) -> None:
    """state [625] uint32: the words, and where the next one stands; twin of `RandomState(seed)`."""
    state[0] = seed
    for i in range(1, _SIZE):
        last = np.uint64(state[i - 1] ^ np.uint32(state[i - 1] >> np.uint32(30)))
        state[i] = np.uint32((last * np.uint64(1812433253) + np.uint64(i)) & np.uint64(0xFFFFFFFF))
    state[_SIZE] = 0


@njit(**FLAGS)
def next_word(state: Any) -> Any:
    """Each word is renewed just before it is handed out, which gives the same words as all at once."""
    i = np.int64(state[_SIZE])
    after = i + 1 if i + 1 < _SIZE else 0
    ahead = i + _AHEAD if i + _AHEAD < _SIZE else i + _AHEAD - _SIZE
    mixed = np.uint32((state[i] & np.uint32(0x80000000)) | (state[after] & np.uint32(0x7FFFFFFF)))
    odd = np.uint32(0x9908B0DF) if mixed & np.uint32(1) else np.uint32(0)
    word = np.uint32(state[ahead] ^ np.uint32(mixed >> np.uint32(1)) ^ odd)
    state[i], state[_SIZE] = word, after
    word ^= np.uint32(word >> np.uint32(11))
    word ^= np.uint32(np.uint32(word << np.uint32(7)) & np.uint32(0x9D2C5680))
    word ^= np.uint32(np.uint32(word << np.uint32(15)) & np.uint32(0xEFC60000))
    return np.uint32(word ^ np.uint32(word >> np.uint32(18)))


@njit(**FLAGS)
def next_uniform(state: Any) -> float:
    """Of two words; twin of `RandomState.uniform`."""
    high, low = np.int64(next_word(state) >> np.uint32(5)), np.int64(next_word(state) >> np.uint32(6))
    return (high * 67108864.0 + low) / 9007199254740992.0


@njit(**FLAGS)
def next_below(state: Any, bound: Any) -> Any:
    """The lowest bits of the first word in which they are below the bound; twin of `RandomState.randint`."""
    mask: Any = 0
    found: Any = 0 if bound == 1 else bound
    while mask < bound - 1:
        mask = 2 * mask + 1
    while found >= bound:
        found = np.int64(next_word(state)) & mask
    return found


@njit(**FLAGS)
def fill_published_noise(noise: Any, state: Any, sigma: float) -> None:
    """noise[:] by the polar method, two numbers at a time; twin of `es_published.published_perturbation`."""
    for j in range((len(noise) + 1) // 2):
        square = 0.0
        while square >= 1.0 or square == 0.0:
            first, second = 2.0 * next_uniform(state) - 1.0, 2.0 * next_uniform(state) - 1.0
            square = first * first + second * second
        scale = np.sqrt(-2.0 * np.log(square) / square)
        noise[2 * j] = np.float32(sigma * (scale * second))
        if 2 * j + 1 < len(noise):
            noise[2 * j + 1] = np.float32(sigma * (scale * first))


@njit(**FLAGS)
def order_noise(published: Any, n_features: int, hidden: int, noise: Any) -> None:
    """noise[:] in our order; twin of `es_published.published_order`."""
    for j in range(len(noise)):
        noise[j] = published[j]
    for h in range(hidden):
        for f in range(n_features):
            noise[f * hidden + h] = published[h * n_features + f]


@njit(**FLAGS)
def click_in_order(search: Any, n_shown: int, state: Any, examine: Any, click: Any, stop: Any) -> None:
    """is_clicked[:n_shown]; twin of `table.click_in_order`."""
    search.is_clicked[:n_shown] = False
    for i in range(n_shown):
        search.is_clicked[i] = next_uniform(state) < click[search.grades[i]] * examine[i]
        if search.is_clicked[i] and next_uniform(state) < stop[search.grades[i]]:
            break


@keep_compiled(SIGNATURE)
def evolve_as_published(
    noises: Any,
    scales: Any,
    qualities: Any,
    params: Any,
    features: Any,
    grades: Any,
    starts: Any,
    labels: Any,
    lengths: Any,
    ideals: Any,
    first_query: Any,
    n_queries: Any,
    examine: Any,
    click: Any,
    stop: Any,
    keys: Any,
    round: int,
    cells: Any,
    ids: Any,
    n_interactions: Any,
    groups: Any,
    hidden: int,
    activation: int,
    sigma: float,
    antithetic: bool,
    measure: int,
    values: Any,
    threshold: Any,
) -> None:
    """Every client's round; the arguments are those of `es_kernel.evolve_clients`."""
    k, p, n_features = examine.shape[1], params.shape[1], features.shape[1]
    local, turned = np.empty(p, np.float32), np.empty((max(hidden, 1), n_features), np.float32)
    bias, output = local[n_features * hidden : p - hidden], local[p - hidden :]
    search, state = make_search(np.max(lengths), k, click.shape[1]), np.empty(_SIZE + 1, np.uint32)
    for row in range(len(ids)):
        n, group, noise, key = n_interactions[row], groups[row], noises[row], keys[cells[row]]
        half, told_plus, told_minus, shown_quality = n // 2 if antithetic else n, 0.0, 0.0, 0.0
        who = (np.uint32(round), np.uint32(ids[row]))
        seed = first_word(derive(key, _SEED, who))
        secret = derive(key, _PRIVATISE, who)
        start(state, seed)
        fill_published_noise(local, state, sigma)
        order_noise(local, n_features, hidden, noise)
        start(state, seed)
        for interaction in range(n):
            if interaction == 0 or interaction == half:
                move(params[cells[row]], noise, _ONE if interaction < half else -_ONE, local)
                if hidden > 0:
                    turn_weights(local, n_features, turned)
            query = first_query[group] + next_below(state, n_queries[group])
            documents = features[starts[query] : starts[query] + lengths[query]]
            n_shown = rank_query(
                local, turned, bias, output, hidden, activation, documents, k, search.scores, search.places
            )
            gain = judge_places(search, grades, labels[query], n_shown)
            shown_quality += gain / ideals[query] if ideals[query] > 0 else 0.0
            click_in_order(search, n_shown, state, examine[group], click[group], stop[group])
            place = judge_list(measure, values, search.is_clicked, n_shown, gain, ideals[query], k)
            told = values[answer(place, secret, interaction, len(values), threshold)]
            told_plus += told if interaction < half else 0.0
            told_minus += 0.0 if interaction < half else told
        qualities[row] = shown_quality / n
        scales[row] = weigh(told_plus / half, told_minus / half, sigma, antithetic)
