"""The store of impressions: what goes in comes out, each is used once, and a kill at any moment leaves it whole."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seeds import pick_seed

from hushrank.live.device import database
from hushrank.live.device.database import MIGRATIONS, StoreError
from hushrank.live.device.impressions import SAMPLED, SORTED, Impression
from hushrank.live.device.outbox import REFUSED, SENT, WAITING, Answer
from hushrank.live.device.store import FINISHED_AFTER_S, Interactions, KeptRanker, Membership


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Interactions]:
    with Interactions(tmp_path / "home" / "client.sqlite") as opened:
        yield opened


def shown(round: int = 1, n: int = 5, **changes: Any) -> Impression:
    """A list of three of n candidates, the second one clicked."""
    made = np.random.default_rng(n)
    values: dict[str, Any] = {
        "features": made.random((n, 4), dtype=np.float32),
        "scores": made.normal(size=n).astype(np.float32),
        "ranking": np.array([2, 0, 1]),
        "is_clicked": np.array([False, True, False]),
    }
    return Impression(round, **(values | changes))


def find(store: Interactions, limit: int = 10, oldest_round: int = 0) -> list[int]:
    found = store.find_free(policy=SAMPLED, oldest_round=oldest_round, limit=limit)
    return [number for number, _ in found]


def test_an_impression_comes_out_as_it_went_in(store: Interactions) -> None:
    written = shown(round=7)
    number = store.add(written)
    ((found_number, found),) = store.find_free(policy=SAMPLED, oldest_round=7, limit=9)
    assert found_number == number
    for name in ("features", "scores", "ranking", "is_clicked"):
        assert getattr(found, name).tolist() == getattr(written, name).tolist(), name
    assert (found.round, found.policy, found.seed, found.direction) == (7, SAMPLED, None, None)
    assert found.features.dtype == found.scores.dtype == np.float32 and found.is_clicked.dtype == bool


def test_a_store_makes_the_folders_above_it(tmp_path: Path) -> None:
    with Interactions(tmp_path / "people" / "7" / "home" / "client.sqlite") as store:
        assert find(store) == [] and store.path.is_file()


def test_the_newest_are_found_in_the_order_they_were_shown(store: Interactions) -> None:
    numbers = [store.add(shown(round)) for round in (1, 2, 2, 3)]
    assert find(store, limit=3) == numbers[1:]
    assert find(store, oldest_round=3) == numbers[3:]


def test_lists_of_another_policy_seed_or_direction_are_not_found(store: Interactions) -> None:
    plus = store.add(shown(policy=SORTED, seed=2**32 - 1, direction=1))
    minus = store.add(shown(policy=SORTED, seed=2**32 - 1, direction=-1))
    store.add(shown(policy=SORTED, seed=5, direction=1))
    store.add(shown(policy=SORTED))
    wanted = [
        store.find_free(policy=SORTED, oldest_round=0, limit=9, seed=2**32 - 1, direction=direction)
        for direction in (1, -1)
    ]
    assert [[number for number, _ in found] for found in wanted] == [[plus], [minus]]
    assert store.count_shown(round=1, seed=2**32 - 1, direction=1) == 1
    assert store.count_shown(round=1) == 4
    assert find(store) == []


def test_clicks_come_until_the_list_is_finished_or_used(store: Interactions) -> None:
    number = store.add(shown(is_clicked=np.zeros(3, bool)), is_finished=False)
    assert find(store) == []
    assert store.click(number, 2) and store.click(number, 0)
    store.finish(number)
    ((_, found),) = store.find_free(policy=SAMPLED, oldest_round=0, limit=1)
    assert found.is_clicked.tolist() == [True, False, True]
    store.outbox.commit(Answer(1, b"abcd", 1.0, "none"), [number])
    assert not store.click(number, 1)
    assert not store.click(number + 1, 1)
    with pytest.raises(ValueError, match="position is 3, the list has 0 to 2"):
        store.click(store.add(shown()), 3)


def test_a_list_whose_application_died_is_finished_after_half_an_hour(
    store: Interactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(shown(), is_finished=False)
    assert find(store) == []
    later = time.time() + FINISHED_AFTER_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert len(find(store)) == 1


def test_an_impression_is_used_once(store: Interactions) -> None:
    numbers = [store.add(shown()) for _ in range(3)]
    store.outbox.commit(Answer(4, b"abcd", 2.0, "none"), numbers[:2])
    assert find(store) == numbers[2:]
    with pytest.raises(StoreError, match="used by another answer"):
        store.outbox.commit(Answer(5, b"efgh", 2.0, "none"), numbers[1:])
    assert find(store) == numbers[2:]  # nothing of it was kept
    assert store.outbox.find(5) is None and store.count_used() == {4: 2}
    with pytest.raises(StoreError, match="UNIQUE"):
        store.outbox.commit(Answer(4, b"efgh", 1.0, "none"), numbers[2:])
    assert find(store) == numbers[2:]


def test_a_late_answer_frees_its_impressions_and_a_bad_one_does_not(store: Interactions) -> None:
    numbers = [store.add(shown()) for _ in range(2)]
    store.outbox.commit(Answer(1, b"a", 1.0, "none"), numbers[:1])
    store.outbox.refuse(1, "late", frees=True)
    assert find(store) == numbers
    store.outbox.commit(Answer(2, b"b", 2.0, "none"), numbers)
    store.outbox.refuse(2, "norm", frees=False)
    assert find(store) == []
    assert [(a.round, a.state, a.reason) for a in store.outbox.answers()] == [
        (1, REFUSED, "late"),
        (2, REFUSED, "norm"),
    ]


def test_the_outbox_keeps_every_byte_and_what_became_of_it(store: Interactions) -> None:
    store.outbox.commit(Answer(3, b"\x00\xff", 4.0, "no guarantee"), [])
    store.outbox.commit(Answer(9, b"", 1.0, "no guarantee"), [])
    store.outbox.confirm(3)
    first, second = store.outbox.answers()
    assert (first.round, first.body, first.weight, first.state) == (3, b"\x00\xff", 4.0, SENT)
    assert store.outbox.answers(WAITING) == [second] == [store.outbox.newest()] and second.round == 9
    assert first.made_at == pytest.approx(time.time(), abs=60)


def test_the_newest_ranker_takes_the_place_of_older_ones_and_keeps_its_seed(store: Interactions) -> None:
    assert store.newest_ranker() is None
    params = np.array([0.5, -1.0], np.float32)
    assert store.keep_ranker(KeptRanker(2, params, seed=11)).seed == 11
    assert store.keep_ranker(KeptRanker(2, params, seed=12)).seed == 11  # lists may have been shown under the first
    kept = store.keep_ranker(KeptRanker(5, 2 * params, seed=None))
    assert (kept.round, kept.params.tolist(), kept.seed) == (5, [1.0, -2.0], None)


def test_the_membership_is_one_row(store: Interactions) -> None:
    assert store.membership() is None
    store.keep_membership(Membership("http://a", "{}", "secret", "joining"))
    store.keep_membership(Membership("http://a", "{}", "secret", "member"))
    assert store.membership() == Membership("http://a", "{}", "secret", "member")


def test_what_is_too_old_to_be_learnt_from_can_be_forgotten(store: Interactions) -> None:
    numbers = [store.add(shown(round)) for round in (1, 2, 3)]
    store.outbox.commit(Answer(1, b"", 1.0, ""), numbers[:1])
    assert store.forget_before(3) == 2 and store.forget_before(3) == 0
    assert find(store) == numbers[2:] and not store.click(numbers[1], 0)
    assert store.count_used() == {1: 1} and store.count_shown(round=2) == 1  # that there was one stays
    with closing(sqlite3.connect(store.path)) as raw:
        sizes = raw.execute("SELECT length(features) FROM impressions ORDER BY number").fetchall()
    assert sizes == [(0,), (0,), (5 * 4 * 4,)]


def read_all(directory: Path) -> bytes:
    """Every byte of every file."""
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


@pytest.mark.parametrize("secure_delete", ["ON", "OFF"])
def test_what_was_forgotten_is_in_no_byte_of_any_file(
    secure_delete: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand lists, each with a number of its own in its features; the store stays open, as in a running client."""
    monkeypatch.setattr(database, "SECURE_DELETE", secure_delete)
    markers = np.random.default_rng(11).random((1000, 5), np.float32)
    with Interactions(tmp_path / "home" / "client.sqlite") as store:
        assert store._database.overwrites == (secure_delete == "ON")
        for number, marker in enumerate(markers):
            features = np.tile(marker[:, None], (1, 40))  # some pages' worth
            store.add(shown(1 + number % 2 * 1000, features=features, scores=marker))
        whole = read_all(tmp_path)
        assert all(marker.tobytes() in whole for marker in markers)
        assert store.forget_before(1000) == 500
        left = read_all(tmp_path)
        is_left = [marker.tobytes() in left or np.tile(marker[0], 8).tobytes() in left for marker in markers]
        assert is_left == [False, True] * 500


