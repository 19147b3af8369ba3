"""What `watchful` costs where honest clients differ: verdicts follow from what is kept; the command continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks import expelled
from benchmarks.expelled import CASES, DIFFERENT, HEAVY, compare, judge_rows, main, name_verdict, write_rows
from hushrank.files import read_json
from hushrank.metrics.significance import paired_t_test

KEPT = read_json(ROOT / "docs" / "benchmarks" / "expelled.json")
PAGE = (ROOT / "docs" / "howto" / "which-rule.md").read_text(encoding="utf-8")
BASE = [0.5, 0.6, 0.7, 0.8]


def row_of(*gaps: float, n_clients: int = 9, case: str = "alike") -> dict[str, Any]:
    ours = [base + gap for base, gap in zip(BASE, gaps, strict=True)]
    about = {"case": case, "user": "perfect", "n_clients": n_clients, "repeats": 1, "left_out": 0.0}
    return {**about, "labels": "everybody's", "same_bits": not any(gaps), "watchful": ours, "mean": BASE}


def test_the_kept_verdicts_follow_from_the_kept_trainings() -> None:
    assert judge_rows(KEPT["rows"]) == KEPT["rows"]
    assert {row["case"] for row in KEPT["rows"]} == set(CASES)
    assert all(len(row["watchful"]) == len(row["mean"]) == row["n"] == 5 * row["repeats"] for row in KEPT["rows"])
    assert all(row["same_bits"] for row in KEPT["rows"] if row["n_clients"] < 5)


def test_the_page_says_who_is_left_out_as_it_was_measured() -> None:
    most = {row["case"]: 0.0 for row in KEPT["rows"]}
    for row in KEPT["rows"]:
        most[row["case"]] = max(most[row["case"]], row["left_out"])
    among_busy = 100 * max(most["quantity"], most["quantity, 10 clients"])
    assert f"at most {among_busy:.1f}".replace("0.", ".") + " % of the updates were left out" in PAGE
    usual, heavy = (100 * max(most[case] for case in cases) for cases in (DIFFERENT, HEAVY))
    assert f"left out up to {usual:.1f} % of honest updates, and up to {heavy:.1f} % where one" in PAGE
    assert most["10 times"] < 0.01 and most["20 times"] > 0.5 / 6 and most["60 times"] > 0.95 / 6


def test_clients_with_labels_of_their_own_are_measured_by_these_too() -> None:
    own = {row["case"] for row in KEPT["rows"] if row["labels"] == "own"}
    assert own == {case for case, keys in CASES.items() if keys.get("partition") == "intents"}


def test_a_row_is_tested_on_both_sides_of_the_margin() -> None:
    """Gaps of mean 0 and standard error .001: t = 3 on either side, of which 2.9 % lie beyond with three degrees."""
    found = compare(row_of(0.002 * 0.75**0.5, -0.002 * 0.75**0.5, 0.002 * 0.75**0.5, -0.002 * 0.75**0.5))
    assert found["error"] == pytest.approx(0.001) and found["gap"] == 0
    assert found["p_equal"] == pytest.approx(found["p_not_lower"]) == pytest.approx(0.0288, abs=1e-4)
    assert found["p_lower"] == 1 - found["p_not_lower"]


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ((0.0001, -0.0001, 0.0001, 0.0), "equal"),
        ((0.011, 0.012, 0.013, 0.012), "not lower"),
        ((-0.011, -0.012, -0.013, -0.012), "lower"),
        ((0.02, -0.02, 0.01, -0.01), "not shown"),
        ((0.0, 0.0, 0.0, 0.0), "same bits"),
    ],
)
def test_a_verdict_says_what_is_shown_and_no_more(gaps: tuple[float, ...], verdict: str) -> None:
    (found,) = judge_rows([row_of(*gaps)])
    assert found["verdict"] == verdict
    assert name_verdict({**found, "n_clients": 4}) == "nobody judged"


def test_p_is_corrected_for_the_rows_that_are_tested() -> None:
    tested, same = row_of(0.001, -0.001, 0.002, 0.0), row_of(0.0, 0.0, 0.0, 0.0)
    alone, among = judge_rows([tested])[0], judge_rows([tested, same, tested])[0]
    assert among["p_equal"] == pytest.approx(2 * alone["p_equal"]) and same not in (alone, among)


def run(path: Path, *more: str) -> dict[str, Any]:
    assert main(["--data", "tiny", "--rounds", "2", "--jobs", "1", "--json", str(path), *more]) == 0
    return read_json(path)


def test_the_command_keeps_other_cases_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "expelled.json"
    first = run(path, "--cases", "labels-2", "--repeats", "1")
    both = run(path, "--cases", "alike", "labels-2", "--repeats", "1", "--resume")
    assert [row["case"] for row in both["rows"]] == ["alike"] * 3 + ["labels-2"] * 3
    assert both["rows"][3:] == first["rows"] and capsys.readouterr().out.count("labels-2") == 3
    more = run(path, "--cases", "labels-2", "--repeats", "2", "--resume")  # asked for more than it has
    assert [row["n"] for row in more["rows"]] == [row["n"] for row in both["rows"][:3]] + [
        2 * row["n"] for row in first["rows"]
    ]
    monkeypatch.setattr(expelled, "MARGIN", 0.5)
    with pytest.raises(ValueError, match=r"name another file, or run as it was run\."):
        run(path, "--cases", "alike")


def test_the_file_has_a_line_for_each_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_rows(path, {"margin": 0.003}, [row_of(0.0, 0.0, 0.0, 0.1, case="quantity"), row_of(0.0, 0.0, 0.0, 0.0)])
    lines = path.read_text().splitlines()
    assert [json.loads(line.strip(", "))["case"] for line in lines[2:4]] == ["alike", "quantity"]


def test_some_users_and_a_rule_that_leaves_out_at_random_are_rerun_alone(tmp_path: Path) -> None:
    path = tmp_path / "expelled.json"
    before = run(path, "--cases", "labels-1, 9 clients", "--repeats", "1")["rows"]
    after = run(path, "--cases", "labels-1, 9 clients", "--repeats", "2", "--users", "perfect")["rows"]
    assert sorted((row["user"], row["n"]) for row in after) == sorted(
        (row["user"], (2 if row["user"] == "perfect" else 1) * row["n"]) for row in before
    )
    assert all(len(row["at random"]) == row["n"] and row["by_chance"]["deviation"] >= 0 for row in after)


def test_what_the_page_says_of_a_price_and_of_chance_follows_from_the_trainings() -> None:
    union, own = (
        next(
            row
            for row in KEPT["rows"]
            if (row["case"], row["user"], row["labels"]) == ("intents, carry .5, 12 clients", "perfect", labels)
        )
        for labels in ("everybody's", "own")
    )
    assert -0.003 < union["gap"] < 0 and paired_t_test(union["watchful"], union["mean"]).p < 0.05
    assert union["verdict"] == "not shown" and own["verdict"] == "equal"
    by_chance = [row for row in KEPT["rows"] if "by_chance" in row]
    assert {row["user"] for row in by_chance} == set(expelled.USERS)
    beyond = {row["user"] for row in by_chance if paired_t_test(row["watchful"], row["mean"]).p < 0.05}
    assert beyond == {row["user"] for row in by_chance if row["by_chance"]["p"] < 0.05} == {"navigational"}
    assert "For navigational users that is more than chance" in PAGE
