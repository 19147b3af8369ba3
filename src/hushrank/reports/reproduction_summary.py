"""A reproduced table or figure as its page sees it, read from its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hushrank.files import JsonObject, refuse_newer
from hushrank.reports.cells import known
from hushrank.reports.wording import OFFLINE, join_words, setting_text

SUPPORTED_FORMAT = 1
_NUMBERS = ("ours", "std", "n", "as_published", "as_published_std", "published", "difference", "values")
NOT_CELL = ("metric", *_NUMBERS, "why")  # every other key of a row names its cell
_REAL_NAMES = {"yahoo": "Yahoo", "istella-s": "Istella-S", "commercial": "Commercial"}  # others are spelt in capitals
HELD_IN_PART = "Held for "  # how the reason begins where a claim held in all that was run, and not all of it was
MARKS = {"held": "✓", "held in part": "½", "not held": "✗", "not judged": "–"}  # {verdict: before it}


@dataclass(frozen=True, slots=True)
class DataUsed:
    """What the runs learnt from."""

    name: str
    wanted: str  # what the paper used
    is_stand_in: bool

    @property
    def label(self) -> str:
        return f"stand-in data: shaped like {real_name(self.wanted)}, not the real set"


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the paper beside ours."""

    cell: JsonObject  # what names it, such as data, clicks, method
    metric: str
    ours: float | None
    std: float | None
    n: int
    published: float | None
    difference: float | None
    why: str  # why there is no number of ours
    as_published: float | None = None  # with what the published code does and the paper does not say
    as_published_std: float | None = None

    @property
    def click(self) -> str | None:
        found = next((self.cell[key] for key in ("clicks", "click", "user") if key in self.cell), None)
        return None if found is None else str(found)


@dataclass(frozen=True, slots=True)
class Finding:
    """What the paper claims, and whether it holds here."""

    claim: str
    where: str  # in the paper
    holds: bool | None  # None: not judged
    p: float | None
    why: str  # the test and its numbers in words, or why it was not judged

    @property
    def verdict(self) -> str:
        """In words; what held wherever it was run, and was not run everywhere, has a word of its own."""
        if self.holds is None:
            return "held in part" if self.why.startswith(HELD_IN_PART) else "not judged"
        return "held" if self.holds else "not held"


class FindingCounts(NamedTuple):
    """How many findings have which verdict."""

    held: int = 0
    held_in_part: int = 0
    not_held: int = 0
    not_judged: int = 0


@dataclass(frozen=True, slots=True)
class ReproductionSummary:
    """A whole table or figure."""

    name: str
    aliases: tuple[str, ...]
    paper: str
    number: str  # Figure 4
    shows: str
    metric: str
    data: tuple[DataUsed, ...]
    is_quick: bool
    changes: Mapping[str, object]  # settings unlike the paper's, by the reader's wish
    note: str
    limits: str  # what must not be concluded from a smaller version
    published_code: str  # what the published code does and the paper does not say; empty: nothing that was run
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    directories: tuple[str, ...]  # of the runs, below the page's own
    when: str  # ISO time, or empty
    seconds: float | None

    @property
    def stand_ins(self) -> list[DataUsed]:
        return [data for data in self.data if data.is_stand_in]


def read_reproduction(result: JsonObject) -> ReproductionSummary:
    """The JSON of a reproduction; a ValueError of one line says what is wrong with it."""
    refuse_newer("this reproduction", result.get("format", SUPPORTED_FORMAT), SUPPORTED_FORMAT)
    try:
        return _read(result)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the result of this reproduction is damaged ({error!r}). Run it again.") from error


def findings_text(counts: FindingCounts) -> str:
    """`Of 4 findings 1 held, 1 held in part, 1 did not and 1 was not judged.`"""
    held, in_part, not_held, not_judged = counts
    if sum(counts) == 1:
        return f"The one finding {_one(counts)}."
    parts = [f"{held} held"]
    parts += [f"{in_part} held in part"] if in_part else []
    parts += [f"{not_held} did not"] if not_held else []
    parts += [f"{not_judged} {'was' if not_judged == 1 else 'were'} not judged"] if not_judged else []
    return f"Of {sum(counts)} findings {join_words(parts)}."


