"""The models by name, with their scoring functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hushrank.personal.inputs import HistoryTable, PersonalInputs
from hushrank.personal.models.hrnn_fast import Hrnn, read_hrnn, score_hrnn
from hushrank.personal.models.htps_fast import Htps, read_htps, score_htps
from hushrank.personal.models.knrm import Knrm
from hushrank.personal.models.knrm_fast import score_knrm
from hushrank.personal.models.layers_fast import Parts
from hushrank.personal.models.parameters import PersonalModel
from hushrank.personal.models.peps import Peps
from hushrank.personal.models.peps_fast import score_peps
from hushrank.streams_fast import fold_in

Score = Callable[..., jax.Array]  # (model, shared, personal, inputs, items or None, key or None) -> [B, D]
ReadHistory = Callable[..., jax.Array]  # (model, shared, history table, key or None) -> items [H, ...]


class NamedModel(NamedTuple):
    """A kind of model: what makes one, how it scores, and what it reads of each earlier search.

    Why apart: searches that are trained on together share their user's history, which is much more to read than they.
    """

    make: Callable[..., PersonalModel]
    score: Score
    read_history: ReadHistory | None = None  # None: it knows no history


MODELS: Mapping[str, NamedModel] = {
    "knrm": NamedModel(Knrm, score_knrm),
    "peps": NamedModel(Peps, score_peps),
    "hrnn": NamedModel(Hrnn, score_hrnn, read_hrnn),
    "htps": NamedModel(Htps, score_htps, read_htps),
}


def named_model(name: str, **sizes: float) -> PersonalModel:
    """`sizes` are the fields of the model's dataclass, such as n_features and dim."""
    if name not in MODELS:
        raise ValueError(f"model is {name!r}, must be one of {', '.join(MODELS)}.")
    return MODELS[name].make(**sizes)


def read_history(
    model: PersonalModel, shared: Parts, history: HistoryTable, key: jax.Array | None = None
) -> jax.Array | None:
    """[H, ...] what scores need of each earlier search; None: nothing."""
    read = MODELS[model.name].read_history
    with jax.default_matmul_precision("highest"):  # Why: a GPU would multiply in ten bits
        return None if read is None else read(model, shared, history, key)


def score_searches(
    model: PersonalModel,
    shared: Parts,
    personal: Parts,
    inputs: PersonalInputs,
    key: jax.Array | None = None,
    *,
    items: jax.Array | None = None,
) -> jax.Array:
    """[B, D] scores of the candidates of one user's searches, 0 for padding.

    items: of `read_history`, where that was done for more searches at once; None: it is done here.
    """
    if items is None:
        past_key, key = (None, None) if key is None else (fold_in(key, jnp.asarray(n)) for n in (0, 1))
        items = read_history(model, shared, inputs.history, past_key)
    with jax.default_matmul_precision("highest"):
        scores = MODELS[model.name].score(model, shared, personal, inputs, items, key)
    return jnp.where(inputs.is_document, scores, 0.0)
