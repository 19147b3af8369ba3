"""Features whose scales differ or that never vary: said before a training suffers from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hushrank.cli.main import app
from hushrank.data.check import check_files
from hushrank.data.load import load_dataset
from hushrank.data.normalise import normalise_queries
from hushrank.data.notices import FeatureRanges, join_ranges, notice_dataset, notice_features
from hushrank.types import Dataset, Fold, QuerySet

Write = Callable[..., Path]


def raw_dataset(normalise: str = "none") -> Dataset:
    """Ten features of 1e-3 to 1 and ten of 1e3 to 1e7, as raw features of web search are."""
    generator = np.random.default_rng(3)
    scales = np.concatenate([np.logspace(-3, 0, 10), np.logspace(3, 7, 10)])
    features = (generator.random((200, 20)) * scales).astype(np.float32)
    starts = np.arange(0, 201, 10)
    queries = QuerySet(features, generator.integers(0, 3, 200).astype(np.uint8), starts, tuple(map(str, range(20))))
    part = normalise_queries(queries, normalise)
    return Dataset("raw", (Fold(1, part, part, part),), normalise, "raw")


def test_raw_scales_are_named_with_the_key_that_normalises() -> None:
    (found,) = notice_dataset(raw_dataset())
    assert found.name == "scales" and found.kind == "warning"
    assert "9.7e+06" in found.sentence and "normalise=query-minmax" in found.advice and "standard" in found.advice


@pytest.mark.parametrize("normalise", ["query-minmax", "standard"])
def test_normalised_features_need_no_warning(normalise: str) -> None:
    assert notice_dataset(raw_dataset(normalise)) == []
    assert notice_dataset(replace(raw_dataset(normalise), normalise="none")) == []  # normalised before they came


def test_scales_a_thousand_apart_are_the_limit() -> None:
    def notices(widest: float) -> list[str]:
        return [
            n.name
            for n in notice_features(FeatureRanges(np.zeros(20), np.array([1.0] * 19 + [widest])), normalise="none")
        ]

    assert notices(999.0) == [] and notices(1_000.0) == ["scales"]


def test_one_narrow_feature_beside_many_wide_ones_is_no_reason_to_warn() -> None:
    high = np.array([1e-4] + [1.0] * 19)
    assert notice_features(FeatureRanges(np.zeros(20), high), normalise="none") == []


def test_features_that_never_vary_are_counted_as_a_note() -> None:
    (found,) = notice_features(FeatureRanges(np.array([0.0, 5, 0]), np.array([1.0, 5, 0])), normalise="none")
    assert found.kind == "note" and "2 of 3 features have" in found.sentence and "(2, 3)" in found.sentence


def test_a_feature_that_a_file_lacks_is_zero_there() -> None:
    found = join_ranges(
        [FeatureRanges(np.array([1.0, 2]), np.array([3.0, 4])), FeatureRanges(*np.array([[5.0], [6.0]]))]
    )
    np.testing.assert_array_equal(found.low, [1, 0])
    np.testing.assert_array_equal(found.high, [6, 4])


def test_generated_sets_are_as_they_should_be() -> None:
    assert notice_dataset(load_dataset("tiny")) == [] and check_files("tiny").notices == ()


def test_check_warns_about_a_directory_of_raw_features(write: Write) -> None:
    text = "".join(f"{i % 2} qid:{i // 2} 1:{i / 1000} 2:{i * 1000} 3:7\n" for i in range(8))
    for role in ("train", "vali", "test"):
        path = write(text, f"copy/{role}.txt")
    assert [notice.name for notice in check_files(str(path.parent)).notices] == ["scales", "constant-features"]
    done = CliRunner().invoke(app, ["data", "check", str(path.parent)])
    assert done.exit_code == 0 and "no problems" in done.output
    assert (
        "\nwarning: Features have very different scales" in done.output and "\nnote: 1 of 3 features has" in done.output
    )
    listed = json.loads(CliRunner().invoke(app, ["data", "check", str(path.parent), "--json"]).stdout)["warnings"]
    assert [one["name"] for one in listed] == ["scales", "constant-features"]
