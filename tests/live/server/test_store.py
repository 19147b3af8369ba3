"""A federation's file: what goes in comes out, older files become newer ones, others are refused."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from in_process import enrol

from hushrank.live.server import store
from hushrank.live.server.migrations import MIGRATIONS
from hushrank.live.server.new_ranker import Body, first_ranker
from hushrank.live.server.schema import TABLES, SchemaError, make_engine, migrate, read_version
from hushrank.live.server.store import Closing, Opening, StoredRounds, UpdateRow
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.protocol import UPDATE_PHASE
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.privacy.renyi import Spend

KEPT = Path(__file__).parents[1] / "kept"
AGREEMENT = make_agreement("library", n_features=3, privacy="sound", noise_multiplier=2.0, n_clients=2)
STATE = {"optimiser/first": [1.0, 1.0, 1.0], "optimiser/n_steps": [1.0]}
NEW = np.arange(3, dtype=np.float32), {name: np.array(values, "f4") for name, values in STATE.items()}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sa.Connection]:
    path = tmp_path / "odd ?#% name.sqlite"
    store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    engine = store.open_store(path)
    with engine.begin() as connection:
        yield connection


def update(round: int, client: int, body: bytes = b"x") -> UpdateRow:
    return UpdateRow(round, UPDATE_PHASE, client, 1, store.digest_body(body, b"k"), body)


def test_a_new_file_holds_the_agreement_and_the_first_ranker_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with store.open_store(path).begin() as connection:
        assert store.read_agreement(connection) == AGREEMENT
        assert store.read_ranker(connection)[0].tolist() == [0.0, 0.0, 0.0]
        assert store.restore_rounds(connection) == StoredRounds(0, 0, set(), False, set(), {})
        pragmas = ("journal_mode", "synchronous", "secure_delete")
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in pragmas]
        assert found == ["wal", 2, 1]  # 2: FULL
    with pytest.raises(ValueError, match="exists: a federation is created once"):
        store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))


def test_a_token_is_used_once_and_a_lost_answer_is_given_again(connection: sa.Connection) -> None:
    store.add_tokens(connection, [b"t", b"u"], expires_at=100.0)
    store.add_tokens(connection, [b"old"], expires_at=10.0)
    first = store.enrol_client(connection, b"t", b"c", now=50.0)
    assert store.enrol_client(connection, b"t", b"c", now=500.0) == first
    for token, credential in ((b"t", b"d"), (b"no", b"d"), (b"old", b"d"), (b"u", b"c")):
        with pytest.raises(RefusedError, match="this token cannot be used") as refused:
            store.enrol_client(connection, token, credential, now=50.0)
        assert refused.value.reason is Reason.token
    store.leave_client(connection, first.id, now=60.0)
    with pytest.raises(RefusedError, match="this token cannot be used"):
        store.enrol_client(connection, b"t", b"c", now=50.0)
    assert [(m.id, m.has_left) for m in store.read_members(connection)] == [(first.id, True)]


def test_nothing_says_which_token_made_a_client(connection: sa.Connection) -> None:
    """Whoever gave the tokens out, and reads the file later, does not learn who is who."""
    store.add_tokens(connection, [b"for ada", b"for bob", b"for eve"], expires_at=100.0)
    members = [store.enrol_client(connection, b"for " + name, name, now=50.0) for name in (b"bob", b"ada")]
    tokens = connection.exec_driver_sql("SELECT * FROM tokens").mappings().all()
    assert [dict(token) for token in tokens] == [{"hash": b"for eve", "expires_at": 100.0}]
    assert store.enrol_client(connection, b"for ada", b"ada", now=1e9) == members[1]  # and a lost answer comes again


def test_a_file_of_a_version_that_knew_who_used_a_token_forgets_it(tmp_path: Path) -> None:
    shutil.copy(KEPT / "schema-1" / "federation" / store.FILE, tmp_path)
    with make_engine(tmp_path / store.FILE).begin() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM tokens WHERE client > 0").scalar_one() == 2
    with store.open_store(tmp_path / store.FILE).begin() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM tokens").scalar_one() == 0
        assert [member.refused for member in store.read_members(connection)] == [0, 0]


def test_updates_count_once_for_their_clients(connection: sa.Connection) -> None:
    one, two = enrol(connection, 2)
    store.open_round(connection, Opening(1, [one, two]), now=0.0)
    store.insert_updates(connection, [update(1, two, b"b"), update(1, one, b"a")])
    assert store.read_bodies(connection, 1) == [Body(1.0, b"a", one), Body(1.0, b"b", two)]
    assert [(m.accepted, m.last_round) for m in store.read_members(connection)] == [(1, 1), (1, 1)]
    assert store.find_digest(connection, 1, UPDATE_PHASE, one) == store.digest_body(b"a", b"k")
    assert store.find_digest(connection, 2, UPDATE_PHASE, one) is None
    restored = store.restore_rounds(connection)
    assert restored.is_open and restored.asked == {one, two} == restored.answered
    with pytest.raises(sa.exc.IntegrityError):
        store.insert_updates(connection, [update(1, one, b"c")])


@pytest.mark.parametrize("keep", [False, True])
def test_closing_a_round_writes_everything_and_wipes_the_updates(connection: sa.Connection, keep: bool) -> None:
    one, two = enrol(connection, 2)
    store.open_round(connection, Opening(1, [one, two]), now=0.0)
    store.insert_updates(connection, [update(1, one)])
    store.close_round(connection, Closing(1, NEW, Spend("gaussian", 0.5), keep_updates=keep), now=1.0)
    store.open_round(connection, Opening(2, [two]), now=1.0)
    assert store.restore_rounds(connection) == StoredRounds(2, 1, set(), True, {two}, {})
    params, state = store.read_ranker(connection)
    assert params.tolist() == [0.0, 1.0, 2.0] and {name: part.tolist() for name, part in state.items()} == STATE
    assert store.read_spends(connection) == [Spend("gaussian", 0.5)]
    assert [body.content for body in store.read_bodies(connection, 1)] == ([b"x"] if keep else [None])
    assert store.find_digest(connection, 1, UPDATE_PHASE, one) is not None
    store.close_round(connection, Closing(2, NEW, None, keep_updates=keep), now=2.0)
    rounds = connection.exec_driver_sql("SELECT round FROM rankers ORDER BY round").scalars().all()
    assert rounds == ([0, 1, 2] if keep else [0, 2])
    assert store.read_first_ranker(connection)[0].tolist() == [0.0, 0.0, 0.0]


def test_the_first_ranker_of_a_file_that_has_lost_it_is_asked_for_in_vain(connection: sa.Connection) -> None:
    connection.exec_driver_sql("UPDATE rankers SET round = 3")
    assert store.read_ranker(connection)[0].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="the first ranker of this federation is gone: an older hushrank"):
        store.read_first_ranker(connection)


def test_an_update_counts_once_in_each_phase(connection: sa.Connection) -> None:
    (one,) = enrol(connection)
    store.open_round(connection, Opening(1, [one]), now=0.0)
    store.insert_updates(connection, [update(1, one, b"a"), update(1, one, b"b")._replace(phase="keys")])
    assert store.read_bodies(connection, 1) == [Body(1.0, b"a", one)]
    assert store.read_bodies(connection, 1, "keys") == [Body(1.0, b"b", one)]
    assert store.find_digest(connection, 1, "keys", one) == store.digest_body(b"b", b"k")
    assert store.restore_rounds(connection).answered == {one}
    store.close_round(connection, Closing(1, NEW, None, keep_updates=False), now=1.0)
    assert connection.exec_driver_sql("SELECT n_accepted FROM rounds").scalar_one() == 1
    assert {body for (body,) in connection.exec_driver_sql("SELECT body FROM updates")} == {None}


def test_an_abandoned_round_leaves_the_ranker_and_costs_nothing(connection: sa.Connection) -> None:
    (one,) = enrol(connection)
    store.open_round(connection, Opening(1, [one]), now=0.0)
    store.insert_updates(connection, [update(1, one)])
    store.close_round(connection, Closing(1, None, Spend("gaussian", 0.5), keep_updates=False), now=1.0)
    assert store.restore_rounds(connection) == StoredRounds(1, 0, {1}, False, set(), {})
    assert store.read_spends(connection) == [] and store.read_ranker(connection)[0].tolist() == [0, 0, 0]


def test_digests_are_forgotten_after_a_hundred_rounds(connection: sa.Connection) -> None:
    (one,) = enrol(connection)
    for number in (1, 101):
        store.open_round(connection, Opening(number, [one]), now=0.0)
        store.insert_updates(connection, [update(number, one)])
        store.close_round(connection, Closing(number, NEW, None, keep_updates=False), now=1.0)
    assert store.find_digest(connection, 1, UPDATE_PHASE, one) is None
    assert store.find_digest(connection, 101, UPDATE_PHASE, one) is not None


def test_wiped_updates_are_not_in_the_file_any_more(tmp_path: Path) -> None:
    path, secret = tmp_path / "f.sqlite", b"a raw update that nobody may find later" * 9
    store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    engine = store.open_store(path)
    with engine.begin() as connection:
        (one,) = enrol(connection)
        store.open_round(connection, Opening(1, [one]), now=0.0)
        store.insert_updates(connection, [update(1, one, secret)])
    with engine.begin() as connection:
        store.close_round(connection, Closing(1, NEW, None, keep_updates=False), now=1.0)
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert all(secret not in file.read_bytes() for file in tmp_path.iterdir())


def test_refusals_add_up(connection: sa.Connection) -> None:
    store.add_refusals(connection, {"norm": 2})
    store.add_refusals(connection, {"norm": 1, "late": 4})
    assert store.read_refusals(connection) == {"late": 4, "norm": 3}


def test_an_agreement_that_was_edited_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    edited = sqlite3.connect(path)
    edited.execute("UPDATE federation SET agreement = replace(agreement, '\"n_clients\":2', '\"n_clients\":1')")
    edited.commit()
    with pytest.raises(SchemaError, match="was changed after clients joined under it"):
        store.open_store(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not exist\. Create a federation with: hushrank server init"):
        store.open_store(tmp_path / "absent")
    (tmp_path / "text").write_text("no database at all " * 99)
    with pytest.raises(SchemaError, match="is not a federation's file, or is damaged"):
        store.open_store(tmp_path / "text")


def add_a_column(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE clients ADD COLUMN nickname TEXT")


def test_an_older_file_becomes_a_newer_one_once_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    engine, now = make_engine(path), 1 + len(MIGRATIONS)
    for _ in range(2):
        migrate(engine, path, (*MIGRATIONS, add_a_column))
    with engine.begin() as connection:
        assert read_version(connection) == now + 1
        assert "nickname" in {column["name"] for column in sa.inspect(connection).get_columns("clients")}
    with pytest.raises(SchemaError, match=rf"has schema {now + 1}, this version knows {now}: update hushrank"):
        store.open_store(path)


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    with pytest.raises(sa.exc.OperationalError):
        migrate(make_engine(path), path, (*MIGRATIONS, add_a_column, add_a_column))
    with store.open_store(path).begin() as connection:
        assert "nickname" not in {column["name"] for column in sa.inspect(connection).get_columns("clients")}


def describe_tables(path: Path) -> dict[str, Any]:
    """{table: what a program that uses it can notice}"""
    with make_engine(path).begin() as connection:
        assert read_version(connection) == 1 + len(MIGRATIONS)
        found = sa.inspect(connection)
        tables = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        made = {row.name: row.sql for row in tables}
        return {
            name: (
                [(column["name"], str(column["type"]), column["nullable"]) for column in found.get_columns(name)],
                found.get_pk_constraint(name)["constrained_columns"],
                found.get_unique_constraints(name),
                "WITHOUT ROWID" in made[name],
            )
            for name in found.get_table_names()
        }


@pytest.mark.parametrize("schema", sorted(path.name for path in KEPT.iterdir() if path.is_dir()))
def test_migrated_and_new_files_have_the_same_tables(schema: str, tmp_path: Path) -> None:
    """So that whoever adds a migration changes the definitions too. The old files were written by old versions."""
    migrate(make_engine(tmp_path / "new"), tmp_path / "new")
    shutil.copy(KEPT / schema / "federation" / store.FILE, tmp_path / "old")
    store.open_store(tmp_path / "old")
    assert describe_tables(tmp_path / "old") == describe_tables(tmp_path / "new")
    assert set(describe_tables(tmp_path / "new")) == set(TABLES.tables)


@pytest.mark.parametrize("content", [None, "CREATE TABLE other (x INTEGER)"], ids=["empty", "another program's"])
def test_a_file_that_no_federation_wrote_is_refused_and_left_alone(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "federation.sqlite"
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute(content or "PRAGMA user_version = 0")
        foreign.commit()
    path.touch()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(ValueError, match="is not a federation's file"):
            store.open_store(path, read_only=read_only)
    assert path.read_bytes() == before
