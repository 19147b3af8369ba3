"""The report in a real browser: two widths, light and dark."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_runs import make_run

from hushrank.look.assets import stylesheet
from hushrank.report.page import write_report
from hushrank.report.summary import from_directory

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; install the package `chromium`"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    groups = {
        "one": [make_run(root / "fpdgd")],
        "little": [make_run(root / "tiny", clicks="perfect", n_folds=1, n_repeats=1, n_evaluations=1)],
        "many": [
            make_run(root / f"{i}-{'a-long-name-' * 6}", top=0.6 + 0.01 * i, n_folds=3, server_rate=float(i))
            for i in range(6)
        ],
    }
    return {
        name: write_report([from_directory(path) for path in paths], root / f"{name}.html")
        for name, paths in groups.items()
    }


@pytest.mark.parametrize("name", ["one", "little", "many"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_screen_without_errors(
    browser: Any, pages: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(pages[name].as_uri())
    for summary in page.query_selector_all("summary"):
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert errors == []
    assert all(url.startswith(("file:", "data:")) for url in requests)
    assert page.evaluate("[...document.querySelectorAll('.chart > svg')].filter(s => s.clientWidth > 0).length") > 0
    page.close()


def test_a_heading_sorts_its_table_down_and_up(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(pages["many"].as_uri())
    button = page.locator("table[data-sortable] thead button").nth(2)  # test nDCG@10
    column = "[...document.querySelectorAll('table[data-sortable]')][0].tBodies[0].rows"
    values = f"[...{column}].map(row => Number(row.cells[2].dataset.value))"
    button.press("Enter")
    falling = page.evaluate(values)
    button.press("Enter")
    assert falling == sorted(falling, reverse=True) and page.evaluate(values) == falling[::-1]
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.close()


def test_labels_at_the_ends_of_lines_do_not_overlap(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(pages["many"].as_uri())
    labels = "[...document.querySelector('svg.narrow').querySelectorAll('.label')]"
    boxes = page.evaluate(f"{labels}.map(label => label.getBoundingClientRect().toJSON())")
    tops = sorted(box["top"] for box in boxes)
    assert len(boxes) == 6 and all(box["right"] <= 390 for box in boxes)
    assert min(b - a for a, b in pairwise(tops)) >= 12
    page.close()


def test_the_browser_understands_every_rule_of_the_stylesheet(browser: Any, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.goto(pages["one"].as_uri())
    style = page.evaluate("getComputedStyle(document.querySelector('.note')).fontSize")
    n_rules = page.evaluate("document.styleSheets[0].cssRules.length")
    assert style == "14px"
    source = re.sub(r"/\*.*?\*/", "", stylesheet(), flags=re.DOTALL)
    nested = re.sub(r"\{[^{}]*\}", "{}", source)  # inner blocks first, so that a media rule is left as one
    assert n_rules == len(re.findall(r"\{\}", re.sub(r"\{(?:[^{}]*\{\})+\s*\}", "{}", nested)))
    page.close()
