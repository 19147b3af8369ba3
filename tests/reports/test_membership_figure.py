"""The figure of a membership test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from reading import Checker, text_of

from hushrank.metrics.roc import MeasuredRoc, RatedGroup, measure_roc
from hushrank.reports.membership import roc_figure, write_memberships


def measured(shift: float) -> MeasuredRoc:
    generator = np.random.default_rng(5)
    values = generator.normal(size=(20, 2, 3)) + np.array([shift, 0])[:, None]
    return measure_roc([RatedGroup(tuple(a), tuple(b)) for a, b in values])


def test_every_way_to_forget_has_a_line_a_row_and_its_numbers() -> None:
    found = {"not forgotten": measured(1.0), "retrained": measured(0.0)}
    page = roc_figure(found, name="roc")
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and all(address.startswith("data:") for address in checker.fetched)
    text = text_of(page)
    for words in ("not forgotten", "retrained", "chance", "false alarms (share of retrained rankers)", "95 %"):
        assert words in text
    for each in found.values():
        assert each.interval is not None
        low, high = (f"{end:.2f}".removeprefix("0") for end in each.interval)
        assert f"{each.area:.2f}".removeprefix("0") in text and f"{low} to {high}" in text
    assert page.count('class="line ') >= 3 and "not%20forgotten%2C" in page


def test_an_area_without_spread_claims_no_interval() -> None:
    page = text_of(roc_figure({"eraser": measure_roc([RatedGroup((1.0,), (0.0,))] * 2)}, name="roc"))
    assert (
        "1.00 – 1.00" in page
        and "eraser: 2 leavers, 2 rankers tested, 2 retrained" in page
        and "1.00 to 1.00" not in page
    )


def test_without_a_test_the_figure_says_what_would_be_there() -> None:
    assert "No membership test was made" in roc_figure({}, name="roc")


def test_a_page_has_a_figure_for_each_case(tmp_path: Path) -> None:
    cases = {"five <clients>": {"retrained": measured(0.0)}, "sound": {"not forgotten": measured(1.0)}}
    path = write_memberships(cases, tmp_path / "roc.html", when="2026-11-16T00:00:00+00:00", lead="Who is known?")
    page = path.read_text("utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and all(address.startswith(("data:", "#")) for address in checker.fetched)
    assert page.count("<figure>") == 2 and "five &lt;clients&gt;" in page and "<clients>" not in page
    for words in ("Are they forgotten?", "Who is known?", "retrained", "not forgotten", "sound"):
        assert words in text_of(page)
