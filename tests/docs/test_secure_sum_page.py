"""What docs/secure_sum.md says follows from the code and from the measurements beside it."""

from __future__ import annotations

import json
import re

import pytest
from shown_blocks import ROOT

from benchmarks.secure_sum_fuzz import BROKEN, ODD
from hushrank.privacy.neighbours import log2_of_exposure
from hushrank.privacy.secure_messages import SumConfig, usual_threshold

PAGE = (ROOT / "docs" / "secure_sum.md").read_text(encoding="utf-8")
NUMBERS = [
    [int(cell.replace(",", "")) for cell in line.strip("| \n").split(" | ")]
    for line in re.findall(r"^\| [\d,]+ \|(?: [\d,]+ \|)+$", PAGE, re.MULTILINE)
]


@pytest.mark.parametrize("row", [row for row in NUMBERS if len(row) == 4])
def test_thresholds(row: list[int]) -> None:
    config = SumConfig(bytes(16), row[0], 1, 1.0, row[1])
    assert row[1:3] == [usual_threshold(row[0]), config.n_colluding]
    assert row[3] == config.honest_in_sum == config.least_roster - config.n_colluding
    sharing = config.sharing(config.n_clients)
    if sharing.degree < config.n_clients - 1:  # with neighbours, but for a chance of 2^-40
        assert log2_of_exposure(row[0], sharing, n_colluding=row[2], least_honest=row[3]) <= -40
    assert 2 * config.threshold > config.n_clients + config.n_colluding


@pytest.mark.parametrize("row", [row for row in NUMBERS if len(row) == 3])
def test_neighbours(row: list[int]) -> None:
    config = SumConfig(bytes(16), row[0], 1, 1.0, usual_threshold(row[0]))
    assert config.sharing(row[0]) == (row[1], row[2])


def test_fewer_neighbours_do_for_a_quarter() -> None:
    config = SumConfig(bytes(16), 1000, 1, 1.0, usual_threshold(1000), least_honest=250)
    assert f"`least_honest` = 250 of 1,000 takes {config.sharing(1000).degree} neighbours" in PAGE


def test_both_tables_were_found() -> None:
    assert sorted(map(len, NUMBERS)) == [3] * 3 + [4] * 3


@pytest.mark.parametrize(
    ("threshold", "n_colluding", "opens"), [(61, 0, True), (62, 0, False), (67, 14, True), (67, 13, False)]
)
def test_how_many_lies_opened_an_update_of_100_clients_before_survivors_were_signed(
    threshold: int, n_colluding: int, opens: bool
) -> None:
    """Of each honest one of t - 1 partners t - c shares must come; each other honest client gives up to n - t."""
    needed = (threshold - 1 - n_colluding) * (threshold - n_colluding)
    assert (needed <= (100 - 1 - n_colluding) * (100 - threshold)) is opens
    assert "for t up to 61 of 100, and 14 for t = 67" in PAGE


def test_the_fuzzed_runs_broke_nothing() -> None:
    found = json.loads((ROOT / "docs" / "benchmarks" / "secure_sum_fuzz.json").read_text(encoding="utf-8"))
    assert found["runs"] >= 10_000 and not any(found[name] for name in (*BROKEN, *ODD))
