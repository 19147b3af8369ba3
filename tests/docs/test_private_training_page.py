"""What docs/private_training.md says in words follows from the measurements beside it."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks.private_training import NOISE
from benchmarks.resting import WAYS
from hushrank.privacy.accounting import Training, training_epsilon

DOCS = ROOT / "docs"
PAGE = (DOCS / "private_training.md").read_text(encoding="utf-8")
FOUND: dict[str, Any] = json.loads((DOCS / "benchmarks" / "private_training.json").read_text(encoding="utf-8"))
MEASURED = runpy.run_path(str(DOCS / "measured.py"))
USERS = ("perfect", "navigational", "informational")
CELLS = {(row["n_clients"], row["epsilon"], row["clicks"]): row for row in FOUND["rows"] if row["mode"] == "sound"}
NOISY = {key: row for key, row in CELLS.items() if row["epsilon"] is not None}


def costs(n_clients: int, epsilon: float) -> list[float]:
    return [CELLS[n_clients, epsilon, user]["cost"] for user in USERS]


def holds(n_clients: int, epsilon: float) -> list[bool]:
    return [CELLS[n_clients, epsilon, user]["holds"] for user in USERS]


def test_every_size_epsilon_and_user_was_measured_as_often_as_the_page_says() -> None:
    trainings = {100: 100, 1000: 100, 10_000: 25, 100_000: 5}
    assert set(NOISY) == {(n, e, user) for n in trainings for e in (0.1, 0.25, 1.0, 4.5) for user in USERS}
    assert all(row["n"] == trainings[n] for (n, _, _), row in CELLS.items())
    assert (FOUND["delta"], FOUND["rounds"], FOUND["searches"], FOUND["margin"]) == (1e-5, 50, 16, 0.003)


def test_the_headline_is_what_was_measured() -> None:
    assert costs(1000, 1.0) == [0.0, 0.001, 0.0015] and all(holds(1000, 1.0))
    assert all(CELLS[1000, 1.0, user]["p_equal_to_best_within_margin"] < 0.05 for user in USERS)
    assert costs(10_000, 0.25) == [-0.0021, 0.0011, 0.0018] and all(holds(10_000, 0.25))
    assert "an epsilon of 1 costs at most .0015" in PAGE and "an epsilon of .25 at most .0018" in PAGE


def test_where_it_fails_is_what_was_measured() -> None:
    assert costs(1000, 0.25)[1:] == [0.0055, 0.0081] and costs(1000, 0.1)[1:] == [0.008, 0.0176]
    assert CELLS[1000, 0.25, "perfect"]["below_best_without_noise"] == 0.0028
    assert all(cost > 0.0045 for epsilon in (0.1, 0.25, 1.0) for cost in costs(100, epsilon))
    assert costs(100, 4.5) == [0.0002, 0.003, 0.0048] and holds(10_000, 0.1) == [False, True, False]


def test_where_noise_costs_anything_informational_users_pay_most() -> None:
    for n, epsilon in {(n, e) for n, e, _ in NOISY}:
        if max(costs(n, epsilon)) >= 0.002:
            assert max(costs(n, epsilon)) == CELLS[n, epsilon, "informational"]["cost"]


def test_a_verdict_is_a_test_and_an_interval_holds_its_mean() -> None:
    for row in NOISY.values():
        low, high = row["interval"]
        assert low <= row["cost"] <= high
        assert row["holds"] == (row["p_equal_within_margin"] < 0.05 or high < 0)  # or better than without noise
        assert row["p_equal_within_margin"] >= 0.025 or max(-low, high) <= FOUND["margin"]


def test_choices_are_those_that_the_page_tells_of() -> None:
    chosen = [row for row in NOISY.values() if row["clicks"] == "perfect"]
    assert not any(row["server_fade"] for row in CELLS.values())
    assert sum(row["server_rate"] == 30 for row in chosen) == 12 and len(chosen) == 16
    assert sum(row["clip_norm"] == 0.03 for row in chosen) == 6


def test_the_published_mechanism_at_the_same_epsilon_loses_more() -> None:
    paper = {(r["epsilon"], r["clicks"]): r["nDCG@10"] for r in FOUND["rows"] if r["mode"] == "paper"}
    plain = {r["clicks"]: r["nDCG@10"] for r in FOUND["rows"] if r["mode"] == "none"}
    lost = {e: [round(plain[user] - paper[e, user], 4) for user in USERS] for e in (1.0, 4.5, 50.0, 500.0)}
    assert (min(lost[1.0]), max(lost[1.0])) == (0.0234, 0.0429)
    assert (min(lost[4.5]), max(lost[4.5])) == (0.0054, 0.0096)
    assert all(0.0025 <= x <= 0.011 for e in (50.0, 500.0) for x in lost[e])
    assert all(CELLS[1000, e, user]["nDCG@10"] > plain[user] for e in (1.0, 4.5) for user in USERS)


@pytest.mark.parametrize("epsilon", sorted({epsilon for _, epsilon, _ in NOISY}))
def test_the_noise_that_was_added_keeps_the_epsilon_that_the_page_names(epsilon: float) -> None:
    training = Training("gaussian", NOISE[epsilon], FOUND["rounds"])
    assert 0.998 * epsilon < training_epsilon(training, delta=FOUND["delta"]) <= epsilon


def test_a_changed_measurement_changes_tables_and_charts(tmp_path: Path) -> None:
    data = Path(shutil.copytree(DOCS / "benchmarks", tmp_path / "benchmarks"))
    row = '"cost": 0.0176'
    path = data / "private_training.json"
    assert path.read_text().count(row) == 1
    path.write_text(path.read_text().replace(row, '"cost": 0.0276'))
    before, after = (re.split("<!-- measured: ", text) for text in (PAGE, MEASURED["fill_page"](PAGE, data)))
    changed = {part.split(" ")[0] for part, other in zip(before, after, strict=True) if part != other}
    assert changed == {"private-overview", "private-cost-chart", "private-informational"}


def test_what_is_said_of_clients_that_rest_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "resting.json").read_text(encoding="utf-8"))["rows"]
    found = {(row["way"], row["epsilon"], row["clicks"]): row for row in rows}
    gains = {
        epsilon: [
            found["correlated", epsilon, user]["nDCG@10"] - found["independent", epsilon, user]["nDCG@10"]
            for user in USERS
        ]
        for epsilon in (1.0, 0.25)
    }
    assert [round(f(gains[e]), 3) for e in (1.0, 0.25) for f in (min, max)] == [0.002, 0.008, 0.008, 0.021]
    for (way, epsilon, user), row in found.items():
        if way == "sampled":
            assert row["nDCG@10"] - found["correlated", epsilon, user]["nDCG@10"] < 0.006
    assert all(low < 0 < high for low, high in (found["correlated", 1.0, user]["interval"] for user in USERS))


@pytest.mark.parametrize(("way", "training"), [
    ("independent", Training("gaussian", 1.0, 200, scheme="rotation", separation=10)),
    ("sampled", Training("gaussian", 1.0, 200, sampling=0.1)),
])  # fmt: skip
def test_the_noise_of_clients_that_rest_keeps_its_epsilon(way: str, training: Training) -> None:
    for epsilon, noise in WAYS[way][1].items():
        kept = training_epsilon(replace(training, noise_multiplier=noise), delta=1e-5)
        assert 0.998 * epsilon < kept <= epsilon
