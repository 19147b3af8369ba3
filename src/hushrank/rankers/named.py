"""Rankers by name, and rankers as files: safetensors with one tensor per named part, and JSON beside it for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hushrank.files import write_bytes, write_json
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.types import Array, Ranker

FORMAT = 1


def named_ranker(
    name: str, *, n_features: int, hidden: int = 64, activation: str = "sigmoid"
) -> LinearRanker | MlpRanker:
    if name == "linear":
        return LinearRanker(n_features)
    if name == "mlp":
        return MlpRanker(n_features, hidden, activation)
    raise ValueError(f"ranker is {name!r}, must be linear or mlp.")


def describe_ranker(ranker: LinearRanker | MlpRanker) -> dict[str, Any]:
    """What `named_ranker` needs to make it again."""
    if isinstance(ranker, MlpRanker):
        return {
            "ranker": "mlp",
            "n_features": ranker.n_features,
            "hidden": ranker.hidden,
            "activation": ranker.activation,
        }
    return {"ranker": "linear", "n_features": ranker.n_features}


def name_parts(ranker: Ranker, params: Array) -> dict[str, Array]:
    """The flat vector as named tensors."""
    parts, first = {}, 0
    for part in ranker.parameters:
        parts[part.name] = np.ascontiguousarray(params[first : first + part.size].reshape(part.shape), dtype=np.float32)
        first += part.size
    return parts


def pack_ranker(ranker: LinearRanker | MlpRanker, params: Array, *, origin: Mapping[str, Any]) -> bytes:
    """A ranker as the bytes of a safetensors file; `origin` says where it comes from."""
    about = json.dumps(_tell_about(ranker, origin))
    return save(name_parts(ranker, params), metadata={"hushrank": about})


def write_ranker(path: Path, ranker: LinearRanker | MlpRanker, params: Array, *, origin: Mapping[str, Any]) -> None:
    """`path` (safetensors) and a JSON file of the same name; `origin` says where the ranker comes from."""
    write_bytes(path, pack_ranker(ranker, params, origin=origin))
    write_json(path.with_suffix(".json"), _tell_about(ranker, origin))


def _tell_about(ranker: LinearRanker | MlpRanker, origin: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, **describe_ranker(ranker), "origin": dict(origin)}


def read_ranker(path: Path) -> tuple[LinearRanker | MlpRanker, Array, dict[str, Any]]:
    """The ranker, its parameters [n_params] and its origin. Everything needed is in the safetensors file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} is not a ranker that hushrank export wrote ({error}).") from error
    return unpack_ranker(content, name=str(path))


def unpack_ranker(content: bytes, *, name: str) -> tuple[LinearRanker | MlpRanker, Array, dict[str, Any]]:
    """What `pack_ranker` packed; `name` says in errors where the bytes are from."""
    try:
        tensors = load(content)
        about = json.loads(_read_header(content)["__metadata__"]["hushrank"])
        version = about["format"]
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not a ranker that hushrank export wrote ({error}).") from error
    if version != FORMAT:
        raise ValueError(f"{name} has format {version}, this version reads {FORMAT}: update hushrank.")
    try:
        settings = {key: about[key] for key in ("n_features", "hidden", "activation") if key in about}
        ranker = named_ranker(about["ranker"], **settings)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} does not say what kind of ranker it is ({error}).") from error
    for part in ranker.parameters:
        if part.name not in tensors or tensors[part.name].shape != part.shape:
            raise ValueError(f"{name} lacks the tensor {part.name} of shape {part.shape}.")
        if tensors[part.name].dtype.kind != "f":
            raise ValueError(f"{name}: the tensor {part.name} must hold floating-point numbers.")
    with np.errstate(over="ignore"):  # Why: what is too large becomes infinite, and is refused below
        params = np.concatenate([tensors[part.name].ravel() for part in ranker.parameters]).astype(np.float32)
    if not np.isfinite(params).all():
        raise ValueError(f"{name} holds parameters that are not finite numbers.")
    origin = about.get("origin", {})
    if not isinstance(origin, dict):
        raise ValueError(f"{name} does not say where it comes from: its origin is no JSON object.")
    return ranker, params, origin


def _read_header(content: bytes) -> Any:
    """The JSON before the tensors: 8 bytes say how long it is."""
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
