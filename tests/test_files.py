"""A file is the old one or the new one, whole."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hushrank.files import replacing, sweep_unfinished, write_json, write_text

_FULL_DISK = """
import resource, sys
from pathlib import Path
from hushrank.files import write_text
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_text(Path(sys.argv[1]), "new" * 10_000)
except OSError as error:
    print(error)
"""


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "ranker.json"
    write_text(path, "old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == tmp_path and temporary.suffix == ".json"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["ranker.json"]


def test_a_failure_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    write_text(tmp_path / "result", "old")

    def fail_half_way() -> None:
        with replacing(tmp_path / "result") as temporary:
            temporary.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail_half_way()
    assert (tmp_path / "result").read_text() == "old"
    assert names(tmp_path) == ["result"]


def test_an_interruption_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "result"):
        raise KeyboardInterrupt
    assert names(tmp_path) == []


def test_a_full_disk_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    write_text(tmp_path / "result", "old")
    command = [sys.executable, "-c", _FULL_DISK, str(tmp_path / "result")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (
        done.stdout.strip()
        == f"{tmp_path / 'result'} cannot be written (File too large). Make room or name another place."
    )
    assert (tmp_path / "result").read_text() == "old"
    assert names(tmp_path) == ["result"]


def test_a_new_file_may_be_read_by_those_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "result", "text")
    finally:
        assert os.umask(before) == 0o027
    assert stat.S_IMODE((tmp_path / "result").stat().st_mode) == 0o640


def test_json_ends_with_a_newline_and_reads_back(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"epsilon": 0.1, "name": "é"})
    assert (tmp_path / "a.json").read_text().endswith("}\n")
    assert json.loads((tmp_path / "a.json").read_text()) == {"epsilon": 0.1, "name": "é"}


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"file cannot be written \(No such file or directory\)"):
        write_text(tmp_path / "absent" / "file", "text")


def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    script = "import os, sys; from pathlib import Path; from hushrank.files import replacing\n"
    script += "with replacing(Path(sys.argv[1]) / 'result.json'): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == 9
    write_text(tmp_path / "kept.json", "{}")
    assert len(names(tmp_path)) == 2
    sweep_unfinished(tmp_path)
    assert names(tmp_path) == ["kept.json"]
