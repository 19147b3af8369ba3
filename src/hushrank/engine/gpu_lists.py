"""Which documents a person sees, in the kernel of a GPU; twin of `local.show_padded`. Shapes as in `gpu_kernel.py`.

A list that fits is held in registers as a whole (`show_short_list`): k times the best of what is left. Of a longer one
(`show_long_list`) only a tile is, and merged into the best of the tiles before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pt

from hushrank.engine.plan import AT_ONCE
from hushrank.engine.setting import Method
from hushrank.streams import threefry, to_uniform


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the kernel is compiled for."""

    method: Method
    per_params: int  # rows that begin with the same parameters
    per_cell: int  # rows of one cell
    n_groups: int
    is_interpreted: bool
    tile: int  # W
    n_warps: int
    reads_ahead: bool  # whether a tile's features are read before the tile before it is done
    n_tiles: int  # T, where the longest list is held in registers as a whole; else 0

    @property
    def page(self) -> int:
        """K. Why at least 16: products of matrices in Triton want it."""
        return max(16, pl.next_power_of_2(self.method.k))


class ShownPage(NamedTuple):
    """The best of the tiles so far."""

    noisy: Any  # [K] what the list is sorted by, descending; -inf beyond position k and where a list is shorter
    documents: Any  # [K] places in the list
    scores: Any  # [K]


class Mass(NamedTuple):
    """Logarithms of sums of e^score, one per element: most + log(total)."""

    most: Any  # the largest score of each, -inf where there is none
    total: Any  # of e^(score - most)


class KernelRanker(Protocol):
    """A ranker whose parameters are a few arrays in registers."""

    def load(self, params: Any, row: Any) -> tuple[Any, ...]:
        """The parts of one row of params [m, p]."""

    def store(self, params: Any, row: Any, parts: tuple[Any, ...]) -> None:
        """The opposite."""

    def score(self, parts: tuple[Any, ...], rows: tuple[Any, ...]) -> tuple[Any, Any]:
        """[W] scores of rows of features in parts [W, F], and what their gradients need of the way there."""

    def gradient(self, parts: tuple[Any, ...], rows: tuple[Any, ...], inner: Any, weights: Any) -> Any:
        """The parts of the weighted sum of score gradients of K rows."""


