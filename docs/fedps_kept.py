"""What the kept results of personalised search [fedps] say: rows, and comparisons of the same users.

`benchmarks/fedps` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from tables import Row, read

from hushrank.look.numbers import format_signed
from hushrank.reproduce.papers.fedps import judge_epochs, judge_trend
from hushrank.reproduce.papers.fedps_reading import N_ROUNDS, N_STEPS
from hushrank.reproduce.verdicts import Verdict

AOL, COMMERCIAL = "aol-like", "commercial-like"
EQUAL = "lists of one length"  # as cells of results name it
MAP = "offline/MAP"
MODELS = ("hrnn", "htps", "peps")
# {(part, variant): in words}; the columns of Table 3
LISTS = {(AOL, ""): "`aol-like`", (AOL, EQUAL): "`aol-like` with lists of 10", (COMMERCIAL, ""): "`commercial-like`"}
_POOLED = re.compile(r"([^;:]+?) \(by population ([^)]*)\) ([+-][\d.]+\d)(?: \(p ([^)]+)\))?")
_MARGIN = re.compile(r"within ([\d.]+): ([^;:]+?) \(by population")


# {claim: what it compares, the metric, and its test}
_BY_TRAININGS: Mapping[str, tuple[str, str, Callable[[dict[int, list[float]]], Verdict]]] = {
    "larger-cohort-fewer-steps": (
        "n_sampled",
        N_STEPS,
        partial(judge_trend, key="n_sampled", metric=N_STEPS, rises=False),
    ),
    "larger-cohort-more-rounds": (
        "n_sampled",
        N_ROUNDS,
        partial(judge_trend, key="n_sampled", metric=N_ROUNDS, rises=True),
    ),
    "more-epochs-fewer-rounds": ("epochs", N_ROUNDS, judge_epochs),
}


@dataclass(frozen=True)
class Compared:
    """The same users in two trainings."""

    difference: float  # of MAP, mean over users
    populations: tuple[float, ...]  # the same for the users of each
    p: float | None  # None: was not kept

    @property
    def by_population(self) -> float:
        """The mean of the populations' means, as in the light ranker's table."""
        return fmean(self.populations)


def find_result(data: Path, part: str, name: str) -> dict[str, Any]:
    return read(data, f"fedps/{part}.{name}")


def find_claim(result: Mapping[str, Any], id: str) -> Row:
    return next(claim for claim in result["findings"] if claim["id"] == id)


def judge_again(result: Mapping[str, Any], claim: Row) -> Row:
    """A finding that was kept as judged by means alone: judged by tests of the trainings that its rows keep."""
    judged = _BY_TRAININGS.get(claim["id"])
    if judged is None or claim["p"] is not None or claim["holds"] is None:
        return claim
    key, metric, judge = judged
    rows = [row for row in result["rows"] if row["metric"] == metric and row["ours"] is not None]
    found = judge({row[key]: list_values(row) for row in rows}).as_json()
    told = re.findall(r"\d+ of \d+ trainings were best in their last round\.", claim["why"])
    return {**claim, **found, "why": " ".join([found["why"], *told])}


def list_values(row: Row) -> list[float]:
    """Of each population; or, where only their mean and spread were kept, any three with these: tests are the same."""
    if row.get("values"):
        return [each["value"] for each in row["values"]]
    assert row["n"] == 3
    return [row["ours"] - row["std"], row["ours"], row["ours"] + row["std"]]


def compare(result: Mapping[str, Any], id: str) -> dict[str, Compared]:
    """{pair of trainings: what a claim's tests found}; those of all populations' users together."""
    found = _POOLED.findall(find_claim(result, id)["why"])
    return {
        name.strip(): Compared(float(difference), tuple(map(float, each.split(", "))), float(p) if p else None)
        for name, each, difference, p in found
    }


def find_margins(result: Mapping[str, Any], id: str) -> dict[str, float]:
    """{pair of trainings: within what they would count as equal}"""
    return {name: float(margin) for margin, name in _MARGIN.findall(find_claim(result, id)["why"])}


def find_row(result: Mapping[str, Any], metric: str = MAP, **cell: str) -> Row:
    """The row with these entries; one of a variant only where that is asked for."""
    wanted = {"variant": "", "ranker": "", **cell}
    return next(
        row
        for row in result["rows"]
        if row["metric"] == metric
        and row["ours"] is not None
        and all((row.get(key) or "") == value for key, value in wanted.items())
    )


def read_light(data: Path) -> dict[tuple[str, str], Row]:
    """{(data, way of searching): MAP of the light ranker, mean over users}"""
    return {
        (row["data"], row["method"]): row for row in read(data, "queries")["table2"]["rows"] if row["metric"] == MAP
    }


def gain_over_order(data: Path, part: str, model: str) -> Compared:
    """Of central training, over the engine's order."""
    return compare(find_result(data, part, "table3"), "personalised-above-general")[
        f"{part} central {model} over original-order"
    ]


def gain_of_knrm(data: Path, part: str) -> float:
    """Over the engine's order: what a model gains on both tells what they have between them."""
    found = compare(find_result(data, part, "table3"), "personalised-above-general")
    order, knrm = (found[f"{part} central hrnn over {other}"] for other in ("original-order", "knrm"))
    return order.by_population - knrm.by_population


def compare_knrm(data: Path, part: str, variant: str) -> tuple[Compared, float] | None:
    """Federated KNRM over central training, and the margin; None: was not run."""
    result, id = find_result(data, part, "table3"), "federated-knrm-equals-central"
    if not any(claim["id"] == id and claim["holds"] is not None for claim in result["findings"]):
        return None
    name = " ".join(filter(None, [part, variant, "fedps knrm over knrm"]))
    return compare(result, id)[name], find_margins(result, id)[name]


def compare_federated(data: Path, part: str, variant: str, model: str) -> tuple[Compared, float]:
    """Federated over central training, and the margin."""
    result, id = find_result(data, part, "table3"), "federated-equals-central"
    name = " ".join(filter(None, [part, model, variant, "fedps over central"]))
    return compare(result, id)[name], find_margins(result, id)[name]


def compare_late(data: Path, part: str, variant: str) -> dict[str, float | None]:
    """PEPS with a tenth of the clients late, less PEPS on all logs in one place, by users; None: was not run.

    {way of training: sum of the kept differences to CoverQuery's training and to each other, which have four digits}
    """
    result, name = find_result(data, part, "table3"), " ".join(filter(None, [part, "peps", variant]))
    found = {
        words: compare(result, id).get(f"{name} {words}")
        for id, words in (
            ("cover-queries-cost-nothing", "cover-query over central"),
            ("proxy-above-other-protections", "fedps-proxy whole over cover-query"),
            ("proxy-above-flat", "fedps-proxy whole over fedps-flat"),
        )
    }
    covers, proxy, flat = (None if each is None else each.difference for each in found.values())
    above = None if covers is None or proxy is None else covers + proxy
    return {"fedps-flat": None if above is None or flat is None else above - flat, "fedps-proxy": above}


def compare_searches(data: Path, part: str, variant: str, model: str) -> tuple[float, float]:
    """Federated over central training, mean over searches: (difference, share of central training's MAP)."""
    result = find_result(data, part, "table3")
    flat, central = (find_row(result, method=m, ranker=model, variant=variant)["ours"] for m in ("fedps", "central"))
    return flat - central, (flat - central) / central


def signed(value: float) -> str:
    return format_signed(value, decimals=4)


def welch(ours: Row, theirs: Row) -> float:
    """p of Welch's test of two rows: means of the same few populations, as if they were others."""
    from scipy.stats import ttest_ind_from_stats

    sides = [(row["ours"], row["std"], row["n"]) for row in (ours, theirs)]
    return float(ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue)
