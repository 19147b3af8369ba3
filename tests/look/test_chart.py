"""The SVG line chart."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushrank.look.assets import stylesheet
from hushrank.look.axis import format_ticks, nice_ticks
from hushrank.look.chart import AxisScale, ChartText, Line, Reference, line_chart, place_labels

TEXT = ChartText("Quality over time", "interactions", "nDCG@10", empty="Nothing was measured.")


def drawing(*lines: Line, references: tuple[Reference, ...] = ()) -> ET.Element:
    """The chart parsed as XML, which also shows that it is well formed."""
    return ET.fromstring(line_chart(lines, TEXT, name="c", references=references))


def classes(root: ET.Element, name: str) -> list[ET.Element]:
    wide = next(e for e in root if e.get("class") == "wide")
    return [e for e in wide.iter() if name in (e.get("class") or "").split()]


def test_a_line_with_spread_has_a_band_and_its_name_at_its_end() -> None:
    root = drawing(Line("fpdgd", (0, 10, 20), (0.4, 0.5, 0.6), (0.01, 0.02, 0.02)))
    assert len(classes(root, "line")) == len(classes(root, "band")) == 1
    assert [e.text for e in classes(root, "label")] == ["fpdgd"]
    assert [e.text for e in classes(root, "axis-title")] == ["nDCG@10", "interactions"]
    assert next(e for e in root.iter("desc")).text == "fpdgd: from .400 to .600."


def test_a_gap_breaks_the_line() -> None:
    root = drawing(Line("a", (0, 1, 2, 3, 4), (0.1, 0.2, nan, 0.3, 0.4)))
    assert len(classes(root, "line")) == 2


def test_a_single_point_is_a_dot_with_its_spread() -> None:
    root = drawing(Line("a", (0,), (0.5,), (0.1,)))
    assert len(classes(root, "dot")) == len(classes(root, "line")) == 1


def test_no_data_is_a_sentence() -> None:
    assert line_chart([], TEXT, name="c") == '<p class="empty">Nothing was measured.</p>'
    assert "Nothing was measured" in line_chart([Line("a", (0.0,), (nan,))], TEXT, name="c")


def test_lines_differ_by_dash_and_colour_and_long_names_become_numbers_with_a_key() -> None:
    lines = [Line(f"a name that is far too long {i}", (0, 1), (0.1 * i, 0.2 * i + 0.1)) for i in range(8)]
    root = drawing(*lines)
    looks = [(e.get("class"), e.get("stroke-dasharray")) for e in classes(root, "line")]
    assert len(set(looks)) == 8
    assert sorted(str(e.text) for e in classes(root, "label")) == [str(i + 1) for i in range(8)]
    key = next(e for e in root if e.get("class") == "key wide")
    assert [item.get("value") for item in key] == [str(i + 1) for i in range(8)]


def test_published_values_are_thin_lines_with_names() -> None:
    root = drawing(Line("ours", (0, 1), (0.5, 0.6)), references=(Reference("published", 0.7),))
    assert len(classes(root, "reference")) == 1
    assert {e.text for e in classes(root, "label")} == {"ours", "published"}


def test_names_are_escaped() -> None:
    assert "<script>" not in line_chart([Line("<script>", (0, 1), (0, 1))], TEXT, name="c")


@given(st.lists(st.floats(30, 250), min_size=1, max_size=12))
def test_labels_never_overlap_and_stay_in_order_and_inside(wanted: list[float]) -> None:
    placed = place_labels(wanted, low=30, high=250, gap=15)
    ordered = sorted(placed)
    assert all(b - a >= 15 - 1e-6 for a, b in pairwise(ordered))
    assert ordered[0] >= 30 - 1e-6 and ordered[-1] <= 250 + 1e-6
    assert [placed[i] for i in sorted(range(len(wanted)), key=lambda i: wanted[i])] == ordered


def test_two_labels_that_meet_move_apart_evenly() -> None:
    assert place_labels([100, 100], low=0, high=200, gap=10) == [95, 105]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(3, 6))
def test_ticks_are_few_and_inside(low: float, width: float, n: int) -> None:
    ticks = nice_ticks(low, low + width, n=n)
    assert 1 <= len(ticks) <= 2 * n + 1
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)


def test_ticks_are_round_and_have_equal_decimals() -> None:
    assert nice_ticks(0.41, 0.72) == (0.45, 0.5, 0.55, 0.6, 0.65, 0.7)
    assert format_ticks((0.45, 0.5, 0.55)) == [".45", ".50", ".55"]
    assert format_ticks((0.0, 0.025)) == [".000", ".025"]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_lines_stand_out_from_the_ground(scheme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", stylesheet(), flags=re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[scheme]))
    for name in ("ink", "muted", "accent"):
        assert contrast(colours[name], colours["ground"]) >= 4.5, name
    for i in range(1, 7):
        assert contrast(colours[f"series-{i}"], colours["ground"]) >= 3.0, i


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio."""
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def dots(root: ET.Element) -> list[float]:
    return [float(e.get("cx", "nan")) for e in classes(root, "dot")]


def scaled(scale: AxisScale, *lines: Line) -> ET.Element:
    return ET.fromstring(line_chart(lines, TEXT, name="c", scale=scale))


def test_on_a_logarithmic_axis_ten_times_is_always_as_far() -> None:
    root = scaled(AxisScale((1, 10, 100), is_log=True), Line("a", (1, 10, 100), (0.1, 0.3, 0.2), has_dots=True))
    one, ten, hundred = dots(root)
    assert ten - one == pytest.approx(hundred - ten, abs=0.11)  # positions have one decimal


def test_the_ticks_of_a_scale_are_the_settings_that_were_tried() -> None:
    root = scaled(AxisScale((1, 3, 10)), Line("a", (1, 3, 10), (0.1, 0.3, 0.2)))
    wide = next(e for e in root if e.get("class") == "wide")
    shown = [e.text for e in wide.iter("text") if e.get("text-anchor") == "middle"]
    assert shown == ["1", "3", "10"]


def test_ticks_may_be_called_otherwise_than_by_their_numbers() -> None:
    root = scaled(AxisScale((1, 4, 10), is_log=True, texts=("1", ".25", "<.1")), Line("a", (1, 4, 10), (0.1, 0.3, 0.2)))
    wide = next(e for e in root if e.get("class") == "wide")
    assert [e.text for e in wide.iter("text") if e.get("text-anchor") == "middle"] == ["1", ".25", "<.1"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 10**7), min_size=2, max_size=40, unique=True), st.booleans())
def test_texts_of_ticks_never_touch(values: list[int], is_log: bool) -> None:
    xs = tuple(float(value) for value in sorted(values))
    root = scaled(AxisScale(xs, is_log=is_log), Line("a", xs, tuple(0.1 for _ in xs)))
    wide = next(e for e in root if e.get("class") == "wide")
    ticks = [e for e in wide.iter("text") if e.get("text-anchor") == "middle"]
    edges = [(float(e.get("x", "nan")), 6.5 * len(e.text or "") / 2) for e in ticks]
    assert ticks and all(b - half_b >= a + half_a for (a, half_a), (b, half_b) in pairwise(edges))


def test_a_logarithmic_axis_refuses_zero() -> None:
    with pytest.raises(ValueError, match="no place for x <= 0"):
        scaled(AxisScale((0, 1), is_log=True), Line("a", (0, 1), (0.1, 0.2)))
