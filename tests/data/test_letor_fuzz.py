"""The LETOR reader against thousands of damaged files: data or the documented error, and both paths agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from seeds import pick_seed

from hushrank.data.letor import LetorError, read_letor
from hushrank.streams import Purpose, draw_below, fold_in, seed_key, stream
from hushrank.types import QuerySet

pytestmark = pytest.mark.randomised

PIECES = [
    b"\n",
    b" ",
    b":",
    b".",
    b"-",
    b"#",
    b"qid:",
    b"\r",
    b"\t",
    b"\x00",
    b"\xff",
    b"nan",
    b"1e9",
    b"0",
    b"99999",
    b"",
]
SEED_TEXT = (
    b"2 qid:10 1:0.007477 2:0.000000 3:1.000000 #docid = GX008 inc = 1\n0 qid:10 1:0.6 2:-12 3:1e-5\n"
    b"1 qid:11 1:3 3:0.5\n0 qid:12 1:12345678.123456789 2:.5 3:7.\n"
)


def damage(text: bytes, key: np.ndarray) -> bytes:
    """Up to four pieces are inserted, or replace one to five bytes; one file in eight is cut."""
    draws = draw_below(key, 2**31, 16).tolist()
    for place, piece, length in zip(draws[0:4], draws[4:8], draws[8:12], strict=True):
        at = place % (len(text) + 1)
        if length % 3:
            text = text[:at] + PIECES[piece % len(PIECES)] + text[at + (length // 3) % 6 :]
    return text[: draws[13] % (len(text) + 1)] if draws[12] % 8 == 0 else text


def read_or_refuse(path: Path, *, is_exact: bool) -> QuerySet | str:
    try:
        return read_letor(path, keep_document_ids=True, is_exact=is_exact)
    except LetorError as error:
        return str(error)


def check_cases(path: Path, first: int, n_cases: int) -> int:
    """How many of the damaged files could still be read."""
    n_read = 0
    keys = fold_in(stream(seed_key(pick_seed(0)), Purpose.BOOTSTRAP), np.arange(first, first + n_cases))
    for key in keys:
        path.write_bytes(damage(SEED_TEXT, key))
        quick, exact = (read_or_refuse(path, is_exact=is_exact) for is_exact in (False, True))
        if isinstance(quick, str) or isinstance(exact, str):
            assert quick == exact and isinstance(quick, str)
            assert "\n" not in quick and str(path) in quick
            continue
        assert np.array_equal(quick.features, exact.features) and np.array_equal(quick.grades, exact.grades)
        assert quick.query_ids == exact.query_ids and quick.document_ids == exact.document_ids
        assert np.all(np.isfinite(quick.features)) and quick.starts[-1] == quick.n_documents
        n_read += 1
    return n_read


def test_some_hundred_damaged_files_give_data_or_the_error(tmp_path: Path) -> None:
    assert 50 < check_cases(tmp_path / "damaged.txt", 0, 600) < 550


@pytest.mark.slow
def test_ten_thousand_damaged_files_give_data_or_the_error(tmp_path: Path) -> None:
    assert check_cases(tmp_path / "damaged.txt", 600, 10_000) > 1_000
