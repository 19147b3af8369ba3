"""The models by name, with their scoring functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.hrnn_fast import Hrnn, score_hrnn
from hushrank.personal.models.htps_fast import Htps, score_htps
from hushrank.personal.models.knrm import Knrm
from hushrank.personal.models.knrm_fast import score_knrm
from hushrank.personal.models.layers_fast import Parts
from hushrank.personal.models.parameters import PersonalModel
from hushrank.personal.models.peps import Peps
from hushrank.personal.models.peps_fast import score_peps

Score = Callable[..., jax.Array]  # (model, shared, personal, inputs, key or None) -> [B, D]


class NamedModel(NamedTuple):
    """A kind of model: what makes one, and how it scores."""

    make: Callable[..., PersonalModel]
    score: Score


MODELS: Mapping[str, NamedModel] = {
    "knrm": NamedModel(Knrm, score_knrm),
    "peps": NamedModel(Peps, score_peps),
    "hrnn": NamedModel(Hrnn, score_hrnn),
    "htps": NamedModel(Htps, score_htps),
}


def named_model(name: str, **sizes: float) -> PersonalModel:
    """`sizes` are the fields of the model's dataclass, such as n_features and dim."""
    if name not in MODELS:
        raise ValueError(f"model is {name!r}, must be one of {', '.join(MODELS)}.")
    return MODELS[name].make(**sizes)


def score_searches(
    model: PersonalModel, shared: Parts, personal: Parts, inputs: PersonalInputs, key: jax.Array | None = None
) -> jax.Array:
    """[B, D] scores of the candidates of one user's searches, 0 for padding."""
    with jax.default_matmul_precision("highest"):  # Why: a GPU would multiply in ten bits
        scores = MODELS[model.name].score(model, shared, personal, inputs, key)
    return jnp.where(inputs.is_document, scores, 0.0)
