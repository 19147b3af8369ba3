"""The LETOR reader: what it returns."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushrank.data.letor import read_letor
from hushrank.data.letor_bulk import parse_bulk
from hushrank.data.letor_lines import parse_lines
from hushrank.types import QuerySet

Write = Callable[..., Path]
THREE_ROWS = (
    "2 qid:7 1:0.5 2:-1.25 3:3 #docid = A-1 inc = 1\n0 qid:7 1:0 2:1e-3 3:.25 #docid = A-2\n1 qid:x 1:1 2:2 3:3\n"
)


def assert_equal(a: QuerySet, b: QuerySet) -> None:
    for name in ("features", "grades", "starts"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype and np.array_equal(x, y), name
    assert a.query_ids == b.query_ids and a.document_ids == b.document_ids


def test_three_rows_are_read_as_written(write: Write) -> None:
    queries = read_letor(write(THREE_ROWS))
    expected = np.array([[0.5, -1.25, 3], [0, 0.001, 0.25], [1, 2, 3]], dtype=np.float32)
    assert np.array_equal(queries.features, expected) and queries.features.dtype == np.float32
    assert queries.grades.tolist() == [2, 0, 1] and queries.grades.dtype == np.uint8
    assert queries.starts.tolist() == [0, 2, 3] and queries.starts.dtype == np.int64
    assert queries.query_ids == ("7", "x") and queries.document_ids is None


def test_document_ids_are_kept_where_asked_and_fall_back_to_the_comment(write: Write) -> None:
    rows = THREE_ROWS + "1 qid:x 1:1 2:2 3:3 # any words\n"
    assert read_letor(write(rows), keep_document_ids=True).document_ids == ("A-1", "A-2", "", "any words")


def test_a_feature_that_is_not_written_is_zero(write: Write) -> None:
    queries = read_letor(write("1 qid:1 2:5\n0 qid:1 1:1 4:2\n0 qid:1\n"))
    assert queries.features.tolist() == [[0, 5, 0, 0], [1, 0, 0, 2], [0, 0, 0, 0]]


def test_asking_for_more_features_widens_the_rows(write: Write) -> None:
    assert read_letor(write("1 qid:1 2:5\n"), n_features=4).features.tolist() == [[0, 5, 0, 0]]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, lambda text: text.replace(b"\n", b"\r\n")])
def test_compressed_files_and_windows_line_ends_read_the_same(write: Write, pack: Callable[[bytes], bytes]) -> None:
    plain = read_letor(write(THREE_ROWS, "plain.txt"), keep_document_ids=True)
    assert_equal(read_letor(write(pack(THREE_ROWS.encode()), "packed"), keep_document_ids=True), plain)


def test_blank_lines_comment_lines_tabs_and_double_spaces_are_allowed(write: Write) -> None:
    text = "# a header\n\n  2\tqid:7  1:0.5   2:-1.25 3:3 \n0 qid:7 1:0 2:1e-3 3:.25\n1.0 qid:x 1:1 2:2 3:+3"
    assert_equal(read_letor(write(text, "odd.txt")), read_letor(write(THREE_ROWS)))


def test_list_lengths_of_a_side_file_divide_rows_without_qid(write: Write) -> None:
    write("2\n1\n", "rank.train.query")
    queries = read_letor(write("0 1:1\n2 3:1\n1 2:4\n", "rank.train"))
    assert queries.starts.tolist() == [0, 2, 3] and queries.query_ids == ("1", "2")
    assert queries.features.tolist() == [[1, 0, 0], [0, 0, 1], [0, 4, 0]]


def test_queries_of_one_document_and_duplicate_rows_are_kept(write: Write) -> None:
    queries = read_letor(write("0 qid:1 1:1\n" + "0 qid:2 1:1\n" * 3))
    assert queries.lengths.tolist() == [1, 3] and queries.features.tolist() == [[1]] * 4


def test_a_value_beyond_float32_becomes_the_largest(write: Write) -> None:
    queries = read_letor(write("0 qid:1 1:1.7976931348623157e+308 2:-1e300\n"))
    largest = float(np.finfo(np.float32).max)
    assert queries.features.tolist() == [[largest, -largest]]


@pytest.mark.parametrize("chunk_bytes", [1, 7, 60, 1000])
def test_the_size_of_the_chunks_changes_nothing(write: Write, chunk_bytes: int) -> None:
    text = "".join(f"{i % 3} qid:{i // 4} 1:{i / 7:.6f} 3:{-i} #docid = D{i}\n" for i in range(40))
    path = write(text)
    whole = read_letor(path, keep_document_ids=True)
    assert_equal(read_letor(path, keep_document_ids=True, chunk_bytes=chunk_bytes), whole)


def test_progress_hears_every_byte(write: Write) -> None:
    heard: list[int] = []
    read_letor(write(THREE_ROWS), chunk_bytes=50, progress=heard.append)
    assert sum(heard) == len(THREE_ROWS) and len(heard) > 1


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6f}"),
    st.integers(-(10**9), 10**9).map(str),
    st.tuples(st.floats(-1e9, 1e9), st.integers(0, 20)).map(lambda pair: f"{pair[0]:.{pair[1]}f}"),
    st.sampled_from(
        ["0", "-0", ".5", "7.", "+1", "1e5", "00012.500", "9999999.99999999", "12345678.12345678", "1E-400"]
    ),
)
rows = st.tuples(
    st.integers(0, 255),
    st.sampled_from(["1", "q", "1.5", "a-b", "é"]),
    st.dictionaries(st.integers(1, 300), numbers, min_size=1, max_size=12),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(rows, min_size=1, max_size=12))
def test_both_paths_give_the_same_rows_and_the_quick_one_takes_every_regular_row(
    drawn: list[tuple[int, str, dict[int, str]]],
) -> None:
    lines = [f"{g} qid:{q} " + " ".join(f"{i}:{v}" for i, v in sorted(f.items())) for g, q, f in drawn]
    chunk = ("\n".join(lines) + "\n").encode()
    quick = parse_bulk(chunk, has_query_ids=True)
    exact = parse_lines(chunk, path="here", first_line=1, has_query_ids=True)
    assert quick is not None and exact is not None
    assert np.array_equal(quick.features, exact.features) and np.array_equal(quick.grades, exact.grades)
    assert quick.query_ids == exact.query_ids and quick.n_pairs.tolist() == exact.n_pairs.tolist()


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_value_is_pythons_float_rounded_to_float32(write: Write, value: float) -> None:
    queries = read_letor(write(f"0 qid:1 1:{value!r} 2:1\n"))
    assert queries.features[0, 0] == np.float32(value)


def test_the_real_mq2008_reads_alike_on_both_paths(mq2008: Path) -> None:
    path = mq2008 / "Fold1" / "test.txt"
    quick, exact = (read_letor(path, keep_document_ids=True, is_exact=is_exact) for is_exact in (False, True))
    assert_equal(quick, exact)
    assert (quick.n_queries, quick.n_documents, quick.n_features) == (156, 2874, 46)


@pytest.mark.parametrize(
    "row", ["1 qid:a:b 1:1", "1 qid:a.b.c 1:1", "1 qid:a 1:-.5", "1\tqid:a\t1:1", "1 qid:a 1:-0 # 2:3"]
)
def test_odd_but_valid_rows_read_alike_on_both_paths(write: Write, row: str) -> None:
    path = write("0 qid:0 1:1\n" + row + "\n")
    quick, exact = (read_letor(path, keep_document_ids=True, is_exact=is_exact) for is_exact in (False, True))
    assert_equal(quick, exact)


def test_the_quick_path_reads_the_whole_of_mq2008(mq2008: Path) -> None:
    assert parse_bulk((mq2008 / "S1.txt").read_bytes(), has_query_ids=True) is not None