def draw(key: tuple[Any, Any], first: Any, n: int, through: Callable[[Any], Any] = lambda x: x) -> Any:
    """[n] draws of a stream from an even number `first` on, strictly between 0 and 1, and a function of each; twin of
    `streams.draw_uniform`. Why in pairs: that is how they are made."""
    number = (first >> 1) + jnp.arange(n // 2)
    words = threefry(key, jnp.zeros_like(number, jnp.uint32), number.astype(jnp.uint32))
    return spread(jnp.stack([through(to_uniform(word)) for word in words], axis=-1).reshape(n))


def draw_noise(sizes: Sizes, key: tuple[Any, Any], t: Any) -> Any:
    """[W] of the documents of tile t."""
    return draw(key, t * sizes.tile, sizes.tile, lambda u: -jnp.log(-jnp.log(u)))


def empty_page(sizes: Sizes) -> ShownPage:
    return ShownPage(jnp.full(sizes.page, -jnp.inf), jnp.zeros(sizes.page, jnp.int32), jnp.zeros(sizes.page))


def show_page(
    sizes: Sizes, ranker: KernelRanker, features: Any, local: Any, first: Any, length: Any, key: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Rank and sample: [K] places in the list. Last the log of the sum of e^score over the candidates not shown."""
    show = show_short_list if sizes.n_tiles else show_long_list
    documents, tail = show(sizes, ranker, features, local, first, length, key)
    return keep_inside(documents, length), tail


def keep_inside(documents: Any, length: Any) -> Any:
    """Why: of a ranker that has diverged no score is the best, and places that nothing was found for lie anywhere."""
    return jnp.maximum(jnp.minimum(documents, length - 1), 0)


def show_short_list(
    sizes: Sizes, ranker: KernelRanker, features: Any, local: Any, first: Any, length: Any, key: tuple[Any, Any]
) -> tuple[Any, Any]:
    within, tile, position = jnp.arange(sizes.tile), jnp.arange(sizes.n_tiles)[:, None], jnp.arange(sizes.page)
    place = tile * sizes.tile + within[None, :]

    def score_tile(t: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        scores, noisy = carry
        here = t * sizes.tile + within
        found, _ = ranker.score(local, read_rows(sizes, features, first + here, here < length))
        drawn = jnp.where(here < length, found + draw_noise(sizes, anew(key, t), t), -jnp.inf)
        return jnp.where(tile == t, found[None, :], scores), jnp.where(tile == t, drawn[None, :], noisy)

    def show_next(r: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        left, documents = carry
        best = jnp.min(jnp.min(jnp.where(left == max_all(left), place, place.size - 1), axis=0))
        return jnp.where(place == best, -jnp.inf, left), jnp.where(position == r, best, documents)

    start = (jnp.zeros(place.shape), jnp.full(place.shape, -jnp.inf))
    scores, noisy = lax.fori_loop(0, (length + sizes.tile - 1) // sizes.tile, score_tile, start)
    left, documents = lax.fori_loop(0, sizes.method.k, show_next, (noisy, jnp.zeros(sizes.page, jnp.int32)))
    hidden = jnp.where(left > -jnp.inf, scores, -jnp.inf)
    most = max_all(hidden)
    base = jnp.where(most > -jnp.inf, most, 0.0)
    return documents, base + jnp.log(sum_all(jnp.exp(hidden - base)))


def show_long_list(
    sizes: Sizes, ranker: KernelRanker, features: Any, local: Any, first: Any, length: Any, key: tuple[Any, Any]
) -> tuple[Any, Any]:
    within = jnp.arange(sizes.tile)

    def read_tile(t: Any) -> Any:
        here = t * sizes.tile + within
        return read_rows(sizes, features, first + here, here < length)

    def show_tile(t: Any, carry: tuple[Any, ShownPage, Mass, Mass]) -> tuple[Any, ShownPage, Mass, Mass]:
        rows, page, passed, evicted = carry
        here = t * sizes.tile + within
        scores, _ = ranker.score(local, rows if sizes.reads_ahead else read_tile(t))
        # Why now: memory is slow, and what follows does not wait for it
        rows = read_tile(t + 1) if sizes.reads_ahead else rows
        noisy = jnp.where(here < length, scores + draw_noise(sizes, anew(key, t), t), -jnp.inf)
        tile = ShownPage(noisy, here, scores)
        new, is_passed, is_evicted = merge_tile(sizes.method.k, anew(jnp.arange(sizes.page), t), page, tile)
        return rows, new, add_mass(passed, scores, is_passed), add_mass(evicted, page.scores, is_evicted)

    none = (Mass(jnp.full(n, -jnp.inf), jnp.zeros(n)) for n in (sizes.tile, sizes.page))
    start = (read_tile(0) if sizes.reads_ahead else (), empty_page(sizes), *none)
    _, page, passed, evicted = lax.fori_loop(0, (length + sizes.tile - 1) // sizes.tile, show_tile, start)
    most = jnp.maximum(jnp.max(passed.most), jnp.max(evicted.most))
    base = jnp.where(most > -jnp.inf, most, 0.0)
    hidden = sum(sum_all(mass.total * jnp.exp(mass.most - base)) for mass in (passed, evicted))
    return spread(page.documents), base + jnp.log(hidden)


def merge_tile(k: int, position: Any, page: ShownPage, tile: ShownPage) -> tuple[ShownPage, Any, Any]:
    """The k best of both in order, and which of the tile [W] and of the page [K] are not among them.

    Why by counting who is better: all comparisons at once take less time than the best, then the next best. Of equals
    the one that stands first in the list is better, and the page stood before the tile.
    """
    place, mine, other = tile.documents, tile.noisy[:, None], tile.noisy[None, :]
    is_better = (other > mine) | ((other == mine) & (place[None, :] < place[:, None]))
    is_page_better = page.noisy[None, :] >= mine
    rank = _count(is_better, 1) + _count(is_page_better, 1)
    page_rank = position + _count(~is_page_better, 0)
    to_page = (position < k)[:, None]
    from_tile, from_page = (to_page & (position[:, None] == r[None, :]) for r in (rank, page_rank))

    def choose(old: Any, new: Any) -> Any:
        kept, come = (jnp.sum(jnp.where(where, x[None, :], 0), 1) for where, x in ((from_page, old), (from_tile, new)))
        return kept + come

    chosen = ShownPage(*map(choose, page, tile))
    chosen = chosen._replace(noisy=jnp.where(position < k, chosen.noisy, -jnp.inf))
    return chosen, (rank >= k) & (tile.noisy > -jnp.inf), (page_rank >= k) & (page.noisy > -jnp.inf)


def add_mass(mass: Mass, scores: Any, where: Any) -> Mass:
    """Each with its score, where there is one."""
    most = jnp.where(where, jnp.maximum(mass.most, scores), mass.most)
    base = jnp.where(most > -jnp.inf, most, 0.0)
    return Mass(most, mass.total * jnp.exp(mass.most - base) + jnp.where(where, jnp.exp(scores - base), 0.0))


def feature_columns(n_features: int) -> list[Any]:
    """[F] the columns of each part."""
    return [part + jnp.arange(AT_ONCE) for part in range(0, n_features, AT_ONCE)]


def read_rows(sizes: Sizes, features: Any, documents: Any, where: Any) -> tuple[Any, ...]:
    """[W, F] each part of the documents' features, zeros where there is none; the matrix is padded to whole parts."""
    return tuple(
        load_where(features, documents[:, None], columns[None, :], where=where[:, None] & (columns >= 0)[None, :])
        for columns in feature_columns(sizes.method.ranker.n_features)
    )


def load_where(array: Any, *places: Any, where: Any) -> Any:
    places = tuple(jnp.broadcast_to(place, where.shape) for place in places)
    return pt.load(array.at[places], mask=where, other=np.zeros((), array.dtype))


def anew(values: Any, i: Any) -> Any:
    """The same integers. Why: what follows from them would be the same in every turn i < 2^30 of a loop, so the
    compiler would keep it in registers, which are needed."""
    return jax.tree.map(lambda x: x + (i >> 30).astype(x.dtype), values)


def spread(values: Any) -> Any:
    """The same numbers. Why: where they meet the rows of a matrix, Triton would compute each in every thread that holds
    a piece of its row; over sums it does not look back, so here each is computed once and then handed round."""
    return jnp.sum(jnp.sum(values[None, :], axis=0)[:, None], axis=1)


def pick(values: Any, where: Any) -> Any:
    """The one value that is meant."""
    return sum_all(jnp.where(where, values, 0.0))


def _count(where: Any, axis: int) -> Any:
    return jnp.sum(where.astype(jnp.int32), axis=axis)


def max_all(values: Any) -> Any:
    """As `sum_all`."""
    while values.ndim:
        values = jnp.max(values, axis=0)
    return values


def sum_all(values: Any) -> Any:
    """Triton reduces one axis at a time."""
    while values.ndim:
        values = jnp.sum(values, axis=0)
    return values
