"""What a block of clients does in a round: search, click, learn. Twin of `local.learn`, many clients at once.

Shapes: n rows (a row is one client of one cell, cell by cell), k shown documents, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from hushrank.clicks.table_fast import table_clicks
from hushrank.engine.inputs import Cells, Queries
from hushrank.engine.plan import Shape
from hushrank.engine.setting import Method
from hushrank.learners.pdgd_fast import preference_weights
from hushrank.metrics.ndcg_fast import shown_ndcg
from hushrank.rankers.linear_fast import FastLinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.mlp_fast import FastMlpRanker
from hushrank.rankers.policy_fast import sample_ranking
from hushrank.streams import Purpose
from hushrank.streams_fast import draw_bits, draw_uniform, fold_in

# What an interaction draws, in the order of the keys' second axis: one derivation for all of them compiles faster.
DRAWS = (Purpose.QUERY, Purpose.SHOW, Purpose.CLICK, Purpose.STOP)


class ClientRows(NamedTuple):
    """The clients of one block."""

    cell: Any  # [n]
    group: Any  # [n]
    n_interactions: Any  # [n] 0 for padding
    first_interaction: Any  # [n] number of the first interaction in this step of the server
    keys: Any  # [n, n_purposes, 2] of each purpose that the method draws for, round and client


class ShownLists(NamedTuple):
    """The lists that the people of n rows see."""

    documents: Any  # [n, k] rows of the features
    is_shown: Any  # [n, k] False beyond the end of a short list
    scores: Any  # [n, k]
    tail: Any  # [n] log of the sum of e^score over the candidates that are not shown


def learn_locally(
    method: Method, shape: Shape, queries: Queries, cells: Cells, params: Any, rows: ClientRows, shifts: Any = None
) -> tuple[Any, Any]:
    """[n, p] what each client learnt, not clipped, and [n] the mean nDCG of the lists it showed; params [n, p]. shifts
    [n, p]: a term of every gradient."""
    weight_norm = method.protection.clipping.weight_norm

    def step(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        local, quality = carry
        is_searching = i < rows.n_interactions
        keys = fold_in(rows.keys, (rows.first_interaction + i)[:, None])
        query = choose_queries(cells, rows, keys[:, 0])
        lengths = jnp.where(is_searching, queries.lengths[query], 0)
        shown = show_lists(method, shape, queries, local, queries.starts[query], lengths, keys[:, 1])
        grades = queries.grades[find_labels(queries, query, shown.documents)]
        is_clicked = receive_clicks(cells, rows, shown.is_shown, grades, keys[:, 2:])
        gradient = gradients(method, queries, local, shown, is_clicked)
        gradient = gradient if method.remedy.pull == 0 else gradient - method.remedy.pull * (local - params)
        gradient = gradient if shifts is None else gradient + shifts
        if method.remedy.pull or shifts is not None:  # Why: who has searched enough takes no more steps
            gradient = jnp.where(is_searching[:, None], gradient, 0.0)
        local = local + method.learning_rate * gradient
        local = local if weight_norm == 0 else clip_local(local, weight_norm)
        ndcg = shown_ndcg(grades, shown.is_shown, queries.ideals[query])
        return local, quality + jnp.where(is_searching, ndcg / jnp.maximum(rows.n_interactions, 1), 0.0)

    start = (params, jnp.zeros(len(params)))
    local, quality = step(0, start) if method.local_steps == 1 else lax.fori_loop(0, method.local_steps, step, start)
    return local - params, quality


def clip_local(weights: Any, norm: float) -> Any:
    """[n, p] twin of `clipping.clip_weights`, in float32."""
    return weights * (norm / jnp.maximum(_length(weights, 2), norm))


def clip_deltas(delta: Any, norm: float, order: int, grid: float) -> Any:
    """[n, p] twin of `clipping.clip_update` and `round_towards_zero`, in float32."""
    if norm == 0:
        return delta
    clipped = delta * jnp.minimum(1.0, norm / jnp.maximum(_length(delta, order), 1e-30))
    return clipped if grid == 0 else jnp.trunc(clipped / grid) * grid


def _length(vectors: Any, order: int) -> Any:
    return jnp.linalg.norm(vectors, ord=order, axis=1, keepdims=True)


def choose_queries(cells: Cells, rows: ClientRows, keys: Any) -> Any:
    """[n] each row's query, uniformly from those of its cell's fold and its group."""
    within = draw_bits(keys, 1)[:, 0] % cells.n_queries[rows.cell, rows.group]
    return cells.first_query[rows.cell, rows.group] + within.astype(jnp.int32)


def find_labels(queries: Queries, query: Any, documents: Any) -> Any:
    """[n, k] where the grades of the documents of each row's query stand."""
    return documents + (queries.labels - queries.starts)[query][:, None]


