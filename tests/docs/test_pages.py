"""The documentation names what there is, is not stale, and its examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from shown_blocks import ROOT, run_page

from hushrank.aggregation.named import aggregation_names
from hushrank.attacks.named import ATTACKS
from hushrank.cli.main import app
from hushrank.clicks.named import USERS, cascade_user
from hushrank.data.catalog import CATALOG
from hushrank.data.shapes import SHAPES
from hushrank.learners.named import LEARNERS
from hushrank.metrics.rewards import REWARD_NAMES
from hushrank.partitions.named import PARTITIONS
from hushrank.recipes.recipe import KEYS, NAMED

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SHOWING = [
    page for page in PAGES if re.search(r"^```(console|python)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]
SLOW = {  # programs of their own, beside the README's
    "howto/own-data.md",
    "howto/compare.md",
    "howto/differ.md",
    "howto/reproduce.md",
    "howto/personalised-search.md",
}
_CITATION = re.compile(r"\[((?:[a-z][a-z-]*\d{4}|fpdgd|thesis|foltr-es|study|fedps)(?=[\],;])[^\]\n]*)\]")


def name_page(page: Path) -> str:
    return str(page.relative_to(DOCS))


def list_commands(group: Any, prefix: str = "hushrank") -> list[str]:
    return [
        full
        for name, command in group.commands.items()
        for full in [
            f"{prefix} {name}",
            *(list_commands(command, f"{prefix} {name}") if hasattr(command, "commands") else []),
        ]
    ]


def test_the_generated_pages_are_those_of_the_code() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_docs_name_every_command_recipe_key_method_user_and_data_set() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    methods = [*LEARNERS, *aggregation_names(), *ATTACKS, *REWARD_NAMES, *PARTITIONS]
    names = [*NAMED, *KEYS, *USERS, *methods, *SHAPES, *CATALOG]
    missing = [name for name in names if f"`{name}`" not in text]
    missing += [name for name in list_commands(typer.main.get_command(app)) if name not in text]
    assert not missing


def test_the_clicks_page_shows_the_probabilities_of_the_code() -> None:
    rows = re.findall(
        r"^\| (?:`(\w+)`)? ?\| ([235]) \| ([\d., ]+) \| ([\d., ]+) \|$", (DOCS / "clicks.md").read_text(), re.M
    )
    assert len(rows) == 12
    name = ""
    for given, n_grades, click, stop in rows:
        name = given or name
        table = cascade_user(name, int(n_grades))
        assert table.click == tuple(map(float, click.split(", "))) and table.stop == tuple(map(float, stop.split(", ")))


def test_every_paper_that_is_cited_stands_in_the_bibliography() -> None:
    known = set(re.findall(r"^@\w+\{([\w-]+),", (ROOT / "papers.bib").read_text(encoding="utf-8"), re.MULTILINE))
    sources = [*(ROOT / "src").rglob("*.py"), *PAGES]
    cited = {
        part.split(",")[0].strip()
        for source in sources
        for inside in _CITATION.findall(source.read_text(encoding="utf-8"))
        for part in inside.split("; ")
    }
    assert {"fpdgd", "guo2009", "salmon2011"} <= cited <= known
    listed = set(
        re.findall(r"^\| ([a-z][\w-]+) \|", (DOCS / "reference" / "papers.md").read_text(encoding="utf-8"), re.M)
    )
    assert listed - {"key"} == known


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if name_page(p) in SLOW else (), id=name_page(p)) for p in SHOWING],
)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, tmp_path, monkeypatch)


def test_the_documentation_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed: make docs builds the pages")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r"<(?:link|script|img)[^>]+(?:href|src)=\"(https?:[^\"]+)", page.read_text(encoding="utf-8")
        )
        assert not fetched, f"{page.name} fetches {fetched}"
