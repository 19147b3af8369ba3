"""load_dataset: what a name or a directory means."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hushrank.data.cache import list_entries
from hushrank.data.load import load_dataset
from hushrank.types import Dataset

Write = Callable[..., Path]
ROWS = "2 qid:1 1:4 2:2\n0 qid:1 1:2 2:2\n1 qid:2 1:1 2:3\n"


def make_folds(write: Write, n_folds: int, place: str = "set") -> Path:
    for fold in range(1, n_folds + 1):
        for role in ("train", "vali", "test"):
            write(ROWS + f"1 qid:{role} 1:{fold}\n", f"{place}/Fold{fold}/{role}.txt")
    return write("", f"{place}/readme.txt").parent


def splits(dataset: Dataset) -> list[tuple[int, ...]]:
    return [tuple(s.n_queries for s in (fold.train, fold.vali, fold.test)) for fold in dataset.folds]


def test_every_fold_that_is_present_is_loaded(write: Write) -> None:
    dataset = load_dataset(str(make_folds(write, 3)))
    assert [fold.number for fold in dataset.folds] == [1, 2, 3] and splits(dataset) == [(3, 3, 3)] * 3
    assert (dataset.name, dataset.normalise, dataset.n_features, dataset.n_grades) == ("set", "none", 2, 3)
    assert dataset.folds[1].vali.query_ids == ("1", "2", "vali") and dataset.folds[1].vali.document_ids is None


def test_named_folds_are_loaded_and_an_absent_one_is_refused(write: Write) -> None:
    place = str(make_folds(write, 3))
    assert [fold.number for fold in load_dataset(place, folds=[3, 1]).folds] == [3, 1]
    with pytest.raises(ValueError, match="has no fold 4; it has 1, 2, 3"):
        load_dataset(place, folds=[1, 4])
    with pytest.raises(ValueError, match=r"folds are \[1, 1\], must be different numbers"):
        load_dataset(place, folds=[1, 1])


def test_a_fold_that_lacks_a_file_is_refused_with_its_name(write: Write) -> None:
    place = make_folds(write, 2)
    (place / "Fold2" / "vali.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"Fold2/vali\.txt is missing"):
        load_dataset(str(place))
    assert len(load_dataset(str(place), folds=[1]).folds) == 1


@pytest.mark.parametrize(
    "names", [("train.txt", "vali.txt", "test.txt"), ("set1.train.txt", "set1.valid.txt", "set1.test.txt")]
)
def test_three_files_are_one_fold(write: Write, names: tuple[str, ...]) -> None:
    for name in names:
        write(ROWS, f"three/{name}")
    dataset = load_dataset(str(write("", "three/notes.md").parent))
    assert splits(dataset) == [(2, 2, 2)] and dataset.folds[0].number == 1


def test_two_files_of_the_same_role_are_refused(write: Write) -> None:
    write(ROWS, "two/set1.train.txt")
    with pytest.raises(ValueError, match=r"has two train files, set1\.train\.txt and set2\.train\.txt"):
        load_dataset(str(write(ROWS, "two/set2.train.txt").parent))


def test_lightgbms_pair_holds_out_the_last_fifth_of_train(write: Write) -> None:
    write("".join(f"1 1:{i}\n0 2:{i}\n" for i in range(10)), "gbm/rank.train")
    write("2\n" * 10, "gbm/rank.train.query")
    write("1 3:1\n", "gbm/rank.test")
    heard: list[str] = []
    dataset = load_dataset(str(write("1\n", "gbm/rank.test.query").parent), progress=heard.append)
    assert splits(dataset) == [(8, 2, 1)] and dataset.folds[0].vali.query_ids == ("9", "10")
    assert dataset.folds[0].train.n_features == dataset.folds[0].test.n_features == 3
    assert any("the last fifth of the queries of rank.train is held out" in sentence for sentence in heard)


def test_standard_is_measured_on_the_train_split_of_the_same_fold(write: Write) -> None:
    fold = load_dataset(str(make_folds(write, 2)), normalise="standard").folds[1]
    column = np.array([4, 2, 1, 2.0])  # the first feature of fold 2, the same in every split
    expected = (column - column.mean()) / column.std()
    assert np.allclose(fold.train.features[:, 0], expected) and np.allclose(fold.test.features[:, 0], expected)


def test_the_fingerprint_follows_content_and_options_and_not_the_place(write: Write, tmp_path: Path) -> None:
    place = make_folds(write, 2)
    first = load_dataset(str(place)).fingerprint
    assert load_dataset(shutil.copytree(place, tmp_path / "copy").as_posix()).fingerprint == first
    others = [
        load_dataset(str(place), folds=[1]).fingerprint,
        load_dataset(str(place), normalise="standard").fingerprint,
    ]
    write(ROWS + "1 qid:vali 1:99\n", "set/Fold2/vali.txt")
    changed = load_dataset(str(place))
    assert len({first, changed.fingerprint, *others}) == 4
    assert changed.folds[1].vali.features[-1, 0] == 99  # and the cache is not stale


def test_a_directory_that_is_no_data_set_is_refused(tmp_path: Path, write: Write) -> None:
    with pytest.raises(FileNotFoundError, match=r"is no data set\. A data set's directory holds FoldN/"):
        load_dataset(str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"is a file\. Name a directory"):
        load_dataset(str(write(ROWS)))


def test_a_link_is_called_as_it_is_typed_or_as_the_public_set_behind_it(write: Write, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(make_folds(write, 1, "2024-export"))
    (tmp_path / "d").symlink_to(make_folds(write, 1, "MQ2008"))
    assert [load_dataset(tmp_path / link).name for link in ("mine", "d")] == ["mine", "MQ2008"]


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"neither a directory nor the name .* Did you mean mq2007-like"):
        load_dataset("mq2007-lik")
    with pytest.raises(FileNotFoundError, match="Known names: tiny, "):
        load_dataset(str(tmp_path / "nowhere-at-all"))


def test_a_public_set_that_is_absent_says_how_to_get_it(own_cache: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("mslr-web10k")
    message = str(caught.value)
    assert "Visit https://www.microsoft.com/" in message and "Take MSLR-WEB10K.zip and unpack it." in message
    assert f"into {own_cache / 'mslr-web10k'}." in message and "\n" not in message


def test_a_public_name_is_found_in_the_data_root_with_its_normalisation(write: Write) -> None:
    make_folds(write, 1, "data-root/MSLR-WEB10K")
    dataset = load_dataset("mslr-web10k")
    assert (dataset.name, dataset.normalise) == ("mslr-web10k", "query-minmax")
    assert dataset.folds[0].train.features.tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]


def test_a_public_name_is_found_in_the_current_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folds(write, 1, "MSLR-WEB10K")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("mslr-web10k").normalise == "query-minmax"
    assert load_dataset("MSLR-WEB10K").normalise == "none"  # a directory that exists under that very name


def test_a_shape_is_generated_small_ones_without_the_cache() -> None:
    dataset = load_dataset("tiny", seed=2)
    assert splits(dataset) == [(36, 12, 12)] * 5 and (dataset.name, dataset.normalise) == ("tiny", "none")
    assert list_entries() == [] and dataset.fingerprint != load_dataset("tiny", seed=3).fingerprint


def test_a_large_shape_comes_from_the_cache_the_second_time() -> None:
    first, second = (load_dataset("mq2007-like:n_queries=800", folds=[5]) for _ in range(2))
    assert len(list_entries()) == 1 and first.fingerprint == second.fingerprint
    assert np.array_equal(first.folds[0].train.features, second.folds[0].train.features)


def test_a_shape_can_be_normalised_and_its_folds_named() -> None:
    dataset = load_dataset("tiny", folds=[2], normalise="standard")
    assert np.allclose(dataset.folds[0].train.features.mean(axis=0), 0, atol=1e-6)
    with pytest.raises(ValueError, match="tiny has no fold 6; it has 1 to 5"):
        load_dataset("tiny", folds=[6])


def test_mq2008_loads_with_its_published_counts(mq2008: Path) -> None:
    dataset = load_dataset(str(mq2008))
    tests = [fold.test for fold in dataset.folds]
    assert (sum(t.n_queries for t in tests), sum(t.n_documents for t in tests), dataset.n_features) == (784, 15_211, 46)


def test_lightgbms_own_example_loads(tmp_path: Path) -> None:
    archive = Path(__file__).parents[3] / "shared" / "data" / "LightGBM_rank.tar.xz"
    if not archive.is_file():
        pytest.skip("LightGBM's example is not beside the repository (../shared/data/LightGBM_rank.tar.xz)")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    dataset = load_dataset(str(tmp_path / "LightGBM_rank"))
    assert splits(dataset) == [(161, 40, 50)] and (dataset.n_features, dataset.n_grades) == (300, 5)


def test_loading_data_imports_neither_jax_nor_scipy_nor_pyarrow() -> None:
    program = "import sys; from hushrank.data.load import load_dataset; load_dataset('tiny'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"jax", "scipy", "pyarrow", "pandas", "sklearn"} & set(done.stdout.split())
