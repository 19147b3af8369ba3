"""The reason of a verdict in short: of each list of comparisons how many, and from where to where."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tables import Row

from hushrank.look.numbers import format_p, format_signed
from hushrank.reports.reproduction_summary import read_finding
from hushrank.reproduce.verdicts import LEVEL

VERDICTS = {True: "held", False: "**not\u00a0held**", None: "not\u00a0run"}
_TESTS = re.compile(
    r"(Paired t-tests(?: at level [\d.]+)?, (?:not )?corrected|Welch's tests, corrected"
    r"|Two one-sided tests within [\d.]+|One-sided tests, lower by less than [\d.]+|Means)"
    r": (.*?)\.(?= |$)"
)
_SO = {  # {first word of a test: what it found}
    "Paired": "significantly above",
    "Welch's": "significantly above",
    "Two": "equal",
    "One-sided": "shown",
}


def shorten_test(claim: Row) -> str:
    """The reason of a verdict with each list of comparisons summed up: how many, from where to where.

    Why p beside a single list only: of several it is the largest, and does not say of which.
    """
    tests = [test for test, _ in _TESTS.findall(claim["why"]) if test != "Means"]
    p = claim["p"] if len(tests) == 1 else None
    return _TESTS.sub(lambda found: sum_up(found[1], found[2].split("; "), p), claim["why"])


def tell_verdict(claim: Row) -> str:
    """What held wherever it was run, and was not run everywhere, is neither held nor not run."""
    return "held in\u00a0part" if is_in_part(claim) else VERDICTS[claim["holds"]]


def is_in_part(claim: Row) -> bool:
    return read_finding(claim).verdict == "held in part"


def sum_up(test: str, comparisons: Sequence[str], p: float | None) -> str:
    if test == "Means":
        pairs = [[float(x) for x in re.findall(r"-?\d+\.\d{4}", each)[-2:]] for each in comparisons]
        gaps = [high - low for high, low in pairs]
        n_so = sum(gap > 0 for gap in gaps)
        return f"Means in the claimed order in {n_so} of {count(len(gaps), 'case')}, {describe_span(gaps)}."
    differences = [float(re.findall(r"[+-]\d+\.\d{4}", each)[-1]) for each in comparisons]
    ps = [float(found) for each in comparisons for found in re.findall(r"\(p ([\d.e+-]+)\)$", each)]
    words = re.sub(r"\b0\.", ".", test)
    said = "" if p is None else f", p {format_p(p)}"
    if len(ps) < len(differences):  # of tests for equality p was not always kept
        return f"{words}: {count(len(differences), 'difference')} {span(differences)}{said}."
    kind, level = test.split()[0], level_of(test)
    is_above = kind in ("Paired", "Welch's")
    n_so = sum(each < level and (d > 0 or not is_above) for d, each in zip(differences, ps, strict=True))
    found = f"{words}: {_SO[kind]} in {n_so} of {count(len(ps), 'case')}, {describe_span(differences)}"
    return f"{found}{'' if is_above else said}."


def level_of(test: str) -> float:
    """That a list of comparisons names, or the usual one."""
    named = re.findall(r"at level ([\d.]+)", test)
    return float(named[0]) if named else LEVEL


def describe_span(values: Sequence[float]) -> str:
    return f"difference{'' if len(values) == 1 else 's'} {span(values)}"


def span(values: Sequence[float]) -> str:
    decimals = 4 if max(map(abs, values)) < 1 else 1  # Why: an online sum of hundreds has no fourth decimal
    low, high = (format_signed(pick(values), decimals=decimals) for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