def test_a_log_that_somebody_reads_is_emptied_the_next_time(store: Interactions) -> None:
    marker = np.random.default_rng(12).random(5, np.float32)
    store.add(shown(1, scores=marker))
    with sqlite3.connect(store.path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM impressions").fetchone()
        assert store.forget_before(2) == 1 and marker.tobytes() in read_all(store.path.parent)
    reader.close()
    assert store.forget_before(2) == 0 and marker.tobytes() not in read_all(store.path.parent)


def test_the_file_is_for_its_owner_only(store: Interactions) -> None:
    store.add(shown())
    files = list(store.path.parent.iterdir())
    assert {f"{store.path.name}{end}" for end in ("", "-wal", "-shm")} == {path.name for path in files}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_a_file_of_a_newer_version_and_one_that_is_no_store_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "newer") as newer:
        newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    with pytest.raises(StoreError, match=r"has version \d+, this hushrank reads up to \d+: update hushrank"):
        Interactions(tmp_path / "newer")
    (tmp_path / "other").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Interactions(tmp_path / "other")


def test_a_file_of_an_older_version_is_brought_to_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Interactions(tmp_path / "old").close()
    monkeypatch.setattr(database, "MIGRATIONS", (*MIGRATIONS, ("ALTER TABLE outbox ADD COLUMN note TEXT",)))
    for round in (1, 2):  # the second time nothing is left to do
        with Interactions(tmp_path / "old") as store:
            store.outbox.commit(Answer(round, b"", 1.0, ""), [])
    with sqlite3.connect(tmp_path / "old") as raw:
        assert raw.execute("SELECT round, note FROM outbox").fetchall() == [(1, None), (2, None)]
    raw.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ranking": np.array([0, 0, 1])}, "names different documents, each from 0 to 4"),
        ({"ranking": np.array([0, 5, 1])}, "names different documents, each from 0 to 4"),
        ({"is_clicked": np.array([True])}, "3 documents and 1 click marks"),
        ({"features": np.zeros((4, 4), np.float32)}, r"features are \(4, 4\) for 5 scores"),
        ({"scores": np.array([0, 1, 2, np.nan, 4], np.float32)}, "not a finite number"),
        ({"policy": "guess"}, "policy is 'guess', must be plackett-luce or sorted"),
        ({"seed": 3}, "has a seed and a direction"),
        ({"seed": 3, "direction": 2}, "has a seed and a direction"),
    ],
)
def test_what_cannot_have_been_shown_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shown(**changes)


