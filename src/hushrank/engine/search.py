"""One search on a processor, without its ranker and its learner: keys, the shown list, clicks; for every kernel.

Twin of the stages in `local.learn`. Only `make_search` allocates; everything else writes into its arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hushrank.engine.compiled import FLAGS, INLINED, MAKING
from hushrank.engine.lanes import LANES
from hushrank.engine.vectors import (
    MOST_FOUND,
    fill_both,
    fill_masses,
    fill_times,
    fill_uniform,
    fold_lanes,
    make_room,
    pick_first,
    threefry,
)
from hushrank.streams import Purpose

_PURPOSES = np.repeat(np.array([Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP], np.uint32), 4)
_SAME, _FOUR = np.zeros(LANES, np.uint32), np.tile(np.arange(4, dtype=np.uint32), 4)
_NOTHING = np.uint32(0)
_SHOW, _CLICK, _STOP = 4, 8, 12  # lanes of the keys of four searches, after those of their queries


class Asked(NamedTuple):
    """The queries of a place, and the people of its groups."""

    features: Any  # [n_documents, n_features]
    grades: Any  # [n_labels] of every group's documents, end to end
    starts: Any  # [n_queries] first row of the features
    labels: Any  # [n_queries] first row of the grades
    lengths: Any  # [n_queries]
    ideals: Any  # [n_queries] DCG@k of the best list
    first_query: Any  # [n_groups]
    n_queries: Any  # [n_groups]
    examine: Any  # [n_groups, k] click tables
    click: Any  # [n_groups, n_grades]
    stop: Any  # [n_groups, n_grades]


class SearchRoom(NamedTuple):
    """Room for one search, and the keys of four."""

    of_round: Any  # [2, LANES] keys, by purpose
    of_client: Any  # [2, LANES]
    of_searches: Any  # [2, LANES] of four searches, by purpose
    words: Any  # [2, LANES] the first words drawn with them
    scores: Any  # [longest] of the query's documents
    draws: Any  # [longest]
    masses: Any  # [longest] e^score, up to a factor
    times: Any  # [longest]
    candidates: Any  # [MOST_FOUND]
    found: Any  # [MOST_FOUND]
    places: Any  # [k] of the shown documents among the query's, best first
    grades: Any  # [k]
    is_clicked: Any  # [k]
    shown: Any  # [k] masses of the shown documents
    left: Any  # [k] what was left of all mass at each position, in the learner's own form
    pulls: Any  # [k] weights of the shown documents' gradients
    gains: Any  # [n_grades, k] (2^grade - 1) / log2(2 + position)


@njit(**MAKING)
def make_search(longest: int, k: int, n_grades: int) -> Any:
    keys, most, wide = np.empty((4, 2, LANES), np.uint32), max(k, MOST_FOUND), max(k, LANES)
    n = max(longest, 2 * pad_places(k))
    return SearchRoom(
        *(keys[0], keys[1], keys[2], keys[3]),
        *(make_room(n), make_room(n), make_room(n), make_room(n)),
        *(np.empty(MOST_FOUND, np.int64), np.empty(MOST_FOUND, np.float32)),
        *(np.empty(most, np.int64), np.empty(k, np.int64), np.empty(k, np.bool_)),
        *(np.zeros(wide, np.float32), np.zeros(wide, np.float32), np.zeros(wide, np.float32)),
        (2.0 ** np.arange(n_grades) - 1.0).reshape(-1, 1) / np.log2(2.0 + np.arange(k)),
    )


@njit(**FLAGS)
def derive(key: Any, purpose: Any, name: Any) -> Any:
    """The key of a purpose, round and client; twin of `streams.stream`."""
    k0, k1 = threefry(key[0], key[1], purpose)
    for part in name:
        k0, k1 = threefry(k0, k1, part)
    return k0, k1


@njit(**FLAGS)
def first_word(key: Any) -> Any:
    return threefry(key[0], key[1], np.uint32(0))[0]


@njit(**FLAGS)
def name_round(search: Any, key: Any, round: Any) -> None:
    """The keys of a cell's round for queries, lists, clicks and stops, each four times."""
    for lane in range(LANES):
        search.of_client[0, lane], search.of_client[1, lane] = key[0], key[1]
    fold_lanes(search.of_client, _PURPOSES, _NOTHING, search.of_searches)
    fold_lanes(search.of_searches, _SAME, round, search.of_round)


@njit(**INLINED)
def name_client(search: Any, client: Any) -> None:
    fold_lanes(search.of_round, _SAME, np.uint32(client), search.of_client)


