"""The parameters of a model: names, shapes, first values, and which of them a client sends.

Parameters are dictionaries of float32 arrays. Their flat vector has the arrays in the order of their names, as
`jax.flatten_util.ravel_pytree` has it. Shared parameters are everybody's, personal ones never leave their user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushrank.streams import Purpose, draw_normal, stream
from hushrank.types import Array, NamedArrays, Parameter

WORDS = "words"  # [n_words, dim] the global word vectors, among the shared parameters
OWN_WORDS = "own-words"  # [n_own, dim] a user's personal word vectors


class PersonalModel(Protocol):
    """What a model says about itself; the simulator scores with its `..._fast.py`."""

    @property
    def name(self) -> str:
        """As recipes call it."""

    @property
    def dim(self) -> int:
        """Of word vectors."""

    @property
    def n_features(self) -> int:
        """Numbers per candidate that come beside its words."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All but the global word vectors; a personal one has shape [0, ...]: one row per word of the user."""


@dataclass(frozen=True, slots=True)
class WordSharing:
    """What becomes of the global word vectors in training [fedps, section 3.3.2].

    Differs: under `frequent`, rare words are frozen on the clients too, because their change would be thrown away.
    """

    words: str = "frozen"  # or all (Case 1), frequent (Case 2); frozen is Case 3
    frequent: tuple[int, ...] = ()  # rows that are trained and sent under `frequent`, all of them by every client

    def __post_init__(self) -> None:
        if self.words not in ("all", "frequent", "frozen"):
            raise ValueError(f"words is {self.words!r}, must be all, frequent or frozen.")
        if (self.words == "frequent") != bool(self.frequent):
            raise ValueError("frequent words must be named for words=frequent, and only then.")
        if any(later <= earlier for earlier, later in zip(self.frequent, self.frequent[1:], strict=False)):
            raise ValueError("frequent words must be ascending and different.")

    @property
    def rows(self) -> Array:
        """[n_frequent] int32"""
        return np.array(self.frequent, dtype=np.int32)


def find_frequent(document_frequency: Array, *, most: int = 20_000) -> tuple[int, ...]:
    """The known words with the highest document frequency, ascending; of equals those with the lower number."""
    known = np.argsort(-np.asarray(document_frequency)[2:], kind="stable")[:most] + 2
    return tuple(int(word) for word in np.sort(known))


def split_shared(shared: NamedArrays, sharing: WordSharing) -> tuple[dict[str, Array], dict[str, Array]]:
    """What clients train and send, and what stays as it is."""
    sent, kept = dict(shared), {WORDS: shared[WORDS]}
    if sharing.words == "all":
        return sent, {}
    if sharing.words == "frequent":
        sent[WORDS] = shared[WORDS][sharing.rows]
    else:
        del sent[WORDS]
    return sent, kept


def join_shared(sent: NamedArrays, kept: NamedArrays, sharing: WordSharing) -> dict[str, Array]:
    """The inverse of `split_shared`; `training_fast.py` has its twin."""
    if sharing.words == "frequent":
        words = kept[WORDS].copy()
        words[sharing.rows] = sent[WORDS]
        return {**sent, WORDS: words}
    return {**kept, **sent}


def flatten_parameters(parts: NamedArrays) -> Array:
    """[n] the arrays end to end, in the order of their names."""
    return np.concatenate([np.zeros(0, np.float32), *(np.ravel(parts[name]) for name in sorted(parts))])


def unflatten_parameters(flat: Array, like: NamedArrays) -> dict[str, Array]:
    """The inverse of `flatten_parameters`, with the names and shapes of `like`."""
    names = sorted(like)
    ends = np.cumsum([like[name].size for name in names])
    if flat.shape != (int(ends[-1]) if names else 0,):
        raise ValueError(f"{flat.shape} numbers came, these parameters have {int(ends[-1]) if names else 0}.")
    cut = np.split(flat, ends[:-1]) if names else []
    return {name: part.reshape(like[name].shape) for name, part in zip(names, cut, strict=True)}


def initial_shared(model: PersonalModel, vectors: Array, *, key: Array) -> dict[str, Array]:
    """Matrices start at N(0, 1 / rows), vectors at zero, global word vectors at `vectors` [n_words, dim]."""
    if vectors.ndim != 2 or vectors.shape[1] != model.dim:
        raise ValueError(f"word vectors have shape {vectors.shape}, must be [n_words, {model.dim}].")
    parts = sorted((part for part in model.parameters if not part.is_personal), key=lambda part: part.name)
    normals = draw_normal(stream(key, Purpose.INITIAL), sum(part.size for part in parts))
    cut = np.split(normals, np.cumsum([part.size for part in parts])[:-1])
    drawn = {part.name: _scale(part.shape, numbers) for part, numbers in zip(parts, cut, strict=True)}
    return {**drawn, WORDS: vectors.astype(np.float32)}


def initial_personal(model: PersonalModel, rows: Array, *, n_own: int) -> dict[str, Array]:
    """A user's personal parameters, [n_own, dim]: `rows` [k, dim], one per word of the user, then zeros.

    `rows` are the global vectors of the user's words, or vectors that the user's own log has moved.
    """
    if len(rows) > n_own:
        raise ValueError(f"{len(rows)} words have a personal vector, there is room for {n_own}.")
    wide = np.zeros((n_own, model.dim), dtype=np.float32)
    wide[: len(rows)] = rows
    return {part.name: wide.copy() for part in model.parameters if part.is_personal}


def matrices(shapes: Mapping[str, Sequence[int]]) -> tuple[Parameter, ...]:
    """Shared parameters from names and shapes."""
    return tuple(Parameter(name, tuple(shape)) for name, shape in shapes.items())


def kernel_shapes(name: str) -> dict[str, Sequence[int]]:
    """tanh of a linear function of the eleven kernels."""
    return {f"{name}/weights": (11, 1), f"{name}/bias": (1,)}


def attention_shapes(name: str, *, dim: int, heads: int, head_size: int) -> dict[str, Sequence[int]]:
    inner = heads * head_size
    inward: dict[str, Sequence[int]] = {f"{name}/{part}": (dim, inner) for part in ("query", "key", "value")}
    return {**inward, f"{name}/output": (inner, dim)}


def gru_shapes(name: str, *, n_in: int, n_out: int) -> dict[str, Sequence[int]]:
    """Reset gate, update gate and candidate side by side."""
    return {f"{name}/input": (n_in, 3 * n_out), f"{name}/state": (n_out, 3 * n_out), f"{name}/bias": (3 * n_out,)}


def _scale(shape: tuple[int, ...], normals: Array) -> Array:
    drawn = normals.reshape(shape) / np.sqrt(shape[0]) if len(shape) > 1 else np.zeros(shape)
    return drawn.astype(np.float32)
