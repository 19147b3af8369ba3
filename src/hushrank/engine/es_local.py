"""What a block of clients of an evolution strategy does in a round: twin of `learners.es`, many clients at once.

A client's interactions do not wait for each other, so all its lists are shown at once.
Shapes: n rows (clients), B interactions of each, k shown documents, p parameters.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import jax.numpy as jnp

from hushrank.engine.inputs import Cells, Queries
from hushrank.engine.local import ClientRows, by_width, choose_queries, find_labels, receive_clicks, score_candidates
from hushrank.engine.plan import Shape
from hushrank.engine.setting import Method
from hushrank.federation.evolution import Evolution
from hushrank.metrics.ndcg_fast import shown_dcg, shown_ndcg
from hushrank.rankers.policy_fast import sort_ranking
from hushrank.streams import Purpose
from hushrank.streams_fast import draw_bits, draw_uniform, fold_in

# Of each interaction: query, click, stop; of each client: the last two.
ES_DRAWS = (Purpose.QUERY, Purpose.CLICK, Purpose.STOP, Purpose.SEED, Purpose.PRIVATISE)


def evolve_locally(
    method: Method, shape: Shape, queries: Queries, cells: Cells, params: Any, rows: ClientRows
) -> tuple[Any, Any]:
    """[n, p] the estimate that each client's message is decoded to, [n] the mean nDCG of its lists; params [n, p]."""
    evolution = cast("Evolution", method.exchange)
    n, b = len(params), method.lists_per_row
    i = jnp.arange(b)
    is_searching = i < rows.n_interactions[:, None]  # [n, B]
    half = rows.n_interactions // 2 if evolution.antithetic else rows.n_interactions
    is_plus = i < half[:, None]
    noise = perturb(draw_bits(rows.keys[:, 3], 1)[:, 0], params.shape[1], evolution.sigma)
    tried = params[:, None] + jnp.where(is_plus, 1.0, -1.0)[..., None] * noise[:, None]  # [n, B, p]
    keys = fold_in(rows.keys[:, None, :3], i[:, None].astype(jnp.uint32)).reshape(n * b, 3, 2)
    searches = rows._replace(cell=jnp.repeat(rows.cell, b), group=jnp.repeat(rows.group, b))
    query = choose_queries(cells, searches, keys[:, 0])
    lengths = jnp.where(is_searching.ravel(), queries.lengths[query], 0)
    documents = by_width(
        partial(rank_padded, method, queries), shape, lengths, tried.reshape(n * b, -1), queries.starts[query]
    )
    is_shown = jnp.arange(method.k) < lengths[:, None]
    grades = queries.grades[find_labels(queries, query, documents)]
    is_clicked = receive_clicks(cells, searches, is_shown, grades, keys[:, 1:])
    places = judge(evolution, grades, is_shown, is_clicked, queries.ideals[query]).reshape(n, b)
    told = jnp.asarray(evolution.finite.values)[answer(evolution, places, rows.keys[:, 4])]
    share = jnp.where(is_searching, 1.0 / jnp.maximum(half, 1)[:, None], 0.0)
    plus, minus = (jnp.sum(jnp.where(side, told * share, 0.0), axis=1) for side in (is_plus, ~is_plus))
    gain = (plus - minus) / 2.0 if evolution.antithetic else plus
    quality = shown_ndcg(grades, is_shown, queries.ideals[query]).reshape(n, b)
    quality = jnp.sum(jnp.where(is_searching, quality, 0.0), axis=1) / jnp.maximum(rows.n_interactions, 1)
    return (gain / evolution.sigma**2)[:, None] * noise, quality  # [foltr-es, Eq. 6]


def perturb(seeds: Any, n_params: int, sigma: float) -> Any:
    """[n, p] twin of `es.perturbation`, in float32."""
    keys = fold_in(jnp.stack([jnp.zeros_like(seeds), seeds], axis=-1), jnp.uint32(Purpose.PERTURB))
    draws = draw_uniform(keys, n_params + n_params % 2)
    radius, angle = jnp.sqrt(-2.0 * jnp.log(draws[:, 0::2])), 2.0 * math.pi * draws[:, 1::2]
    normals = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=-1).reshape(len(seeds), -1)
    return sigma * normals[:, :n_params]


def rank_padded(method: Method, queries: Queries, params: Any, starts: Any, lengths: Any, *, width: int) -> Any:
    """[n, k] documents by decreasing score, of lists of at most `width` candidates."""
    candidates = jnp.minimum(starts[:, None] + jnp.arange(width), len(queries.features) - 1)
    where = jnp.arange(width) < lengths[:, None]
    places, _ = sort_ranking(score_candidates(method, queries, params, candidates), where=where, k=method.k)
    return jnp.take_along_axis(candidates, places, axis=1)


def judge(evolution: Evolution, grades: Any, is_shown: Any, is_clicked: Any, ideals: Any) -> Any:
    """[n] the place of each list's reward among the values; twin of `rewards.FiniteReward`."""
    k = grades.shape[1]
    if evolution.reward == "click-through":
        return is_clicked.any(axis=1).astype(jnp.int32)
    if evolution.reward in ("MaxRR", "LastRR"):
        first = jnp.argmax(is_clicked, axis=1)
        last = k - 1 - jnp.argmax(is_clicked[:, ::-1], axis=1)
        return jnp.where(is_clicked.any(axis=1), k - (first if evolution.reward == "MaxRR" else last), 0)
    gains = shown_dcg(grades, is_shown) if evolution.reward == "DCG" else shown_ndcg(grades, is_shown, ideals)
    return jnp.argmin(jnp.abs(jnp.asarray(evolution.finite.values) - gains[:, None]), axis=1)


def answer(evolution: Evolution, places: Any, keys: Any) -> Any:
    """[n, B] the places that are told; twin of `randomised_response.randomise_values`."""
    if evolution.p == 1:
        return places
    words = draw_bits(keys, 2 * places.shape[1]).reshape(*places.shape, 2)
    others = (words[..., 1] % jnp.uint32(len(evolution.finite.values) - 1)).astype(jnp.int32)
    is_true = words[..., 0] < jnp.uint32(math.floor(evolution.p * 2**32))
    return jnp.where(is_true, places, others + (others >= places))
