"""The AOL log: read by the user, malformed lines counted and named without their words, lists made by BM25."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path

import numpy as np
import pytest

from hushrank.personal.aol import PERIODS, AolCounts, AolSettings, import_aol, parse_line, parse_time, read_users
from hushrank.personal.log import TEST, SearchPopulation
from hushrank.personal.spool import SpooledPopulation

HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL"
FEW = AolSettings(least_background=1, least_train=1, n_test_candidates=4, n_other_candidates=2)
TITLES = [f"http://site{i}.test\t{'red' if i % 2 else 'blue'} page number{i}" for i in range(8)]
DAYS = ("2006-03-05", "2006-04-20", "2006-05-18", "2006-05-30")  # one of each period


def user_lines(user: int, query: str = "red page", url: int = 3) -> list[str]:
    return [f"{user}\t{query}\t{day} 10:00:00\t1\thttp://site{url}.test" for day in DAYS]


def write_log(directory: Path, *files: list[str]) -> list[Path]:
    paths = [directory / f"user-collection-{i:02}.txt" for i in range(1, len(files) + 1)]
    for path, lines in zip(paths, files, strict=True):
        path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return paths


def read(tmp_path: Path, *files: list[str], settings: AolSettings = FEW) -> tuple[SpooledPopulation, AolCounts]:
    titles = tmp_path / "titles.tsv"
    titles.write_text("\n".join(TITLES) + "\n", encoding="utf-8")
    return import_aol(write_log(tmp_path, *files), titles, tmp_path / "population", settings=settings)


def test_users_become_logs_with_bm25_lists(tmp_path: Path) -> None:
    population, counts = read(tmp_path, user_lines(7), user_lines(9, "blue page", 6))
    as_protocol: SearchPopulation = population
    log = as_protocol.log_of(1)
    assert population.n_users == counts.n_users == 2 and counts.n_searches == 8
    assert population.periods.of(log.times).tolist() == [0, 1, 2, 3]
    # "blue" and "page": even pages first; 4 documents in the test, 2 elsewhere, the clicked one always among them
    assert log.documents.tolist() == [0, 6, 0, 6, 0, 6, 0, 2, 4, 6]
    assert log.documents[log.is_clicked].tolist() == [6, 6, 6, 6]
    words = population.collection.words
    assert [words[w] for w in log.queries[0] if w] == ["blue", "page"] and words[2] == "page"


def test_the_periods_are_those_of_the_paper() -> None:
    def seconds(text: str) -> int:
        line = parse_line(f"1\tq\t{text}\t\t")
        assert line is not None
        return line.time

    assert seconds("2006-04-02 23:59:59") < PERIODS.train == seconds("2006-04-03 00:00:00")
    assert PERIODS.validation == seconds("2006-05-16 00:00:00")
    assert PERIODS.test - PERIODS.validation == seconds("2006-06-01 00:00:00") - PERIODS.test


def test_malformed_lines_are_counted_and_the_first_is_named_without_its_content(tmp_path: Path) -> None:
    bad = [
        "7\tsecret words",
        "x\tsecret\t2006-03-05 10:00:00\t\t",
        "7\tsecret\tyesterday\t\t",
        "7\tsecret\t2006-13-05 10:00:00\t\t",
    ]
    bad.append("7\tsecret\t2006-03-05 10:00:00\t1\t")
    lines = user_lines(7)
    _, counts = read(tmp_path, [lines[0], *bad, *lines[1:]])
    assert counts.bad_lines.n == 5 and counts.n_lines == 9
    assert counts.bad_lines.first is not None and "secret" not in str(counts.as_json())
    assert counts.bad_lines.first.startswith(f"{tmp_path / 'user-collection-01.txt'}, line 3: expected AnonID, Query")


@pytest.mark.parametrize(
    ("time", "rank"),
    [
        ("0000-01-01 00:00:00", "1"),
        ("2006-02-31 10:00:00", "1"),
        ("2006-04-31 10:00:00", "1"),
        ("2006-02-29 10:00:00", "1"),  # no leap year
        ("2006-03-05 24:00:00", "1"),
        ("2006-03-05 10:00:60", "1"),
        ("2006-03-05 10:00:00", "²"),
        ("2006-03-05 10:00:00", "٣"),
    ],
)
def test_a_time_or_a_rank_that_cannot_be_is_a_malformed_line(time: str, rank: str, tmp_path: Path) -> None:
    lines = user_lines(7)
    _, counts = read(tmp_path, [*lines[:2], f"7\tsecret\t{time}\t{rank}\thttp://site3.test", *lines[2:]])
    expected = "expected AnonID, Query, QueryTime (2006-03-01 07:17:12), ItemRank and ClickURL, separated by tabs."
    assert counts.bad_lines.n == 1 and counts.n_searches == 4
    assert counts.bad_lines.first == f"{tmp_path / 'user-collection-01.txt'}, line 4: {expected}"


def test_a_leap_day_is_a_day() -> None:
    assert parse_time("2008-02-29 00:00:00") == parse_time("2008-02-28 00:00:00") + 24 * 3600  # type: ignore[operator]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    titles, (log,) = tmp_path / "titles.tsv", write_log(tmp_path, user_lines(7, "blue page", 0))
    titles.write_text("\n".join(TITLES), encoding="utf-8-sig")
    log.write_text(log.read_text(encoding="utf-8"), encoding="utf-8-sig")
    _, counts = import_aol([log], titles, tmp_path / "population", settings=FEW)
    assert counts.bad_lines.n == 0 and counts.n_lines == 4
    assert counts.n_clicks_without_title == 0 and counts.n_searches == 4  # all on the first title


def test_lines_of_one_user_must_stand_together(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"user-collection-02.txt, line 2: .* stand apart .* Sort the files by AnonID"):
        read(tmp_path, [*user_lines(7), *user_lines(8)], user_lines(7))
    assert not any((tmp_path / "population").iterdir())  # nothing of anybody stays behind


def test_users_without_enough_history_are_dropped_and_counted(tmp_path: Path) -> None:
    late = [line for line in user_lines(8) if "2006-03" not in line]
    untrained = [line for line in user_lines(9) if "2006-04" not in line]
    once = user_lines(10)[:1]
    population, counts = read(tmp_path, [*user_lines(7), *late, *untrained, *once])
    assert population.n_users == 1 and counts.n_users_dropped == 3
    many = tmp_path / "many"
    many.mkdir()
    with pytest.raises(ValueError, match="no user is left of 1: at least 1 background"):
        read(many, user_lines(7), settings=AolSettings(1, 1, most_searches=3))


def test_clicks_without_a_title_and_searches_without_a_click_are_no_part_of_the_log(tmp_path: Path) -> None:
    extra = ["7\tred\t2006-03-06 10:00:00\t\t", "7\tred\t2006-03-06 11:00:00\t2\thttp://elsewhere.test"]
    population, counts = read(tmp_path, [*user_lines(7)[:1], *extra, *user_lines(7)[1:]])
    assert population.log_of(0).n_searches == 4 and counts.n_clicks_without_title == 1
    assert population.log_of(0).sessions.tolist() == [0, 1, 2, 3]


def test_lines_of_the_same_query_and_time_are_one_search(tmp_path: Path) -> None:
    twice = ["7\tred page\t2006-03-05 10:00:00\t2\thttp://site5.test"]
    population, _ = read(tmp_path, [user_lines(7)[0], *twice, *user_lines(7)[1:]])
    log = population.log_of(0)
    assert log.n_searches == 4 and sorted(log.documents[log.rows(0)].tolist()) == [3, 5]
    assert log.is_clicked[log.rows(0)].all()


def test_lines_out_of_time_are_sorted_and_counted(tmp_path: Path) -> None:
    population, counts = read(tmp_path, [*user_lines(7)[::-1], *user_lines(8)])
    assert counts.n_users_sorted == 1 and (np.diff(population.log_of(0).times) > 0).all()


def test_a_query_of_unknown_words_lists_the_click_alone(tmp_path: Path) -> None:
    population, _ = read(tmp_path, user_lines(7, "zebra crossing"))
    log = population.log_of(0)
    assert log.queries[0, :3].tolist() == [1, 1, 0] and log.documents.tolist() == [3, 3, 3, 3]


def test_compressed_files_and_windows_line_ends_read_the_same(tmp_path: Path) -> None:
    (plain,) = write_log(tmp_path, user_lines(7))
    packed = tmp_path / "packed.txt.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes().replace(b"\n", b"\r\n")))
    one, other = (list(read_users([path], AolCounts())) for path in (plain, packed))
    assert one == other and len(one[0]) == 4


def test_sessions_follow_pauses_and_similarity(tmp_path: Path) -> None:
    near = [
        f"7\t{query}\t2006-03-05 10:0{i}:00\t1\thttp://site3.test"
        for i, query in enumerate(["red", "red page", "blue"])
    ]
    population, _ = read(tmp_path, [*near, *user_lines(7)[1:]])
    assert population.log_of(0).sessions.tolist() == [0, 0, 1, 2, 3, 4]


def test_a_population_is_private_and_opens_again(tmp_path: Path) -> None:
    population, _ = read(tmp_path, user_lines(7))
    assert stat.S_IMODE(population.directory.stat().st_mode) == 0o700
    again = SpooledPopulation(population.directory)
    np.testing.assert_array_equal(again.log_of(0).documents, population.log_of(0).documents)
    assert again.name == "aol" and again.description == "1 users of the AOL log"
    with pytest.raises(ValueError, match="user 1 is not in the population"):
        again.log_of(1)
    with pytest.raises(ValueError, match="is not empty"):
        read(tmp_path, user_lines(7))
    (population.directory / "population.json").unlink()
    with pytest.raises(ValueError, match="holds no finished population"):
        SpooledPopulation(population.directory)


def test_bad_title_files_are_refused(tmp_path: Path) -> None:
    titles, log = tmp_path / "titles.tsv", write_log(tmp_path, user_lines(7))
    titles.write_text("no tab here\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"titles.tsv: no titles\. Each line must hold a document, a tab"):
        import_aol(log, titles, tmp_path / "population")
    titles.write_text("secret\tone\nsecret\ttwo\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 2: this document came before") as error:
        import_aol(log, titles, tmp_path / "population")
    assert "secret" not in str(error.value)


def test_the_test_period_is_the_last(tmp_path: Path) -> None:
    population, _ = read(tmp_path, user_lines(7))
    log = population.log_of(0)
    is_test = population.periods.of(log.times) == TEST
    assert np.diff(log.starts)[is_test].tolist() == [4] and np.diff(log.starts)[~is_test].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("log", "titles", "message"),
    [
        ("gone.txt", "titles.tsv", r"gone\.txt does not exist\. Name the files of the log"),
        ("empty.txt", "gone.tsv", r"gone\.tsv does not exist\. Name the file of titles"),
        (".", "titles.tsv", r"is no file\. Name the files of the log"),
        ("empty.txt", "titles.tsv", r"empty\.txt: no line of a log\. Each must hold AnonID, Query"),
        ("header.txt", "titles.tsv", r"header\.txt: no line of a log\."),
        ("bad.txt", "titles.tsv", r"no line of the log can be read\. Malformed lines: 1; the first: .*line 1"),
    ],
)
def test_files_that_hold_no_log_are_refused_in_words(log: str, titles: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "titles.tsv").write_text("\n".join(TITLES), encoding="utf-8")
    for name, text in {"empty.txt": "", "header.txt": f"{HEADER}\n", "bad.txt": "secret"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        import_aol([tmp_path / log], tmp_path / titles, tmp_path / "population", settings=FEW)
    assert "secret" not in str(error.value) and "Lower these" not in str(error.value)
    with pytest.raises(ValueError, match="no files came"):
        import_aol([], tmp_path / "titles.tsv", tmp_path / "population")


def test_searches_whose_query_has_no_word_are_left_out_and_counted(tmp_path: Path) -> None:
    wordless = [f"7\t{query}\t2006-03-06 1{i}:00:00\t1\thttp://site3.test" for i, query in enumerate(["-", "", "?!"])]
    population, counts = read(tmp_path, [user_lines(7)[0], *wordless, *user_lines(7)[1:]])
    assert population.log_of(0).n_searches == counts.n_searches == 4
    assert counts.n_searches_without_words == counts.as_json()["n_searches_without_words"] == 3


def test_who_waits_hears_how_many_lines_were_read(tmp_path: Path) -> None:
    titles, heard = tmp_path / "titles.tsv", list[int]()
    titles.write_text("\n".join(TITLES), encoding="utf-8")
    log = write_log(tmp_path, [*user_lines(7), *user_lines(8)])
    import_aol(log, titles, tmp_path / "population", settings=FEW, hear=heard.append)
    assert heard == [5, 8]  # a user ends where the next one begins
