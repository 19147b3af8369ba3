"""The list of tables and figures, as a page and for the terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from fake_results import PAPERS, make_line
from reading import Checker, text_of
from rich.console import Console

from hushrank.reports.index import index_table, index_text, render_index, write_index


def test_the_list_is_grouped_by_paper_in_the_order_of_the_titles() -> None:
    page = render_index([make_line(1, paper="thesis"), make_line(2), make_line(3, paper="new")], PAPERS)
    titles = [PAPERS["fpdgd"], PAPERS["thesis"], "new"]
    assert [page.index(f"<span>{title}</span>") for title in titles] == sorted(
        page.index(f"<span>{title}</span>") for title in titles
    )
    assert PAPERS["foltr-es"] not in page  # nothing of it is listed


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            [{}, {"state": "not run"}],
            "1 of 2 tables and figures has been run. Of 5 findings 3 held, 1 did not and 1 was",
        ),
        ([{}, {}], "All are in the quick version, on stand-in data instead of the real sets."),
        ([{"quick": False}, {}], "All are on stand-in data instead of the real sets. 1 is in the quick version."),
        ([{"quick": False, "is_stand_in": False}], "1 of 1 tables and figures has been run. Of 5 findings"),
        (
            [{"state": "not run"}] * 2,
            "None of 2 has been run yet. Begin with: hushrank reproduce fpdgd.figure1 --quick",
        ),
    ],
)
def test_the_summary_counts_what_was_run_and_held(changes: list[dict[str, Any]], sentence: str) -> None:
    text = text_of(render_index([make_line(1) | change for change in changes]))
    assert sentence in text


def test_a_line_links_to_its_page_and_says_why_it_was_not_run() -> None:
    page = render_index([make_line(4), make_line(5, is_run=False)], PAPERS)
    assert '<a href="./fpdgd.figure4/report.html">Figure 4</a><small>fpdgd.figure4</small>' in page
    assert "not run: needs unlearning" in page and "run, quick, stand-in data" in page
    assert page.count("<a ") == 1 and page.count(">–</td>") == 4  # no counts for what was not run


def test_times_sort_by_moment_and_read_as_dates_without_the_script() -> None:
    page = render_index([make_line(4), make_line(5) | {"when": "someday"}])
    moment = "2026-03-05T10:20:30+00:00"
    assert f'<time datetime="{moment}" data-ago>5 March 2026, 10:20 UTC</time>' in page
    assert 'data-value="1772706030.0"' in page  # date -u -d 2026-03-05T10:20:30 +%s
    assert ">someday</td>" in page


def test_an_empty_list_says_what_would_be_there() -> None:
    text = text_of(render_index([], PAPERS))
    assert "would be listed here" in text and "hushrank reproduce NAME" in text


def test_the_page_stands_alone_and_escapes_names() -> None:
    hostile = "<script>x"
    line = make_line() | dict.fromkeys(("name", "paper", "number", "shows", "page", "when"), hostile)
    page = render_index([line | {"data": [hostile]}, make_line(is_run=False) | {"why": hostile}], {hostile: hostile})
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and hostile not in page


def test_the_terminal_has_a_line_for_each() -> None:
    lines = [make_line(4), make_line(5, is_run=False)]
    text = index_text(lines).split("\n")
    assert len(text) == 3 and text[1].startswith("fpdgd.figure4") and text[1].endswith("run, quick, stand-in data")
    out = io.StringIO()
    Console(file=out, width=250).print(index_table(lines))
    assert "needs unlearning" in out.getvalue()


def test_a_damaged_line_is_refused() -> None:
    with pytest.raises(ValueError, match="is damaged"):
        render_index([{"name": "fpdgd.figure4"}])


def test_writing_says_where_the_page_is(tmp_path: Path) -> None:
    assert write_index([make_line()], tmp_path / "index.html", PAPERS) == tmp_path / "index.html"
