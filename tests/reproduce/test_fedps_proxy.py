"""FedPSProxy's claims: judged user by user against the flat federation, week by week, and by Table 6's formula."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_searches import TINY, finish

from hushrank.reproduce.papers import fedps, fedps_proxy
from hushrank.reproduce.reproduce import ReproduceOptions, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize
from hushrank.reproduce.verdicts import NotJudged, Trials
from hushrank.runs.pool import PoolOptions


def beside_flat(place: Path, whole: float, upper: float) -> Trials:
    trials = []
    for seed in (11, 12):
        at = {"ranker": "peps", "population": seed}
        trials.append(finish(place, {"method": "fedps-flat", **at}, users=0.5))
        for way, level in (("whole", whole), ("upper", upper)):
            trials.append(finish(place, {"method": "fedps-proxy", "offload": way, **at}, users=level))
    return Trials(tuple(trials))


def test_proxies_may_be_at_most_a_little_below_in_both_ways_of_handing_over(tmp_path: Path) -> None:
    near = beside_flat(tmp_path / "near", 0.499, 0.498)
    found = fedps_proxy.proxy_not_below_flat(near)
    assert found.holds and "lower by less than 0.005" in found.why
    assert found.why.count("over fedps-flat") == 2 and "upper over fedps-flat" in found.why
    assert "upper repeat those with offload=whole" in found.why  # one trial, shown twice
    whole = Trials(tuple(trial for trial in near.finished if trial.cell.get("offload") != "upper"))
    assert "repeat" not in fedps_proxy.proxy_not_below_flat(whole).why
    assert not fedps_proxy.proxy_above_flat(near).holds
    assert not fedps_proxy.proxy_not_below_flat(beside_flat(tmp_path / "far", 0.51, 0.49)).holds
    above = beside_flat(tmp_path / "above", 0.51, 0.51)
    assert fedps_proxy.proxy_above_flat(above).holds
    with pytest.raises(NotJudged, match="offload=whole"):
        fedps_proxy.proxy_above_flat(Trials(near.finished[:1]))


def by_week(place: Path, central: tuple[float, ...], flat: tuple[float, ...], proxy: tuple[float, ...]) -> Trials:
    """MAP after each of five stages, of two populations that differ a little."""
    trials = []
    for seed in (11, 12, 13):
        for method, levels in (("central", central), ("fedps-flat", flat), ("fedps-proxy", proxy)):
            cell = {"method": method, "updating": "retrain", "population": seed}
            looks = [0.1, *(level + 0.0001 * seed * (n + len(method)) for n, level in enumerate(levels))]
            trials.append(finish(place, cell, test=looks, stages=6))
    return Trials(tuple(trials))


def test_weeks_with_proxies_are_judged_early_and_late(tmp_path: Path) -> None:
    central = (0.40, 0.42, 0.44, 0.48, 0.50)
    as_told = by_week(tmp_path / "told", central, (0.34, 0.37, 0.4, 0.44, 0.45), (0.35, 0.38, 0.42, 0.478, 0.498))
    assert fedps_proxy.below_central_early(as_told).holds
    assert fedps_proxy.near_central_late(as_told).holds
    behind = fedps_proxy.flat_falls_behind(as_told)
    assert behind.holds and "difference, late over early" in behind.why
    other = by_week(tmp_path / "other", central, (0.40, 0.43, 0.44, 0.45, 0.46), (0.41, 0.44, 0.44, 0.45, 0.46))
    assert not fedps_proxy.below_central_early(other).holds
    assert not fedps_proxy.near_central_late(other).holds and not fedps_proxy.flat_falls_behind(other).holds


def test_tables_4_and_5_are_of_proxies_with_stragglers() -> None:
    for make in (fedps.cohorts, fedps.local_epochs):
        trials = make(DataChoice("aol", "aol-like", is_stand_in=True), ReproductionSize(repeats=1))
        assert {(t.recipe.topology, t.recipe.stragglers) for t in trials} == {("proxy", 0.1)}


def test_table_6_is_computed_and_each_number_keeps_its_measure(tmp_path: Path) -> None:
    options = ReproduceOptions(tmp_path)
    found = reproduce(prepare("fedps.table6", options), options, PoolOptions(1, in_process=True))
    rows = {(r["method"], r["metric"], r["delay_ratio"], r.get("n_sampled")): r for r in found["rows"]}
    exact = [row for (_, metric, *_), row in rows.items() if metric == "exchanges"]
    assert len(exact) == 6 and all(row["difference"] == 0 for row in exact)
    assert rows["fedps-flat", "delays", 0.1, None]["ours"] == pytest.approx(11_806.7)
    assert [finding["holds"] for finding in found["findings"]] == [True] * 3


def test_a_week_of_figure_4_runs_with_proxies(tmp_path: Path) -> None:
    lists = "n_candidates=10,n_short=10"
    small = {**TINY, "data": f"aol-like:n_users=6,n_documents=200,median_searches=30,{lists},seed=3"}
    options = ReproduceOptions(
        tmp_path, scale=ReproductionSize(quick=True), changes=small, only={"method": "fedps-proxy"}
    )
    found = reproduce(prepare("fedps.figure4", options), options, PoolOptions(1, in_process=True, run={"workers": 1}))
    assert [row["metric"] for row in found["rows"] if row["ours"] is not None] == [
        "improvement/stage 1",
        "improvement/stage 2",
    ]
    judged = {finding["id"]: finding["why"] for finding in found["findings"] if finding["holds"] is None}
    assert set(judged) == {"proxy-below-central-early", "proxy-near-central-late", "flat-falls-behind-proxy"}
