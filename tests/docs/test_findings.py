"""docs/findings.md follows from the measurements beside it, and these agree with each other."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from hushrank.experiments.literature import find_result

DOCS = ROOT / "docs"
DATA = DOCS / "benchmarks"
PAGE = (DOCS / "findings.md").read_text(encoding="utf-8")
MEASURED = runpy.run_path(str(DOCS / "measured.py"))
REPRODUCED = sorted((DATA / "reproduced").glob("*.json"))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(name: str) -> list[list[str]]:
    """The cells of a table on the page, its header left out; minus signs and spaces as they are typed."""
    block = re.findall(rf"<!-- measured: {name} -->(.*?)<!-- end -->", PAGE, re.DOTALL)[0]
    block = block.replace("\u2212", "-").replace("\u00a0", " ")
    lines = [line for line in block.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_shows_every_table_as_it_follows_from_the_measurements() -> None:
    assert MEASURED["fill_page"](PAGE) == PAGE
    assert set(re.findall(r"<!-- measured: ([\w-]+) -->", PAGE)) == set(MEASURED["TABLES"])


def test_a_changed_measurement_changes_the_page(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DATA, tmp_path / "benchmarks"))
    path = data / "reproduced" / "foltr-es.table3.json"
    path.write_text(path.read_text().replace('"holds": true', '"holds": false'))
    assert MEASURED["fill_page"](PAGE, data) != PAGE


def test_table_3_has_the_printed_numbers_of_mq2008_and_every_one_of_them() -> None:
    printed = {
        tuple(row.cell.get(key, "linear") for key in ("method", "ranker", "clicks", "split")): row.published
        for row in find_result("foltr-es.table3").rows
        if row.cell["data"] == "mq2008"
    }
    ours = {
        (row["method"], row["ranker"], row["clicks"], row["split"]): row
        for row in read("reproduced/foltr-es.table3")["rows"]
    }
    assert {key: row["published"] for key, row in ours.items()} == printed
    shown = [float(cell.split()[0]) for line in table("table3") for cell in (line[3], line[5])]
    assert sorted(shown) == sorted(printed.values())


def test_foltr_es_is_nowhere_below_its_printed_values_by_more_than_a_hundredth() -> None:
    rows = read("reproduced/foltr-es.table3")["rows"]
    assert min(row["difference"] for row in rows if row["method"] == "foltr-es") > -0.003
    assert max(abs(row["difference"]) for row in rows if row["method"] in ("mse", "ranking-svm")) < 0.01


@pytest.mark.parametrize("path", REPRODUCED, ids=lambda path: path.stem)
def test_every_claim_of_a_rerun_result_is_on_the_page_with_its_verdict(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert not found["data"]["is_stand_in"] and not found["quick"] and not found["changes"]
    verdicts = {line[0]: line[1].strip("*") for line in table("claims") if len(line) == 3}
    words = {True: "held", False: "not held", None: "not run"}
    for claim in found["findings"]:
        assert verdicts[claim["claim"]] == words[claim["holds"]]
    assert [claim.id for claim in find_result(found["name"]).findings] == [claim["id"] for claim in found["findings"]]


def test_differences_of_methods_are_those_of_their_means() -> None:
    means = {(row["method"], row["clicks"]): row["offline/nDCG@10"] for row in read("methods")["rows"]}
    for row in read("method_pairs")["rows"]:
        ours, theirs = (means[row[side], row["clicks"]] for side in ("method", "against"))
        assert row["difference"] == pytest.approx(ours - theirs, abs=1.5e-4)  # three numbers rounded to 1e-4
        assert row["interval"][0] < row["difference"] < row["interval"][1]
        assert (row["p"] < 0.05) == (row["interval"][0] > 0 or row["interval"][1] < 0)


def test_the_page_shows_what_was_measured_about_server_steps() -> None:
    cells = [cell for line in table("server-steps") for cell in line[1:]]
    shown = [[float(number) for number in re.findall(r"[+-]?\.\d{4}", cell)] for cell in cells]
    assert shown == [[row["difference"], *row["interval"]] for row in read("server_steps")["rows"]]


def test_a_test_in_short_says_how_many_comparisons_and_how_large() -> None:
    better = "Paired t-tests, corrected: a +0.0100 (p 0.01); b -0.0020 (p 1e-05); c +0.0300 (p 0.2)."
    equal = "Two one-sided tests within 0.05: a +0.0100; b=0.5 over b=1.0 -0.0020. And 3 of 3 learn."
    means = "Means: fold 1 0.7379 over 0.7371; fold 2 0.7311 over 0.7325."
    shorten = MEASURED["shorten_test"]
    assert shorten({"why": better, "p": 0.2}).endswith(
        "significantly above in 1 of 3 cases, differences \u2212.0020 to +.0300."
    )
    assert shorten({"why": equal, "p": 0.004}) == (
        "Two one-sided tests within .05: 2 differences \u2212.0020 to +.0100, p .004. And 3 of 3 learn."
    )
    assert (
        shorten({"why": means, "p": None})
        == "Means in the claimed order in 1 of 2 cases, differences \u2212.0014 to +.0008."
    )
