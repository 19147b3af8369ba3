"""What an operator decides about rounds that are missing from a federation's file; `past.py` recognises them."""

from __future__ import annotations

from pathlib import Path

from hushrank.live.server import store
from hushrank.live.server.creation import lock_federation
from hushrank.live.server.past import WHY_BEHIND, read_past, skip_missing


def describe_missing(directory: Path) -> str:
    """How the file stands to what its clients have seen, and what can be done."""
    engine = store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        past, newest = read_past(connection), store.restore_rounds(connection).number
    engine.dispose()
    if past.missing is None:
        return f"{directory}: no client has shown a round that this file lacks. The newest round is {newest}."
    return (
        f"{directory}: clients have seen round {past.missing}, which this file, whose newest is {newest}, lacks: "
        f"{WHY_BEHIND}.\n"
        "Either stop the server, put a newer copy of the file in its place and start the server again,\n"
        f"or give the missing rounds up: hushrank server recover {directory} --skip. The ranker is then the one of "
        f"this file, and the next round is {max(past.missing, newest) + 1}. What clients have spent of their privacy "
        "stays spent."
    )


def give_up_missing(directory: Path) -> str:
    engine = store.open_store(directory / store.FILE, lock=lock_federation(directory))
    with engine.begin() as connection:
        newest = skip_missing(connection)
    engine.dispose()
    return f"{directory}: the missing rounds are given up; the next one is {newest + 1}."
