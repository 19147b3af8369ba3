"""The README is short, and what it shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shown_blocks import ROOT, run_page

README = ROOT / "README.md"


def test_what_the_readme_shows_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(README, tmp_path, monkeypatch)
    for run in ("first", "momentum", "private", "mine", "hurried", "python"):
        assert (tmp_path / "runs" / run / "report.html").is_file()
    assert (tmp_path / "ranker.safetensors").is_file()


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_front_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), f"{page} links to {target}"