def count_findings(findings: Sequence[Finding]) -> FindingCounts:
    verdicts = [finding.verdict for finding in findings]
    return FindingCounts(*(verdicts.count(verdict) for verdict in MARKS))


def real_name(wanted: str) -> str:
    """A data set as its makers spell it."""
    return _REAL_NAMES.get(wanted, wanted.upper())


def cell_keys(rows: Sequence[Row]) -> list[str]:
    """What names the rows, in the order of the paper."""
    return list(dict.fromkeys(key for row in rows for key in row.cell))


def cell_text(row: Row, keys: Sequence[str], *, names: Mapping[str, str]) -> str:
    """`fpdgd, clients 10`: words speak for themselves, numbers need their name."""
    found = [(names.get(key, key), row.cell[key]) for key in keys if key in row.cell]
    return ", ".join(value if isinstance(value, str) else f"{name} {setting_text(value)}" for name, value in found)


def published_decimals(rows: Sequence[Row]) -> int:
    """As many decimals as the paper prints; a trailing 0 of a single number cannot be known."""
    texts = [repr(row.published) for row in rows if row.published is not None]
    return max((len(text.partition(".")[2]) for text in texts if "e" not in text and text[-2:] != ".0"), default=0)


def _one(counts: FindingCounts) -> str:
    words = ("held", "held in part", "did not hold", "was not judged")
    return words[counts.index(1)]


def _read(result: JsonObject) -> ReproductionSummary:
    data = result.get("data") or ()
    metric = str(result.get("metric") or OFFLINE)
    return ReproductionSummary(
        name=str(result["name"]),
        aliases=tuple(str(alias) for alias in result.get("aliases") or ()),
        paper=str(result["paper"]),
        number=str(result["number"]),
        shows=str(result.get("shows") or ""),
        metric=metric,
        data=tuple(used for found in ([data] if isinstance(data, Mapping) else data) for used in _data(found)),
        is_quick=bool(result.get("quick")),
        changes=result.get("changes") or {},
        note=" ".join(str(result.get("note") or "").split()),
        limits=str(result.get("limits") or ""),
        published_code=str(result.get("published_code") or ""),
        rows=tuple(_row(row, metric) for row in result["rows"]),
        findings=tuple(read_finding(finding) for finding in result["findings"]),
        directories=tuple(str(directory) for directory in result.get("runs") or ()),
        when=str(result.get("when") or ""),
        seconds=_number(result.get("seconds")),
    )


def _data(found: JsonObject) -> list[DataUsed]:
    """One data set, or several whose names stand in a row with commas."""
    names = [name.strip() for name in str(found["name"]).split(",")]
    wanted = [name.strip() for name in str(found.get("wanted") or found["name"]).split(",")]
    is_stand_in = bool(found.get("is_stand_in"))
    if len(names) != len(wanted):
        return [DataUsed(", ".join(names), ", ".join(wanted), is_stand_in)]
    pairs = zip(names, wanted, strict=True)
    return [DataUsed(name, other, is_stand_in and name != other) for name, other in pairs]


def _row(row: JsonObject, metric: str) -> Row:
    return Row(
        cell={key: value for key, value in row.items() if key not in NOT_CELL},
        metric=str(row.get("metric") or metric),
        ours=_number(row.get("ours")),
        std=_number(row.get("std")),
        n=int(row.get("n") or 0),
        published=_number(row.get("published")),
        difference=_number(row.get("difference")),
        why=str(row.get("why") or ""),
        as_published=_number(row.get("as_published")),
        as_published_std=_number(row.get("as_published_std")),
    )


def read_finding(found: JsonObject) -> Finding:
    holds = found.get("holds")
    return Finding(
        str(found["claim"]),
        str(found.get("where") or ""),
        None if holds is None else bool(holds),
        _number(found.get("p")),
        str(found.get("why") or ""),
    )


def _number(found: object) -> float | None:
    return known(float(found)) if isinstance(found, int | float) else None
