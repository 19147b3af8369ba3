"""Sentences about kinds of users whose words follow from tests: who is above, who is below, where nothing is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushrank.look.numbers import format_p, format_signed
from hushrank.reproduce.verdicts import LEVEL

Case = tuple[float, float | None]  # a difference and its p; None: no test was made


def tell_place(difference: float, p: float | None) -> str:
    """Why "shown": a mean that points one way and no more is no finding."""
    if p is not None and p < LEVEL:
        return "below" if difference < 0 else "above"
    return "not shown to differ from" if p is not None else "not tested against"


def tell_cases(cases: Mapping[str, Case], other: str, *, decimals: int = 3) -> str:
    """{users: case} in words: `above averaging for perfect users (+.030, p .002), and not ... for ...`."""
    groups: dict[str, list[str]] = {}
    for user, case in cases.items():
        groups.setdefault(tell_place(*case), []).append(user)
    whole = len(groups) == 1 and len(cases) == 3
    said = []
    for i, (place, users) in enumerate(groups.items()):
        who = "all users" if whole else f"{join_words(users)} users"
        numbers = tell_numbers([cases[user] for user in users], decimals=decimals)
        said.append(f"{place} {other if i == 0 else 'it'} for {who} ({numbers})")
    return f"{', '.join(said[:-1])}, and {said[-1]}" if len(said) > 1 else "".join(said)


def tell_numbers(cases: Sequence[Case], *, decimals: int = 3) -> str:
    """`+.002 to +.004, p at most .03`; of cases in which nothing is shown p at least."""
    shown = tell_span([difference for difference, _ in cases], decimals=decimals)
    ps = [p for _, p in cases if p is not None]
    if not ps:
        return shown
    is_shown = max(ps) < LEVEL
    p = format_p(max(ps) if is_shown else min(ps))
    limit = f" at {'most' if is_shown else 'least'}" if len(ps) > 1 and p[0] != "<" else ""
    return f"{shown}, p{limit}\u00a0{p}"


def tell_span(values: Sequence[float], *, decimals: int = 3) -> str:
    """The smallest and the largest difference, or the one that there is."""
    low, high = (format_signed(pick(values), decimals=decimals) for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def join_words(words: Sequence[str]) -> str:
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"
