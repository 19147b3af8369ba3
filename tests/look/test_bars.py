"""Bars from zero, whole or made of parts."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hushrank.look.bars import Bar, bar_chart, describe_bars
from hushrank.look.chart import ChartText

TEXT = ChartText("Searches by client", "searches", "", empty="Nobody searched.")


def rectangles(*bars: Bar) -> list[ET.Element]:
    """Those of the wide drawing; parsing shows that it is well formed."""
    root = ET.fromstring(bar_chart(bars, TEXT, name="b"))
    wide = next(e for e in root if e.get("class") == "wide")
    return list(wide.iter("rect"))


def test_a_bar_begins_at_zero_and_is_as_long_as_its_value() -> None:
    one, two = rectangles(Bar("a", (("n", 2.0),)), Bar("b", (("n", 6.0),)))
    assert one.get("x") == two.get("x")
    lengths = [float(bar.get("width", "")) + 1.5 for bar in (one, two)]  # the gap after each counts
    assert abs(lengths[1] - 3 * lengths[0]) < 0.5


def test_parts_stand_end_to_end_and_are_named_below() -> None:
    bars = (Bar("a", (("grade 0", 0.75), ("grade 1", 0.25))), Bar("b", (("grade 0", 0.0), ("grade 1", 1.0))))
    first, second, alone = rectangles(*bars)
    assert abs(float(first.get("x", "")) + float(first.get("width", "")) + 1.5 - float(second.get("x", ""))) < 0.2
    assert second.get("class") == alone.get("class") == "bar series-2"  # a part has the same colour in every bar
    chart = bar_chart(bars, TEXT, name="b")
    assert '<li value="1">' in chart and ">grade 1</li>" in chart


def test_single_numbers_stand_beside_their_bars() -> None:
    chart = bar_chart([Bar("a & b", (("n", 1234.0),)), Bar("c", (("n", 0.125),))], TEXT, name="b")
    assert ">1,234</text>" in chart and ">.125</text>" in chart and "a &amp; b" in chart


def test_the_chart_is_told_to_those_who_cannot_see_it() -> None:
    assert describe_bars([Bar("a", (("x", 0.5), ("y", 0.25)))]) == "a: x .500, y .250."


def test_without_bars_there_is_a_sentence_and_with_zeros_no_division() -> None:
    assert bar_chart([], TEXT, name="b") == '<p class="empty">Nobody searched.</p>'
    assert rectangles(Bar("a", (("n", 0.0),))) == []
