"""Click logs: read back as written, every malformed line refused without repeating it, other splits left out."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.data.clicklog import ClickLog, ClickLogError, read_click_log, write_click_log
from hushrank.types import QuerySet

Write = Callable[..., Path]
LINE = {
    "client": "SECRET-ann",
    "query": "SECRET-q1",
    "shown": ["SECRET-b", "SECRET-a"],
    "clicked": ["SECRET-a"],
    "propensities": [0.25, 0.5],
}


def make_queries(lengths: dict[str, list[str]], *, with_ids: bool = True) -> QuerySet:
    """A query set of these document ids by query."""
    ids = tuple(name for names in lengths.values() for name in names)
    starts = np.concatenate([[0], np.cumsum([len(names) for names in lengths.values()])])
    features = np.zeros((len(ids), 1), dtype=np.float32)
    return QuerySet(features, np.zeros(len(ids), np.uint8), starts, tuple(lengths), ids if with_ids else None)


QUERIES = make_queries({"SECRET-q0": ["x"], "SECRET-q1": ["SECRET-a", "SECRET-b", "SECRET-c"]})
WITHOUT_IDS = make_queries({"SECRET-q0": ["x"], "SECRET-q1": ["a", "b", "c"]}, with_ids=False)


def as_line(**changes: Any) -> str:
    return json.dumps({**LINE, **changes}) + "\n"


def assert_equal(log: ClickLog, other: ClickLog) -> None:
    for name in ("clients", "queries", "starts", "shown", "is_clicked", "propensities"):
        assert np.array_equal(getattr(log, name), getattr(other, name)), name
    assert (log.client_names, log.n_skipped) == (other.client_names, other.n_skipped)


def test_a_log_by_hand(write: Write) -> None:
    second = as_line(client="bob", query="SECRET-q0", shown=["x"], clicked=[], propensities=[1.0])
    log = read_click_log(write(as_line() + "\n" + second + as_line(clicked=[])), QUERIES)
    assert (log.clients.tolist(), log.client_names, log.queries.tolist()) == (
        [0, 1, 0],
        ("SECRET-ann", "bob"),
        [1, 0, 1],
    )
    assert (log.starts.tolist(), log.shown.tolist()) == ([0, 2, 3, 5], [1, 0, 0, 1, 0])
    assert log.is_clicked.tolist() == [False, True, False, False, False]
    assert log.propensities[log.places(0)].tolist() == [0.25, 0.5]
    assert (log.n_impressions, log.n_clients, log.n_skipped) == (3, 2, 0)


def test_rows_name_documents_where_there_are_no_ids(write: Write) -> None:
    log = read_click_log(write(as_line(shown=[2, 0], clicked=[0])), WITHOUT_IDS)
    assert log.shown.tolist() == [2, 0] and log.is_clicked.tolist() == [False, True]


def test_impressions_of_other_splits_are_skipped_but_their_clients_keep_their_numbers(write: Write) -> None:
    lines = as_line(client="carl", query="elsewhere", shown=["z"], clicked=[], propensities=[0.5]) + as_line()
    log = read_click_log(write(lines), QUERIES)
    assert (log.n_impressions, log.n_skipped) == (1, 1)
    assert log.client_names == ("carl", "SECRET-ann") and log.clients.tolist() == [1]


def test_a_query_of_no_split_is_refused_where_the_splits_are_known(write: Write) -> None:
    path = write(as_line() + as_line(query="SECRET-q9"))
    assert read_click_log(path, QUERIES, known_queries={"SECRET-q9"}).n_skipped == 1
    with pytest.raises(ClickLogError, match=r"line 2: query is not in the data set"):
        read_click_log(path, QUERIES, known_queries={"SECRET-q0", "SECRET-q1"})


def test_a_log_of_other_data_or_of_nothing_is_refused(write: Write) -> None:
    with pytest.raises(ClickLogError, match=r"none of its 1 impressions is of a query of this split"):
        read_click_log(write(as_line(query="SECRET-q9")), QUERIES)
    with pytest.raises(ClickLogError, match="no impression is"):
        read_click_log(write("\n"), QUERIES)


MALFORMED: list[tuple[str, str]] = [
    ("SECRET\n", "not a JSON object"),
    ('["SECRET"]\n', "not a JSON object, must have client"),
    ("[" * 100_000 + "\n", "not a JSON object"),
    (as_line()[:-20], "truncated"),
    (json.dumps({k: v for k, v in LINE.items() if k != "clicked"}), "clicked is missing"),
    (as_line(client=""), "client must be a text"),
    (as_line(client=17), "client must be a text"),
    (as_line(query=10002), "query must be a text"),
    (as_line(shown="SECRET"), "shown must be a list"),
    (as_line(shown=[True, "SECRET-a"]), "shown must be a list of document ids"),
    (as_line(shown=[1.0, "SECRET-a"]), "shown must be a list of document ids"),
    (as_line(clicked=None), "clicked must be a list"),
    (as_line(shown=[], clicked=[], propensities=[]), "shown is empty"),
    (as_line(shown=["SECRET-a", "SECRET-a"]), "shown has a document twice"),
    (as_line(shown=["SECRET-a", 0]), "shown has a document twice"),
    (as_line(shown=["SECRET-a", "SECRET-z"]), "shown has a document that is no candidate"),
    (as_line(shown=[3, "SECRET-a"]), "a row beyond the query's 3 candidates"),
    (as_line(shown=[-1, "SECRET-a"]), "a row below 0"),
    (as_line(shown=[*"abc", "SECRET-a"], propensities=[0.5] * 4), "shown has 4 documents, the query has 3 candidates"),
    (as_line(clicked=["SECRET-c"]), "clicked has a document that is not in shown"),
    (as_line(clicked=["SECRET-a", "SECRET-a"]), "clicked has a document twice"),
    (as_line(propensities=0.5), "propensities must be a list of numbers"),
    (as_line(propensities=["0.5", 0.5]), "propensities must be a list of numbers"),
    (as_line(propensities=[0.5]), "propensities has 1 numbers, shown has 2 documents"),
    (as_line(propensities=[0.5, 0.0]), r"outside \(0, 1\]"),
    (as_line(propensities=[1.5, 0.5]), r"outside \(0, 1\]"),
    (as_line(propensities=[float("nan"), 0.5]), r"outside \(0, 1\]"),
    (as_line(propensities=[1, 1.0]), "all 1: a list that could not have been another one"),
]


@pytest.mark.parametrize(("line", "said"), MALFORMED, ids=[said for _, said in MALFORMED])
def test_a_malformed_line_is_refused_with_its_number_and_without_its_content(
    write: Write, line: str, said: str
) -> None:
    path = write(as_line() + line, "log.jsonl")
    with pytest.raises(ClickLogError, match=r"log\.jsonl, line 2: .*" + said) as caught:
        read_click_log(path, QUERIES)
    assert "SECRET" not in str(caught.value) and caught.value.__suppress_context__


def test_bytes_that_are_not_utf8_are_refused(write: Write) -> None:
    with pytest.raises(ClickLogError, match="line 1: not a JSON object in UTF-8"):
        read_click_log(write(as_line().encode().replace(b"ann", b"\xff\xfe")), QUERIES)


def test_ids_are_refused_where_the_features_have_none(write: Write) -> None:
    with pytest.raises(ClickLogError, match="line 1: shown has document ids, but the features have none"):
        read_click_log(write(as_line()), WITHOUT_IDS)


def test_an_id_that_two_candidates_share_is_refused_and_written_as_a_row(write: Write, tmp_path: Path) -> None:
    twice = make_queries({"SECRET-q0": ["x"], "SECRET-q1": ["SECRET-a", "SECRET-a", "SECRET-b"]})
    with pytest.raises(ClickLogError, match="several candidates of the query share"):
        read_click_log(write(as_line()), twice)
    log = read_click_log(write(as_line(shown=[1, "SECRET-b"], clicked=[])), twice)
    write_click_log(tmp_path / "again", log, twice)
    assert json.loads((tmp_path / "again").read_text())["shown"] == [1, "SECRET-b"]


@st.composite
def logs(draw: st.DrawFn) -> ClickLog:
    """Any log of the three candidates of QUERIES' second query."""
    lists = draw(st.lists(st.permutations([0, 1, 2]).map(lambda order: order[:2]), min_size=1, max_size=6))
    n = len(lists)
    chances = st.floats(0, 1, exclude_min=True, exclude_max=True)
    names = draw(st.lists(st.text(min_size=1), min_size=1, max_size=n, unique=True))
    rest = draw(st.lists(st.integers(0, len(names) - 1), min_size=n - len(names), max_size=n - len(names)))
    return ClickLog(
        np.array([*range(len(names)), *rest]),
        np.full(n, 1),
        np.arange(0, 2 * n + 1, 2),
        np.array(lists).ravel(),
        np.array(draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))),
        np.array(draw(st.lists(chances, min_size=2 * n, max_size=2 * n))),
        tuple(names),
    )


