"""Rankers as files: what is written reads back, what is not a ranker is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.named import (
    describe_ranker,
    name_parts,
    named_ranker,
    pack_ranker,
    read_ranker,
    unpack_ranker,
    write_ranker,
)
from hushrank.types import Array

LINEAR_ABOUT = {"format": 1, "ranker": "linear", "n_features": 2}
TWO_WEIGHTS = {"weights": np.array([1.0, 2.0], np.float32)}


def write_file(path: Path, about: Any, tensors: dict[str, Array]) -> Path:
    """A safetensors file with anything in it."""
    save_file(tensors, path, metadata=None if about is None else {"hushrank": json.dumps(about)})
    return path


@pytest.mark.parametrize("ranker", [LinearRanker(7), MlpRanker(3, 4, "relu"), MlpRanker(2, 1, "sigmoid")])
def test_a_ranker_reads_back_as_it_was_written(tmp_path: Path, ranker: LinearRanker | MlpRanker) -> None:
    params = np.linspace(-1, 1, sum(part.size for part in ranker.parameters), dtype=np.float32)
    write_ranker(tmp_path / "r.safetensors", ranker, params, origin={"run": "runs/a", "round": 3})
    again, read, origin = read_ranker(tmp_path / "r.safetensors")
    assert (
        again
        == ranker
        == named_ranker(**{"name" if k == "ranker" else k: v for k, v in describe_ranker(ranker).items()})
    )
    assert read.tobytes() == params.tobytes()
    assert origin == {"run": "runs/a", "round": 3}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.safetensors"]


def test_people_find_the_same_facts_in_the_json_file(tmp_path: Path) -> None:
    write_ranker(tmp_path / "r.safetensors", LinearRanker(2), np.ones(2), origin={"seed": 1})
    assert json.loads((tmp_path / "r.json").read_text()) == {**LINEAR_ABOUT, "origin": {"seed": 1}}


def test_parts_have_their_names_and_shapes() -> None:
    parts = name_parts(MlpRanker(2, 3), np.arange(12.0))
    assert {name: part.shape for name, part in parts.items()} == {
        "hidden/weights": (2, 3),
        "hidden/bias": (3,),
        "output/weights": (3,),
    }
    assert parts["hidden/weights"].tolist() == [[0, 1, 2], [3, 4, 5]] and parts["hidden/weights"].dtype == np.float32


@pytest.mark.parametrize("content", [b"", b"not a ranker", b"\xff" * 100])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(ValueError, match=r"r is not a ranker that hushrank export wrote"):
        read_ranker(tmp_path / "r")


def test_a_truncated_file_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    write_ranker(tmp_path / "r", LinearRanker(2), np.ones(2), origin={})
    (tmp_path / "cut").write_bytes((tmp_path / "r").read_bytes()[:-1])
    for path in (tmp_path / "cut", tmp_path, tmp_path / "absent"):
        with pytest.raises(ValueError, match="is not a ranker that hushrank export wrote"):
            read_ranker(path)


@pytest.mark.parametrize("about", [None, [], 7, {}, {"ranker": "linear"}])
def test_files_of_other_programs_are_refused(tmp_path: Path, about: Any) -> None:
    with pytest.raises(ValueError, match="is not a ranker that hushrank export wrote"):
        read_ranker(write_file(tmp_path / "r", about, TWO_WEIGHTS))


@pytest.mark.parametrize("change", [{"ranker": "tree"}, {"ranker": "mlp", "activation": "tanh"}, {"n_features": None}])
def test_files_that_describe_no_known_ranker_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    about = {key: value for key, value in (LINEAR_ABOUT | change).items() if value is not None}
    with pytest.raises(ValueError, match="does not say what kind of ranker it is"):
        read_ranker(write_file(tmp_path / "r", about, TWO_WEIGHTS))


def test_a_file_from_a_later_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has format 2, this version reads 1: update hushrank"):
        read_ranker(write_file(tmp_path / "r", {**LINEAR_ABOUT, "format": 2}, TWO_WEIGHTS))


def test_missing_or_misshapen_tensors_are_refused(tmp_path: Path) -> None:
    for tensors in ({"other": np.ones(2)}, {"weights": np.ones(3)}, {"weights": np.ones((2, 1))}):
        with pytest.raises(ValueError, match=r"lacks the tensor weights of shape \(2,\)"):
            read_ranker(write_file(tmp_path / "r", LINEAR_ABOUT, tensors))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="holds parameters that are not finite numbers"):
        read_ranker(write_file(tmp_path / "r", LINEAR_ABOUT, {"weights": np.array([1.0, value], np.float32)}))


def test_a_ranker_travels_as_the_bytes_of_its_file(tmp_path: Path) -> None:
    packed = pack_ranker(LinearRanker(2), np.ones(2), origin={"round": 3})
    write_ranker(tmp_path / "r", LinearRanker(2), np.ones(2), origin={"round": 3})
    assert (tmp_path / "r").read_bytes() == packed
    ranker, params, origin = unpack_ranker(packed, name="the server's answer")
    assert (ranker, params.tolist(), origin) == (LinearRanker(2), [1.0, 1.0], {"round": 3})
    with pytest.raises(ValueError, match="the server's answer is not a ranker"):
        unpack_ranker(packed[:-1], name="the server's answer")
