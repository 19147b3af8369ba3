from __future__ import annotations

import io
import sys
from pathlib import Path
from subprocess import run as run_process

from fake_runs import make_run
from rich.console import Console

from hushrank.reports.listing import list_text
from hushrank.reports.summary import from_directory
from hushrank.reports.terminal import Column, FittedTable, result_rows, result_table, result_text
from hushrank.reports.wording import count_text


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


def render(table: FittedTable, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return [line.rstrip() for line in out.getvalue().split("\n")]


def test_a_table_that_is_too_wide_is_grouped_and_then_told_row_by_row() -> None:
    columns = (Column("method"), Column("user"), Column("quality", is_number=True), Column("values", is_number=True))
    rows = [["foltr-es", user, ".410 ± .006", "25"] for user in ("perfect", "navigational")]
    wide, grouped, narrow = (render(FittedTable(columns, rows), width) for width in (60, 36, 24))
    assert " foltr-es   perfect        .410 ± .006       25" in wide
    assert "foltr-es" in grouped and "navigational  .410 ± .006      25" in grouped and len(grouped) < 10
    assert narrow[:4] == ["foltr-es, perfect", "  quality: .410 ± .006;", "  values: 25", "foltr-es, navigational"]


def test_sentences_wrap_in_columns_only_where_these_are_wide_enough_to_read() -> None:
    columns, rows = (Column("name"), Column("shows")), [["fpdgd.figure4", "How quality depends on the clients"]]
    assert "   How quality depends" in render(FittedTable(columns, rows), 40)[3]
    assert render(FittedTable(columns, rows), 30)[:2] == ["fpdgd.figure4", "  shows: How quality depends"]


def test_times_are_told_as_roughly_as_they_are_known() -> None:
    seconds = {"seconds": 1500.0, "quick_seconds": 0.0}
    result = {"name": "a.table1", "aliases": [], "shows": "x", "data": [], "can_run": True}
    assert list_text([result | seconds]).split("\n")[1].split("  ")[-2:] == ["about 25 min", "under 1 s"]
    assert count_text(1, "entry") == "1 entry" and count_text(2, "entry") == "2 entries"


def test_importing_the_reports_loads_neither_jax_nor_scipy_nor_rich() -> None:
    code = "import sys, hushrank.reports.page, hushrank.reports.terminal; print(*sys.modules)"
    done = run_process([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "scipy", "rich"} & set(done.stdout.split())
