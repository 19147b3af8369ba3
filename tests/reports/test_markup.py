"""The pieces of HTML: what they mark for the scripts, and that nothing from outside leaves them unescaped."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.reports.markup import (
    TableCell,
    definition_list,
    grouped_table,
    labels_line,
    relative_link,
    section,
    table,
)

HOSTILE = "\"'><script>alert(1)</script>"


def rows(n: int) -> list[list[TableCell]]:
    return [[TableCell(f"row {i}")] for i in range(n)]


@pytest.mark.parametrize(
    ("n", "marks"),
    [
        (0, []),
        (1, ["data-copyable"]),
        (3, ["data-copyable", "data-sortable"]),
        (4, ["data-copyable", "data-sortable", "data-filterable"]),
    ],
)
def test_a_table_has_the_tools_that_its_length_is_worth(n: int, marks: list[str]) -> None:
    html = table([TableCell("name")], rows(n), label="Table", has_tools=True)
    found = [mark for mark in ("data-copyable", "data-sortable", "data-filterable") if mark in html]
    assert found == marks
    assert "data-" not in table([TableCell("name")], rows(n), label="Table")


def test_only_a_long_table_scrolls_below_its_headings() -> None:
    assert 'class="scroll tall"' in table([TableCell("name")], rows(25), label="Table")
    assert 'class="scroll"' in table([TableCell("name")], rows(24), label="Table")
    groups = [("one", rows(25)), ("two", rows(25))]
    assert 'class="scroll"' in grouped_table([TableCell("name")], groups, label="Table")


def test_groups_are_bodies_with_a_title_over_all_columns() -> None:
    html = grouped_table(
        [TableCell("a"), TableCell("b")], [("first", [[TableCell("1"), TableCell("2")]])], label="Table"
    )
    assert '<tbody><tr class="group"><th colspan="2" scope="rowgroup"><span>first</span></th></tr><tr>' in html


def test_a_cell_tells_the_scripts_its_number_its_spread_and_what_to_copy() -> None:
    html = table([TableCell("t", unit="s")], [[TableCell("≠ .70 ± .01", value=0.7, std=0.01, copy="x")]], label="T")
    assert '<th scope="col" data-unit="s">' in html
    assert '<th scope="row" data-value="0.7" data-std="0.01" data-copy="x">≠ .70 ± .01</th>' in html


def test_everything_from_outside_is_escaped() -> None:
    cell = TableCell(HOSTILE, copy=HOSTILE, style=HOSTILE, unit=HOSTILE, moment=HOSTILE, note=HOSTILE, href=HOSTILE)
    html = grouped_table([cell], [(HOSTILE, [[cell]])], label=HOSTILE)
    for part in (html, section(HOSTILE, "x"), labels_line([HOSTILE]), definition_list([(HOSTILE, HOSTILE)])):
        assert "<script>" not in part and HOSTILE not in part


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_a_link_never_leaves_the_site(directory: str) -> None:
    address = relative_link(directory, "report.html")
    assert urljoin("https://here.example/a/b/page.html", address).startswith("https://here.example/")
    assert not set(address) & set("\"'<> \\:?#")


def test_a_section_of_nothing_is_nothing() -> None:
    assert section("Title", "", "") == labels_line([]) == ""