@njit(**INLINED)
def name_search(search: Any, interaction: int) -> int:
    """The lane of an interaction's keys. Why four interactions at once: with four purposes they fill a register."""
    if interaction % 4 == 0:
        fold_lanes(search.of_client, _FOUR, np.uint32(interaction), search.of_searches)
        fold_lanes(search.of_searches, _SAME, _NOTHING, search.words)
    return interaction % 4


@njit(**INLINED)
def draw_query(search: Any, asked: Any, group: int, lane: int) -> int:
    return asked.first_query[group] + search.words[0, lane] % np.uint32(asked.n_queries[group])


@njit(**INLINED)
def draw_for(search: Any, n: int, lane: int) -> None:
    fill_uniform(search.draws, n, (search.of_searches[0, lane], search.of_searches[1, lane]))


@njit(**INLINED)
def show_list(search: Any, length: int, k: int, lane: int) -> Any:
    """(n_shown, whether the masses can be used): places[:n_shown] of documents with these scores.

    Who comes in first in a race with the speeds e^score is drawn as `policy.sample_ranking` draws. Where two come in
    too close to tell, scores lie too far apart or the list is long, its own formula decides.
    """
    draw_for(search, length, _SHOW + lane)
    n_shown, is_close = 0, k <= LANES and fill_masses(search.scores, length, search.masses)
    if is_close:
        fill_times(search.draws, search.masses, length, search.times)
        n_shown = pick_first(search.times, length, k, search.places, search.candidates, search.found)
    if n_shown == 0:
        n_shown = sample_places(search.scores, search.draws, length, k, search.places)
    return n_shown, is_close


@njit(**FLAGS)
def sample_places(scores: Any, draws: Any, length: int, k: int, places: Any) -> int:
    """places[:n_shown], best first; twin of `policy.sample_ranking`. Turns `draws` into scores plus Gumbel draws."""
    for d in range(length):
        draws[d] = scores[d] - np.log(-np.log(draws[d]))
    return rank_places(draws, length, k, places)


@njit(**FLAGS)
def rank_places(scores: Any, length: int, k: int, places: Any) -> int:
    """places[:n_shown], best first, equal scores in the order of the file; twin of a stable sort."""
    n_shown = 0
    for d in range(length):
        if n_shown == k and not scores[d] > scores[places[k - 1]]:
            continue
        at = n_shown if n_shown < k else k - 1
        while at > 0 and scores[d] > scores[places[at - 1]]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = d
        n_shown = min(n_shown + 1, k)
    return n_shown


@njit(**INLINED)
def judge_places(search: Any, grades: Any, first: int, n_shown: int) -> float:
    """DCG of the shown list; its grades are kept for the clicks."""
    total = 0.0
    for i in range(n_shown):
        search.grades[i] = grades[first + search.places[i]]
        total += search.gains[search.grades[i], i]
    return total


@njit(**INLINED)
def click_list(search: Any, asked: Any, group: int, n_shown: int, lane: int) -> bool:
    """Whether the person would click anywhere, and where they do; twin of the users."""
    keys, half = search.of_searches, pad_places(asked.examine.shape[1])
    click, stop = (keys[0, _CLICK + lane], keys[1, _CLICK + lane]), (keys[0, _STOP + lane], keys[1, _STOP + lane])
    fill_both(search.draws, half, click, stop)
    would = click_places(search, asked.examine[group], asked.click[group], n_shown)
    if would:
        stop_reading(search, asked.stop[group], n_shown, search.draws[half:])
    return would


@njit(**INLINED)
def pad_places(k: int) -> int:
    """Room for the draws of one kind for a list. Why whole registers: draws of two kinds are then made together."""
    return (k + LANES - 1) // LANES * LANES


@njit(**INLINED)
def click_places(search: Any, examine: Any, click: Any, n_shown: int) -> bool:
    """What the person would click on if they saw it; whether there is any such place."""
    is_any = False
    for i in range(n_shown):
        search.is_clicked[i] = search.draws[i] < click[search.grades[i]] * examine[i]
        is_any = is_any or search.is_clicked[i]
    return is_any


@njit(**INLINED)
def stop_reading(search: Any, stop: Any, n_shown: int, draws: Any) -> None:
    """Take back the clicks below the one after which the person left."""
    has_left = False
    for i in range(n_shown):
        search.is_clicked[i] = search.is_clicked[i] and not has_left
        has_left = has_left or (search.is_clicked[i] and draws[i] < stop[search.grades[i]])
