"""Sentences of docs/howto/differ.md that follow from the tests of docs/benchmarks/differ.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from measured_differ import (
    LEVEL,
    NAMES,
    ONLINE,
    OTHERS,
    QUALITY,
    compare_with,
    find_rows,
    show_difference,
    show_gap,
)
from tables import USERS, Row, Tables, make_markdown
from told import Case, join_words, tell_cases, tell_place, tell_span

from hushrank.look.numbers import format_value

_WORDS = {**NAMES, "averaging": "averaging", "ceiling": "the ceiling"}


def tell(
    data: Path,
    setting: str,
    ours: str,
    other: str = "averaging",
    *,
    metric: str = QUALITY,
    users: Sequence[str] = USERS,
    named: str = "",
) -> str:
    """A sentence on one remedy beside another; nothing where that was not run."""
    cases = {
        user: compare_with(row, other, ours=ours)
        for user, row in find_rows(data, setting, metric).items()
        if user in users and {ours, other} <= row["remedies"].keys()
    }
    if not cases:
        return ""
    name = named or f"{_WORDS[ours][0].upper()}{_WORDS[ours][1:]}"
    return f"{name} is {tell_cases(cases, _WORDS[other], decimals=1 if metric == ONLINE else 3)}."


def join_said(*said: str) -> str:
    return " ".join(filter(None, said))


def four(data: Path) -> str:
    """And how far the ceiling is from local training, which it is but for the rounding of sums."""
    rows = [row for s in _FOUR for row in find_rows(data, s).values() if {"local", "ceiling"} <= row["remedies"].keys()]
    apart = max(abs(compare_with(row, "local", ours="ceiling")[0]) for row in rows)
    rounding = f"The means of local training and the ceiling differ by up to {format_value(apart)} with four clients."
    return join_said(tell(data, "four", "tastes"), tell(data, "four", "tastes", "local", named="It"), rounding)


_FOUR = ("four", "carry-0-four", "carry-1-four", "other-four")


def many(data: Path) -> str:
    return join_said(*(tell(data, "many", remedy) for remedy in ("local", "interpolation", "tastes")))


def private(data: Path) -> str:
    """With 4 groups and with 20."""
    lines = []
    for setting, words in (("private", "4 groups"), ("private-many", "20 groups")):
        said = [tell(data, setting, remedy) for remedy in ("tastes", "interpolation", "ceiling")]
        lines.append(f"- With {words}: {join_said(*said)}")
    return "\n".join(lines)


def carry_1(data: Path) -> str:
    lines = []
    for setting, words in (("carry-1-four", "four clients"), ("carry-1-many", "1,000 clients")):
        lines.append(
            f"- With {words}: {join_said(*(tell(data, setting, 'tastes', o) for o in ('averaging', 'local')))}"
        )
    return "\n".join(lines)


def carry_0(data: Path, metric: str = QUALITY) -> str:
    lines = []
    for setting, words in (("carry-0-four", "four clients"), ("carry-0-many", "1,000 clients")):
        said = [tell(data, setting, remedy, metric=metric) for remedy in ("local", "ceiling", "tastes")]
        lines.append(f"- With {words}: {join_said(*said)}")
    return "\n".join(lines)


def find_cost(data: Path) -> float:
    """How far `tastes` is below averaging on new queries where nothing carries over, at most."""
    rows = [row for s in ("carry-0-four", "carry-0-many") for row in find_rows(data, s).values()]
    return max(0.0, *(-compare_with(row, "averaging")[0] for row in rows))


LONGER = (  # (setting, in words, its rounds, more rounds)
    ("four", "four clients", "10,000", "30,000"),
    ("other-many", "1,000 clients, other data", "1,000", "3,000"),
)


def longer(data: Path) -> str:
    """Informational users with as many rounds as elsewhere and with three times as many: what patience brings."""
    lines, said = [], []
    for setting, words, usual, more in LONGER:
        found = {
            rounds: find_informational(data, name) for name, rounds in ((setting, usual), (f"{setting}-long", more))
        }
        for rounds, row in found.items():
            if row is not None:
                cells = [show_difference(*compare_with(row, o)) if o in row["remedies"] else "–" for o in OTHERS[:2]]
                lines.append([f"{words}, {rounds} rounds ({row['data_sets']} data sets)", *show_gap(row), *cells])
        said.append(tell_longer(words, found))
    header = ["informational users", "gap", "closed", "over averaging", "over local training"]
    return f"{make_markdown(header, lines)}\n\n" + "\n".join(f"- {each}" for each in said)


def find_informational(data: Path, setting: str) -> Row | None:
    row = find_rows(data, setting).get("informational")
    return row if row is not None and {"tastes", *OTHERS[:2]} <= row["remedies"].keys() else None


def tell_longer(words: str, found: dict[str, Row | None]) -> str:
    """{rounds: row}, the usual ones first. Why the data sets are told: those of one number of rounds may be others."""
    first = f"{words[0].upper()}{words[1:]}"
    (usual, row), (more, long) = found.items()
    if row is None:
        return f"{first}: not run."
    if long is None:
        return f"{first}: with {usual} rounds `tastes` is {tell_both(row)}. **{more} rounds were not run.**"
    sets, others = (set(each["remedies"]["tastes"].get("values", ())) for each in (row, long))
    apart = "" if sets and sets == others else " The two are not known to be of the same data sets."
    return (
        f"{first}: with {usual} rounds `tastes` is {tell_both(row)}; with {more} rounds it is {tell_both(long)}.{apart}"
    )


def tell_both(row: Row) -> str:
    """Beside averaging and beside local training."""
    words = {"averaging": "averaging", "local": "local training"}
    cases = {word: compare_with(row, other) for other, word in words.items()}
    return " and ".join(f"{tell_place(*case)} {word}, {show_difference(*case)}" for word, case in cases.items())


def network(data: Path) -> str:
    """Which network has the highest mean, and where linear `tastes` stands beside networks with FedPer and `tastes`."""
    rows, linear = find_rows(data, "network"), find_rows(data, "network-linear")
    best: dict[str, list[str]] = {}
    for user, row in rows.items():
        means = {remedy: found["mean"] for remedy, found in row["remedies"].items()}
        best.setdefault(max(means, key=lambda remedy: means[remedy]), []).append(user)
    highest = join_words([f"{_WORDS[remedy]} for {who(users)}" for remedy, users in best.items()])
    said = [f"Among networks the highest mean has {highest}."]
    said += [tell(data, "network", "fedper"), tell(data, "network", "fedper", "local")]
    for other in ("fedper", "tastes"):
        cases = compare_linear(linear, rows, other)
        if cases:
            said.append(f"Linear `tastes` is {tell_cases(cases, f'the network with `{other}`')}.")
    if any(p is None for other in ("fedper", "tastes") for _, p in compare_linear(linear, rows, other).values()):
        said.append("No test could be made where the values of single data sets were not kept.")
    return join_said(*said)


def who(users: Sequence[str]) -> str:
    return "all users" if len(users) == len(USERS) else f"{join_words(users)} users"


def compare_linear(linear: dict[str, Row], networks: dict[str, Row], other: str) -> dict[str, Case]:
    """{user: linear `tastes` over a network}"""
    return {
        user: compare_with(linear[user], other, row)
        for user, row in networks.items()
        if user in linear and other in row["remedies"] and "tastes" in linear[user]["remedies"]
    }


def alike(data: Path) -> str:
    """Whether `tastes` costs nothing where clients are alike."""
    found = {
        (words, user): row.get("equivalent_within_.002_p")
        for setting, words in (("alike-four", "four clients"), ("alike-many", "1,000 clients"))
        for user, row in find_rows(data, setting).items()
    }
    open_for = [f"{user} users, {words}" for (words, user), p in found.items() if p is None or p >= LEVEL]
    if not open_for:
        return (
            "**`tastes` costs nothing where clients do not differ**: it equals averaging within .002, shown by two "
            "one-sided tests for every user."
        )
    return f"That `tastes` equals averaging within .002 is not shown for {'; '.join(open_for)}. For the others it is."


def beyond_fedper(data: Path) -> str:
    """For the table of remedies: linear `tastes` beside FedPer's network."""
    cases = compare_linear(find_rows(data, "network-linear"), find_rows(data, "network"), "fedper")
    if all(p is not None and p < LEVEL and difference > 0 for difference, p in cases.values()):
        return "linear `tastes` was better still"
    span = tell_span([difference for difference, _ in cases.values()])
    tested = "without a test" if any(p is None for _, p in cases.values()) else "not significant for all users"
    return f"linear `tastes` differed from it by {span} ({tested})"


SAID: dict[str, Callable[[Path], str]] = {
    "four": four,
    "many": many,
    "private": private,
    "carry-1": carry_1,
    "carry-0": carry_0,
    "carry-0-online": partial(carry_0, metric=ONLINE),
    "network": network,
    "alike": alike,
}
TABLES: Tables = {"differ-longer": longer, **{f"differ-said-{name}": make for name, make in SAID.items()}}
