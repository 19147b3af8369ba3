"""What runs took."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import make_run

from hushrank.reports.cost import bytes_up, cost_section
from hushrank.reports.summary import RunSummary, from_directory


@pytest.fixture
def run(tmp_path: Path) -> RunSummary:
    return from_directory(make_run(tmp_path / "run", n_evaluations=2, n_clients=10, rounds=100))


def test_bytes_sent_are_counted_over_rankers_rounds_and_clients(run: RunSummary) -> None:
    assert bytes_up(run) == 184 * 10 * 100 * (3 * 5 * 2)  # bytes, clients, rounds, users x folds x repeats
    assert "5.52 MB" in cost_section([run], ["run"])  # 5,520,000


def test_only_the_clients_of_a_round_send(run: RunSummary) -> None:
    assert bytes_up(replace(run, recipe={**run.recipe, "cohort": 4})) == 184 * 4 * 100 * 30


def test_what_was_not_recorded_is_a_dash(run: RunSummary) -> None:
    bare = replace(run, recipe={}, wall_s=None, cpu_s=None, n_interactions=None, bytes_per_client_round=None)
    assert bytes_up(bare) is None
    assert cost_section([bare], ["bare"]).count("<dd>–</dd>") == 6


def test_a_central_run_sends_nothing(run: RunSummary) -> None:
    assert bytes_up(replace(run, bytes_per_client_round=0)) == 0


def test_several_runs_stand_in_a_table_with_exact_numbers_and_units(run: RunSummary) -> None:
    html = cost_section([run, run], ["a", "b"])
    assert '<td class="number" data-value="192.4">3 min 12 s</td>' in html
    assert '<th scope="col" class="number" data-unit="s">wall time</th>' in html
    assert f'data-value="{run.n_interactions}"' in html
    assert ">32,300</td>" in html  # 12,000,000 interactions in 371 s are 32,345.0 a second: three digits of it


def test_no_runs_cost_nothing() -> None:
    assert cost_section([], []) == ""


def test_lost_updates_are_mentioned_where_there_are_some(run: RunSummary) -> None:
    lossy = replace(run, recipe={**run.recipe, "dropout": 0.1})
    assert "never arrived" in cost_section([lossy], ["a"]) and "never arrived" not in cost_section([run], ["a"])
