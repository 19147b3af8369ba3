"""Group commit: together, in order, told after the disk has it, and never half."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from hushrank.live.server import store
from hushrank.live.server.counters import Histogram
from hushrank.live.server.held_file import Loss
from hushrank.live.server.new_ranker import first_ranker
from hushrank.live.server.store import Opening, UpdateRow
from hushrank.live.server.writer import Writer
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.protocol import UPDATE_PHASE
from hushrank.live.wire.refusals import Reason, RefusedError

AGREEMENT = make_agreement("library", n_features=3)


def make_engine(directory: Path, n_clients: int) -> sa.Engine:
    """A federation with an open round of clients 1, 2, ..."""
    store.create_store(directory / store.FILE, AGREEMENT, *first_ranker(AGREEMENT))
    engine = store.open_store(directory / store.FILE)
    with engine.begin() as connection:
        tokens = [i.to_bytes(2, "big") for i in range(n_clients)]
        store.add_tokens(connection, tokens, expires_at=time.time() + 99)
        made = [store.enrol_client(connection, token, token, now=0.0).id for token in tokens]
        store.open_round(connection, Opening(1, made), now=0.0)
    return engine


def update(client: int, n_bytes: int = 12) -> UpdateRow:
    return UpdateRow(1, UPDATE_PHASE, client, 1, b"digest", bytes(n_bytes))


def drive(engine: sa.Engine, story: Callable[[Writer], Awaitable[Any]]) -> tuple[Any, int]:
    """What the story gives, and how many commits it took."""

    async def tell() -> tuple[Any, int]:
        commits = Histogram()
        writer = Writer(engine, asyncio.get_running_loop(), commit_s=commits)
        result = await story(writer)
        await writer.stop()
        return result, sum(commits.counts)

    return asyncio.run(tell())


def count_stored(engine: sa.Engine) -> int:
    with engine.begin() as connection:
        return len(store.restore_rounds(connection).digests)


def test_what_waits_is_committed_together_and_told_when_it_is_on_the_disk(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, 50)

    async def story(writer: Writer) -> list[int]:
        stored = []

        async def send(client: int) -> None:
            await writer.write_update(update(client))
            stored.append(count_stored(engine))

        await asyncio.gather(*(send(client) for client in range(1, 51)))
        return stored

    stored, n_commits = drive(engine, story)
    assert stored == [50] * 50 and n_commits <= 3


def test_updates_and_other_work_keep_their_order(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, 2)

    async def story(writer: Writer) -> Any:
        writer.write_update(update(1))
        seen = writer.write(lambda connection: len(store.read_bodies(connection, 1)))
        later = writer.write_update(update(2))
        await later
        return await seen

    assert drive(engine, story)[0] >= 1 and count_stored(engine) == 2


def refuse(_: sa.Connection) -> None:
    raise RefusedError(Reason.token, "no")


def fail(connection: sa.Connection) -> None:
    connection.exec_driver_sql("DELETE FROM updates")
    raise ZeroDivisionError


def test_a_job_that_refuses_or_fails_takes_nobody_with_it(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, 2)

    async def story(writer: Writer) -> list[Any]:
        jobs = [
            writer.write_update(update(1)),
            writer.write(refuse),
            writer.write(fail),
            writer.write_update(update(2)),
        ]
        return await asyncio.gather(*jobs, return_exceptions=True)

    (first, refused, failed, last), _ = drive(engine, story)
    assert first is last is None and refused.reason is Reason.token and isinstance(failed, ZeroDivisionError)
    assert count_stored(engine) == 2


@pytest.mark.parametrize("with_other_work", [False, True])
def test_a_full_disk_refuses_the_whole_batch_and_the_next_one_works(tmp_path: Path, with_other_work: bool) -> None:
    engine = make_engine(tmp_path, 3)
    limit = {"pages": 0}

    @sa.event.listens_for(engine, "begin")
    def make_small(connection: sa.Connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one() if limit["pages"] else 2**30
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    async def story(writer: Writer) -> list[Any]:
        limit["pages"] = 1
        jobs: list[Any] = [writer.write_update(update(1)), writer.write_update(update(2, 100_000))]
        if with_other_work:
            jobs.append(writer.write(lambda _: "done"))
        full = await asyncio.gather(*jobs, return_exceptions=True)
        assert count_stored(engine) == 0
        limit["pages"] = 0
        await asyncio.gather(writer.write_update(update(1)), writer.write_update(update(2, 100_000)))
        return full

    full, _ = drive(engine, story)
    assert {error.reason for error in full} == {Reason.disk} and {error.retry_after_s for error in full} == {5}
    assert count_stored(engine) == 2


def test_who_has_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, 2)

    async def story(writer: Writer) -> None:
        writer.write_update(update(1)).cancel()
        await writer.write_update(update(2))

    drive(engine, story)
    assert count_stored(engine) == 2


def test_a_file_that_vanishes_while_it_is_closed_is_not_made_anew(tmp_path: Path) -> None:
    engine, losses = make_engine(tmp_path, 1), list[Loss]()

    async def story() -> list[Any]:
        writer = Writer(engine, asyncio.get_running_loop(), commit_s=Histogram(), note_loss=losses.append)
        broken: Any = writer.write(lambda connection: connection.exec_driver_sql("no SQL"))  # closes the connection
        errors: list[Any] = [*await asyncio.gather(broken, return_exceptions=True)]
        (tmp_path / store.FILE).unlink()
        for _ in range(2):
            errors += await asyncio.gather(writer.write_update(update(1)), return_exceptions=True)
        await writer.stop()
        return [error.reason for error in errors]

    assert asyncio.run(story()) == [Reason.disk] * 3
    assert list(tmp_path.glob("*.sqlite*")) == [] and len(losses) == 1
    assert losses[0].what == f"{store.FILE} was deleted" and losses[0].copy is None
