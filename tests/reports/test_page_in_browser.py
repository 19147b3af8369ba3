"""Every page in a real browser: two widths, light and dark, with little, much and nothing to show."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import in_browser
import pytest
from fake_results import PAPERS, make_line, make_reproduction, make_sweep
from fake_runs import make_run

from hushrank.look.assets import stylesheet
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reports.index import write_index
from hushrank.reports.page import write_report
from hushrank.reports.reproduction import write_reproduction
from hushrank.reports.summary import RunSummary, from_directory
from hushrank.reports.sweep import write_sweep
from hushrank.runs.run import RunOptions, run_recipe

pytestmark = in_browser.MARKS
browser = in_browser.browser

WITH_CHARTS = ("report", "report-tiny", "report-long-names", "report-sixty", "sweep", "sweep-sixty", "figure")
WITHOUT = ("sweep-none", "figure-none", "index", "index-none")


def run(path: Path, **options: Any) -> RunSummary:
    return from_directory(make_run(path, **options))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    few: dict[str, Any] = {"n_folds": 2, "n_repeats": 1, "n_evaluations": 4}
    long_names = [run(root / f"{i}-{'a-long-name-' * 6}", top=0.6 + 0.01 * i, server_rate=i, **few) for i in range(6)]
    sixty = [run(root / f"rate-{i}", top=0.5 + 0.003 * i, server_rate=i, **few) for i in range(60)]
    grid: dict[str, list[Any]] = {
        "server_rate": [1, 3, 10, 30, 100],
        "n_clients": [10, 50, 100, 500],
        "ranker": ["linear", "mlp", "trees"],
    }
    lines = [make_line(i, paper=paper, is_run=i % 3 > 0) for paper in PAPERS for i in range(1, 21)]
    nothing = make_reproduction(n_clients=()) | {"findings": [], "runs": []}
    return {
        "report": write_report([run(root / "fpdgd")], root / "report.html"),
        "report-tiny": write_report([run(root / "tiny", **few | {"n_folds": 1, "n_evaluations": 1})], root / "t.html"),
        "report-long-names": write_report(long_names, root / "long.html"),
        "report-sixty": write_report(sixty, root / "sixty.html"),
        "sweep": write_sweep(make_sweep(), root / "sweep.html"),
        "sweep-sixty": write_sweep(make_sweep(grid), root / "grid.html"),
        "sweep-none": write_sweep(make_sweep({}), root / "no-grid.html"),
        "figure": write_reproduction(make_reproduction(), root / "figure.html", sixty[:3]),
        "figure-none": write_reproduction(nothing, root / "no-figure.html"),
        "index": write_index(lines, root / "index.html", PAPERS),
        "index-none": write_index([], root / "no-index.html", PAPERS),
    }


@pytest.mark.parametrize("name", [*WITH_CHARTS, *WITHOUT])
def test_the_page_fits_every_screen_quietly(browser: Any, pages: dict[str, Path], name: str) -> None:
    with in_browser.shown(browser, pages[name], width=390) as page:
        page.evaluate("document.querySelectorAll('summary').forEach(summary => summary.click())")
        assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
        for width, scheme in ((390, "light"), (1280, "light"), (1280, "dark"), (390, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            charts = "[...document.querySelectorAll('.chart > svg')].filter(svg => svg.clientWidth > 0).length"
            assert (page.evaluate(charts) > 0) == (name in WITH_CHARTS)


def test_a_disclosure_opens_with_the_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    with in_browser.shown(browser, pages["report-sixty"]) as page:
        summary = page.locator("summary", has_text="52 runs that are not drawn")
        summary.press("Enter")
        assert page.locator("details[open] li").count() == 52


def test_labels_at_the_ends_of_lines_do_not_overlap(browser: Any, pages: dict[str, Path]) -> None:
    with in_browser.shown(browser, pages["report-long-names"], width=390) as page:
        labels = "[...document.querySelector('svg.narrow').querySelectorAll('.label')]"
        boxes = page.evaluate(f"{labels}.map(label => label.getBoundingClientRect().toJSON())")
    tops = sorted(box["top"] for box in boxes)
    assert len(boxes) == 6 and all(box["right"] <= 390 for box in boxes)
    assert min(b - a for a, b in pairwise(tops)) >= 12


def test_a_link_leads_to_the_run_beside_the_page(browser: Any, pages: dict[str, Path]) -> None:
    with in_browser.shown(browser, pages["sweep"]) as page:
        addresses = page.evaluate("[...document.querySelectorAll('tbody a')].map(link => link.href)")
    folder = pages["sweep"].parent.as_uri()
    assert addresses[0] == f"{folder}/server_rate%3D1-1a2b3c4d/report.html"


def test_times_are_relative_with_the_exact_one_on_hover(browser: Any, pages: dict[str, Path]) -> None:
    with in_browser.shown(browser, pages["index"], before="Date.now = () => Date.UTC(2026, 2, 5, 10, 20, 30)") as page:
        time = page.locator("time").first  # 2 March 2026, 10:20:30
        assert time.text_content() == "3 days ago"
        assert time.get_attribute("title") == "2 March 2026, 10:20 UTC"


def test_the_browser_understands_every_rule_of_the_stylesheet(browser: Any, pages: dict[str, Path]) -> None:
    with in_browser.shown(browser, pages["report"]) as page:
        style = page.evaluate("getComputedStyle(document.querySelector('.note')).fontSize")
        n_rules = page.evaluate("document.styleSheets[0].cssRules.length")
    assert style == "14px"
    source = re.sub(r"/\*.*?\*/", "", stylesheet(), flags=re.DOTALL)
    nested = re.sub(r"\{[^{}]*\}", "{}", source)  # inner blocks first, so that a media rule is left as one
    assert n_rules == len(re.findall(r"\{\}", re.sub(r"\{(?:[^{}]*\{\})+\s*\}", "{}", nested)))


MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("fpdgd", {}),
    "paper": ("fpdgd", {"privacy": "paper", "epsilon": 4.5}),
    "sound": ("fpdgd", {"privacy": "sound", "epsilon": 1}),
    "rewards": ("foltr-es", {"p": 0.9}),
    "open rewards": ("foltr-es", {"p": 1}),
    "central": ("pdgd", {}),
}


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of a real run in each mode."""
    root = tmp_path_factory.mktemp("boxes")
    small = {"data": "tiny", "folds": [1], "rounds": 2, "interactions": 2}
    federated = {"n_clients": 6}
    found = {}
    for name, (recipe, changes) in MODES.items():
        chosen = change_recipe(NAMED[recipe], small | ({} if recipe == "pdgd" else federated) | changes)
        found[name] = run_recipe(chosen, RunOptions(out=root / name)).directory / "report.html"
    return found


@pytest.mark.parametrize("name", MODES)
def test_the_box_can_be_read_on_every_screen(browser: Any, boxes: dict[str, Path], name: str) -> None:
    with in_browser.shown(browser, boxes[name], width=390) as page:
        for width, scheme in ((390, "light"), (1280, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            box = page.locator("section", has_text="Who learns what").last.locator(".aside")
            assert box.count() == 1 and box.is_visible()
            terms, texts = (box.locator(tag) for tag in ("dt", "dd"))
            assert terms.count() == texts.count() >= 2
            for place in range(texts.count()):
                term, text = terms.nth(place).bounding_box(), texts.nth(place).bounding_box()
                is_below = text["y"] >= term["y"] + term["height"] - 1
                is_beside = text["x"] >= term["x"] + term["width"] - 1
                assert is_below if width == 390 else is_beside
                assert text["x"] + text["width"] <= width and text["height"] > 10
