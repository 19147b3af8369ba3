"""The JAX twin clicks exactly where the plain models do."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from hushrank.clicks.named import _CASCADE, _POSITION_ETAS, USERS, named_user
from hushrank.clicks.table import TableUser
from hushrank.clicks.table_fast import table_clicks
from hushrank.streams import draw_below, draw_uniform, seed_key, stream
from hushrank.types import Array

N, K = 400, 10
clicks_of_lists = jax.jit(table_clicks)


def random_lists() -> tuple[Array, Array, Array, Array]:
    """Grades and draws [N, K] of lists of 0 to 10 documents, and their lengths."""
    grades = draw_below(stream(seed_key(61), 1), 5, N * K).reshape(N, K)
    click_draws, stop_draws = (draw_uniform(stream(seed_key(61), p), N * K).reshape(N, K) for p in (2, 3))
    return grades, click_draws, stop_draws, draw_below(stream(seed_key(61), 4), K + 1, N)


TABLES = {name: user for name in USERS if isinstance(user := named_user(name, n_grades=5), TableUser)}


def test_published_people_have_tables_and_others_need_none() -> None:
    """A person without a table runs on the plain engine only (CONTRIBUTING.md, Adding a method)."""
    assert set(TABLES) >= {*_CASCADE, *_POSITION_ETAS}


@pytest.mark.parametrize("name", TABLES)
def test_the_table_clicks_where_the_person_does(name: str) -> None:
    grades, click_draws, stop_draws, lengths = random_lists()
    user = TABLES[name]
    table, where = user.as_table(K), np.arange(K) < lengths[:, None]
    click = np.where(
        where, np.array(table.click, np.float32)[grades] * np.array(table.examine, np.float32), np.float32(0)
    )
    stop = np.array(table.stop, np.float32)[grades]
    fast = np.asarray(clicks_of_lists(click_draws, stop_draws, click=click, stop=stop))
    plain = np.zeros((N, K), bool)
    for row, n in enumerate(lengths):
        plain[row, :n] = user(grades[row, :n], click_draws[row, :n], stop_draws[row, :n])
    assert (fast == plain).all()
    assert plain.any()


def test_nobody_clicks_on_padding_and_padding_stops_nobody() -> None:
    ones, draws = np.ones((N, K), np.float32), np.full((N, K), 0.5, np.float32)
    click = np.where(np.arange(K) % 2 == 0, np.float32(0), np.float32(1))  # padding between, as nobody would do
    fast = np.asarray(clicks_of_lists(draws, draws, click=click * ones, stop=np.where(click == 0, ones, 0 * ones)))
    assert (fast == (np.arange(K) % 2 == 1)).all()
