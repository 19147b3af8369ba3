"""A set with grades by intent, as it is published: one LETOR file, and a folder of qrels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hushrank.data.catalog import CATALOG
from hushrank.data.check import check_files
from hushrank.data.export import write_dataset
from hushrank.data.letor import LetorError
from hushrank.data.load import load_dataset
from hushrank.data.notices import notice_dataset
from hushrank.data.trec import read_qrels

Write = Callable[..., Path]
ROWS = "1 qid:7 1:4 2:2 #en-1\n0 qid:7 1:2 2:1 #en-2\n1 qid:9 1:1 2:3 #docid = en-1\n0 qid:9 1:5 2:0 #docid = en-3\n"
INTENTS = {
    "0.txt": "not read at all\n",
    "1.txt": "7 0 en-1 1\n7 0 en-2 0\n9 0 en-3 1\n",
    "2.txt": "7 0 en-2 1\n9 0 en-1 -2\n",
}


def make_set(write: Write, *, intents: dict[str, str] | None = None, name: str = "clueweb09_intent_change.txt") -> Path:
    for file, text in (INTENTS if intents is None else intents).items():
        write(text, f"set/intents/{file}")
    return write(ROWS, f"set/{name}").parent


def test_one_file_and_its_intents_are_a_set_that_is_tested_on_its_training_queries(write: Write) -> None:
    dataset = load_dataset(make_set(write))
    (fold,) = dataset.folds
    assert fold.train.intents is not None
    assert fold.train.intents.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0]]  # missing pairs, spam (-2): not relevant
    assert fold.train.grades.tolist() == [1, 1, 0, 1]  # the union, whatever the rows say
    assert fold.test is fold.train and fold.train.document_ids is None
    notices = notice_dataset(dataset)
    assert [notice.name for notice in notices] == ["no-held-out"] and "no held-out queries" in notices[0].sentence


def test_a_divided_set_has_the_same_intents_in_every_split(write: Write) -> None:
    place = make_set(write, name="Fold1/train.txt").parent
    for role in ("vali", "test"):
        write(ROWS.replace("1:4", "1:3"), f"set/Fold1/{role}.txt")
    fold = load_dataset(place).folds[0]
    assert fold.test.intents is not None and fold.test.intents.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0]]
    assert notice_dataset(load_dataset(place)) == []


def test_another_content_of_an_intent_is_another_set(write: Write) -> None:
    place = make_set(write)
    before = load_dataset(place)
    write("7 0 en-2 1\n9 0 en-1 1\n", "set/intents/2.txt")
    after = load_dataset(place)
    assert before.fingerprint != after.fingerprint
    assert after.folds[0].train.intents is not None and after.folds[0].train.intents[1].tolist() == [0, 1, 1, 0]


def test_intents_come_back_normalised_and_from_the_cache(write: Write) -> None:
    place = make_set(write)
    first, again = (load_dataset(place, normalise="query-minmax").folds[0].train for _ in range(2))
    assert first.intents is not None and again.intents is not None
    assert np.array_equal(first.intents, again.intents) and again.features.max() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("7 0 en-1 1\n7 0 en-2\n", r"2\.txt, line 2: 3 words came, must be 4: query 0 document grade"),
        ("7 0 en-1 high\n", r"2\.txt, line 1: the grade must be a whole number up to 255"),
        ("7 0 en-1 256\n", r"2\.txt, line 1: the grade must be a whole number up to 255"),
        ("\n7 0 en-1 1\n7 0 en-1 0\n", r"2\.txt, line 3: its query and document had another grade before"),
    ],
)
def test_a_damaged_line_is_named_by_file_and_number_and_not_repeated(write: Write, text: str, message: str) -> None:
    place = make_set(write, intents={**INTENTS, "2.txt": text})
    with pytest.raises(LetorError, match=message) as caught:
        load_dataset(place)
    assert "en-1" not in str(caught.value)
    assert any("2.txt, line" in problem for problem in check_files(str(place), known_as="none").problems)


def test_an_intent_that_is_missing_or_alone_is_named(write: Write) -> None:
    with pytest.raises(FileNotFoundError, match=r"intents/2\.txt is missing\. The folder needs 1\.txt, 2\.txt"):
        load_dataset(make_set(write, intents={"1.txt": "7 0 en-1 1\n"}))
    write("7 0 en-1 1\n", "set/intents/3.txt")
    with pytest.raises(FileNotFoundError, match=r"intents/2\.txt is missing"):
        load_dataset(make_set(write, intents={}))


def test_two_files_of_one_intent_are_refused(write: Write) -> None:
    with pytest.raises(ValueError, match=r"intents has two files of intent 1, 01\.txt and 1\.txt"):
        load_dataset(make_set(write, intents={**INTENTS, "01.txt": "7 0 en-1 1\n"}))


def test_names_that_never_meet_and_rows_without_names_are_refused(write: Write) -> None:
    strangers = dict.fromkeys(("1.txt", "2.txt"), "7 0 other 1\n")
    with pytest.raises(LetorError, match=r"none of its queries and documents is in .*1\.txt\. Are they named alike"):
        load_dataset(make_set(write, intents=strangers))
    with pytest.raises(LetorError, match=r"none of its queries and documents is in .*2\.txt\. Are they named alike"):
        load_dataset(make_set(write, intents={**INTENTS, "2.txt": "7 0 other 1\n"}))
    place = make_set(write)
    write("1 qid:7 1:4\n0 qid:7 1:2 #en-2\n", "set/clueweb09_intent_change.txt")
    with pytest.raises(LetorError, match="a row has no document name, which the files in intents/ need"):
        load_dataset(place)


def test_one_file_without_intents_is_still_no_set(write: Write) -> None:
    place = write(ROWS, "alone/rows.txt").parent
    with pytest.raises(FileNotFoundError, match="is no data set"):
        load_dataset(place)


def test_the_catalogue_finds_the_set_by_its_name_and_scales_it_as_published(write: Write, own_cache: Path) -> None:
    make_set(write).rename(write("", "data-root/x").parent / "intent-change")
    assert (own_cache / "intent-change").is_dir()
    dataset = load_dataset("intent-change")
    assert dataset.normalise == "query-minmax" == CATALOG["intent-change"].normalise
    assert dataset.folds[0].train.n_intents == 2


def test_a_generated_set_with_intents_is_written_and_read_back(tmp_path: Path) -> None:
    made = load_dataset("intent-change-like:n_queries=10,shortest=3,mean_length=6,longest=9,n_features=5", folds=[1, 2])
    names = write_dataset(made, tmp_path / "copy")
    assert names[-4:] == ["intents/1.txt", "intents/2.txt", "intents/3.txt", "intents/4.txt"]
    copy = load_dataset(tmp_path / "copy")
    for before, after in zip(made.folds, copy.folds, strict=True):
        for role in ("train", "vali", "test"):
            one, two = getattr(before, role), getattr(after, role)
            assert np.array_equal(one.intents, two.intents) and np.array_equal(one.grades, two.grades)
            assert np.array_equal(one.features, two.features) and one.query_ids == two.query_ids


def test_qrels_may_be_empty_lines_and_compressed_and_are_read_by_pair(write: Write) -> None:
    import gzip

    path = write(gzip.compress(b"1 0 a 2\n\n1 0 b 0\r\n"), "q.txt.gz")
    assert read_qrels(path) == {("1", "a"): 2, ("1", "b"): 0}