def show_lists(
    method: Method, shape: Shape, queries: Queries, params: Any, starts: Any, lengths: Any, keys: Any
) -> ShownLists:
    """Rank and sample."""
    shown: ShownLists = by_width(partial(show_padded, method, queries), shape, lengths, params, starts, keys)
    return shown


def by_width(show: Callable[..., Any], shape: Shape, lengths: Any, params: Any, starts: Any, *more: Any) -> Any:
    """`show(params, starts, lengths, *more, width=)` tile by tile.

    The rows are sorted by list length, and a tile is padded to the width that its longest list needs.
    """
    branches = [partial(show, width=width) for width in shape.widths]
    if shape.n_tiles == 1 and len(branches) == 1:
        return branches[0](params, starts, lengths, *more)
    n = len(lengths)
    order = jnp.argsort(lengths, stable=True)
    missing = jnp.full(shape.n_tiles * shape.tile - n, order[0])  # Why: the shortest list pads the first tile
    order = jnp.concatenate([missing, order])

    def show_tile(rows: Any) -> Any:
        inputs = (params[rows], starts[rows], lengths[rows], *(part[rows] for part in more))
        return lax.switch(jnp.sum(lengths[rows[-1]] > jnp.asarray(shape.widths)), branches, *inputs)

    shown = lax.map(show_tile, order.reshape(shape.n_tiles, shape.tile))
    back = jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(len(order), dtype=jnp.int32))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[back], shown)


def show_padded(
    method: Method, queries: Queries, params: Any, starts: Any, lengths: Any, keys: Any, *, width: int
) -> ShownLists:
    """Lists of at most `width` candidates."""
    candidates = jnp.minimum(starts[:, None] + jnp.arange(width), len(queries.features) - 1)
    where = jnp.arange(width) < lengths[:, None]
    scores = score_candidates(method, queries, params, candidates)
    places, is_hidden = sample_ranking(scores, draw_uniform(keys, width), where=where, k=method.k)
    return ShownLists(
        documents=jnp.take_along_axis(candidates, places, axis=1),
        is_shown=jnp.arange(method.k) < lengths[:, None],
        scores=jnp.take_along_axis(scores, places, axis=1),
        tail=jax.nn.logsumexp(jnp.where(is_hidden, scores, -jnp.inf), axis=1),
    )


def score_candidates(method: Method, queries: Queries, params: Any, candidates: Any) -> Any:
    """[n, width] scores; where the features also lie column by column, one column after another, as a GPU likes it."""
    if queries.columns is None:
        return jax.vmap(fast_ranker(method).score)(params, queries.features[candidates])
    scores = jnp.zeros(candidates.shape)
    for feature, column in enumerate(queries.columns):
        scores = scores + column[candidates] * params[:, feature, None]
    return scores


def receive_clicks(cells: Cells, rows: ClientRows, is_shown: Any, grades: Any, keys: Any) -> Any:
    """[n, k] what the person of each row clicks; keys [n, 2, 2] for clicking and for stopping."""
    who = (rows.cell, rows.group)
    click = jnp.take_along_axis(cells.click[who], grades, axis=1) * cells.examine[who]
    stop = jnp.take_along_axis(cells.stop[who], grades, axis=1)
    draws = draw_uniform(keys, grades.shape[1])
    return table_clicks(draws[:, 0], draws[:, 1], click=jnp.where(is_shown, click, 0.0), stop=stop)


def gradients(method: Method, queries: Queries, params: Any, shown: ShownLists, is_clicked: Any) -> Any:
    """[n, p] twin of `pdgd.pdgd_gradient`."""
    weights = preference_weights(shown.scores.T, shown.tail, is_clicked.T, shown.is_shown.T).T
    return jax.vmap(fast_ranker(method).score_gradient)(params, queries.features[shown.documents], weights)


def fast_ranker(method: Method) -> Any:
    """The ranker for JAX arrays."""
    return FastMlpRanker(method.ranker) if isinstance(method.ranker, MlpRanker) else FastLinearRanker()
