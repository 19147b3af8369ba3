"""What a live federation should end with when it forgets somebody: a replay of the clients' stores, written plainly."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from hushrank.learners.logged import rescored_pdgd_gradient
from hushrank.live.device.impressions import COLUMNS, Impression, as_impression
from hushrank.live.device.learning import MAX_WEIGHT
from hushrank.live.device.store import STORE
from hushrank.live.server import store
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.terms import ranker_of
from hushrank.types import Array


def read_federation(directory: Path) -> tuple[Agreement, Array, list[int]]:
    """The agreement, the first ranker [n_params], and the rounds that learnt and closed."""
    engine = store.open_store(directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        agreement, (params, _) = store.read_agreement(connection), store.read_first_ranker(connection)
    engine.dispose()
    with closing(sqlite3.connect(directory / store.FILE)) as file:
        asked = "SELECT number FROM rounds WHERE state = 'closed' AND stands_for IS NULL ORDER BY number"
        return agreement, params, [number for (number,) in file.execute(asked)]


def read_home(home: Path, round: int) -> tuple[list[Impression], dict[int, float]]:
    """The lists behind a client's answer to a round, and {round: length} of what it keeps."""
    with closing(sqlite3.connect(home / STORE)) as file:
        rows = file.execute(f"SELECT {COLUMNS} FROM impressions WHERE used_in = ? ORDER BY number", (round,)).fetchall()
        return [as_impression(row) for row in rows], dict(file.execute("SELECT round, length FROM lengths").fetchall())


def replay_plainly(
    directory: Path, homes: Iterable[Path], *, every: int, searches: int, calibrates: bool = True, leap: float = 1.0
) -> Array:
    """[n_params] from the first ranker over rounds 1, 1 + every, ..., with the clients of these homes alone."""
    agreement, params, closed = read_federation(directory)
    for round in (number for number in closed if (number - 1) % every == 0):
        total, weight = np.zeros(len(params)), 0
        for home in homes:
            lists, lengths = read_home(home, round)
            if not (lists := lists[:searches]):
                continue
            delta = learn(agreement, params, lists) - params
            if calibrates:
                delta = rescale(delta, lengths[max(known for known in lengths if known <= round)])
            delta = rescale(delta, min(float(np.linalg.norm(delta)), agreement.update_norm or np.inf))
            total, weight = total + len(lists) * delta.astype(np.float64), weight + len(lists)
        if weight:
            params = (params + leap * agreement.server_rate * total / weight).astype(np.float32)
    return params


def rescale(delta: Array, length: float) -> Array:
    """[n_params] as long as this; zeros stay zeros."""
    own = float(np.linalg.norm(delta))
    return delta if own == 0 else delta * (length / own)


def learn(agreement: Agreement, params: Array, lists: list[Impression]) -> Array:
    """[n_params] one step for each list."""
    local, ranker = params, ranker_of(agreement)
    for each in lists:
        seen = (each.features, each.scores, each.ranking, each.is_clicked)
        gradient = rescored_pdgd_gradient(ranker, local, *seen, max_weight=MAX_WEIGHT)
        local = local + np.float32(agreement.learning_rate) * gradient
    return local


def assert_same(ours: Array, theirs: Array) -> None:
    """To rounding."""
    assert np.abs(theirs).max() > 0.01
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max(), rtol=0)
