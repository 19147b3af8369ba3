"""Writing LETOR text: the same arrays come back, and a failure leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hushrank.data.letor import read_letor
from hushrank.data.letor_write import write_letor
from hushrank.types import QuerySet

UNDER_A_LIMIT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from hushrank.data.letor_write import write_letor
from hushrank.data.synthetic import generate_queries
from hushrank.data.shapes import SHAPES
try:
    write_letor(generate_queries(SHAPES["tiny"]), sys.argv[1])
except OSError as error:
    print("refused:", error)
"""


def make_set(features: np.ndarray, *, ids: tuple[str, ...] | None = None) -> QuerySet:
    n = len(features)
    grades = (np.arange(n) % 3).astype(np.uint8)
    return QuerySet(features.astype(np.float32), grades, np.array([0, n]), ("q1",), ids)


def test_rows_are_written_as_letor_writes_them(tmp_path: Path) -> None:
    write_letor(make_set(np.array([[0.5, 0.007477], [1, 0]]), ids=("GX-1", "two words")), tmp_path / "a.txt")
    expected = "0 qid:q1 1:0.500000 2:0.007477 #docid = GX-1\n1 qid:q1 1:1.000000 2:0.000000 #two words\n"
    assert (tmp_path / "a.txt").read_text() == expected


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(
        np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-(2.0**100), 2.0**100, width=32)
    )
)
def test_what_is_written_is_what_is_read(features: np.ndarray) -> None:
    ids = tuple(f"D{i}" for i in range(len(features)))
    with tempfile.TemporaryDirectory() as place:
        write_letor(make_set(features, ids=ids), Path(place) / "a.txt")
        again = read_letor(Path(place) / "a.txt", keep_document_ids=True)
    assert np.array_equal(again.features, features) and again.document_ids == ids
    assert again.grades.tolist() == [i % 3 for i in range(len(features))] and again.query_ids == ("q1",)


@pytest.mark.parametrize("query_id", ["", "two words", "a#b"])
def test_a_query_id_that_would_not_come_back_is_refused(tmp_path: Path, query_id: str) -> None:
    queries = QuerySet(np.ones((1, 1), np.float32), np.zeros(1, np.uint8), np.array([0, 1]), (query_id,))
    with pytest.raises(ValueError, match="cannot be written, must have no spaces"):
        write_letor(queries, tmp_path / "a.txt")


def test_a_value_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        write_letor(make_set(np.array([[np.nan]])), tmp_path / "a.txt")
    assert list(tmp_path.glob("*.txt")) == []


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.txt").write_text("old")
    command = [sys.executable, "-c", UNDER_A_LIMIT, str(place / "a.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a.txt cannot be written (File too large). Make room" in done.stdout
    assert [path.name for path in place.iterdir()] == ["a.txt"] and (place / "a.txt").read_text() == "old"
