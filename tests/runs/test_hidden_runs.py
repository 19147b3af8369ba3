"""Recipe fedps with users who hide in the logs of one place: who shares an id, which covers, and what a run says."""

from __future__ import annotations

import numpy as np
import pytest

from hushrank.personal.population import population_named
from hushrank.personal.queries.ids import NOBODY
from hushrank.personal.queries.observed import divide_users
from hushrank.privacy.cover_topics import fit_topics
from hushrank.privacy.covers import draw_covers
from hushrank.recipes.personal_setting import resolve_personal
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe, hash_recipe
from hushrank.runs.personal_search import prepare_personal
from hushrank.streams import Purpose, seed_key, stream

DATA = "personal-like:n_users=120,n_documents=300,median_searches=20,seed=5"


def recipe_of(**changes: object) -> Recipe:
    small = {"data": DATA, "topology": "central", "word_dim": 4, "rounds": 1, "seed": 3}
    return change_recipe(NAMED["fedps"], {**small, **changes})


def test_groups_are_those_of_table_2_and_no_larger_than_a_hundred() -> None:
    _, setting = resolve_personal(recipe_of(hidden_by="group-user"))
    ids = setting.people.ids
    assert np.array_equal(ids, divide_users(120, seed_key(3))) and np.bincount(ids).tolist() == [60, 60]
    _, other = resolve_personal(recipe_of(hidden_by="group-user", seed=4))
    assert not np.array_equal(ids, other.people.ids)
    _, few = resolve_personal(recipe_of(hidden_by="group-user", data=DATA.replace("120", "8")))
    assert few.people.ids.tolist() == [0] * 8  # fewer where there are fewer


def test_covers_are_those_of_table_2() -> None:
    _, setting = resolve_personal(recipe_of(hidden_by="cover-query"))
    log, owners = setting.people.log_of(7)
    population, key = population_named(DATA), seed_key(3)
    titles, own = population.collection.titles, population.log_of(7)
    topics = fit_topics(titles, population.collection.n_words, key=stream(key, Purpose.COVER))
    covers = draw_covers(topics, own.queries, key=stream(key, Purpose.COVER, 7))[:, 0]
    assert np.array_equal(log.queries[owners == NOBODY], covers)
    assert np.array_equal(log.queries[owners == 7], own.queries)


def test_nobody_hides_unless_asked_and_who_does_has_a_recipe_of_its_own() -> None:
    _, setting = resolve_personal(recipe_of())
    assert setting.people.hidden is None and setting.people.ids.tolist() == list(range(120))
    every = [recipe_of(), *(recipe_of(hidden_by=how) for how in ("group-user", "cover-query"))]
    assert len({hash_recipe(recipe) for recipe in every}) == 3


@pytest.mark.parametrize(
    ("how", "promise", "learns"),
    [
        ("group-user", "Up to 60 users share an id.", "It is not told which of the users of an id made a search"),
        ("cover-query", "Cover queries stand beside each query: 1.", "every click tells that its query is the user's"),
    ],
)
def test_a_run_says_what_the_place_learns_in_spite_of_hiding(how: str, promise: str, learns: str) -> None:
    told = prepare_personal(recipe_of(hidden_by=how), lambda _: None, None).describe()
    assert told["privacy"].startswith("No guarantee: one place has all queries") and promise in told["privacy"]
    assert learns in told["who_learns_what"][0]["learns"]
