"""Tables that readers filter, sort and copy, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import in_browser
import pytest
from fake_results import PAPERS, make_line, make_sweep

from hushrank.reports.cells import spread_cells
from hushrank.reports.index import write_index
from hushrank.reports.markup import TableCell, table
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.sweep import write_sweep

pytestmark = in_browser.MARKS
browser = in_browser.browser

ROWS = "[...document.querySelectorAll('tbody tr:not(.group)')].filter(row => row.offsetParent)"
FIRST_CELLS = f"{ROWS}.map(row => row.cells[0].textContent)"
WIDTHS = "[...document.querySelectorAll('th[scope=col]')].map(heading => heading.getBoundingClientRect().width)"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of four rows that holds every sign that LaTeX or CSV treats specially."""
    names = ["50% of_a & b", "<x> {y} \\ #1 ~ ^", 'said "no", twice', "a rather long name that is the widest ≠"]
    numbers = spread_cells([(0.7021, 0.00421), (0.65, 0.012), (None, None), (12.5, None)])
    changes = [
        TableCell("\u2212.013", value=-0.0131),
        TableCell("+.004", value=0.0042),
        TableCell("–"),
        TableCell("1,200", value=1200.0),
    ]
    rows = [[TableCell(name), number, change] for name, number, change in zip(names, numbers, changes, strict=True)]
    headings = [TableCell("run"), TableCell("nDCG@10", style="number"), TableCell("change", style="number", unit="s")]
    body = table(headings, rows, label="Result", has_tools=True)
    return write_page(render_page("Small", body, kind="test"), tmp_path_factory.mktemp("small") / "page.html")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [make_line(i, paper=paper) for paper in ("fpdgd", "foltr-es") for i in (2, 10, 1)]
    return write_index(lines, tmp_path_factory.mktemp("index") / "index.html", PAPERS)


