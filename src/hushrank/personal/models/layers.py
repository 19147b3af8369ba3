"""The layers of the models in NumPy, each with its gradient; `layers_fast.py` is the twin for the simulator.

A layer gives its value and a function back: from the gradient of the value to the gradients of its inputs and, where it
has parameters, to theirs, by name. Shapes: ... stands for any batch; L words of a text, d numbers of a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from hushrank.types import Array, NamedArrays

# The kernels of [knrm]: one that counts equal words, ten that count words of about one similarity.
MEANS = np.array([1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9])
SHARPNESS = 0.5 / np.array([1e-3] + [0.1] * 10) ** 2  # 1 / (2 sigma^2)
FAR = 10.0  # Why: no kernel counts a similarity that far from every mean, so that padding counts as nothing
TINY_COUNT = 1e-10  # below this a kernel has counted nothing
TINY_NORM = 1e-12  # added to squared lengths, so that the padding's vector, which is zero, has a direction: none

Gradients: TypeAlias = dict[str, Array]
Back: TypeAlias = Callable[[Array], Array]
BackPair: TypeAlias = Callable[[Array], tuple[Array, Array]]
BackNamed: TypeAlias = Callable[[Array], tuple[Array, Gradients]]
BackPairNamed: TypeAlias = Callable[[Array], tuple[Array, Array, Gradients]]


def look_up(vectors: Array, words: Array) -> Array:
    """[..., L, d] the vector of each word, zero for padding."""
    return vectors[words] * (words > 0)[..., None]


def look_up_own(vectors: Array, own: Array, words: Array, rows: Array) -> Array:
    """[..., L, d] the personal vector of each word, the global one where there is none (row -1)."""
    return np.where((rows >= 0)[..., None], own[np.maximum(rows, 0)], look_up(vectors, words))


def add_rows(n_rows: int, rows: Array, gradient: Array) -> Array:
    """[n_rows, d] the gradient of a table whose rows were looked up; rows below 0 count as nothing."""
    total = np.zeros((n_rows, gradient.shape[-1]), dtype=gradient.dtype)
    np.add.at(total, rows[rows >= 0], gradient[rows >= 0])
    return total


def make_unit(x: Array) -> tuple[Array, Back]:
    """Vectors of length one in the same direction."""
    length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + TINY_NORM)
    unit = x / length
    return unit, lambda g: (g - unit * np.sum(unit * g, axis=-1, keepdims=True)) / length


def find_cosine(a: Array, b: Array) -> tuple[Array, BackPair]:
    """[...] the cosine between vectors [..., d] of the same shape."""
    (unit_a, back_a), (unit_b, back_b) = make_unit(a), make_unit(b)
    return np.sum(unit_a * unit_b, axis=-1), lambda g: (back_a(g[..., None] * unit_b), back_b(g[..., None] * unit_a))


def pool_kernels(cosines: Array, is_word: Array) -> tuple[Array, Back]:
    """[B, D, 11] from cosines [B, D, Lq, Ld]: sum over query words of 0.01 log(how many title words are that similar).

    Kernel k counts exp(-(cosine - mean_k)^2 / (2 sigma_k^2)) for each title word [knrm, Eqs. 3-4].
    """
    kernels = list(enumerate(zip(MEANS.tolist(), SHARPNESS.tolist(), strict=True)))
    counts = np.stack([np.exp(-s * (cosines - m) ** 2).sum(axis=-1) for _, (m, s) in kernels], axis=-1)
    logs = 0.01 * np.log(np.maximum(counts, TINY_COUNT))

    def back(g: Array) -> Array:
        counted = g[:, :, None, :] * (0.01 * is_word[:, None, :, None] * (counts > TINY_COUNT))
        weight = counted / np.maximum(counts, TINY_COUNT)
        total = np.zeros_like(cosines)
        for k, (m, s) in kernels:
            away = cosines - m
            total += weight[..., k : k + 1] * np.exp(-s * away**2) * (-2.0 * s * away)
        return total

    return np.sum(logs * is_word[:, None, :, None], axis=2), back


def score_kernels(
    parts: NamedArrays, name: str, query: Array, documents: Array, is_word: Array, is_title_word: Array
) -> tuple[Array, BackPairNamed]:
    """[B, D] tanh(w . kernels + b) from query vectors [B, Lq, d] and document vectors [B, D, Ld, d]."""
    (unit_query, back_query), (unit_title, back_title) = make_unit(query), make_unit(documents)
    cosines = np.einsum("bqd,bkld->bkql", unit_query, unit_title, optimize=True)
    pooled, back_pool = pool_kernels(np.where(is_title_word[:, :, None, :], cosines, FAR).astype(query.dtype), is_word)
    score, back_score = score_linear(parts, name, pooled)

    def back(g: Array) -> tuple[Array, Array, Gradients]:
        back_pooled, found = back_score(g)
        g_cosines = back_pool(back_pooled) * is_title_word[:, :, None, :]
        g_query = np.einsum("bkql,bkld->bqd", g_cosines, unit_title, optimize=True)
        g_title = np.einsum("bkql,bqd->bkld", g_cosines, unit_query, optimize=True)
        return back_query(g_query), back_title(g_title), found

    return score, back


def score_linear(parts: NamedArrays, name: str, x: Array) -> tuple[Array, BackNamed]:
    """[...] tanh(x w + b) from [..., n]."""
    weights = parts[f"{name}/weights"]
    score = np.tanh(x @ weights + parts[f"{name}/bias"])[..., 0]

    def back(g: Array) -> tuple[Array, Gradients]:
        slope = (g * (1.0 - score * score))[..., None]
        found = {f"{name}/weights": flat(x).T @ flat(slope), f"{name}/bias": flat(slope).sum(axis=0)}
        return slope * weights[:, 0], found

    return score, back


def attend(parts: NamedArrays, name: str, x: Array, is_item: Array, *, heads: int) -> tuple[Array, BackNamed]:
    """[..., L, d] self-attention with several heads, without biases: what each item of [..., L, d] reads in the others.

    Head h: softmax(Q_h K_h' / sqrt(size)) V_h; the heads side by side go through the output matrix.
    """
    w_query, w_key, w_value, w_output = (parts[f"{name}/{part}"] for part in ("query", "key", "value", "output"))
    query, keys, values = (_to_heads(x @ weights, heads) for weights in (w_query, w_key, w_value))
    scale = float(query.shape[-1] ** -0.5)
    logits = np.where(is_item[..., None, None, :], query @ keys.swapaxes(-1, -2) * scale, -1e9).astype(x.dtype)
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights = raised / raised.sum(axis=-1, keepdims=True)
    found = _from_heads(weights @ values)

    def back(g: Array) -> tuple[Array, Gradients]:
        g_found = _to_heads(g @ w_output.T, heads)
        g_weights = g_found @ values.swapaxes(-1, -2)
        g_logits = weights * (g_weights - np.sum(g_weights * weights, axis=-1, keepdims=True)) * scale
        g_query, g_keys = _from_heads(g_logits @ keys), _from_heads(g_logits.swapaxes(-1, -2) @ query)
        g_values = _from_heads(weights.swapaxes(-1, -2) @ g_found)
        gradients = {
            f"{name}/query": flat(x).T @ flat(g_query),
            f"{name}/key": flat(x).T @ flat(g_keys),
            f"{name}/value": flat(x).T @ flat(g_values),
            f"{name}/output": flat(found).T @ flat(g),
        }
        return g_query @ w_query.T + g_keys @ w_key.T + g_values @ w_value.T, gradients

    return found @ w_output, back


def add_context(parts: NamedArrays, name: str, x: Array, is_item: Array, *, heads: int) -> tuple[Array, BackNamed]:
    """[..., L, d] each item and what it reads in the others."""
    read, back_read = attend(parts, name, x, is_item, heads=heads)

    def back(g: Array) -> tuple[Array, Gradients]:
        g_x, found = back_read(g)
        return g + g_x, found

    return x + read, back


def run_gru(parts: NamedArrays, name: str, x: Array, is_item: Array) -> tuple[Array, BackNamed]:
    """[B, n_out] the last state of a gated recurrent unit over [B, L, n_in]; where there is no item, the state stays.

    h' = z h + (1 - z) tanh(x W_n + b_n + r (h U_n)), with gates r and z, each a sigmoid of x W + b + h U.
    """
    states = [np.zeros((len(x), parts[f"{name}/state"].shape[0]), dtype=x.dtype)]
    steps = []
    for place in range(x.shape[1]):
        gates = _open_gates(parts, name, x[:, place], states[-1])
        _, update, new, _ = gates
        moved = update * states[-1] + (1.0 - update) * new
        states.append(np.where(is_item[:, place, None], moved, states[-1]))
        steps.append(gates)

    def back(g: Array) -> tuple[Array, Gradients]:
        g_x = np.zeros_like(x)
        found = {key: np.zeros_like(parts[key]) for key in (f"{name}/input", f"{name}/state", f"{name}/bias")}
        for place in reversed(range(x.shape[1])):
            g_moved = g * is_item[:, place, None]
            g_in, g_out, g_kept = _close_gates(steps[place], states[place], g_moved)
            found[f"{name}/input"] += x[:, place].T @ g_in
            found[f"{name}/state"] += states[place].T @ g_out
            found[f"{name}/bias"] += g_in.sum(axis=0)
            g_x[:, place] = g_in @ parts[f"{name}/input"].T
            g = g - g_moved + g_kept + g_out @ parts[f"{name}/state"].T
        return g_x, found

    return states[-1], back


def _open_gates(parts: NamedArrays, name: str, x: Array, state: Array) -> tuple[Array, Array, Array, Array]:
    """Reset gate, update gate, candidate, and what the candidate reads of the state before its gate."""
    reset_x, update_x, new_x = np.split(x @ parts[f"{name}/input"] + parts[f"{name}/bias"], 3, axis=-1)
    reset_h, update_h, new_h = np.split(state @ parts[f"{name}/state"], 3, axis=-1)
    reset = sigmoid(reset_x + reset_h)
    return reset, sigmoid(update_x + update_h), np.tanh(new_x + reset * new_h), new_h


def _close_gates(gates: tuple[Array, Array, Array, Array], state: Array, g: Array) -> tuple[Array, Array, Array]:
    """Gradients of x W + b, of h U (both for all three parts), and of the state as it is carried over."""
    reset, update, new, new_h = gates
    g_new = g * (1.0 - update) * (1.0 - new * new)
    g_update = g * (state - new) * update * (1.0 - update)
    g_reset = g_new * new_h * reset * (1.0 - reset)
    g_in = np.concatenate([g_reset, g_update, g_new], axis=-1)
    return g_in, np.concatenate([g_reset, g_update, g_new * reset], axis=-1), g * update


def sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))  # Why: written so, it cannot overflow


def flat(x: Array) -> Array:
    """[n, d] all vectors of a batch."""
    return x.reshape(-1, x.shape[-1])


def _to_heads(x: Array, heads: int) -> Array:
    """[..., heads, L, size]"""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)


def _from_heads(x: Array) -> Array:
    """[..., L, heads * size]"""
    swapped = x.swapaxes(-2, -3)
    return swapped.reshape(*swapped.shape[:-2], -1)
