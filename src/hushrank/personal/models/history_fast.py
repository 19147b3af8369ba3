"""What models read of a user's history: the last rows before the session of a search, and the last ones in it.

Shapes: B searches, H rows of the table, T = `N_LONG` or `N_SHORT` rows of a window, the newest one last.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hushrank.personal.inputs import N_LONG, N_SHORT, NO_SESSION, HistoryTable, PersonalInputs


class HistoryWindow(NamedTuple):
    """Rows of the history table for each search."""

    rows: jax.Array  # [B, T] int32; any row where there is no item
    is_item: jax.Array  # [B, T] bool
    sessions: jax.Array  # [B, T] int32


def find_windows(inputs: PersonalInputs) -> tuple[HistoryWindow, HistoryWindow]:
    """Before the session, and in it."""
    zero = jnp.zeros_like(inputs.n_long)
    return (
        _cut_window(inputs.history, zero, inputs.n_long, N_LONG),
        _cut_window(inputs.history, inputs.n_long, inputs.n_before, N_SHORT),
    )


def compact_history(inputs: PersonalInputs) -> PersonalInputs:
    """One search (B = 1) with a table of only the rows in its two windows: as good as the whole table."""
    windows = find_windows(inputs)
    rows = jnp.concatenate([window.rows[0] for window in windows])
    is_item = jnp.concatenate([window.is_item[0] for window in windows])
    history = HistoryTable(
        inputs.history.query_words[rows],
        inputs.history.clicked_words[rows],
        jnp.where(is_item, inputs.history.sessions[rows], NO_SESSION),
    )
    n_long, n_all = jnp.full_like(inputs.n_long, N_LONG), jnp.full_like(inputs.n_before, N_LONG + N_SHORT)
    return inputs._replace(history=history, n_long=n_long, n_before=n_all)


def _cut_window(history: HistoryTable, first: jax.Array, stop: jax.Array, size: int) -> HistoryWindow:
    places = stop[:, None] - size + jnp.arange(size, dtype=stop.dtype)
    rows = jnp.clip(places, 0, history.sessions.shape[0] - 1)
    sessions = history.sessions[rows]
    return HistoryWindow(rows, (places >= first[:, None]) & (places >= 0) & (sessions != NO_SESSION), sessions)
