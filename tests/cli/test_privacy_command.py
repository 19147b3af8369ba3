"""`hushrank privacy`: what a setting guarantees, and Table 2 of [foltr-es] as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from typer.testing import CliRunner

from hushrank.cli.privacy import app


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


def test_laplace_noise_of_an_epsilon() -> None:
    found = answer("epsilon", "--mechanism", "laplace", "--epsilon", "2", "--high", "3")
    assert found["scale"] == 3 / 2 and found["sent"] == [-15, 18]


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
        (("epsilon", "--mechanism", "laplace"), "give epsilon: Laplace noise follows from it"),
        (("epsilon", "--mechanism", "laplace", "--p", "0.9"), "p belongs to randomised-response"),
        (("table", "foltr-es.table3"), r"no table about privacy is called 'foltr-es.table3'; there is foltr-es.table2"),
    ],
)
def test_mistakes_are_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        output(*words)
