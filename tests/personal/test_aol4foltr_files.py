"""AOL4FOLTR: metadata.csv as a population, letor.txt with users and times."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hushrank.personal.aol4foltr import (
    COLUMNS,
    Aol4FoltrCounts,
    import_aol4foltr,
    read_metadata,
    stream_user_queries,
)

TITLES = [f"doc{i}\t{'red' if i % 2 else 'blue'} page" for i in range(6)]
SETS = ("\"{'doc0', 'doc1', 'doc5'}\"", "\"['doc3', 'doc2', 'gone']\"")
ROWS = [
    f'0,30,2006-03-01 07:00:00,red,doc1,{SETS[0]}',
    f'1,20,2006-04-05 07:00:00,"blue, page",doc2,{SETS[1]}',
    f'2,30,2006-05-30 07:00:00,blue,doc0,{SETS[0]}',
]  # fmt: skip


def write(tmp_path: Path, rows: list[str], header: str = ",".join(COLUMNS)) -> tuple[Path, Path]:
    metadata, titles = tmp_path / "metadata.csv", tmp_path / "titles.tsv"
    metadata.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    titles.write_text("\n".join(TITLES) + "\n", encoding="utf-8")
    return metadata, titles


def test_rows_become_users_with_lists_in_bm25_order(tmp_path: Path) -> None:
    population, counts = import_aol4foltr(*write(tmp_path, ROWS), tmp_path / "population")
    assert population.n_users == 2 and counts.n_searches == 3 and population.name == "aol4foltr"
    blue, red = population.log_of(0), population.log_of(1)  # users 20 and 30
    assert blue.documents.tolist() == [2, 3] and blue.is_clicked.tolist() == [True, False]
    # "red": documents 1 and 5, then 0; "blue": document 0 first
    assert red.documents.tolist() == [1, 5, 0, 0, 1, 5]
    assert red.is_clicked.tolist() == [True, False, False, True, False, False]
    assert population.periods.of(red.times).tolist() == [0, 3] and red.sessions.tolist() == [0, 1]
    assert not (tmp_path / "population" / "scratch.bin").exists()


def test_malformed_rows_are_counted_and_named_without_their_content(tmp_path: Path) -> None:
    bad = [
        "9,30,2006-03-01 07:00:00,secret,doc1,nonsense(",
        f"x,30,2006-03-01 07:00:00,secret,doc1,{SETS[0]}",
        f"9,30,yesterday,secret,doc1,{SETS[0]}",
        f"9,30,2006-03-01 07:00:00,secret,doc4,{SETS[0]}",
        "9,30,secret",
    ]
    metadata, _ = write(tmp_path, [ROWS[0], *bad, *ROWS[1:]])
    counts = Aol4FoltrCounts()
    assert [row.qid for row in read_metadata(metadata, counts)] == [0, 1, 2]
    assert counts.bad_lines.n == 5 and counts.n_rows == 8
    assert counts.bad_lines.first == f"{metadata}, line 3: expected {', '.join(COLUMNS)}."


@pytest.mark.parametrize(
    "row",
    [
        "9,30,2006-03-01 07:00:00,secret,doc1,\"{'doc1', []}\"",
        "9,30,2006-03-01 07:00:00,secret,doc1,\"{'doc1', 0x" + 5000 * "f" + '}"',
        "9,30,2006-03-01 07:00:00,secret,doc1," + 5000 * "[",
        "9,30,2006-03-01 07:00:00,secret,doc1,'doc1'",
        f"9,30,0000-03-01 07:00:00,secret,doc1,{SETS[0]}",
        f"9,30,2006-02-31 07:00:00,secret,doc1,{SETS[0]}",
        f"²,30,2006-03-01 07:00:00,secret,doc1,{SETS[0]}",
        f'9,30,2006-03-01 07:00:00,"secret,doc1,{SETS[0]}',
        '9,30,2006-03-01 07:00:00,"secret never closed',
        f"9,30,2006-03-01 07:00:00,{200_000 * 'x'},doc1,{SETS[0]}",
    ],
)
def test_a_malformed_row_costs_no_other_row(row: str, tmp_path: Path) -> None:
    metadata, _ = write(tmp_path, [ROWS[0], row, *ROWS[1:]])
    counts = Aol4FoltrCounts()
    assert [found.qid for found in read_metadata(metadata, counts)] == [0, 1, 2]
    assert (counts.n_rows, counts.bad_lines.n) == (4, 1)
    assert counts.bad_lines.first == f"{metadata}, line 3: expected {', '.join(COLUMNS)}."


def test_byte_order_marks_are_no_part_of_the_header_and_of_the_first_title(tmp_path: Path) -> None:
    paths = write(tmp_path, ROWS)
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    population, counts = import_aol4foltr(*paths, tmp_path / "population")
    assert (counts.n_rows, counts.bad_lines.n, counts.n_without_title) == (3, 0, 0)  # one target is the first title
    assert population.log_of(1).n_searches == 2


def test_where_nothing_can_be_used_the_malformed_rows_are_named(tmp_path: Path) -> None:
    paths = write(tmp_path, [f"9,30,yesterday,secret,doc1,{SETS[0]}"])
    with pytest.raises(ValueError, match=r"Malformed lines: 1; the first: .*metadata.csv, line 2: expected") as error:
        import_aol4foltr(*paths, tmp_path / "population")
    assert "secret" not in str(error.value)


def test_searches_without_a_titled_target_are_left_out_and_counted(tmp_path: Path) -> None:
    gone = "3,30,2006-05-30 08:00:00,blue,gone,\"['doc3', 'gone']\""
    population, counts = import_aol4foltr(*write(tmp_path, [*ROWS, gone]), tmp_path / "population")
    assert counts.n_without_title == 1 and population.log_of(1).n_searches == 2
    with pytest.raises(ValueError, match="no search has a titled target"):
        import_aol4foltr(*write(tmp_path, [gone]), tmp_path / "other")
    assert not any((tmp_path / "other").iterdir())


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    metadata, _ = write(tmp_path, [], header="qid,user_id,query")
    with pytest.raises(ValueError, match="line 1: column timestamp is missing"):
        list(read_metadata(metadata, Aol4FoltrCounts()))


def test_letor_rows_come_with_user_and_time(tmp_path: Path) -> None:
    metadata, _ = write(tmp_path, ROWS)
    letor = tmp_path / "letor.txt.gz"
    lines = [f"{int(i == 1)} qid:{qid} 1:{qid}.5 2:{i}" for qid in range(3) for i in range(3)]
    letor.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    pieces = list(stream_user_queries(letor, metadata, n_features=2))
    assert np.concatenate([piece.users for piece in pieces]).tolist() == [30, 20, 30]
    assert (np.diff(np.concatenate([piece.times for piece in pieces])) > 0).all()
    assert sum(piece.queries.n_queries for piece in pieces) == 3


@pytest.mark.parametrize("qid", ["99", "seven", "²"])
def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, qid: str) -> None:
    metadata, _ = write(tmp_path, ROWS)
    letor = tmp_path / "letor.txt"
    letor.write_text(f"1 qid:{qid} 1:2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"has a qid that .* has not"):
        list(stream_user_queries(letor, metadata, n_features=1))


def test_files_that_are_not_there_are_refused_in_words(tmp_path: Path) -> None:
    metadata, titles = write(tmp_path, ROWS)
    with pytest.raises(FileNotFoundError, match=r"gone\.csv does not exist\. Name AOL4FOLTR's metadata\.csv"):
        import_aol4foltr(tmp_path / "gone.csv", titles, tmp_path / "population")
    with pytest.raises(FileNotFoundError, match=r"gone\.tsv does not exist\. Name the file of titles"):
        import_aol4foltr(metadata, tmp_path / "gone.tsv", tmp_path / "population")
