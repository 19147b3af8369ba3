"""The LETOR reader: what it refuses, and how it says so."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from hushrank.data.letor import LetorError, read_letor

Write = Callable[..., Path]
GOOD = "1 qid:1 1:0.5 2:1\n0 qid:1 1:0.5 2:1\n"

BAD_ROWS = {
    "1 qid:2 1:0.5 2:": "feature 2 has no value. Is the line truncated?",
    "1 qid:2 1:0.5 2": "pair 2 is not index:value. Is the line truncated",
    "1 qid:2 1:0.5 2:0.2.3": "feature 2 is no number, must be a finite number. Is the pair broken?",
    "1 qid:2 1:0.5 2:0x1f": "feature 2 is no number, must be a finite number",
    "1 qid:2 1:0.5 a:1": "pair 2 is not index:value",
    "1 qid:2 1:0.5 qid:2": "a second qid stands where index:value is expected",
    "1 qid:": "qid: has no ID behind it",
    "1": "nothing follows the grade, must be qid:ID",
    "1 1:0.5 2:1": "something else follows the grade, must be qid:ID",
    "-1 qid:2 1:1": "the grade is not a whole number from 0 to 255",
    "256 qid:2 1:1": "the grade is not a whole number from 0 to 255",
    "0.5 qid:2 1:1": "the grade is not a whole number from 0 to 255",
    "nan qid:2 1:1": "the grade is not a whole number from 0 to 255",
    "1 qid:2 0:1 1:1": "feature index 0; indexes start at 1. Add 1",
    "1 qid:2 2:1 1:1": "feature index 1 stands after 2; indexes must ascend",
    "1 qid:2 2:1 2:1": "feature index 2 is repeated; indexes must ascend",
    "1 qid:2 100001:1": "a feature index is larger than 100000",
    "1 qid:2 99999999999999999999:1": "is larger than 100000",
    "1 qid:2 1:NaN": "feature 1 is nan or infinite, must be a finite number. Replace it",
    "1 qid:2 1:-inf": "feature 1 is nan or infinite, must be a finite number. Replace it",
    "1 qid:2 1:1e999": "feature 1 is too large for a number",
}


@pytest.mark.parametrize("row", BAD_ROWS)
def test_a_bad_row_is_refused_with_file_line_and_advice(write: Write, row: str) -> None:
    path = write(GOOD + row + "\n")
    with pytest.raises(LetorError) as caught:
        read_letor(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 3: ") and BAD_ROWS[row] in message and "\n" not in message


def test_a_query_that_comes_again_is_refused(write: Write) -> None:
    path = write("1 qid:1 1:1\n1 qid:2 1:1\n\n# note\n1 qid:1 1:1\n")
    with pytest.raises(LetorError, match="line 5: this line's qid comes again after another query"):
        read_letor(path)


def test_a_query_that_comes_again_in_a_later_chunk_is_refused(write: Write) -> None:
    path = write("".join(f"1 qid:{i % 50} 1:1\n" for i in range(60)))
    with pytest.raises(LetorError, match="line 51: this line's qid comes again"):
        read_letor(path, chunk_bytes=100)


@pytest.mark.parametrize("text", ["", "\n\n", "# only words\n"])
def test_a_file_without_rows_is_refused(write: Write, text: str) -> None:
    with pytest.raises(LetorError, match="no rows in the file, at least one is needed"):
        read_letor(write(text))


def test_a_file_without_features_is_refused(write: Write) -> None:
    with pytest.raises(LetorError, match="no row has a feature"):
        read_letor(write("1 qid:1\n"))


@pytest.mark.parametrize("last", ["1 qid:2 1:1", "1 qid:2", "1 qid:1"])
def test_a_last_line_that_stops_early_is_refused(write: Write, last: str) -> None:
    with pytest.raises(
        LetorError, match=r"line 3: the last line has [01] features and no line end, every other line has 2"
    ):
        read_letor(write(GOOD + last))


def test_a_last_line_without_line_end_is_fine_when_complete(write: Write) -> None:
    assert read_letor(write(GOOD + "1 qid:2 1:1 2:1")).n_documents == 3


def test_a_feature_beyond_the_asked_number_is_refused(write: Write) -> None:
    with pytest.raises(LetorError, match="line 2: feature index 3 is larger than n_features = 2"):
        read_letor(write("1 qid:1 1:1\n1 qid:1 3:0 # 9:9\n"), n_features=2)


@pytest.mark.parametrize(
    ("lengths", "message"), [("2\n2\n", "add up to 4, but rank.train has 3 rows"), ("", "add up to 0")]
)
def test_list_lengths_that_do_not_add_up_are_refused(write: Write, lengths: str, message: str) -> None:
    write(lengths, "rank.train.query")
    with pytest.raises(LetorError, match=message):
        read_letor(write("0 1:1\n2 3:1\n1 2:4\n", "rank.train"))


@pytest.mark.parametrize("length", ["0", "-1", "1.5", "x", "9" * 30])
def test_a_list_length_that_is_no_count_is_refused(write: Write, length: str) -> None:
    write(f"2\n{length}\n", "rank.train.query")
    with pytest.raises(LetorError, match=r"rank\.train\.query, line 2: not a list length"):
        read_letor(write("0 1:1\n", "rank.train"))


def test_rows_with_qid_beside_list_lengths_are_refused(write: Write) -> None:
    write("2\n", "file.txt.query")
    with pytest.raises(LetorError, match=r"not at all beside a \.query file"):
        read_letor(write(GOOD))


def test_a_qid_that_is_not_utf8_is_refused(write: Write) -> None:
    with pytest.raises(LetorError, match="line 3: the qid is not valid UTF-8"):
        read_letor(write(GOOD.encode() + b"1 qid:\xff\xfe 1:1 2:1\n"))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_truncated_compressed_file_is_refused(write: Write, pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(LetorError, match="the compressed file is damaged or truncated"):
        read_letor(write(pack(GOOD.encode() * 100)[:-12]))


def test_a_damaged_compressed_file_is_refused(write: Write) -> None:
    with pytest.raises(LetorError, match="the compressed file is damaged"):
        read_letor(write(b"\x1f\x8b" + b"x" * 50))


@pytest.mark.parametrize(
    "row", ["1 qid:{} 1:1", "{} qid:2 1:1", "1 {} 1:1", "1 qid:2 1:{}", "1 qid:2 {}:1", "1 qid:2 {}"]
)
def test_no_message_repeats_what_a_line_holds(write: Write, row: str) -> None:
    personal = "kuendigung" + "\x7f" * 5
    with pytest.raises(LetorError) as caught:
        read_letor(write(row.format(personal).encode() + b"\n" + b"1 qid:2 1:1\n" + row.format(personal).encode()))
    assert "kuendigung" not in str(caught.value) and len(str(caught.value)) < 500
