"""A claim about both rankers is judged from the parts that ran them, and what was changed since from kept values."""

from __future__ import annotations

import json
import runpy
from typing import Any

import pytest
from shown_blocks import ROOT

from hushrank.reproduce.papers.thesis_skew import USERS
from hushrank.reproduce.verdicts import OFFLINE

DOCS = ROOT / "docs"
JOINED = runpy.run_path(str(DOCS / "joined_claims.py"))
AGAIN = runpy.run_path(str(DOCS / "judged_again.py"))
PARTS = {"a": ("MQ2008, linear", 10_000), "a-network": ("MQ2008, network", 10_000)}
LINEAR = (None, "Held for linear; mlp not run. Means.")
NETWORK = (None, "Held for mlp; linear not run. More means.")
FAILED = (False, "Not so.")
OPEN = (None, "Not judged: too few looks.")
NOT_RUN = (None, "Not run: ranker=mlp.")
MORE = (None, "Held for mlp B = 5; linear B = 2, linear B = 5, mlp B = 2 not run. More means.")
STEPS = (None, "Held for linear B = 2, mlp B = 2; linear B = 5, mlp B = 5 not run. Means.")


def rows_of(*judged: tuple[bool | None, str]) -> list[list[str]]:
    """The rows of one claim that the parts judged like this."""
    results = [
        (
            part,
            {
                "name": "thesis.figure4.5",
                "shows": "Something",
                "rows": [{"n": 10}],
                "findings": [{"id": "x", "claim": "Both.", "holds": holds, "p": 0.01, "why": why}],
            },
        )
        for part, (holds, why) in zip(PARTS, judged, strict=False)
    ]
    text = JOINED["write_claims"](results, PARTS).replace("\u00a0", " ")
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()[4:]]


@pytest.mark.parametrize(
    ("judged", "verdict", "why"),
    [
        ((LINEAR, NETWORK), "held", "**Linear, held:** Means. **Network, held:** More means."),
        ((LINEAR, FAILED), "**not held** for network", "**Linear, held:** Means. **Network, not held:** Not so."),
        ((FAILED, FAILED), "**not held**", "**Linear, not held:** Not so. **Network, not held:** Not so."),
        (
            (FAILED, OPEN),
            "**not held** for linear",
            f"**Linear, not held:** Not so. **Network, not judged:** {OPEN[1]}",
        ),
        ((LINEAR, OPEN), "held in part", f"mlp not run. **Linear, held:** Means. **Network, not judged:** {OPEN[1]}"),
        ((LINEAR, NOT_RUN), "held in part", LINEAR[1]),
        ((STEPS, MORE), "held in part", "linear B = 5 not run. **Linear, held:** Means."),
        (((True, "Of one."), NOT_RUN), "held", "Of one."),
    ],
)
def test_a_claim_is_held_where_each_part_holds_and_all_of_it_was_run(judged: Any, verdict: str, why: str) -> None:
    ((claim, where, shown, how),) = rows_of(*judged)
    assert (claim, shown) == ("Both.", verdict) and how.startswith(why)
    assert where.startswith("MQ2008; " if why.count("**") > 1 else "MQ2008, linear; ")


def test_a_claim_that_no_part_could_judge_has_no_row() -> None:
    assert rows_of(NOT_RUN, NOT_RUN) == [] == rows_of(OPEN, OPEN)


@pytest.mark.parametrize(("level", "holds"), [(0.5, True), (0.52, False)])
def test_harm_by_quantity_is_judged_again_where_single_values_were_kept(level: float, holds: bool) -> None:
    """Better by .02 is not harmed, and not equal within .005 either."""
    result: dict[str, Any] = {
        "rows": [row_of(user, *each) for user in USERS for each in (("iid", 0.5), ("non-iid", level))],
        "findings": [{"id": "quantity-harmless", "holds": None, "p": None, "why": "As it was."}, {"id": "other"}],
    }
    again, other = AGAIN["judge_again"](result)["findings"]
    assert again["holds"] is holds and other == {"id": "other"}
    assert again["why"].startswith(f"Alone ({'shown' if holds else 'not shown'}, p ")
    assert "Not lower (shown, p " in again["why"] and {test["test"] for test in again["tests"]} == {
        "two one-sided tests",
        "one-sided t-test",
    }
    for row in result["rows"]:
        del row["values"]
    assert AGAIN["judge_again"](result)["findings"][0]["why"] == "As it was."


def row_of(user: str, distribution: str, level: float) -> dict[str, Any]:
    turn = 1 if distribution == "iid" else -1
    values = [{"fold": 1, "repeat": r, "value": level + turn * 0.0005 * (r % 3)} for r in range(6)]
    cell = {"data": "d", "method": "fpdgd", "partition": "quantity", "distribution": distribution}
    return {
        **cell,
        "clicks": user,
        "ours": level,
        "std": 0.1,
        "n": 6,
        "metric": OFFLINE,
        "why": "",
        "values": values,
    }


@pytest.mark.parametrize("path", sorted((DOCS / "benchmarks" / "chapter4").glob("*figure4.9.json")))
def test_a_kept_result_without_values_is_left_as_it_is(path: Any) -> None:
    result = json.loads(path.read_text(encoding="utf-8"))
    for row in result["rows"]:
        row.pop("values", None)
    assert AGAIN["judge_again"](result) == result
