"""TREC runs and qrels: by hand, names that cannot clash, and pytrec_eval as the judge of both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from hushrank.data.letor import read_letor
from hushrank.data.load import load_dataset
from hushrank.data.trec import name_documents, write_qrels, write_trec_run
from hushrank.metrics.offline import evaluate
from hushrank.streams import draw_normal, seed_key
from hushrank.types import QuerySet

Write = Callable[..., Path]


def make_queries(ids: tuple[str, ...] | None) -> QuerySet:
    """Queries a (two documents) and b (the rest)."""
    n = len(ids or "....")
    return QuerySet(np.zeros((n, 1), np.float32), np.arange(n, dtype=np.uint8), np.array([0, 2, n]), ("a", "b"), ids)


def test_qrels_and_run_by_hand(tmp_path: Path) -> None:
    queries = make_queries(("x", "y", "x", "z"))
    write_qrels(tmp_path / "q", queries)
    write_trec_run(tmp_path / "r", queries, np.array([0.5, 2.0, 1.0, 1.0]), tag="mine")
    assert (tmp_path / "q").read_text() == "a 0 x 0\na 0 y 1\nb 0 x 2\nb 0 z 3\n"
    assert (tmp_path / "r").read_text() == ("a Q0 y 1 2 mine\na Q0 x 2 0.5 mine\nb Q0 x 1 1 mine\nb Q0 z 2 1 mine\n")


def test_a_name_is_one_word_that_no_other_document_of_the_query_has() -> None:
    queries = make_queries(("", "two words", "same", "same", "own"))
    assert name_documents(queries, 0) == ["a-0", "a-1"]
    assert name_documents(queries, 1) == ["b-2", "b-3", "own"]
    assert name_documents(make_queries(None), 1) == ["b-2", "b-3"]


def read_columns(path: Path, value: int) -> dict[str, dict[str, float]]:
    """{query: {document: the column `value`}} of a TREC file."""
    table: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        cells = line.split()
        assert cells[2] not in table.setdefault(cells[0], {}), "a document has one name"
        table[cells[0]][cells[2]] = float(cells[value])
    return table


def check_against_pytrec_eval(queries: QuerySet, tmp_path: Path) -> None:
    """trec_eval's gain is the grade and ours 2^grade - 1; it counts queries without a relevant document as 0."""
    scores = draw_normal(seed_key(8), queries.n_documents)  # all different: ties are sorted by name there, stably here
    write_qrels(tmp_path / "q", queries)
    write_trec_run(tmp_path / "r", queries, scores, tag="random")
    gains = {q: {d: int(2**g - 1) for d, g in row.items()} for q, row in read_columns(tmp_path / "q", 3).items()}
    judged = pytrec_eval.RelevanceEvaluator(gains, {"ndcg_cut_10"}).evaluate(read_columns(tmp_path / "r", 4))
    theirs = [judged[query]["ndcg_cut_10"] for query, row in gains.items() if any(row.values())]
    ours = evaluate(queries, scores)["nDCG@10"]
    assert ours.n_queries == len(theirs) and ours.value == pytest.approx(np.mean(theirs), abs=1e-9)


def test_pytrec_eval_finds_our_ndcg_in_what_is_written(tmp_path: Path) -> None:
    check_against_pytrec_eval(load_dataset("mq2008-like", folds=[1]).folds[0].test, tmp_path)


def test_pytrec_eval_finds_our_ndcg_on_mq2008_with_its_document_ids(mq2008: Path, tmp_path: Path) -> None:
    queries = read_letor(mq2008 / "Fold1" / "test.txt", keep_document_ids=True)
    check_against_pytrec_eval(queries, tmp_path)
    assert (tmp_path / "q").read_text().split()[2].startswith("GX")
