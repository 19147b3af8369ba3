"""FedPSProxy [fedps]: its claims in Table 3, and Table 6, which is exact by its formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hushrank.files import Json
from hushrank.personal.communication import USERS_OF_AOL, RoundTime, time_flat, time_with_proxies
from hushrank.personal.keys import WHOLE
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.papers.fedps_reading import OF_EQUAL, pool_users, tell_equal_lists
from hushrank.reproduce.verdicts import Cell, Pair, Trials, Verdict, all_at_least, all_better, both

NOT_BELOW = 0.005  # of MAP: FedPSProxy may be so much below FedPSFlat
FAR_FEWER = 0.25  # Why: of FedPSFlat's exchanges; the paper says "greatly reduces" without a number
_TABLE6 = "fedps.table6"
_BOTH_WAYS = (
    "Trained with offload=whole alone: with offload=upper the simulator computes the same model "
    "(tests/engine/test_offloaded_runs.py)."
)


# Table 3
def _over_flat(outcome: Trials, names: Sequence[str], ways: tuple[str, ...], **variant: str) -> list[Pair]:
    shared: Cell = {"ranker": "peps", **variant}
    return [
        pool_users(
            outcome,
            data,
            {"method": "fedps-proxy", "offload": way, **shared},
            {"method": "fedps-flat", **shared},
        )
        for data in names
        for way in ways
    ]


def proxy_above_flat(outcome: Trials) -> Verdict:
    """Whole tasks handed over, user by user."""
    ways = outcome.present("offload", (WHOLE,))
    equal = tell_equal_lists(outcome, lambda data: [all_better(_over_flat(outcome, [data], ways, **OF_EQUAL))])
    return both(all_better(_over_flat(outcome, outcome.data, ways)), equal)


def proxy_not_below_flat(outcome: Trials) -> Verdict:
    """User by user. Either way of handing over gives the same model, so that one is trained."""
    ways = outcome.present("offload", (WHOLE,))
    found = all_at_least(_over_flat(outcome, outcome.data, ways), margin=NOT_BELOW)
    equal = tell_equal_lists(
        outcome, lambda data: [all_at_least(_over_flat(outcome, [data], ways, **OF_EQUAL), margin=NOT_BELOW)]
    )
    return both(both(found, Verdict(True, None, _BOTH_WAYS)), equal)


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
