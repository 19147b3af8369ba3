"""`benchmarks.speed_ratio`: equal answers, our speed by turns, and a ratio that says what it compares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shown_blocks import ROOT

from benchmarks import speed_ratio
from benchmarks.speed_ratio import APART, COMPARED, HERE, PublishedRate, compare, given_rates, known_rates, measure
from hushrank.machine.bench import BENCHMARKS, Benchmark
from hushrank.recipes.recipe import NAMED, change_recipe

_CHANGES = {"data": "tiny", "folds": [1], "n_clients": 4, "interactions": 2, "rounds": 1}
TINY = {
    name: Benchmark(name, change_recipe(NAMED[recipe], _CHANGES), "tiny")
    for name, recipe in (("fpdgd-mq2007-like-10x5", "fpdgd"), ("foltr-es-mq2007-like-2000x4", "foltr-es"))
}
DATA = ROOT / "docs" / "benchmarks"


def test_the_ratio_is_that_of_the_medians_and_its_range_all_that_both_ranges_allow() -> None:
    found = compare([100.0, 200.0, 300.0], PublishedRate(10.0, 30.0, APART))
    assert found is not None and found["measured_on"] == "a two-core machine, recorded apart"
    assert found["ratio"] == 10 and found["spread"] == [3, 30]  # 200 / 20; 100 / 30 and 300 / 10
    assert compare([100.0], None) is None


def test_a_rate_of_this_machine_takes_the_place_of_a_recorded_one() -> None:
    name = "fpdgd-mq2007-like-10x5"
    rates = known_rates() | given_rates([f"{name}=1650"])
    assert rates[name] == PublishedRate(1650.0, 1650.0, HERE)
    assert {rate.machine for other, rate in rates.items() if other != name} == {APART}


@pytest.mark.parametrize("text", ["fpdgd-mq2007-like-10x5", "fpdgd-mq2007-like-10x5=0", "fpdgd-mq2007-like-10x5=x"])
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be NAME=RATE with a rate above 0"):
        given_rates([text])


def test_a_measurement_checks_every_engine_and_has_what_the_page_reads() -> None:
    found = measure(list(TINY.values()), known_rates(), repeats=3, seconds=0.01)
    committed = json.loads((DATA / "speed_ratio.json").read_text())["runs"][0]
    assert found.keys() == committed.keys() and found["threads"] == 1
    for row in found["rows"]:
        assert row.keys() == committed["rows"][0].keys() and set(row["gaps_to_plain"]) == {"numba", "xla"}
        assert row["n_timings"] == 3 and row["spread"][0] <= row["per_cpu_second"] <= row["spread"][1]
        assert row["published"]["measured_on"] == APART


def test_one_run_and_fifteen_are_measured_and_kept_apart() -> None:
    one, fifteen = (BENCHMARKS[name].recipe for name in ("fpdgd-mq2007-like-10x5", "fpdgd-mq2007-like-10x5x15"))
    assert (one.n_clients, one.interactions, one.repeats) == (10, 5, 1) and fifteen.repeats == 15
    runs = json.loads((DATA / "speed_ratio.json").read_text())["runs"]
    assert len(runs) > 1 and all([row["name"] for row in run["rows"]] == list(COMPARED) for run in runs)


def test_the_page_has_the_ratios_of_one_machine_and_says_that_the_others_are_of_two() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for row in json.loads((DATA / "published_speed.json").read_text())["side_by_side"]["rows"]:
        assert f"| **{row['ratio']}** ({row['spread'][0]} to {row['spread'][1]}) |" in text
    assert "FPDGD, 10 clients x 5, one run |  |  | **92** (70 to 99)" in text
    assert "times, not side by side" in text and "times published" not in text


def test_the_command_prints_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed_ratio, "find_benchmark", TINY.__getitem__)
    name, written = "fpdgd-mq2007-like-10x5", tmp_path / "ratio.json"
    words = [name, "--repeats", "2", "--seconds", ".01", "--published-rate", f"{name}=1000", "--json", str(written)]
    assert speed_ratio.main(words) == 0
    found = json.loads(written.read_text())["runs"]
    assert [json.loads(capsys.readouterr().out)] == found
    assert found[0]["rows"][0]["published"]["measured_on"] == HERE
    assert speed_ratio.main([*words, "--add"]) == 0
    assert json.loads(written.read_text())["runs"] == [*found, json.loads(capsys.readouterr().out)]
