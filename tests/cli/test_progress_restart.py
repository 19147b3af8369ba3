"""One display, several trainings one after another; and trainings whose data have nothing to measure."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hushrank.cli.progress import ProgressDisplay
from hushrank.engine.simulate import News, Options
from hushrank.recipes.personal_setting import resolve_personal
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.personal_search import PersonalExperiment

UNMEASURED = "personal-like:n_users=6,n_documents=500,median_searches=1,most_searches=1,seed=1"


def news(share: float) -> News:
    return News(batch=0, n_batches=1, share=share, searches=int(1000 * share), test=0.5, vali=0.5)


def test_a_second_training_is_counted_from_its_own_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay("forget")
    for share in (0.0, 0.5, 1.0, 0.0, 1.0):
        display.report(news(share))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("forget: 100%") and "interactions/s" in first
    assert second == "forget: 100%, nDCG@10 0.500"  # the first step of a training has no rate yet


def test_data_with_nothing_to_measure_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay("fedps")
    for share in (0.0, 1.0):
        display.report(replace(news(share), test=float("nan"), measure="MAP"))
    assert capsys.readouterr().err == "fedps: 100%, MAP nothing to measure\n"


def test_news_of_personalised_search_are_about_map_whatever_is_measured() -> None:
    """Nobody has searched in the test weeks."""
    heard: list[News] = []
    recipe, setting = resolve_personal(change_recipe(NAMED["fedps"], {"data": UNMEASURED, "model": "original"}))
    PersonalExperiment(recipe, setting).carry_out(Options(report=heard.append))
    assert {news.measure for news in heard} == {"MAP"} and all(math.isnan(news.test) for news in heard) and heard
