"""FedPSProxy's claims: judged user by user against the flat federation, week by week, and by Table 6's formula."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_searches import finish

from hushrank.reproduce.papers import fedps, fedps_proxy
from hushrank.reproduce.papers.fedps_reading import OF_EQUAL
from hushrank.reproduce.reproduce import ReproduceOptions, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize
from hushrank.reproduce.verdicts import NotJudged, Trials
from hushrank.runs.pool import PoolOptions


def beside_flat(place: Path, proxy: float) -> Trials:
    trials = []
    for seed in (11, 12):
        at = {"ranker": "peps", "population": seed}
        trials.append(finish(place, {"method": "fedps-flat", **at}, users=0.5))
        trials.append(finish(place, {"method": "fedps-proxy", "offload": "whole", **at}, users=proxy))
    return Trials(tuple(trials))


def test_proxies_may_be_at_most_a_little_below(tmp_path: Path) -> None:
    near = beside_flat(tmp_path / "near", 0.498)
    found = fedps_proxy.proxy_not_below_flat(near)
    assert found.holds and "lower by less than 0.005" in found.why
    assert found.why.count("over fedps-flat") == 1 and "with offload=upper the simulator computes the same" in found.why
    assert not fedps_proxy.proxy_above_flat(near).holds
    assert not fedps_proxy.proxy_not_below_flat(beside_flat(tmp_path / "far", 0.49)).holds
    assert fedps_proxy.proxy_above_flat(beside_flat(tmp_path / "above", 0.51)).holds
    with pytest.raises(NotJudged, match="offload=whole"):
        fedps_proxy.proxy_above_flat(Trials(near.finished[:1]))


def test_what_lists_of_one_length_come_to_is_told_beside_both_claims(tmp_path: Path) -> None:
    usual, equal = beside_flat(tmp_path / "usual", 0.49), []
    for method, level in (("fedps-flat", 0.5), ("fedps-proxy", 0.51)):
        offload = {"offload": "whole"} if method == "fedps-proxy" else {}
        for seed in (11, 12):
            cell = {"method": method, "ranker": "peps", **offload, **OF_EQUAL, "population": seed}
            equal.append(finish(tmp_path, cell, users=level))
    both = Trials((*usual.finished, *equal))
    for judge in (fedps_proxy.proxy_above_flat, fedps_proxy.proxy_not_below_flat):
        found = judge(both)
        assert not found.holds and "With lists of one length it holds: " in found.why
        assert found.tests[-1].difference == pytest.approx(0.01) and found.tests[-1].n == 40


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
