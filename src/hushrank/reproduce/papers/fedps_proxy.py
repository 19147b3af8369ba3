"""FedPSProxy [fedps]: its claims in Table 3 and Figure 4, and Table 6, which is exact by its formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import fmean

from hushrank.files import Json
from hushrank.personal.communication import USERS_OF_AOL, RoundTime, time_flat, time_with_proxies
from hushrank.personal.keys import UPPER, WHOLE
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.papers.fedps_reading import CLOSE, name_stage, pool_users, populations_of, read_stage
from hushrank.reproduce.verdicts import Cell, Pair, Trials, Verdict, all_at_least, all_better, all_equal, both
from hushrank.runs.personal_search import PRIMARY

NOT_BELOW = 0.005  # of MAP: FedPSProxy may be so much below FedPSFlat
FAR_FEWER = 0.25  # Why: of FedPSFlat's exchanges; the paper says "greatly reduces" without a number
_CENTRAL, _FLAT, _PROXY = (
    {"method": method, "updating": "retrain"} for method in ("central", "fedps-flat", "fedps-proxy")
)
_TABLE6 = "fedps.table6"
_REPEATS = (
    "The rows with offload=upper repeat those with offload=whole and are no second trial: the simulator computes both "
    "in one way, because they give the same model (tests/engine/test_offloaded_runs.py)."
)


# Table 3
def _over_flat(outcome: Trials, ways: tuple[str, ...]) -> list[Pair]:
    flat: Cell = {"method": "fedps-flat", "ranker": "peps"}
    found = outcome.present("offload", ways)
    return [
        pool_users(outcome, data, {"method": "fedps-proxy", "ranker": "peps", "offload": way}, flat)
        for data in outcome.data
        for way in found
    ]


def proxy_above_flat(outcome: Trials) -> Verdict:
    """Whole tasks handed over, user by user."""
    return all_better(_over_flat(outcome, (WHOLE,)))


def proxy_not_below_flat(outcome: Trials) -> Verdict:
    """Either way of handing over, user by user."""
    found = all_at_least(_over_flat(outcome, (WHOLE, UPPER)), margin=NOT_BELOW)
    return (
        replace(found, why=f"{found.why} {_REPEATS}") if UPPER in outcome.present("offload", (WHOLE, UPPER)) else found
    )


# Figure 4
def _halves(outcome: Trials) -> tuple[list[int], list[int]]:
    """The stages of the first half and of the second; one in the middle is in none."""
    stages = list(range(1, int(outcome.finished[0].result["recipe"]["stages"])))
    half = len(stages) // 2
    return stages[:half], stages[-half:]


def _stage_gains(outcome: Trials, data: str, cell: Cell, stages: list[int]) -> dict[tuple[int, int], float]:
    """{(population, place among the stages): MAP over the original order's}.

    Why by stage: runs keep single users of their last stage alone. Stages of one population share users, so that these
    cells are not independent, and p is a guide.
    """
    found = {}
    for population in populations_of(outcome, data):
        trial = outcome.find(data=data, population=population, **cell)
        for place, stage in enumerate(stages):
            values = read_stage(trial, trial.users[0], name_stage(stage)).values()
            found[population or 0, place] = fmean(values)
    return found


def _pair_stages(outcome: Trials, ours: Cell, theirs: Cell, stages: list[int], name: str) -> list[Pair]:
    return [
        Pair(f"{data} {name}", *(_stage_gains(outcome, data, cell, stages) for cell in (ours, theirs)))
        for data in outcome.data
    ]


def below_central_early(outcome: Trials) -> Verdict:
    """Central over proxy in the first half of the stages."""
    return all_better(_pair_stages(outcome, _CENTRAL, _PROXY, _halves(outcome)[0], "central over proxy, early"))


def near_central_late(outcome: Trials) -> Verdict:
    """Within 2 % of central training's MAP in the second half."""
    pairs = _pair_stages(outcome, _PROXY, _CENTRAL, _halves(outcome)[1], "proxy over central, late")
    central = [trial for trial in outcome.finished if trial.cell["method"] == "central"]
    level = fmean(curve[-1][1] for t in central for curve in t.curve(t.users[0], PRIMARY, along="round").values())
    return all_equal(pairs, margin=round(CLOSE * level, 4))


def flat_falls_behind(outcome: Trials) -> Verdict:
    """Proxy over flat in all stages, and by more in the second half than in the first."""
    early, late = _halves(outcome)
    above = all_better(_pair_stages(outcome, _PROXY, _FLAT, [*early, *late], "proxy over flat"))
    growing = []
    for data in outcome.data:
        sides = []
        for stages in (late, early):
            proxy, flat = (_stage_gains(outcome, data, cell, stages) for cell in (_PROXY, _FLAT))
            sides.append({place: proxy[place] - flat[place] for place in proxy})
        growing.append(Pair(f"{data} difference, late over early", *sides))
    return both(above, all_better(growing))


# Table 6
def make_table6() -> Json:
    """Nothing is drawn: a published delay, which looks like one draw, stands beside its mean."""
    published = find_result(_TABLE6)
    rows = []
    for row in published.rows:
        metric = row.metric or published.metric
        rows.append({**row.cell, "metric": metric, "ours": _time(row.cell, metric), "published": row.published})
    findings = []
    for claim in published.findings:
        said = {"id": claim.id, "claim": claim.claim, "where": claim.where}
        findings.append({**said, **_FINDINGS[claim.id]().as_json()})
    return {"name": _TABLE6, "rows": rows, "findings": findings}


def _round_of(cell: Cell) -> RoundTime:
    delayed = float(cell["delay_ratio"])
    if cell["method"] == "fedps-flat":
        return time_flat(USERS_OF_AOL, delayed=delayed)
    return time_with_proxies(USERS_OF_AOL, sampled=int(cell["n_sampled"]), delayed=delayed)


def _time(cell: Cell, metric: str) -> float:
    found = _round_of(cell)
    return round({"exchanges": found.exchanges, "delays": found.delays}[metric], 6)


def _exchanges(sampled: int, delayed: float) -> float:
    return time_with_proxies(USERS_OF_AOL, sampled=sampled, delayed=delayed).exchanges


def _delays_slow_flat() -> Verdict:
    """More stragglers cost the flat server delays, and a proxy none: it waits for fewer."""
    flat = [time_flat(USERS_OF_AOL, delayed=p).delays for p in (0.1, 0.2)]
    proxy = [time_with_proxies(USERS_OF_AOL, sampled=100, delayed=p) for p in (0.1, 0.2)]
    holds = 0 < flat[0] < flat[1] and not any(time.delays for time in proxy)
    said = f"Delays of FedPSFlat, mean: {flat[0]:,.0f} and {flat[1]:,.0f}; of FedPSProxy 0, by the formula."
    return Verdict(holds, None, said)


def _saves() -> Verdict:
    shares = [_exchanges(k, p) / time_flat(USERS_OF_AOL, delayed=p).exchanges for k in (100, 1000) for p in (0.1, 0.2)]
    said = f"At most {max(shares):.0%} of FedPSFlat's exchanges; far fewer is {FAR_FEWER:.0%}. By the formula."
    return Verdict(max(shares) <= FAR_FEWER, None, said)


def _saving_grows() -> Verdict:
    holds = all(_exchanges(1000, p) < _exchanges(100, p) for p in (0.1, 0.2))
    return Verdict(holds, None, "By the formula, for both delay ratios.")


_FINDINGS: Mapping[str, Callable[[], Verdict]] = {  # by the claim's id
    "delays-slow-flat-only": _delays_slow_flat,
    "proxies-save-communication": _saves,
    "saving-grows-with-cohort": _saving_grows,
}