WRITER = """
import json
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_device_store import SAMPLED, Answer, Interactions, shown
with Interactions(Path(sys.argv[1])) as store:
    round = max((answer.round for answer in store.outbox.answers()), default=0)
    while True:
        round += 1
        print(store.add(shown(round)), store.add(shown(round)), flush=True)
        used = [number for number, _ in store.find_free(policy=SAMPLED, oldest_round=0, limit=100)]
        store.outbox.commit(Answer(round, json.dumps(used).encode(), 1.0, ""), used)
        store.outbox.refuse(round, "late", frees=True) if round % 3 == 0 else store.outbox.confirm(round)
"""


@pytest.mark.randomised
def test_kill_9_at_any_moment_neither_loses_nor_repeats_an_impression(tmp_path: Path) -> None:
    path, moments, acknowledged = tmp_path / "client.sqlite", random.Random(pick_seed(5)), set[int]()
    for _ in range(6):
        command = [sys.executable, "-c", WRITER, str(path), *map(str, Path(__file__).parents[:3])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(3):  # Why: so that two answers of every life are committed, however slow the machine
                acknowledged |= set(map(int, writer.stdout.readline().split()))
            time.sleep(moments.uniform(0, 0.1))
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout.read().splitlines():
                acknowledged |= set(map(int, line.split()))
    with Interactions(path) as store:
        counted = [a for a in store.outbox.answers() if a.state != REFUSED]
        used = [number for answer in counted for number in json.loads(answer.body)]
        free = find(store, limit=10**6)
        assert len(used) == len(set(used)) and not set(used) & set(free)
        assert acknowledged <= set(used) | set(free)
        assert len(used) > 10 and store.count_used() == {
            a.round: len(json.loads(a.body)) for a in counted if json.loads(a.body)
        }