@settings(deadline=None)
@given(logs(), st.booleans())
def test_what_is_written_is_read_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, log: ClickLog, ids: bool
) -> None:
    path, queries = tmp_path_factory.mktemp("log") / "log.jsonl", QUERIES if ids else WITHOUT_IDS
    write_click_log(path, log, queries)
    assert_equal(read_click_log(path, queries), log)


def test_a_compressed_log_is_read(write: Write) -> None:
    plain = read_click_log(write(as_line()), QUERIES)
    assert_equal(read_click_log(write(gzip.compress(as_line().encode()), "log.jsonl.gz"), QUERIES), plain)


def test_a_log_that_could_not_be_read_is_not_written(write: Write, tmp_path: Path) -> None:
    log = read_click_log(write(as_line()), QUERIES)
    for changes, said in (
        ({"propensities": np.array([0.5, 0.0])}, "outside"),
        ({"propensities": np.ones(2)}, "all 1"),
        ({"clients": np.zeros(2, np.int64)}, "do not fit together"),
        ({"starts": np.array([0, 0, 2]), "clients": np.zeros(2), "queries": np.ones(2, int)}, "shows nothing"),
    ):
        with pytest.raises(ValueError, match=said):
            write_click_log(tmp_path / "out", replace(log, **changes), QUERIES)
    assert not (tmp_path / "out").exists()


def test_a_hundred_thousand_lines_take_seconds(write: Write) -> None:
    queries = make_queries({"SECRET-q1": [f"GX{i:03}-00-0000000" for i in range(40)]})
    shown = list(queries.document_ids or ())[:10]
    path = write(as_line(shown=shown, clicked=shown[:1], propensities=[0.123456789] * 10) * 100_000)
    heard: list[int] = []
    began = time.process_time()
    log = read_click_log(path, queries, progress=heard.append)
    assert log.n_impressions == 100_000 and heard == list(range(10_000, 100_001, 10_000))
    assert time.process_time() - began < 10  # Why: about 2 s on one core; a slow shared machine must pass, too
