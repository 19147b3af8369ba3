"""What docs/howto/personalised-search.md says of noise and speed follows from the measurements beside it."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from shown_blocks import ROOT

from benchmarks import personal_speed, private_search
from hushrank.look.numbers import format_value
from hushrank.personal.keys import settings_of
from hushrank.personal.population import population_named
from hushrank.privacy.accounting import Training, training_epsilon
from hushrank.recipes.personal_setting import model_of
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.reproduce.listing import estimate_user

DATA = ROOT / "docs" / "benchmarks"
PAGE = (ROOT / "docs" / "howto" / "personalised-search.md").read_text(encoding="utf-8")
MEASURED = runpy.run_path(str(ROOT / "docs" / "measured.py"))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


PRIVATE, SPEED = read("private_search"), read("personal_speed")["personal_speed"]
ROWS = {(row["protection"], row["asked_epsilon"]): row for row in PRIVATE["rows"]}


def test_every_training_was_measured_on_held_out_users() -> None:
    assert PRIVATE["data"] == private_search.DATA == "commercial-like:n_users=300,seed=11"
    assert PRIVATE["training"] == {**private_search.TRAINING, "data": private_search.DATA}
    noisy = [("sound", epsilon) for epsilon in private_search.EPSILONS]
    assert list(ROWS) == [("original", None), ("none", None), *noisy]


@pytest.mark.parametrize("epsilon", private_search.EPSILONS)
def test_the_noise_is_what_the_stated_epsilon_needs_over_all_rounds(epsilon: float) -> None:
    row = ROWS["sound", epsilon]
    training = Training("gaussian", row["noise_multiplier"], row["rounds"])
    assert row["rounds"] == PRIVATE["training"]["rounds"] and row["delta"] == 1e-5 < 1 / row["n_users"]
    assert 0.99 * epsilon < training_epsilon(training, delta=row["delta"]) <= row["epsilon"] * 1.001 <= epsilon * 1.001
    assert f"over all {row['rounds']} rounds" in row["guarantee"] and "not against the server" in row["guarantee"]


def test_the_sentence_about_noise_has_the_figures() -> None:
    none, order = ROWS["none", None]["MAP"], ROWS["original", None]["MAP"]
    found = [ROWS["sound", epsilon]["MAP"] for epsilon in private_search.EPSILONS]
    said = re.search(r"MAP falls from ([.\d]+) to ([.\d]+) with epsilon 8, ([.\d]+) with 2 and ([.\d]+) with \.5", PAGE)
    assert said is not None and list(said.groups()) == [format_value(x) for x in (none, *found)]
    assert none > found[0] > found[1] > order > found[2]  # the last is worse than no training
    assert all(ROWS["sound", epsilon]["p"] < 0.05 for epsilon in private_search.EPSILONS)
    assert {row["n_users"] for row in ROWS.values()} == {181} and "of whom 181 searched in the test period" in PAGE


def test_the_page_says_how_large_the_private_model_is() -> None:
    keys = {name: private_search.TRAINING[name] for name in ("model", "word_dim")}
    model = model_of(settings_of(change_recipe(NAMED["fedps"], keys)))
    assert model is not None and "`word_dim=8`" in PAGE and "`server_rate=4`" in PAGE
    n_params = sum(part.size for part in model.parameters if not part.is_personal)
    assert f"{n_params:,} parameters" in PAGE


def test_speeds_are_of_what_the_page_says() -> None:
    assert [(row["data"], row["n_users"], row["cohort"]) for row in SPEED] == [s[:3] for s in personal_speed.SIZES]
    assert all(row["parted_from_plain"] < 0.01 for row in SPEED)
    searches = [row["interactions_per_cpu_second"] / row["users_per_cpu_second"] for row in SPEED[:-1]]
    assert "45 to 50 on average" in PAGE and 44.5 < min(searches) < max(searches) < 50.5
    last = SPEED[-1]
    assert last["n_users"] == 100_000 and last["peak_memory_mb"] < 4000
    assert f"takes {last['peak_memory_mb'] / 1000:.1f} GB" in PAGE


def test_a_gpus_speeds_are_shown_where_they_were_measured(tmp_path: Path) -> None:
    show = MEASURED["TABLES"]["personal-speed"]
    for name in ("personal_speed", "personal_speed_gpu"):
        row = {**SPEED[0], "device": name, "users_per_second": 12_345.0}
        (tmp_path / f"{name}.json").write_text(json.dumps({"personal_speed": [row]}))
    with_gpu = show(tmp_path)
    assert "personal_speed_gpu" in with_gpu and with_gpu.count("12,345") == 2
    (tmp_path / "personal_speed_gpu.json").unlink()
    assert "personal_speed_gpu" not in show(tmp_path)


@pytest.mark.parametrize(
    "row", [row for row in SPEED if "n_steps" in row], ids=lambda row: f"{row['data']}-{row['cohort']}"
)
def test_estimates_count_with_about_this_speed(row: dict[str, Any]) -> None:
    visit, _ = estimate_user(population_named(row["data"]))
    assert 2 / 3 < visit * row["users_per_cpu_second"] < 3 / 2


@pytest.mark.slow
def test_the_commands_write_what_the_page_reads(tmp_path: Path) -> None:
    written = tmp_path / "one.json"
    assert personal_speed.main(["--users", "12", "--cohort", "10", "--steps", "1", "--json", str(written)]) == 0
    assert json.loads(written.read_text()).keys() == SPEED[0].keys()
    small = "commercial-like:n_users=300,n_documents=600,median_searches=10,seed=2000"
    assert private_search.main(["--data", small, "--rounds", "1", "--json", str(written)]) == 0
    found = json.loads(written.read_text())
    assert found.keys() == PRIVATE.keys() and [r.keys() for r in found["rows"]] == [r.keys() for r in PRIVATE["rows"]]
