"""docs/architecture.md draws the rooms of the source, each with its sentence, and every arrow points down."""

from __future__ import annotations

import re
import runpy
from typing import Any

from rooms import SOURCE, import_graph
from shown_blocks import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DRAWING: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "import_graph.py"))
SHOWN = sorted(set(import_graph()) - DRAWING["HIDDEN"])


def test_the_picture_is_that_of_the_source_and_a_changed_one_is_noticed() -> None:
    assert DRAWING["fill_architecture"](PAGE) == PAGE
    assert DRAWING["fill_architecture"](PAGE.replace(">engine<", ">motor<")) == PAGE


def test_every_room_is_drawn_once_and_described() -> None:
    svg, table = PAGE.split("</svg>")
    assert sorted(re.findall(r'text-anchor="middle">([^<]+)<', svg)) == SHOWN
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", table, re.MULTILINE))
    assert sorted(rows) == SHOWN
    assert all(len(text) > 10 for text in rows.values())


def test_every_arrow_points_down() -> None:
    arrows = re.findall(r'class="arrow"[^>]* d="M[\d.]+ ([\d.]+)C[\d.]+ [\d.]+ [\d.]+ [\d.]+ [\d.]+ ([\d.]+)', PAGE)
    assert len(arrows) > 10
    assert all(float(start) < float(end) for start, end in arrows)


def test_an_arrow_is_left_out_only_where_a_longer_way_says_the_same() -> None:
    graph = {"top": {"middle", "low"}, "middle": {"low"}, "low": set[str](), "aside": {"low"}}
    assert DRAWING["reduce_links"](graph) == {"top": {"middle"}, "middle": {"low"}, "low": set(), "aside": {"low"}}
    assert DRAWING["find_layers"](graph) == {"low": 0, "middle": 1, "aside": 1, "top": 2}


def test_a_long_arrow_has_a_lane_in_every_row_that_it_passes() -> None:
    rows, links = DRAWING["route"](
        {"top": {"third", "low"}, "third": {"second"}, "second": {"low2"}, "low2": set(), "low": {"low2"}}
    )
    assert [len(row) for row in rows] == [1, 2, 2, 1]
    assert ("top", "top > low at 2") in links and ("top > low at 2", "low") in links


def test_every_file_on_the_way_of_one_search_exists() -> None:
    text = (ROOT / "docs" / "one_search.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_/]+\.py)`", text)) - {"tests/live/test_live_equality.py"}
    assert len(named) > 40
    assert not {name for name in named if not (SOURCE / name).is_file()}
