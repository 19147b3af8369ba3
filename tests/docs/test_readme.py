"""The README is short, and what it shows is what happens."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from shown_blocks import ROOT, run_page

README = ROOT / "README.md"


def test_what_the_readme_shows_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(README, tmp_path, monkeypatch)
    for run in ("first", "private", "mine", "hurried", "python"):
        assert (tmp_path / "runs" / run / "report.html").is_file()


@pytest.mark.slow
def test_the_two_terminals_of_the_readme(tmp_path: Path) -> None:
    """As shown, but on a port of its own: the server serves, rounds advance, the ranker improves, both end well."""
    block = re.search(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    found, serve, take_part = (shlex.split(line, comments=True) for line in block[1].splitlines() if line)
    assert {found[0], serve[0], take_part[0]} == {"hushrank"}
    command = [sys.executable, "-m", "hushrank"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    subprocess.run([*command, *found[1:]], cwd=tmp_path, check=True, capture_output=True)
    server = subprocess.Popen([*command, *serve[1:], "--port", str(port)], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        words = [take_part[1], f"http://127.0.0.1:{port}", *take_part[2:]]
        done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    finally:
        server.terminate()
        assert server.wait(60) == 0
    quality = [float(value) for value in re.findall(r"on test queries: (\d\.\d+)", done.stderr)]
    assert len(quality) == 20
    assert quality[-1] > quality[0] + 0.05


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_front_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), f"{page} links to {target}"
