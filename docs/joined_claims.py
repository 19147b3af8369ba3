"""Tables of claims that were judged on parts of a result: linear rankers and networks on one data set stand in one row.

A part's verdict is about what it ran. A claim about both rankers is held where it held in each part and these cover all
that it asks for, and not held as soon as it fails in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from shortened import VERDICTS, is_in_part, shorten_test, tell_verdict
from tables import Row, make_markdown
from told import join_words

from hushrank.look.numbers import format_count
from hushrank.reports.reproduction_summary import HELD_IN_PART

_PART = re.compile(rf"^{HELD_IN_PART}(.*?); (.*?) not run\. ")
HEADER = ("claim", "run on", "verdict", "how it was tested")


class Judged(NamedTuple):
    """A claim as one part judged it."""

    ranker: str
    n: int  # trainings of a case
    claim: Row

    @property
    def covers(self) -> tuple[list[str], list[str]]:
        """What it held for, and what of the claim was not run; both empty where the claim was judged as a whole."""
        found = _PART.match(self.claim["why"])
        return (found[1].split(", "), found[2].split(", ")) if found else ([], [])

    @property
    def is_told(self) -> bool:
        """What was not run is not told; what was run and could not be judged is, beside another part."""
        return self.is_judged or not self.claim["why"].startswith("Not run")

    @property
    def is_judged(self) -> bool:
        return self.claim["holds"] is not None or is_in_part(self.claim)


def write_claims(results: Iterable[tuple[str, Mapping[str, Any]]], parts: Mapping[str, tuple[str, int]]) -> str:
    """A table for each result, of every claim that was judged, on everything that it was run on."""
    groups: dict[str, dict[tuple[str, int, str], list[Judged]]] = {}
    for part, result in results:
        name, rounds = parts[part]
        where, _, ranker = name.rpartition(", ")
        n = max(row["n"] for row in result["rows"])
        found = groups.setdefault(f"**`{result['name']}`** {result['shows']}.", {})
        for claim in result["findings"]:
            found.setdefault((where, rounds, claim["id"]), []).append(Judged(ranker, n, claim))
    texts = []
    for title, found in groups.items():
        rows = [
            describe_claim(where, rounds, [each for each in judged if each.is_told])
            for (where, rounds, _), judged in found.items()
            if any(each.is_judged for each in judged)
        ]
        texts += [title, make_markdown(HEADER, rows, n_words=4)] if rows else []
    return "\n\n".join(texts)


def describe_claim(where: str, rounds: int, parts: Sequence[Judged]) -> list[str]:
    """The cells of a row."""
    if len(parts) == 1:
        (one,) = parts
        ran = f"{where}, {one.ranker}; {format_count(rounds)} rounds, {one.n} trainings"
        return [one.claim["claim"], ran, tell_verdict(one.claim), shorten_test(one.claim)]
    trainings = ", ".join(f"{each.ranker} {each.n} trainings" for each in parts)
    verdict, left = judge_parts(parts)
    said = [f"**{each.ranker.capitalize()}, {tell_part(each)}:** {shorten_part(each)}" for each in parts]
    ran = f"{where}; {format_count(rounds)} rounds, {trainings}"
    return [parts[0].claim["claim"], ran, verdict, " ".join([*left, *said])]


def judge_parts(parts: Sequence[Judged]) -> tuple[str, list[str]]:
    """The verdict on what all parts ran, and what of the claim none of them ran."""
    failed = [each.ranker for each in parts if each.claim["holds"] is False]
    if failed:
        return VERDICTS[False] + ("" if len(failed) == len(parts) else f" for {join_words(failed)}"), []
    ran = [cell for each in parts for cell in each.covers[0]]
    left = list(dict.fromkeys(cell for each in parts for cell in each.covers[1] if cell not in ran))
    if left and not any(each.claim["holds"] for each in parts):
        return "held in\u00a0part", [f"{', '.join(left)} not run."]
    return (VERDICTS[True] if all(each.is_judged for each in parts) else "held in\u00a0part"), []


def tell_part(part: Judged) -> str:
    """Of a part alone: what held wherever it was run, held."""
    if not part.is_judged:
        return "not judged"
    return "not held" if part.claim["holds"] is False else "held"


def shorten_part(part: Judged) -> str:
    """Without what the other parts ran, or nobody: the row says that."""
    return shorten_test({**part.claim, "why": _PART.sub("", part.claim["why"])})
