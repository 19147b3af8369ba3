from __future__ import annotations

import io
import sys
from pathlib import Path
from subprocess import run as run_process

from fake_runs import make_run
from rich.console import Console

from hushrank.reports.summary import from_directory
from hushrank.reports.terminal import result_rows, result_table, result_text


def test_the_plain_table_is_aligned_and_holds_one_line_per_run_and_user(tmp_path: Path) -> None:
    runs = [from_directory(make_run(tmp_path / name)) for name in ("pdgd", "fpdgd-with-a-longer-name")]
    lines = result_text(runs).split("\n")
    assert len(lines) == 1 + 2 * 3
    assert len({line.index("±") for line in lines[1:]}) == 1
    assert lines[0].split()[:2] == ["run", "user"]


def test_the_rich_table_shows_the_same_cells_and_takes_names_literally(tmp_path: Path) -> None:
    runs = [from_directory(make_run(tmp_path / "[red]name", clicks="perfect", n_folds=1, n_repeats=1))]
    out = io.StringIO()
    Console(file=out, width=120).print(result_table(runs))
    for cell in result_rows(runs)[0]:
        assert cell.strip() in out.getvalue()


def test_importing_the_reports_loads_neither_jax_nor_scipy_nor_rich() -> None:
    code = "import sys, hushrank.reports.page, hushrank.reports.terminal; print(*sys.modules)"
    done = run_process([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "scipy", "rich"} & set(done.stdout.split())
