"""All that a client does in a round, as one kernel of a GPU: twin of `local.learn_locally`, for the same arguments.

Why: a step of `learn_locally` is some fifteen kernels of two to three microseconds, nearly all of them waiting. Here a
program of the grid is a client: it draws, ranks, clicks and learns with its own ranker in registers, and a long list
costs no other client anything. Written in Pallas, for Triton; tests run it interpreted.

Shapes, which Triton wants as powers of two: W documents of a tile (a list takes as many tiles as it needs), K positions
of a page, F numbers of a row of features that are read at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pt

from hushrank.engine.gpu_lists import (
    KernelRanker,
    Sizes,
    anew,
    draw,
    feature_columns,
    load_where,
    pick,
    read_rows,
    show_page,
    spread,
    sum_all,
)
from hushrank.engine.inputs import Cells, Queries
from hushrank.engine.local import ClientRows
from hushrank.engine.plan import Shape
from hushrank.engine.setting import Method
from hushrank.rankers.mlp import MlpRanker
from hushrank.streams import threefry

_TEN_BITS = lax.DotAlgorithmPreset.TF32_TF32_F32  # as a GPU multiplies
_SHORT = 256  # Why: eight documents per thread of a warp
_SMALL = 1 << 12  # Why: parameters; a third of the registers of a warp
_LOG2_E = 1.4426950408889634
_AHEAD = 160  # Why: features of a tile that fit into registers beside all else
_INTERPRETED = "interpreted"  # in the place of a GPU


class KernelInputs(NamedTuple):
    """What the kernel reads, as arrays and then as references to them."""

    params: Any  # [m, p] of every cell or of every row, cell by cell
    shifts: Any  # [n, p] or None
    n_interactions: Any  # [n]
    first_interaction: Any  # [n]
    group: Any  # [n]
    keys: Any  # [n * 4, 2]
    features: Any  # [n_documents, n_columns]
    grades: Any  # [n_labels]
    starts: Any  # [n_queries]
    labels: Any  # [n_queries]
    lengths: Any  # [n_queries]
    ideals: Any  # [n_queries]
    first_query: Any  # [C * G]
    n_queries: Any  # [C * G]
    examine: Any  # [C * G, k]
    click: Any  # [C * G, n_grades]
    stop: Any  # [C * G, n_grades]


def learn_in_kernel(
    method: Method, shape: Shape, queries: Queries, cells: Cells, params: Any, rows: ClientRows, shifts: Any = None
) -> tuple[Any, Any]:
    """As `learn_locally`; params [n, p], or [C, p] where the clients of a cell begin alike."""
    n, n_groups = len(rows.group), cells.first_query.shape[1]
    inputs = KernelInputs(
        params,
        shifts,
        rows.n_interactions,
        rows.first_interaction,
        rows.group,
        rows.keys.reshape(-1, 2),
        *(queries.features, queries.grades, queries.starts, queries.labels, queries.lengths, queries.ideals),
        *(table.reshape(-1, *table.shape[2:]) for table in cells[1:]),
    )
    is_interpreted, longest = shape.kernel == _INTERPRETED, shape.widths[-1]
    sizes = Sizes(
        method, n // len(params), n // len(cells.keys), n_groups, is_interpreted, *choose_tiles(method, longest)
    )

    def kernel(*references: Any) -> None:
        given = iter(references)
        read = KernelInputs(*(None if array is None else next(given) for array in inputs))
        learn_row(sizes, read, *given)

    out = (jax.ShapeDtypeStruct((n, params.shape[1]), jnp.float32), jax.ShapeDtypeStruct((n,), jnp.float32))
    call = pl.pallas_call(
        kernel,
        out_shape=out,
        grid=(n,),
        interpret=is_interpreted,
        compiler_params=pt.CompilerParams(num_warps=sizes.n_warps, num_stages=1),
        name="learn_in_kernel",
    )
    return call(*(array for array in inputs if array is not None))


def choose_tiles(method: Method, longest: int) -> tuple[int, int, bool, int]:
    """How many documents are scored at once, by how many warps, whether the next ones are read meanwhile, and how many
    tiles are held at once. Measured on an H200, in million searches a second:

    - lists of at most 256, linear: held, 1,000 clients 50, 10,000 clients 142; merged 44 and 71;
    - longer lists, linear: merged, 17 with two warps, 14 with four, 13 with one; held 10;
    - small networks: held, 16 with two warps, 12 with one; merged, 16 with four.
    """
    is_network, held = isinstance(method.ranker, MlpRanker), pl.next_power_of_2(-(-longest // 32))
    if longest <= _SHORT and not (is_network and method.n_params > _SMALL):
        return 32, 2 if is_network else 1, False, held
    if is_network:
        return 32, 4, True, 0
    return 32, 2, method.ranker.n_features <= _AHEAD, 0


def learn_row(sizes: Sizes, read: KernelInputs, delta: Any, quality: Any) -> None:
    """One client's round; writes row `program_id` of delta [n, p] and quality [n]."""
    method, row = sizes.method, pl.program_id(0)
    ranker = kernel_ranker(sizes)
    start = ranker.load(read.params, row // sizes.per_params)
    shift = None if read.shifts is None else ranker.load(read.shifts, row)
    n = read.n_interactions[row]
    first = read.first_interaction[row].astype(jnp.uint32)

    def step(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        local, before = carry
        gradient, ndcg = search(sizes, ranker, read, anew(row, i), local, first + i.astype(jnp.uint32))
        local = take_step(method, local, start, gradient, shift)
        return local, before + ndcg / n.astype(jnp.float32)

    local, total = lax.fori_loop(0, n, step, (start, jnp.float32(0)))
    before = ranker.load(read.params, row // sizes.per_params)  # Why again: the registers are needed meanwhile
    ranker.store(delta, row, tuple(new - old for new, old in zip(local, before, strict=True)))
    quality[row] = total


def take_step(method: Method, local: Any, start: Any, gradient: Any, shift: Any) -> Any:
    """The parts of a ranker after one step; twin of the same lines of `learn_locally`."""
    pull, norm = method.remedy.pull, method.protection.clipping.weight_norm
    if pull:
        gradient = tuple(g - pull * (here - then) for g, here, then in zip(gradient, local, start, strict=True))
    if shift is not None:
        gradient = tuple(g + more for g, more in zip(gradient, shift, strict=True))
    local = tuple(here + method.learning_rate * g for here, g in zip(local, gradient, strict=True))
    if norm == 0:
        return local
    length = jnp.sqrt(sum(sum_all(part * part) for part in local))
    return tuple(part * (norm / jnp.maximum(length, norm)) for part in local)


def search(
    sizes: Sizes, ranker: KernelRanker, read: KernelInputs, row: Any, local: Any, interaction: Any
) -> tuple[Any, Any]:
    """The gradient of one search, in the ranker's parts, and the nDCG of its list."""
    k, who = sizes.method.k, row // sizes.per_cell * sizes.n_groups + read.group[row]
    asks, shows, clicks, stops = (derive_key(read.keys, 4 * row + purpose, interaction) for purpose in range(4))
    word, _ = threefry(asks, jnp.uint32(0), jnp.uint32(0))
    query = read.first_query[who] + (word % read.n_queries[who]).astype(jnp.int32)
    first, length = read.starts[query], read.lengths[query]
    documents, tail = show_page(sizes, ranker, read.features, local, first, length, shows)

    position = anew(jnp.arange(sizes.page), length)
    is_shown = (position < k) & (position < length)
    grades = load_where(read.grades, read.labels[query] + documents, where=is_shown)
    chance = load_where(read.click, who, grades, where=is_shown) * load_where(
        read.examine, who, position, where=is_shown
    )
    would_click = is_shown & (draw(clicks, 0, sizes.page) < chance)
    leaves = would_click & (draw(stops, 0, sizes.page) < load_where(read.stop, who, grades, where=is_shown))
    is_clicked = would_click & (position <= jnp.min(jnp.where(leaves, position, sizes.page)))

    rows = read_rows(sizes, read.features, first + documents, is_shown)
    scores, inner = ranker.score(local, rows)
    weights = preference_weights(scores, tail, is_clicked, is_shown, position, k)
    gradient = ranker.gradient(local, rows, inner, weights)
    return gradient, shown_ndcg(grades, is_shown, position, read.ideals[query])


def derive_key(keys: Any, place: Any, name: Any) -> tuple[Any, Any]:
    """The two words of `fold_in(keys[place], name)`."""
    return threefry((keys[place, 0], keys[place, 1]), jnp.uint32(0), name)


def preference_weights(scores: Any, tail: Any, is_clicked: Any, is_shown: Any, position: Any, k: int) -> Any:
    """[K] twin of `pdgd_fast.preference_weights`, of one list."""
    last = jnp.max(jnp.where(is_clicked, position, -2))
    is_passed = (position <= last + 1) & is_shown & ~is_clicked
    clicked, passed = is_clicked.astype(jnp.float32), is_passed.astype(jnp.float32)
    above, below = position[:, None], position[None, :]
    sign = jnp.where(above < below, clicked[:, None] * passed[None, :] - passed[:, None] * clicked[None, :], 0.0)
    left = log_mass_left(scores, tail, is_shown, position) * _LOG2_E
    ratio = jnp.ones(sign.shape)
    for i in range(1, k):  # Why spelt out: the turns do not wait for one another
        share = jnp.exp2(scores * _LOG2_E - pick(left, position == i))
        factor = jnp.maximum(1.0 + share[:, None] - share[None, :], 0.0)
        ratio = jnp.where((above < i) & (i <= below), ratio * factor, ratio)
    gap = _sigmoid(scores[:, None] - scores[None, :])
    pull = jnp.where(sign == 0, 0.0, sign / (1.0 + ratio) * gap * (1.0 - gap))  # [fpdgd, Eqs. 5, 6]
    return jnp.sum(pull, axis=1) - jnp.sum(pull, axis=0)


def log_mass_left(scores: Any, tail: Any, is_shown: Any, position: Any) -> Any:
    """[K] twin of `pdgd_fast.log_mass_left`, of one list; beyond its end not meant to be read."""
    is_left = (position[:, None] <= position[None, :]) & is_shown[None, :]
    each = jnp.where(is_left, scores[None, :], -jnp.inf)
    most = jnp.maximum(jnp.max(each, axis=1), tail)
    return most + jnp.log(jnp.sum(_exp(each - most[:, None]), axis=1) + _exp(tail - most))


def shown_ndcg(grades: Any, is_shown: Any, position: Any, ideal: Any) -> Any:
    """[] twin of `ndcg_fast.shown_ndcg`, of one list."""
    gains = (jnp.left_shift(1, grades) - 1).astype(jnp.float32)
    dcg = sum_all(jnp.where(is_shown, gains / jnp.log2(2.0 + position.astype(jnp.float32)), 0.0))
    return jnp.where(ideal > 0, dcg / jnp.where(ideal > 0, ideal, 1.0), 0.0)


def kernel_ranker(sizes: Sizes) -> KernelRanker:
    ranker = sizes.method.ranker
    if not isinstance(ranker, MlpRanker):
        return LinearParts(ranker.n_features)
    precision = None if sizes.is_interpreted else _TEN_BITS
    return NetworkParts(ranker.n_features, ranker.hidden, ranker.activation == "relu", precision)


@dataclass(frozen=True, slots=True)
class LinearParts:
    """Twin of `LinearRanker`: its weights in parts of F."""

    n_features: int

    def load(self, params: Any, row: Any) -> tuple[Any, ...]:
        return tuple(
            load_where(params, row, columns, where=columns < self.n_features)
            for columns in feature_columns(self.n_features)
        )

    def store(self, params: Any, row: Any, parts: tuple[Any, ...]) -> None:
        for columns, part in zip(feature_columns(self.n_features), parts, strict=True):
            pt.store(params.at[row, columns], part, mask=columns < self.n_features)

    def score(self, parts: tuple[Any, ...], rows: tuple[Any, ...]) -> tuple[Any, Any]:
        return jnp.sum(sum(part[None, :] * row for part, row in zip(parts, rows, strict=True)), axis=1), None

    def gradient(self, parts: tuple[Any, ...], rows: tuple[Any, ...], inner: Any, weights: Any) -> Any:  # noqa: ARG002 - the slope is the same everywhere
        return tuple(jnp.sum(weights[:, None] * row, axis=0) for row in rows)


@dataclass(frozen=True, slots=True)
class NetworkParts:
    """Twin of `MlpRanker`: its hidden weights in parts [H, F], then bias and output weights [H].

    Why units before documents: so each warp holds the weights of its own units alone.
    """

    n_features: int
    hidden: int
    is_relu: bool
    precision: Any  # of products

    def load(self, params: Any, row: Any) -> tuple[Any, ...]:
        return tuple(load_where(params, row, places, where=where) for places, where in self._places())

    def store(self, params: Any, row: Any, parts: tuple[Any, ...]) -> None:
        for (places, where), part in zip(self._places(), parts, strict=True):
            # Why beyond the row: interpreted, what is not stored is written back, and must not be a neighbour
            pt.store(params.at[row, jnp.where(where, places, params.shape[1])], part, mask=where)

    def score(self, parts: tuple[Any, ...], rows: tuple[Any, ...]) -> tuple[Any, Any]:
        *first, bias, out = parts
        x = jnp.broadcast_to(bias[:, None], (len(bias), len(rows[0])))
        for part, row in zip(first, rows, strict=True):
            x = self._add_product(x, part, row.T)
        active, slope = (jnp.maximum(x, 0.0), (x > 0).astype(jnp.float32)) if self.is_relu else _bend(x)
        return spread(jnp.sum(active * out[:, None], axis=0)), (active, slope)

    def gradient(self, parts: tuple[Any, ...], rows: tuple[Any, ...], inner: Any, weights: Any) -> Any:
        active, slope = inner
        back = weights[None, :] * parts[-1][:, None] * slope
        first = (self._add_product(jnp.float32(0), back, row) for row in rows)
        return *first, jnp.sum(back, axis=1), jnp.sum(weights[None, :] * active, axis=1)

    def _add_product(self, x: Any, a: Any, b: Any) -> Any:
        """x + a b. Why in halves: with ten bits alone, documents that differ little would change places."""
        b = in_quads(b.T).T
        if self.precision is None:
            return x + jnp.dot(in_quads(a), b)
        (a, a_rest), (b, b_rest) = in_halves(a), in_halves(b)
        for left, right in ((a_rest, b), (a, b_rest), (a, b)):
            x = x + jnp.dot(in_quads(left), right, precision=self.precision)
        return x

    def _places(self) -> list[tuple[Any, Any]]:
        """Where each part stands in the flat vector, and which of its numbers are meant."""
        unit = jnp.arange(max(16, pl.next_power_of_2(self.hidden)))
        is_unit, cut = unit < self.hidden, self.n_features * self.hidden
        first = [
            (columns[None, :] * self.hidden + unit[:, None], (columns < self.n_features)[None, :] & is_unit[:, None])
            for columns in feature_columns(self.n_features)
        ]
        return [*first, (cut + unit, is_unit), (cut + self.hidden + unit, is_unit)]


def in_quads(x: Any) -> Any:
    """Columns 0 2 4 6 1 3 5 7, and so every eight. Why: in this order a product lies among the threads as the left side
    of the next one; in which order its terms are added is free."""
    n, width = x.shape
    return x.reshape(n, width // 8, 4, 2).transpose(0, 1, 3, 2).reshape(n, width)


def in_halves(x: Any) -> tuple[Any, Any]:
    """The leading ten bits, and the rest."""
    bits = lax.bitcast_convert_type(x, jnp.int32)
    most = lax.bitcast_convert_type((bits + (1 << 12)) & -(1 << 13), jnp.float32)
    return most, x - most


def _bend(x: Any) -> tuple[Any, Any]:
    """The sigmoid and its slope."""
    value = _sigmoid(x)
    return value, value * (1.0 - value)


def _sigmoid(x: Any) -> Any:
    """Why with a root: a GPU has it as one instruction, as it has powers of two, but division takes six."""
    root = lax.rsqrt(1.0 + jnp.exp2(x * -_LOG2_E))
    return root * root


def _exp(x: Any) -> Any:
    return jnp.exp2(x * _LOG2_E)
