"""`hushrank data` knows populations; their summary is measured on some users."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hushrank.cli.data import app
from hushrank.personal.log import Periods, Search, SearchLog, make_collection, make_log, pad_words
from hushrank.personal.summary import summarise_population


class TwoUsers:
    """User 0 searches three times, user 1 never."""

    name, description, n_users = "two", "two users", 2
    periods = Periods(train=10, validation=20, test=30)
    collection = make_collection(pad_words([[2]] * 4, 50), ("", "?", "w2"))

    def log_of(self, user: int) -> SearchLog:
        searches = [Search(5, (2,), (0, 1), (1,)), Search(6, (2,), (0, 1, 2, 3), (0, 3)), Search(30, (2,), (0, 1))]
        return make_log(searches if user == 0 else [])


def test_periods_are_summed_over_users() -> None:
    background, train, _, test = summarise_population(TwoUsers())
    assert background["searches_per_user"] == 1 and background["mean_list"] == 3 and background["mean_clicks"] == 1.5
    # a click at rank 2, and clicks at ranks 1 and 4: (1/2 + (1/1 + 2/4) / 2) / 2
    assert background["general_map"] == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert train["mean_list"] is None and test["general_map"] is None and test["mean_clicks"] == 0


def test_data_info_shows_a_population() -> None:
    result = CliRunner().invoke(app, ["info", "personal-like:n_users=20,n_documents=1200,seed=4", "--json"])
    about = json.loads(result.stdout)
    assert about["n_users"] == 20 and about["name"] == "personal-like:n_users=20,n_documents=1200,seed=4"
    assert [row["period"] for row in about["periods"]] == ["background", "train", "validation", "test"]
    assert np.sum([row["searches_per_user"] for row in about["periods"]]) > 40
    table = CliRunner().invoke(app, ["info", "aol-like:n_users=5,n_documents=1200"]).stdout
    assert "searches_per_user" in table and "5 generated users" in table


def test_data_list_names_populations() -> None:
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)
    assert [row["name"] for row in listed["populations"]] == ["personal-like", "aol-like", "commercial-like"]
    assert "commercial-like" in CliRunner().invoke(app, ["list"]).stdout


def test_a_population_is_not_written() -> None:
    result = CliRunner().invoke(app, ["make", "personal-like", "somewhere"])
    assert isinstance(result.exception, ValueError)
    assert "made when a run asks for them" in str(result.exception)


def test_the_seed_of_the_command_is_that_of_the_population() -> None:
    name = "personal-like:n_users=2,n_documents=1200"
    options: list[list[str]] = [[], ["--seed", "3"]]
    names = [json.loads(CliRunner().invoke(app, ["info", name, "--json", *more]).stdout)["name"] for more in options]
    assert names == [f"{name},seed=0", f"{name},seed=3"]
