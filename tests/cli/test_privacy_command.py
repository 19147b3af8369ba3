"""`hushrank privacy`: what a setting guarantees, what was spent, and Table 2 of [foltr-es] as JSON."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushrank.cli.privacy import app
from hushrank.privacy.device_ledger import Charge, charge_device, find_device
from hushrank.privacy.ledger import Budget, open_ledger, reserve_round
from hushrank.privacy.renyi import Spend

GAUSSIAN = ("epsilon", "--mechanism", "gaussian")


def output(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def answer(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output(*words, "--json"))
    return found


def test_epsilon_of_a_p_and_the_p_of_an_epsilon() -> None:
    found = answer("epsilon", "--mechanism", "randomised-response", "--p", "0.9", "--values", "11")
    assert found["epsilon_per_interaction"] == pytest.approx(math.log(0.9 * 10 / 0.1))
    back = answer("epsilon", "--epsilon", str(found["epsilon_per_interaction"]))
    assert back["p"] == pytest.approx(0.9) and back["n_values"] == 11


def test_interactions_and_rounds_add_up() -> None:
    found = answer("epsilon", "--epsilon", "2", "--interactions", "4", "--rounds", "250")
    assert found["epsilon_total"] == pytest.approx(2 * 4 * 250)
    assert "epsilon total\t2000" in output("epsilon", "--epsilon", "2", "--interactions", "4", "--rounds", "250")


def test_without_lies_epsilon_is_null_and_no_guarantee_is_given() -> None:
    found = answer("epsilon", "--p", "1")
    assert found["epsilon_per_interaction"] is None and found["epsilon_total"] is None
    assert found["guarantee"].startswith("no guarantee")
    assert "epsilon per interaction\tinfinite" in output("epsilon", "--p", "1")


def test_laplace_noise_on_rewards_of_an_epsilon() -> None:
    found = answer("epsilon", "--mechanism", "laplace-reward", "--epsilon", "2", "--high", "3")
    assert found["mechanism"] == "laplace-reward"  # not that of sums, laplace
    assert found["scale"] == 3 / 2 and found["sent"] == [-15, 18]


def test_any_two_of_epsilon_noise_and_rounds_give_the_third() -> None:
    found = answer(*GAUSSIAN, "--epsilon", "1", "--rounds", "50", "--delta", "1e-5")
    assert found["found"] == "noise" and found["noise_multiplier"] == pytest.approx(26.38, rel=2e-3)
    noise = str(found["noise_multiplier"])
    assert 0.99 < answer(*GAUSSIAN, "--noise", noise, "--rounds", "50")["epsilon"] <= 1.0  # delta 1e-5 by default
    assert answer(*GAUSSIAN, "--noise", noise, "--epsilon", "1")["rounds"] == 50
    laplace = answer("epsilon", "--mechanism", "laplace", "--noise", "100", "--rounds", "30")
    assert laplace["epsilon"] == pytest.approx(0.3) and laplace["delta"] is None


def test_adjacency_sampling_and_accountant_are_said() -> None:
    words = (*GAUSSIAN, "--noise", "4", "--rounds", "2", "--clients", "1000")
    plain = answer(*words)
    replaced = answer(*words, "--adjacency", "replace-one", "--accountant", "rdp")
    assert plain["adjacency"] == "zero-out" and plain["accountant"] == "pld"
    assert (
        replaced["epsilon"] > 2 * plain["epsilon"]
        and "one client is replaced by another (replace-one)" in replaced["guarantee"]
    )
    sampled = answer(*words, "--sampling", "0.1")
    assert sampled["epsilon"] < plain["epsilon"] / 5 and sampled["sampling"] == 0.1
    assert "not against the server" in plain["guarantee"]
    assert "as long as 900 clients add their noise" in answer(*words, "--honest", "900")["guarantee"]
    assert "adjacency\tzero-out" in output(*words) and "delta\t1e-05" in output(*words)


def test_responses_compose_and_a_total_gives_p_or_rounds() -> None:
    found = answer("epsilon", "--p", "0.25", "--interactions", "4", "--rounds", "25", "--delta", "1e-5")
    assert found["epsilon_total_rdp"] < found["epsilon_total"] == pytest.approx(100 * math.log(0.25 * 10 / 0.75))
    rounds = answer("epsilon", "--total", "10", "--p", "0.25", "--interactions", "4")["rounds"]
    assert rounds == math.floor(10 / 4 / math.log(0.25 * 10 / 0.75))
    p = answer("epsilon", "--total", "8", "--interactions", "4", "--rounds", "2")["p"]
    assert p == pytest.approx(math.e / (math.e + 10), rel=2e-3)  # epsilon 1 for each interaction
    composed = answer("epsilon", "--total", "20", "--p", "0.12", "--delta", "1e-5")["rounds"]
    assert composed > 20 / math.log(0.12 * 10 / 0.88)


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    path = tmp_path / "spent.jsonl"
    open_ledger(path, Budget("library search", "client 7", 1.0, 1e-5, Spend("gaussian", 1 / 30)))
    for round in range(3):
        reserve_round(path, round=round)
    return path


def test_a_ledger_shows_what_was_spent_and_that_its_chain_is_intact(ledger_file: Path) -> None:
    found = answer("ledger", str(ledger_file))
    assert found["entries"] == 3 and 0 < found["epsilon_spent"] < 1 and found["chain"] == "intact"
    assert [each["round"] for each in found["rounds"]] == [0, 1, 2]
    assert set(answer("ledger", str(ledger_file), "--verify", "--accepted", "3")) == {"chain", "entries", "head"}
    assert "federation\tlibrary search" in output("ledger", str(ledger_file))


def test_the_ledger_of_the_device_is_shown_without_a_file_or_with_its_own(own_device: Path) -> None:
    assert answer("ledger")["entries"] == 0 and answer("ledger")["epsilon_spent"] == 0
    spend = Spend("gaussian", 1 / 30)
    charge_device(find_device(), [Charge("h", "f", 1, 1e-5, spend), Charge("i", "g", 1, 1e-6, spend)], cap=None)
    found = answer("ledger")
    assert found == answer("ledger", str(own_device / "device.jsonl"))
    assert (found["entries"], found["homes"], found["federations"], found["delta"]) == (2, 2, 2, 1e-6)
    with pytest.raises(ValueError, match="--accepted is for the ledger of one client"):
        output("ledger", "--accepted", "1")


def test_a_broken_or_rolled_back_ledger_is_one_line_and_an_error(ledger_file: Path) -> None:
    with pytest.raises(ValueError, match="the server has seen 4 updates of this client: the file was rolled back"):
        output("ledger", str(ledger_file), "--accepted", "4")
    ledger_file.write_bytes(ledger_file.read_bytes().replace(b'"round":1', b'"round":5'))
    with pytest.raises(ValueError, match="line 3: its hash does not fit"):
        output("ledger", str(ledger_file), "--verify")
    command = [sys.executable, "-m", "hushrank", "privacy", "ledger", str(ledger_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_table_2_of_the_paper() -> None:
    found = answer("table", "foltr-es.table2")
    assert found["name"] == "foltr-es.table2" and len(found["rows"]) == 18
    assert all(round(row["ours"], 2) == row["published"] for row in found["rows"])
    assert [finding["holds"] for finding in found["findings"]] == [True, True, True]
    assert {"claim", "holds", "p"} <= found["findings"][0].keys()
    assert "perfect\t0.51 (0.51)\t1.61 (1.61)" in output("table", "foltr-es.table2")


def test_lists_of_another_length_have_no_published_values() -> None:
    found = answer("table", "foltr-es.table2", "--length", "10")
    assert {row["published"] for row in found["rows"]} == {None}
    perfect = next(row for row in found["rows"] if row["clicks"] == "perfect" and row["p"] == 0.9)
    assert perfect["ours"] == pytest.approx(math.log(0.9 * 10 / 0.1))  # [foltr-es, Eq. 10] with n = 11


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("epsilon",), "give p to learn epsilon, or epsilon to learn p"),
        (("epsilon", "--p", "0.9", "--epsilon", "2"), "one of the two"),
        (("epsilon", "--p", "0.05"), r"p is 0.05, must be above 1/n = 0.09091"),
        (("epsilon", "--p", "1.5"), r"p is 1.5, must be above .* and at most 1"),
        (("epsilon", "--mechanism", "laplace-reward"), "give epsilon: Laplace noise follows from it"),
        (("epsilon", "--mechanism", "laplace-reward", "--p", "0.9"), "p belongs to randomised-response"),
        (("epsilon", "--mechanism", "gaussian", "--p", "0.9"), "p and total belong to randomised-response"),
        (("epsilon", "--noise", "2"), "noise is for updates"),
        (("epsilon", "--total", "2"), "give two of total, p and rounds"),
        (("epsilon", "--total", "2", "--epsilon", "1"), "not both"),
        (("epsilon", "--total", "1", "--p", "0.9"), "one round alone spends more than epsilon 1"),
        (("epsilon", "--p", "0.9", "--rounds", "0"), "rounds is 0, must be at least 1"),
        ((*GAUSSIAN, "--rounds", "5"), "give two of epsilon, noise and rounds"),
        ((*GAUSSIAN, "--epsilon", "1", "--noise", "1", "--rounds", "5"), "give two of epsilon, noise and rounds"),
        ((*GAUSSIAN, "--epsilon", "0", "--rounds", "5"), "epsilon is 0.0, must be above 0"),
        ((*GAUSSIAN, "--noise", "0", "--rounds", "5"), "noise multiplier is 0.0, must be above 0"),
        ((*GAUSSIAN, "--noise", "1", "--rounds", "0"), "rounds is 0, must be from 1"),
        ((*GAUSSIAN, "--noise", "1", "--rounds", "5", "--delta", "0"), "delta is 0.0, must be above 0"),
        ((*GAUSSIAN, "--noise", "1", "--rounds", "5", "--clients", "9", "--delta", "0.2"), "more than 1 / clients"),
        ((*GAUSSIAN, "--noise", "1", "--rounds", "5", "--clients", "0"), "clients is 0, must be at least 1"),
        (
            (*GAUSSIAN, "--noise", "1", "--rounds", "5", "--sampling", "0.1", "--scheme", "fixed"),
            "only where each client is drawn independently",
        ),
        (("table", "foltr-es.table3"), r"no table about privacy is called 'foltr-es.table3'; there is foltr-es.table2"),
    ],
)
def test_mistakes_are_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        output(*words)
