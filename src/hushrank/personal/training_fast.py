"""Training of many clients, and of all users together, compiled; twin of `training.py`.

Clients of one call have inputs of equal widths. They are trained one after the other inside the compiled program (or
`at_once` of them side by side), each in arrays of the same shape, so that the bits of a client do not depend on who
else is trained with it. Shapes: K clients, U users, Q searches of each.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from hushrank.personal.inputs import HistoryTable, PersonalInputs, take_queries
from hushrank.personal.loss_fast import find_pairs, pair_loss
from hushrank.personal.models.history_fast import compact_history
from hushrank.personal.models.layers_fast import Parts
from hushrank.personal.models.named_fast import read_history, score_searches
from hushrank.personal.models.parameters import WORDS, PersonalModel, WordSharing
from hushrank.personal.training import FIRST_FADE, SECOND_FADE, TINY_STEP, LocalTraining
from hushrank.streams import Purpose
from hushrank.streams_fast import draw_uniform, fold_in

# Why: a GPU would add up in any order, and choose by the clock how to multiply
REPEATABLE = {"xla_gpu_deterministic_ops": True}
Tree: TypeAlias = dict[str, Parts]  # {"sent": ..., "personal": ...}: what is trained
Gradients: TypeAlias = tuple[Tree, jax.Array | None]  # of what is trained, and of what was read of the history
_ROWS = (64, 128, 256)  # of a history, of which the smallest that has room is read, or all of it


class FastAdam(NamedTuple):
    """Twin of `training.AdamState`."""

    first: Tree
    second: Tree
    n_steps: jax.Array  # float32


class TrainedClients(NamedTuple):
    """What one visit to each of K clients gives."""

    deltas: jax.Array  # [K, n_sent] new minus old, of the shared parameters that are sent, in the order of their names
    personal: Parts  # [K, ...]
    n_pairs: jax.Array  # [K] int32; 0: nothing learnt, and delta is zero


class CentralState(NamedTuple):
    """Where central training stands."""

    sent: Parts
    personal: Parts  # [U, ...], or one for each id
    adam: FastAdam


@partial(jax.jit, static_argnames=("model", "training", "sharing", "at_once"), compiler_options=REPEATABLE)
def train_clients(
    model: PersonalModel,
    sent: Parts,
    kept: Parts,
    personal: Parts,
    inputs: PersonalInputs,
    keys: jax.Array,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    at_once: int = 1,
) -> TrainedClients:
    """One visit to each client: personal parameters and inputs are [K, ...], keys [K, 2] of client and round."""

    def visit(client: tuple[Parts, PersonalInputs, jax.Array]) -> TrainedClients:
        return train_client(model, sent, kept, *client, training=training, sharing=sharing, is_alone=at_once == 1)

    size = None if at_once == 1 else at_once
    return jax.lax.map(visit, (personal, inputs, keys), batch_size=size)


def train_client(
    model: PersonalModel,
    sent: Parts,
    kept: Parts,
    personal: Parts,
    inputs: PersonalInputs,
    key: jax.Array,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    is_alone: bool = True,
) -> TrainedClients:
    """One client; twin of `training.train_peps`. No step is taken for searches that are padding.

    is_alone: whether no other client is trained side by side with it.
    """
    pairs = jnp.sum(find_pairs(inputs.is_clicked, inputs.is_document), axis=(-2, -1)) * inputs.is_query
    epochs = jnp.arange(training.epochs)
    length = -(-pairs.shape[0] // training.batch) * training.batch
    orders = _order(pairs, fold_in(fold_in(key, jnp.asarray(Purpose.SHUFFLE)), epochs), length)
    n_steps = jnp.maximum(_count_parts(orders[0], training.batch), 1)
    drops = fold_in(fold_in(key, jnp.asarray(Purpose.UNITS)), epochs)
    start: Tree = {"sent": sent, "personal": personal}

    def step(now: jax.Array, state: tuple[Tree, FastAdam]) -> tuple[Tree, FastAdam]:
        epoch, place = now // n_steps, now % n_steps
        places = jax.lax.dynamic_slice(orders[epoch], (place * training.batch,), (training.batch,))
        batch = _mask_searches(take_queries(inputs, places), places >= 0)
        n_pairs = jnp.sum(jnp.where(places >= 0, pairs[places], 0))
        drop = fold_in(drops[epoch], place)
        n_chunks = _count_parts(places, training.chunk)
        gradients = _add_chunks(
            model, state[0], kept, batch, drop, n_chunks, training=training, sharing=sharing, is_alone=is_alone
        )
        return _follow(state, gradients, n_pairs, training)

    n_taken = jnp.where(jnp.any(pairs > 0), training.epochs * n_steps, 0)
    end, _ = jax.lax.fori_loop(0, n_taken, step, (start, _start_adam(start)))
    delta = ravel_pytree(end["sent"])[0] - ravel_pytree(sent)[0]
    return TrainedClients(delta, end["personal"], jnp.sum(pairs))


def start_central(sent: Parts, personal: Parts) -> CentralState:
    """Before the first epoch; personal parameters are [U, ...]."""
    return CentralState(sent, personal, _start_adam({"sent": sent, "personal": personal}))


@partial(jax.jit, static_argnames=("model", "training", "sharing"), compiler_options=REPEATABLE)
def train_centrally(
    model: PersonalModel,
    state: CentralState,
    kept: Parts,
    inputs: PersonalInputs,
    key: jax.Array,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    ids: jax.Array | None = None,
) -> CentralState:
    """One epoch over the searches of all users [U, Q, ...] in one order; `key` is that of the epoch.

    The same loss, steps and bound as on clients, and each user's own personal parameters; or, where `ids` [U] are
    given, those of the user's id, [n_ids, ...]. Adam goes on from epoch to epoch, because nobody leaves.
    """
    pairs = jnp.sum(find_pairs(inputs.is_clicked, inputs.is_document), axis=(-2, -1)) * inputs.is_query  # [U, Q]
    length = -(-pairs.size // training.batch) * training.batch
    order = _order(pairs.ravel(), fold_in(key, jnp.asarray(Purpose.SHUFFLE)), length)

    def step(now: jax.Array, state: tuple[Tree, FastAdam]) -> tuple[Tree, FastAdam]:
        places = jax.lax.dynamic_slice(order, (now * training.batch,), (training.batch,))
        n_pairs = jnp.sum(jnp.where(places >= 0, pairs.ravel()[places], 0))
        drops = fold_in(fold_in(key, jnp.asarray(Purpose.UNITS)), now)
        gradients = _add_users(
            model, state[0], kept, inputs, places, drops, training=training, sharing=sharing, ids=ids
        )
        return _follow(state, gradients, n_pairs, training)

    begin: Tree = {"sent": state.sent, "personal": state.personal}
    end, adam = jax.lax.fori_loop(0, _count_parts(order, training.batch), step, (begin, state.adam))
    return CentralState(end["sent"], end["personal"], adam)


def join_shared(sent: Parts, kept: Parts, sharing: WordSharing) -> Parts:
    """Twin of `parameters.join_shared`."""
    if sharing.words == "frequent":
        return {**sent, WORDS: jnp.asarray(kept[WORDS]).at[sharing.rows].set(sent[WORDS])}
    return {**kept, **sent}


def _order(pairs: jax.Array, key: jax.Array, length: int) -> jax.Array:
    """[..., length] the searches with pairs, in a random order for each key [..., 2], then -1.

    Twin of `training.order_searches`.
    """
    uniforms = jnp.where(pairs > 0, draw_uniform(key, pairs.shape[0]), 2.0)
    order = jnp.argsort(uniforms, axis=-1, stable=True)
    known = jnp.where(jnp.take_along_axis(uniforms, order, axis=-1) < 2.0, order, -1)
    missing = jnp.full((*known.shape[:-1], length - pairs.shape[0]), -1, known.dtype)
    return jnp.concatenate([known, missing], axis=-1)


def _count_parts(order: jax.Array, size: int) -> jax.Array:
    """Parts of so many entries with an entry that is a search: these stand first."""
    return -(-jnp.sum(order >= 0) // size)


def _mask_searches(batch: PersonalInputs, is_there: jax.Array) -> PersonalInputs:
    """Searches that are not there have no candidates, and so no pairs."""
    return batch._replace(is_document=batch.is_document & is_there[:, None])


def _add_chunks(
    model: PersonalModel,
    tree: Tree,
    kept: Parts,
    batch: PersonalInputs,
    key: jax.Array,
    n_chunks: jax.Array,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    is_alone: bool,
) -> Tree:
    """The gradients of the summed loss, a chunk of searches at a time; n_chunks: those that are not all padding.

    The history, which all chunks share, is read once, and followed back once.
    """

    def read(sent: Parts) -> jax.Array | None:
        shared, past_key = join_shared(sent, kept, sharing), fold_in(key, training.batch)  # the number of no chunk
        return read_rows(model, shared, batch.history, past_key, jnp.max(batch.n_before), is_alone=is_alone)

    def lose(tree: Tree, items: jax.Array | None, some: PersonalInputs, drops: jax.Array) -> jax.Array:
        shared = join_shared(tree["sent"], kept, sharing)
        scores = score_searches(model, shared, tree["personal"], some, drops, items=items)
        return pair_loss(scores, some.is_clicked, some.is_document)

    follow, whole = jax.grad(lose, argnums=(0, 1)), training.chunk == training.batch
    items, follow_back = jax.vjp(read, tree["sent"])

    def add(now: jax.Array, total: Gradients) -> Gradients:
        places = now * training.chunk + jnp.arange(training.chunk)
        found = follow(tree, items, take_queries(batch, places), fold_in(key, now))
        return jax.tree.map(jnp.add, total, found)

    zeros = jax.tree.map(jnp.zeros_like, (tree, items))
    direct, of_items = (
        follow(tree, items, batch, fold_in(key, 0)) if whole else jax.lax.fori_loop(0, n_chunks, add, zeros)
    )
    if items is None:
        return direct
    (through_items,) = follow_back(of_items)
    return {**direct, "sent": jax.tree.map(jnp.add, direct["sent"], through_items)}


def read_rows(
    model: PersonalModel, shared: Parts, history: HistoryTable, key: jax.Array, n_used: jax.Array, *, is_alone: bool
) -> jax.Array | None:
    """[H, ...] of `read_history`, for the first `n_used` rows at least; zeros for the rest, which nothing may read.

    Why: most histories are much shorter than the table, which has room for the longest. Rows are read in one of a few
    fixed numbers, by the client's own alone, so that its bits do not depend on anybody else. Clients that are computed
    side by side would compute every number: they read all rows.
    """
    n_rows = len(history.sessions)
    sizes = [*(size for size in _ROWS if size < n_rows), n_rows] if is_alone else [n_rows]

    def read(size: int, shared: Parts) -> jax.Array | None:
        some = HistoryTable(*(array[:size] for array in history))
        items = read_history(model, shared, some, key)
        return None if items is None else jnp.pad(items, ((0, n_rows - size), *[(0, 0)] * (items.ndim - 1)))

    # Why checkpoint: following back would otherwise fill memory for every number of rows, not for the one that is read
    branches = [jax.checkpoint(partial(read, size)) for size in sizes]
    return jax.lax.switch(jnp.sum(n_used > jnp.asarray(sizes[:-1])), branches, shared)


def _add_users(
    model: PersonalModel,
    tree: Tree,
    kept: Parts,
    inputs: PersonalInputs,
    places: jax.Array,
    key: jax.Array,
    *,
    training: LocalTraining,
    sharing: WordSharing,
    ids: jax.Array | None,
) -> Tree:
    """As `_add_chunks`, where each search may be of another user."""
    n_searches = inputs.is_query.shape[1]

    def lose(sent: Parts, personal: Parts, some: PersonalInputs, drops: jax.Array) -> jax.Array:
        scored = jax.vmap(partial(score_searches, model), in_axes=(None, 0, 0, 0))
        scores = scored(join_shared(sent, kept, sharing), personal, some, drops)
        return pair_loss(scores, some.is_clicked, some.is_document)

    def add(total: Tree, now: jax.Array) -> tuple[Tree, None]:
        chosen = jax.lax.dynamic_slice(places, (now * training.chunk,), (training.chunk,))
        users, searches = jnp.maximum(chosen, 0) // n_searches, jnp.maximum(chosen, 0) % n_searches
        some = jax.vmap(lambda user, search: _take_one(inputs, user, search))(users, searches)
        some = some._replace(is_document=some.is_document & (chosen >= 0)[:, None, None])
        owners = users if ids is None else ids[users]
        own = jax.tree.map(lambda part: part[owners], tree["personal"])
        drops = fold_in(fold_in(key, now), jnp.arange(training.chunk))
        of_sent, of_own = jax.grad(lose, argnums=(0, 1))(tree["sent"], own, some, drops)
        return {
            "sent": jax.tree.map(jnp.add, total["sent"], of_sent),
            "personal": jax.tree.map(lambda part, found: part.at[owners].add(found), total["personal"], of_own),
        }, None

    n_chunks = training.batch // training.chunk
    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, tree), jnp.arange(n_chunks))[0]


def _take_one(inputs: PersonalInputs, user: jax.Array, search: jax.Array) -> PersonalInputs:
    """One search (B = 1) of one user, with the part of the history that models read."""
    of_user: PersonalInputs = jax.tree.map(lambda array: array[user], inputs)
    return compact_history(take_queries(of_user, search[None]))


def _follow(
    state: tuple[Tree, FastAdam], summed: Tree, n_pairs: jax.Array, training: LocalTraining
) -> tuple[Tree, FastAdam]:
    """One step along the mean over pairs, bounded; twin of `training.clip_gradients` and `training.step_adam`."""
    params, adam = state
    mean = jax.tree.map(lambda part: part / n_pairs.astype(part.dtype), summed)
    norm = jnp.sqrt(sum(jnp.sum(part * part) for part in jax.tree.leaves(mean)))
    scale = jnp.minimum(1.0, training.clip_norm / jnp.maximum(norm, 1e-30))
    n_steps = adam.n_steps + 1.0
    first = jax.tree.map(lambda m, g: FIRST_FADE * m + (1 - FIRST_FADE) * scale * g, adam.first, mean)
    second = jax.tree.map(lambda v, g: SECOND_FADE * v + (1 - SECOND_FADE) * (scale * g) ** 2, adam.second, mean)
    first_scale, second_scale = 1 / (1 - FIRST_FADE**n_steps), 1 / (1 - SECOND_FADE**n_steps)
    moved = jax.tree.map(
        lambda p, m, v: p - training.rate * (first_scale * m) / (jnp.sqrt(second_scale * v) + TINY_STEP),
        params,
        first,
        second,
    )
    return moved, FastAdam(first, second, n_steps)


def _start_adam(tree: Tree) -> FastAdam:
    zeros = jax.tree.map(jnp.zeros_like, tree)
    return FastAdam(zeros, zeros, jnp.zeros((), jnp.float32))
