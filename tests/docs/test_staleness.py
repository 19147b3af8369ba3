"""The live client's page shows what was measured about old lists."""

from __future__ import annotations

import json
import re

from shown_blocks import ROOT

MEASURED = json.loads((ROOT / "docs" / "benchmarks" / "staleness.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "live_client.md").read_text(encoding="utf-8")


def test_the_table_of_ages_is_the_measured_one() -> None:
    shown = {int(age): cells for age, *cells in re.findall(r"^\| (\d+) \| (\.\d{4}) \| (\.\d{4}) \|$", PAGE, re.M)}
    measured: dict[int, list[str]] = {}
    for row in MEASURED["rows"]:
        if row["age"] != "own":
            measured.setdefault(row["age"], []).append(f"{row['nDCG@10']:.4f}"[1:])
    assert shown == measured and len(shown) == 5


def test_within_the_age_rule_nothing_is_lost_that_seeds_do_not_explain() -> None:
    own = next(row for row in MEASURED["rows"] if row["age"] == "own")
    young = [row for row in MEASURED["rows"] if row["age"] != "own" and row["age"] <= 10]
    assert len(young) == 6
    assert all(abs(row["nDCG@10"] - own["nDCG@10"]) < max(row["std"], own["std"]) for row in young)
