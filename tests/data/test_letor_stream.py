"""A ranking file piece by piece is the whole file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushrank.data.letor import LetorError, read_letor, stream_letor


@pytest.mark.parametrize(("chunk_bytes", "n_pieces"), [(1, 4), (50, 3), (100_000, 2)])
def test_pieces_hold_whole_queries_and_add_up_to_the_file(tmp_path: Path, chunk_bytes: int, n_pieces: int) -> None:
    path = tmp_path / "letor.txt"
    lines = [f"{i % 2} qid:{qid} 1:{i} 3:{qid}.25" for qid, n in ((7, 3), (4, 1), (9, 5), (1, 2)) for i in range(n)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole = read_letor(path, n_features=4)
    pieces = list(stream_letor(path, n_features=4, chunk_bytes=chunk_bytes))
    assert [name for piece in pieces for name in piece.query_ids] == list(whole.query_ids)
    np.testing.assert_array_equal(np.concatenate([piece.features for piece in pieces]), whole.features)
    np.testing.assert_array_equal(np.concatenate([piece.grades for piece in pieces]), whole.grades)
    assert np.concatenate([np.diff(piece.starts) for piece in pieces]).tolist() == [3, 1, 5, 2]
    assert len(pieces) == n_pieces


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letor.txt"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(LetorError, match="no rows in the file"):
        list(stream_letor(path, n_features=4))
