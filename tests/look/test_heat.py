"""Heat maps: the number in every cell, the colour in steps, and words for those who cannot see it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from hushrank.look.chart import ChartText
from hushrank.look.heat import STEPS, HeatCell, HeatRow, describe_heat, heat_class, heat_map

TEXT = ChartText("Quality by attack and rule", "rule", "nDCG@10", empty="Nothing was run.")
ROWS = (
    HeatRow("peace", "0 %", (HeatCell(".700", 0.0), HeatCell(".690", -0.01, "a < b"))),
    HeatRow("lies", "10 %", (HeatCell(".400", -0.3), HeatCell("n/d"))),
    HeatRow("lies", "20 %", (HeatCell(".730", 0.03, is_marked=True), HeatCell(".500", -0.2))),
)


def cells(rows: tuple[HeatRow, ...] = ROWS) -> list[ET.Element]:
    """Parsing shows that the drawing is well formed."""
    root = ET.fromstring(heat_map(rows, ["mean", "krum"], TEXT, name="h"))
    return list(root.iter("g"))


def test_every_cell_has_its_number_and_the_class_of_its_distance() -> None:
    found = [(cell.get("class"), cell.findtext("text")) for cell in cells()]
    assert found == [
        ("same", ".700"),
        ("below-1", ".690"),
        ("below-5", ".400"),
        ("unknown", "n/d"),
        ("above-2 marked", ".730"),
        ("below-5", ".500"),
    ]


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_step_begins_at_its_bound(step: int) -> None:
    below = STEPS[step - 1] if step else 0.0
    assert heat_class(-STEPS[step]) == f"below-{step + 1}" and heat_class(STEPS[step]) == f"above-{step + 1}"
    assert heat_class(-(STEPS[step] + below) / 2) == (f"below-{step}" if step else "same")


def test_rows_of_a_group_stand_together_under_one_name() -> None:
    tops = [float(cell.find("rect").get("y", "")) for cell in cells()[::2]]  # type: ignore[union-attr] # there is one
    assert tops[1] - tops[0] > tops[2] - tops[1]
    assert heat_map(ROWS, ["mean", "krum"], TEXT, name="h").count(">lies</text>") == 1


def test_the_key_names_the_steps_that_occur() -> None:
    drawn = heat_map(ROWS, ["mean", "krum"], TEXT, name="h")
    said = [item.text or "".join(item.itertext()) for item in ET.fromstring(drawn).iter("li")]
    assert said == ["higher by .02 to .05", "within .005", "lower by .005 to .02", "lower by .20 or more"]


def test_the_map_is_told_to_those_who_cannot_see_it_and_notes_are_escaped() -> None:
    assert describe_heat(ROWS, ["mean", "krum"]) == "mean: lowest .400 (lies 10 %); krum: lowest .500 (lies 20 %)."
    assert "<title>a &lt; b</title>" in heat_map(ROWS, ["mean", "krum"], TEXT, name="h")


def test_without_rows_there_is_a_sentence() -> None:
    assert heat_map([], ["mean"], TEXT, name="h") == '<p class="empty">Nothing was run.</p>'
