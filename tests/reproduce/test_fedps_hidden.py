"""Users who share an id, and cover queries, in Table 3: judged by every measure, and beside central PEPS."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest
from finished_searches import TINY, finish

from hushrank.reproduce.papers import fedps_hidden
from hushrank.reproduce.papers.fedps_reading import OF_EQUAL
from hushrank.reproduce.reproduce import ReproduceOptions, prepare, reproduce
from hushrank.reproduce.reproduction import ReproductionSize
from hushrank.reproduce.verdicts import NotJudged, Trials
from hushrank.runs.pool import PoolOptions

PEPS = {"ranker": "peps"}
Levels: TypeAlias = dict[str, float]


def beside(
    place: Path, levels: Levels, *, variant: dict[str, str] | None = None, more: dict[str, Levels] | None = None
) -> Trials:
    """Two populations; levels: MAP by method, from which MRR and P@1 follow; more: other measures."""
    trials = []
    for seed in (11, 12):
        for method, level in levels.items():
            offload = {"offload": "whole"} if method == "fedps-proxy" else {}
            cell = {"method": method, **PEPS, **offload, "population": seed, **(variant or {})}
            measures = {"MRR": level + 0.01, "P@1": level - 0.1} | {n: v[method] for n, v in (more or {}).items()}
            trials.append(finish(place, cell, users=level, measures=measures))
    return Trials(tuple(trials))


def test_proxies_must_be_above_both_others_by_every_measure(tmp_path: Path) -> None:
    levels = {"fedps-proxy": 0.5, "group-user": 0.4, "cover-query": 0.48}
    found = fedps_hidden.proxy_above_others(beside(tmp_path / "above", levels))
    assert found.holds and found.why.count("over group-user") == found.why.count("over cover-query") == 3
    assert "whole over cover-query, offline/P@1 (by population +0.0200, +0.0200) +0.0200" in found.why
    below = {**levels, "cover-query": 0.5}
    assert not fedps_hidden.proxy_above_others(beside(tmp_path / "equal", below)).holds
    one = {"MRR": {**levels, "group-user": 0.6}}
    assert not fedps_hidden.proxy_above_others(beside(tmp_path / "one", levels, more=one)).holds
    with pytest.raises(NotJudged, match=r"Not run: .*method=cover-query"):
        fedps_hidden.proxy_above_others(beside(tmp_path / "part", {"fedps-proxy": 0.5, "group-user": 0.4}))


def test_pairs_put_right_are_compared_where_lists_are_known(tmp_path: Path) -> None:
    levels = {"fedps-proxy": 0.5, "group-user": 0.4, "cover-query": 0.48}
    improved = {"P-Improve": {"fedps-proxy": 0.3, "group-user": 0.2, "cover-query": 0.25}}
    found = fedps_hidden.proxy_above_others(beside(tmp_path / "above", levels, more=improved))
    assert found.holds and "offline/P-Improve fedps-proxy over cover-query 0.3000 over 0.2500" in found.why
    improved["P-Improve"]["group-user"] = 0.31
    assert not fedps_hidden.proxy_above_others(beside(tmp_path / "below", levels, more=improved)).holds


def test_covers_must_be_within_two_percent_and_a_shared_id_must_lose(tmp_path: Path) -> None:
    told = {"central": 0.5, "cover-query": 0.494, "group-user": 0.45}
    found = fedps_hidden.covers_cost_nothing(beside(tmp_path / "told", told))
    assert found.holds and "within 0.01: aol-like peps cover-query over central" in found.why
    assert "aol-like peps central over group-user (by population +0.0500, +0.0500)" in found.why
    for name, other in (("cover", {"cover-query": 0.485}), ("group", {"group-user": 0.5})):
        assert not fedps_hidden.covers_cost_nothing(beside(tmp_path / name, {**told, **other})).holds
    with pytest.raises(NotJudged, match=r"Not run: .*method=group-user"):
        fedps_hidden.covers_cost_nothing(beside(tmp_path / "part", {"central": 0.5, "cover-query": 0.5}))


def test_what_lists_of_one_length_come_to_is_told_and_not_judged(tmp_path: Path) -> None:
    told = {"central": 0.5, "cover-query": 0.494, "group-user": 0.45}
    usual, other = beside(tmp_path / "usual", told), beside(tmp_path, {**told, "cover-query": 0.4}, variant=OF_EQUAL)
    found = fedps_hidden.covers_cost_nothing(Trials(usual.finished + other.finished))
    assert found.holds and "With lists of one length it does not hold: Two one-sided tests" in found.why


def test_of_a_real_log_no_claim_about_single_users_is_judged(tmp_path: Path) -> None:
    cells = [{"method": method, **PEPS} for method in ("central", "cover-query", "group-user")]
    trials = Trials(tuple(finish(tmp_path, cell, is_real=True) for cell in cells))
    with pytest.raises(NotJudged, match="Of real users no single number is kept, and tests pair users"):
        fedps_hidden.covers_cost_nothing(trials)


def test_tiny_users_with_covers_have_rows_beside_the_published_ones(tmp_path: Path) -> None:
    sizes = {name: TINY[name] for name in ("data", "word_dim", "rounds")}
    small = ReproduceOptions(
        tmp_path, scale=ReproductionSize(quick=True), changes=sizes, only={"method": "cover-query"}
    )
    found = reproduce(prepare("fedps.table3", small), small, PoolOptions(1, in_process=True, run={"workers": 1}))
    ours = {row["metric"]: row["published"] for row in found["rows"] if row["ours"] is not None}
    assert ours == {"offline/MAP": 0.7101, "offline/MRR": 0.7232, "offline/P@1": 0.6252}
    claims = {each["id"]: each["why"] for each in found["findings"]}
    assert "method=fedps-proxy" in claims["proxy-above-other-protections"]
    assert claims["cover-queries-cost-nothing"].startswith("Not run: ")
