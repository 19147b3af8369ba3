"""The data cache: never stale, never half, never in the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hushrank.data import cache
from hushrank.data.shapes import SHAPES
from hushrank.data.synthetic import generate_queries
from hushrank.types import QuerySet

TINY = generate_queries(SHAPES["tiny"])
KEY = cache.cache_key("test")

AT_ONCE = """
import numpy as np, sys, time
from hushrank.data import cache
from hushrank.data.shapes import SHAPES
from hushrank.data.synthetic import generate_queries
def make():
    time.sleep(0.3)
    return generate_queries(SHAPES["tiny"])
for i in range(5):
    print(float(cache.fetch(cache.cache_key("race", i), make, source="race").features.sum()))
"""
UNDER_A_LIMIT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
from hushrank.data.load import load_dataset
print(load_dataset("mq2007-like:n_queries=800").n_features)
"""


def never() -> QuerySet:
    raise AssertionError("it was in the cache")


def assert_is_tiny(queries: QuerySet) -> None:
    assert np.array_equal(queries.features, TINY.features) and queries.query_ids == TINY.query_ids


def test_the_second_time_comes_from_the_cache_mapped_and_read_only() -> None:
    assert_is_tiny(cache.fetch(KEY, lambda: TINY, source="tiny"))
    again = cache.fetch(KEY, never, source="tiny")
    assert_is_tiny(again)
    assert again.features.dtype == np.float32 and not again.features.flags.writeable
    assert [(e.key, e.source) for e in cache.list_entries()] == [(KEY, "tiny")]


def test_document_ids_come_back() -> None:
    queries = QuerySet(np.ones((2, 1), np.float32), np.zeros(2, np.uint8), np.array([0, 2]), ("é",), ("", "a b"))
    cache.write_entry(KEY, queries, source="ids")
    kept = cache.read_entry(KEY)
    assert kept is not None and kept.document_ids == ("", "a b") and kept.query_ids == ("é",)


@pytest.mark.parametrize("name", ["features.npy", "grades.npy", "starts.npy", "query_ids.npy", "entry.json"])
@pytest.mark.parametrize("harm", ["cut", "flip", "remove"])
def test_a_damaged_entry_is_noticed_and_made_again(name: str, harm: str, caplog: pytest.LogCaptureFixture) -> None:
    cache.write_entry(KEY, TINY, source="tiny")
    path = cache.cache_root() / KEY / name
    content = path.read_bytes()
    path.unlink()
    if harm != "remove":
        path.write_bytes(content[:-5] if harm == "cut" else content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    assert_is_tiny(cache.fetch(KEY, lambda: TINY, source="tiny"))
    assert "is damaged" in caplog.text
    assert_is_tiny(cache.fetch(KEY, never, source="tiny"))


def test_options_and_content_make_different_keys() -> None:
    keys = [cache.cache_key(*options) for options in (["a", 1], ["a", 2], ["b", 1], ["a", [1]])]
    assert len(set(keys)) == 4


def test_a_cache_that_cannot_be_written_costs_a_message(own_cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    own_cache.parent.mkdir(exist_ok=True)
    own_cache.write_text("a file where the directory should be")
    assert_is_tiny(cache.fetch(KEY, lambda: TINY, source="tiny"))
    assert "cannot be written" in caplog.text and "Set HUSHRANK_DATA" in caplog.text
    assert cache.list_entries() == [] and cache.clear_cache() == 0


def test_a_full_disk_costs_a_message_and_leaves_nothing(own_cache: Path) -> None:
    done = subprocess.run([sys.executable, "-c", UNDER_A_LIMIT], capture_output=True, text=True, check=True)
    assert done.stdout == "46\n" and len(done.stderr.splitlines()) == 1 and "File too large" in done.stderr
    assert list((own_cache / "cache").iterdir()) == []


def test_two_processes_at_once_get_the_same_entry() -> None:
    command = [sys.executable, "-c", AT_ONCE]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in both]
    assert answers[0] == answers[1] and answers[0][1] == "" and len(set(answers[0][0].split())) == 1
    assert len(cache.list_entries()) == 5 and len(list(cache.cache_root().iterdir())) == 5


def test_clearing_removes_entries_and_unfinished_ones_but_no_data_set(own_cache: Path) -> None:
    cache.write_entry(KEY, TINY, source="tiny")
    (cache.cache_root() / ".making-killed").mkdir()
    (own_cache / "mq2008").mkdir()
    assert cache.clear_cache() > TINY.features.nbytes
    assert list(cache.cache_root().iterdir()) == [] and (own_cache / "mq2008").is_dir()


def test_the_root_is_the_named_directory_or_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HUSHRANK_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.data_root() == tmp_path / "hushrank"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.data_root() == tmp_path / ".cache" / "hushrank"
