"""What a page shows, run as shown, in order.

- a ```console block: lines that begin with `$ ` are commands, the lines below one are what it prints on stdout; a line
  `...` stands for anything. `make TARGET` and `pip install ".[EXTRA]"` are only checked to exist;
- a ```toml or ```python block that begins with `# file: NAME` is written to that file;
- any other ```python block is executed; the blocks of a page share their names.

Commands run inside this process: each compiled program is then made once for a whole page. What a page's plugin adds
to the registries is forgotten after the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushrank.aggregation.named import RULES
from hushrank.attacks.named import ATTACKS
from hushrank.cli.main import main
from hushrank.clicks.named import USERS
from hushrank.learners.named import LEARNERS

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))  # Why: docs/measured.py imports the files beside it
_BLOCK = re.compile(r"^```(console|toml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every block of a page in `directory`."""
    monkeypatch.chdir(directory)
    monkeypatch.setenv("HUSHRANK_DATA", str(directory / "data"))
    names: dict[str, Any] = {}
    with registries_as_before():
        for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if text.startswith("# file: "):
                Path(text.splitlines()[0].removeprefix("# file: ")).write_text(text, encoding="utf-8")
            elif kind == "console":
                for command, shown in read_commands(text):
                    check_command(command, shown, monkeypatch)
            elif kind == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(text, str(page), "exec"), names)


@contextlib.contextmanager
def registries_as_before() -> Iterator[None]:
    """Whatever is added inside is gone afterwards."""
    registries: list[dict[str, Any]] = [LEARNERS, RULES, ATTACKS, USERS]
    before = [dict(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, entries in zip(registries, before, strict=True):
            registry.clear()
            registry.update(entries)


def read_commands(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """(words of the command, lines shown below it)"""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield shlex.split(command), shown


def check_command(words: list[str], shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"no target {words[1]}"
    elif words[:2] == ["pip", "install"]:
        extra = re.fullmatch(r"\.\[(\w+)\]", words[2])
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert extra and extra[1] in project["optional-dependencies"]
    else:
        assert words[0] == "hushrank", f"{words[0]}: shown blocks hold make, pip install and hushrank"
        pattern = "\n".join(r"(?:.|\n)*" if line == "..." else re.escape(line) for line in shown)
        printed = run_command(words, monkeypatch)
        assert re.fullmatch(pattern, printed.rstrip()), f"{shlex.join(words)} printed\n{printed}"


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command printed on stdout; it must have ended well."""
    monkeypatch.setattr(sys, "argv", words)
    with contextlib.redirect_stdout(io.StringIO()) as stdout, contextlib.redirect_stderr(io.StringIO()) as stderr:
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    assert code == 0, f"{shlex.join(words)} ended with {code}: {stderr.getvalue()}"
    return stdout.getvalue()