def copied(page: Any) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_filter_hides_rows_without_the_words_and_moves_no_column(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        widths, box = page.evaluate(WIDTHS), page.get_by_label("Filter rows of Result")
        assert page.locator(".filter [role=status]").text_content() == "4 rows"
        box.fill("OF_A  .702")
        assert page.evaluate(FIRST_CELLS) == ["50% of_a & b"]
        assert page.locator(".filter [role=status]").text_content() == "1 of 4 rows"
        assert page.evaluate(WIDTHS) == pytest.approx(widths, abs=0.51)
        box.fill("nothing has this")
        assert page.evaluate(FIRST_CELLS) == []
        assert page.locator(".filter [role=status]").text_content() == "0 of 4 rows: none has all these words"
        box.fill("")
        assert len(page.evaluate(FIRST_CELLS)) == 4 and page.evaluate(WIDTHS) == widths


def test_a_minus_typed_on_a_keyboard_finds_a_true_minus(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        page.get_by_label("Filter rows of Result").fill("-.013")
        assert page.evaluate(FIRST_CELLS) == ["50% of_a & b"]


def test_filter_and_buttons_are_reached_with_the_keyboard_alone(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        page.keyboard.press("Tab")
        page.keyboard.type("twice")
        assert page.evaluate(FIRST_CELLS) == ['said "no", twice']
        seen = []
        for _ in range(6):  # the table's box, three headings, two buttons
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.textContent.slice(0, 13)"))
        assert seen[1:] == ["run", "nDCG@10", "change", "Copy as LaTeX", "Copy as CSV"]


def test_a_heading_sorts_down_and_up_and_what_is_unknown_stays_last(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        button = page.locator("thead button", has_text="nDCG@10")
        values = f"{ROWS}.map(row => row.cells[1].dataset.value ?? null)"
        widths = page.evaluate(WIDTHS)
        button.press("Enter")
        assert page.evaluate(values) == ["12.5", "0.7021", "0.65", None]
        button.press("Enter")
        assert page.evaluate(values) == ["0.65", "0.7021", "12.5", None]
        assert page.locator("th[aria-sort=ascending]").count() == 1
        assert page.evaluate(WIDTHS) == widths


def test_sorting_survives_a_filter(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        page.locator("thead button", has_text="nDCG@10").click()
        page.get_by_label("Filter rows of Result").fill("a")
        assert page.evaluate(FIRST_CELLS)[0].startswith("a rather long name")


def test_latex_is_a_booktabs_table_with_everything_escaped(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        page.get_by_role("button", name="Copy as LaTeX").click()
        page.locator(".tools [role=status]", has_text="Copied").wait_for()
        assert copied(page).replace("\r\n", "\n").split("\n") == [
            r"% \usepackage{booktabs}",
            r"\begin{tabular}{lrr}",
            r"\toprule",
            r"run & nDCG@10 & change \\",
            r"\midrule",
            r"50\% of\_a \& b & $.702 \pm .004$ & $-.013$ \\",
            r"$<$x$>$ \{y\} \textbackslash{} \#1 \textasciitilde{} \textasciicircum{} & $.650 \pm .012$ & $+.004$ \\",
            r'said "no", twice & -- & -- \\',
            r"a rather long name that is the widest $\neq$ & 12.5 & 1,200 \\",
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]


def test_csv_holds_exact_numbers_and_a_column_for_their_spread(browser: Any, small: Path) -> None:
    with in_browser.shown(browser, small) as page:
        page.get_by_role("button", name="Copy as CSV").click()
        page.locator(".tools [role=status]", has_text="Copied").wait_for()
        assert copied(page).replace("\r\n", "\n").split("\n") == [
            "run,nDCG@10,nDCG@10 std,change (s)",
            "50% of_a & b,0.7021,0.00421,-0.0131",
            "<x> {y} \\ #1 ~ ^,0.65,0.012,0.0042",
            '"said ""no"", twice",,,',
            "a rather long name that is the widest ≠,12.5,,1200.0",
            "",
        ]


@pytest.mark.parametrize("before", [in_browser.NO_CLIPBOARD, in_browser.REFUSED], ids=["none", "refused"])
def test_without_a_clipboard_the_text_is_shown_and_selected(browser: Any, small: Path, before: str) -> None:
    with in_browser.shown(browser, small, width=390, before=before) as page:
        page.get_by_label("Filter rows of Result").fill("twice")
        page.get_by_role("button", name="Copy as CSV").click()
        box = page.get_by_label("Text to copy")
        box.wait_for()
        assert box.input_value().split("\n") == ["run,nDCG@10,nDCG@10 std,change (s)", '"said ""no"", twice",,,', ""]
        chosen = "(box => box.value.slice(box.selectionStart, box.selectionEnd))(document.activeElement)"
        assert page.evaluate(chosen) == box.input_value() and box.get_attribute("readonly") is not None
        assert "Ctrl+C" in page.locator(".tools [role=status]").text_content()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_is_copied_is_filtered_and_sorted(browser: Any, tmp_path: Path) -> None:
    path = write_sweep(make_sweep({"server_rate": [1, 10, 100], "ranker": ["linear", "mlp"]}), tmp_path / "page.html")
    with in_browser.shown(browser, path, before=in_browser.NO_CLIPBOARD) as page:
        page.get_by_label("Filter rows of Runs").fill("ranker=mlp perfect")
        page.locator("section", has_text="Runs").locator("thead button", has_text="server_rate").last.click()
        tools = page.locator(".tools").nth(2)  # below the choice, the choice fold by fold, and the runs
        tools.get_by_role("button", name="Copy as CSV").click()
        lines = tools.get_by_label("Text to copy").input_value().split("\n")
        assert [line.split(",")[:3] for line in lines[1:-1]] == [
            [rate, "mlp", "perfect"] for rate in ("1", "10", "100")
        ]


def test_groups_stay_together_when_sorted_and_vanish_when_empty(browser: Any, index: Path) -> None:
    with in_browser.shown(browser, index) as page:
        page.locator("thead button", has_text="result").click()
        titles = (
            "[...document.querySelectorAll('tr.group')].filter(row => row.offsetParent).map(row => row.textContent)"
        )
        assert [text[:9] for text in page.evaluate(FIRST_CELLS)] == ["Figure 1f", "Figure 2f", "Figure 10"] * 2
        assert page.evaluate(titles) == [PAPERS["fpdgd"], PAPERS["foltr-es"]]
        page.get_by_label("Filter rows of Tables and figures").fill("foltr-es.figure10")
        assert page.evaluate(titles) == [PAPERS["foltr-es"]]
        page.get_by_role("button", name="Copy as CSV").click()
        page.locator(".tools [role=status]", has_text="Copied").wait_for()
        lines = copied(page).split("\n")
        assert lines[0].startswith("group,result,held") and len(lines) == 3
        assert lines[1].startswith(f"{PAPERS['foltr-es']},foltr-es.figure10,3,0,0,1")


def test_groups_have_titles_in_latex(browser: Any, index: Path) -> None:
    with in_browser.shown(browser, index) as page:
        page.get_by_role("button", name="Copy as LaTeX").click()
        page.locator(".tools [role=status]", has_text="Copied").wait_for()
        assert rf"\multicolumn{{9}}{{l}}{{\emph{{{PAPERS['fpdgd']}}}}} \\" in copied(page)
