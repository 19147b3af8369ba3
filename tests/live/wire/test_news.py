"""What a server tells a client: there and back as JSON, more than is known passed over, anything else refused."""

from __future__ import annotations

import json
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.live.wire.news import (
    ForgetNews,
    ForgettingState,
    Forgotten,
    LastAnswer,
    Outcome,
    RoundNews,
    Standing,
    parse_forgotten,
    parse_news,
    parse_standing,
)

lasts = st.none() | st.builds(LastAnswer, st.integers(1, 10**18 - 1), st.sampled_from(Outcome))
asked = st.builds(RoundNews, st.integers(1, 10**18 - 1), st.none() | st.floats(0, 1e9), st.booleans(), lasts)


@given(asked | st.builds(RoundNews, st.none(), st.none(), st.just(False), lasts), st.integers(0, 10**18 - 1))
def test_news_and_standing_travel_as_json(news: RoundNews, n: int) -> None:
    assert parse_news(json.loads(json.dumps(news.as_json()))) == news
    standing = Standing(n, news.last)
    assert parse_standing(json.loads(json.dumps(standing.as_json()))) == standing


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {},
        {"round": 0, "closes_in_s": None, "is_asked": True, "last": None},
        {"round": True, "closes_in_s": None, "is_asked": True},
        {"round": 1, "closes_in_s": nan, "is_asked": True},
        {"round": 1, "closes_in_s": None, "is_asked": 1},
        {"round": 1, "closes_in_s": None, "is_asked": True, "last": {"round": 1, "outcome": 7}},
        {"round": 1, "closes_in_s": None, "is_asked": True, "last": []},
        {"accepted_updates": -1, "last": None},
    ],
)
def test_other_answers_are_refused(values: object) -> None:
    with pytest.raises(ValueError, match="the server"):
        parse_news(values)
    with pytest.raises(ValueError, match="the server"):
        parse_standing(values)


@given(asked, st.integers(0, 10**18 - 1))
def test_keys_that_a_newer_server_adds_are_passed_over(news: RoundNews, n: int) -> None:
    more = {"phase": "keys", "later": {"round": None}}
    last = news.last and {**news.last.as_json(), **more}
    assert parse_news({**news.as_json(), "last": last, **more}) == news
    assert parse_standing({"accepted_updates": n, "last": last, **more}) == Standing(n, news.last)


def test_an_outcome_of_a_newer_server_is_passed_over() -> None:
    said = {"round": 2, "closes_in_s": None, "is_asked": True, "last": {"round": 1, "outcome": "postponed"}}
    assert parse_news(said).last is None and parse_news(said).round == 2


def test_news_of_a_round_that_forgets_travel_as_json_and_others_do_not_mention_it() -> None:
    news = RoundNews(9, 2.5, True, None, forget=ForgetNews(1, 4, 3, 2))
    assert parse_news(json.loads(json.dumps(news.as_json()))) == news
    assert "forget" not in RoundNews(9, 2.5, True, None).as_json()
    bad = {**news.as_json(), "forget": {"step": 1, "steps": 4, "round": 0, "searches": 2}}
    with pytest.raises(ValueError, match="lacks round, a whole number from 1 on"):
        parse_news(bad)


def test_what_became_of_a_wish_travels_as_json() -> None:
    for found in (
        Forgotten(ForgettingState.waiting),
        Forgotten(ForgettingState.failed, 2, 2, "too few"),
        Forgotten(ForgettingState.done, 4, 4, record={"clients": ["0123456789abcdef"]}),
    ):
        assert parse_forgotten(json.loads(json.dumps(found.as_json()))) == found
    for bad in ({}, {"state": "gone", "step": 0, "steps": 0}, {"state": "done", "step": -1, "steps": 0}):
        with pytest.raises(ValueError, match="the server"):
            parse_forgotten(bad)
