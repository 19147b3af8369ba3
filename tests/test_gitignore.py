"""What commands make by default holds tokens, credentials and results: none of it is committed by mistake."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rooms import SOURCE

from hushrank.cli import client, server


@pytest.mark.parametrize("home", [server.HOME, client.HOME, client.PEOPLE, Path("runs")], ids=str)
def test_git_ignores_what_commands_make(tmp_path: Path, home: Path) -> None:
    shutil.copy(SOURCE.parents[1] / ".gitignore", tmp_path)
    (tmp_path / home).mkdir()
    (tmp_path / home / "file").touch()
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    listed = ["git", "ls-files", "--others", "--exclude-standard"]
    found = subprocess.run(listed, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    assert found == [".gitignore"]
