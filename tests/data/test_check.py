"""The catalogue and the check: counts that add up, deviations that are wrong, and those that are only worth a note."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from hushrank.data import check
from hushrank.data.catalog import CATALOG, CatalogEntry, split_counts
from hushrank.data.check import Checked, check_files
from hushrank.data.export import write_dataset
from hushrank.data.load import load_dataset
from hushrank.data.normalise import METHODS
from hushrank.data.recognise import is_imitated, recognise_set

Write = Callable[..., Path]


@pytest.mark.parametrize("entry", CATALOG.values(), ids=list(CATALOG))
def test_the_parts_of_an_entry_add_up_to_the_whole(entry: CatalogEntry) -> None:
    n_parts = 5 if entry.n_folds == 5 else 3
    for parts, whole in ((entry.part_queries, entry.n_queries), (entry.part_documents, entry.n_documents)):
        assert not parts or (len(parts) == n_parts and sum(parts) == whole)
    assert entry.normalise in METHODS and re.match("https?://", entry.page) and entry.licence.endswith(".")
    assert all(hasattr(entry, name) for name in entry.unverified)


def test_folds_rotate_the_parts() -> None:
    # of S1 to S5 with 1, 10, 100, 1000, 10000 queries: fold 2 trains on S2, S3, S4, validates on S5, tests on S1
    counts = split_counts((1, 10, 100, 1_000, 10_000), 5)
    assert (counts[1, "train"], counts[1, "vali"], counts[1, "test"]) == (111, 1_000, 10_000)
    assert (counts[2, "train"], counts[2, "vali"], counts[2, "test"]) == (1_110, 10_000, 1)
    assert split_counts((7, 8, 9), 1) == {(1, "train"): 7, (1, "vali"): 8, (1, "test"): 9}
    assert split_counts((), 5) == split_counts((), 1) == {}


SMALL = replace(
    CATALOG["mq2008"], title="Small", n_queries=5, n_documents=10, n_features=2, n_grades=2,
    part_queries=(1,) * 5, part_documents=(2,) * 5,
)  # fmt: skip


def write_small(write: Write, *, without: int = 0) -> Path:
    """Five parts of one query each, rotated; `without` leaves a fold out."""
    parts = [f"1 qid:{i} 1:1 2:1\n0 qid:{i} 1:1 2:1\n" for i in range(5)]
    for fold in range(1, 6):
        around = parts[fold - 1 :] + parts[: fold - 1]
        texts = {"train": "".join(around[:3]), "vali": around[3], "test": around[4]}
        for role, text in texts.items() if fold != without else ():
            path = write(text, f"copy/Fold{fold}/{role}.txt")
    return path.parents[1]


@pytest.fixture
def catalogued(monkeypatch: pytest.MonkeyPatch) -> Callable[[CatalogEntry], None]:
    """Put another entry in the place of mq2008."""
    return lambda entry: monkeypatch.setattr(check, "CATALOG", MappingProxyType({**CATALOG, "mq2008": entry}))


def test_a_complete_copy_has_no_deviation(write: Write, catalogued: Callable[[CatalogEntry], None]) -> None:
    catalogued(SMALL)
    found = check_files(str(write_small(write)), known_as="mq2008")
    assert found.problems == found.notes == () and found.compared_with == "mq2008"


def test_every_deviation_is_named(write: Write, catalogued: Callable[[CatalogEntry], None]) -> None:
    catalogued(SMALL)
    place = write_small(write)
    write("2 qid:4 1:1 2:1 3:1\n", "copy/Fold1/test.txt")  # one document too few, a grade and a feature too many
    assert check_files(str(place), known_as="mq2008").problems == tuple(
        f"{said}. Is the copy complete?"
        for said in (
            "3 features came, Small has 2",
            "3 grades came, Small has 2",
            "9 documents came, Small has 10",
            "1 document in fold 1's test came, Small has 2",
        )
    )


def test_a_missing_fold_is_one_deviation_and_not_many(write: Write, catalogued: Callable[[CatalogEntry], None]) -> None:
    catalogued(SMALL)
    found = check_files(str(write_small(write, without=3)), known_as="mq2008")
    assert found.problems == ("4 folds came, Small has 5. Is the copy complete?",)


def test_one_is_singular(write: Write, catalogued: Callable[[CatalogEntry], None]) -> None:
    catalogued(replace(SMALL, n_features=1, n_grades=3, part_queries=(2,) * 5))
    place = write("", "one/README").parent
    for role in ("train", "vali", "test"):
        write("0 qid:1 1:1 2:1\n", f"one/Fold1/{role}.txt")
    said = " ".join(check_files(str(place), known_as="mq2008").problems)
    assert "1 fold came" in said and "1 grade came" in said and "1 query in fold 1's test came" in said


def write_like_mq2007(write: Write, name: str, *, n_documents: int) -> Path:
    """46 features, 3 grades and 5 folds, each of which tests `n_documents` documents of one query."""
    row = " ".join(f"{feature}:1" for feature in range(1, 47))
    text = "".join(f"{grade % 3} qid:1 {row}\n" for grade in range(n_documents))
    for fold in range(1, 6):
        for role in ("train", "vali", "test"):
            path = write(text if role == "test" else f"2 qid:2 {row}\n", f"{name}/Fold{fold}/{role}.txt")
    return path.parents[1]


def test_a_damaged_copy_under_another_name_is_compared_with_what_it_is_like(write: Write) -> None:
    place = write_like_mq2007(write, "copy", n_documents=11_836)  # 59,180 in all, 85 % of MQ2007's 69,623
    found = check_files(str(place))
    assert found.compared_with == "mq2007"
    assert "59,180 documents came, LETOR 4.0 MQ2007 has 69,623. Is the copy complete?" in found.problems
    assert found.notes[-1].endswith("with another set by --as NAME, with none by --as none.")
    chosen = check_files(str(place), known_as="none")
    assert chosen.compared_with is None and chosen.problems == chosen.notes == ()


def test_a_name_that_begins_like_a_set_is_enough(write: Write) -> None:
    small = {name: write_like_mq2007(write, name, n_documents=3) for name in ("MQ2008-old", "mine")}
    compared = {name: check_files(str(place)).compared_with for name, place in small.items()}
    assert compared == {"MQ2008-old": "mq2008", "mine": None}


def test_the_real_set_is_recognised_by_what_it_holds(mq2008: Path, tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(mq2008)
    copy = tmp_path / "copy"
    shutil.copytree(mq2008, copy)
    assert [recognise_set(place) for place in (mq2008, tmp_path / "x", copy)] == ["mq2008"] * 3
    checked = check_files(str(copy))
    assert (checked.compared_with, checked.problems, checked.notes) == ("mq2008", (), ())


@pytest.mark.parametrize("shape", ["mq2008-like", "mq2008-like:n_queries=700", "mq2007-like"])
def test_a_generated_set_is_neither_the_real_one_nor_a_damaged_one(shape: str, tmp_path: Path) -> None:
    write_dataset(load_dataset(shape), tmp_path / "mq2008-made")
    assert recognise_set(tmp_path / "mq2008-made") is None
    assert check_files(str(tmp_path / "mq2008-made")) == Checked(None, (), ())


def test_counts_that_a_generated_set_has_too_do_not_make_a_set_the_real_one() -> None:
    assert {name for name, entry in CATALOG.items() if is_imitated(entry)} == {"mq2007"}


def test_a_number_that_is_not_verified_is_told_and_not_enforced(
    write: Write, catalogued: Callable[[CatalogEntry], None]
) -> None:
    catalogued(replace(SMALL, n_documents=11, unverified=("n_documents",)))
    found = check_files(str(write_small(write)), known_as="mq2008")
    assert found.problems == ()
    assert found.notes == ("10 documents came, Small has 11, but that number is not verified.",)


def test_a_damaged_file_is_named_before_anything_is_compared(write: Write) -> None:
    place = write_small(write)
    write("x\n", "copy/Fold2/vali.txt")
    found = check_files(str(place), known_as="mq2008")
    assert len(found.problems) == 1 and "vali.txt, line 1" in found.problems[0]


def test_a_place_that_is_not_there_says_how_to_get_the_data(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"does not exist\. Visit https://www.*MQ2008\.rar.* into .*nowhere\."):
        check_files(str(tmp_path / "nowhere"), known_as="mq2008")
    with pytest.raises(FileNotFoundError, match=r"mq2007 is not here\. Visit "):
        check_files("mq2007")
    with pytest.raises(ValueError, match="'mq2009' is no data set of the catalogue, which has mq2007, mq2008"):
        check_files(str(tmp_path), known_as="mq2009")
