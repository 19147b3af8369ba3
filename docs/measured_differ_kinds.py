"""The two tables at the beginning of docs/howto/differ.md: which difference hurts, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measured_chapter4_said import (
    find,
    find_claim,
    flat,
    is_of_labels,
    losses,
    name_part,
    quantity_gaps,
    read_cases,
    tell_clicks,
    turn,
    two_labels,
)
from measured_differ_said import beyond_fedper, find_cost
from tables import USERS, Tables, make_markdown, read
from told import tell_cases, tell_span

from hushrank.look.numbers import format_signed, format_value
from hushrank.reproduce.papers.thesis_skew import LITTLE


def kinds(data: Path) -> str:
    """What differs, and whether it hurts."""
    rows = [
        ["intents (Type 1)", 'a lawyer and a programmer both type "case"', "`partition=intents`", intents(data)],
        [
            "one label (Type 2)",
            "one device has only documents that its person likes",
            "`partition=labels-1`",
            one(data),
        ],
        [
            "two labels (Type 2)",
            "a device has good and bad documents, but none in between",
            "`partition=labels-2`",
            two(data),
        ],
        [
            "clicks (Type 3)",
            "a hurried person clicks once, a researcher reads everything",
            "`partition=clicks`",
            "People who read from the top (`behaviour=ccm`) and position-based ones (`pbm`): " + tell_clicks(data),
        ],
        [
            "quantity (Type 4)",
            "one person searches once a day, another all day",
            "`partition=quantity`",
            quantity(data),
        ],
        [
            "shares of labels",
            "some devices have more good documents than others",
            "`partition=dirichlet`",
            f"{beside_alike(data, 'dirichlet')} (perfect, navigational, informational users)",
        ],
        [
            "queries",
            "a hospital and a school search for different topics",
            "`partition=queries`",
            beside_alike(data, "queries"),
        ],
    ]
    return make_markdown(["what differs", "in life", "simulate with", "does it hurt?"], rows, n_words=4)


def intents(data: Path) -> str:
    said = []
    for part, result in find(data, "figure4.3").items():
        claim = find_claim(result, "intents-hurt")
        own, union = (
            tell_cases(turn(dict(read_cases(claim, *between))), "the control")
            for between in (("Own labels for both: ", " As published"), ("Union for both: ", " Own"))
        )
        said.append(f"{part_of(part)} are by their own labels {own}; by the union of all labels {union}")
    first = "By everybody's own labels no loss is shown (a generated set). " if is_of_labels(data) else ""
    return (
        f"{first}{'. '.join(said)}. But everybody could have a better ranker where a taste carries over from query to "
        "query (`carry` above 0): [measured below](#what-was-measured)"
    )


def part_of(part: str) -> str:
    name = name_part(part).rpartition(", ")[2]
    return f"{name[0].upper()}{name[1:]}"


def one(data: Path) -> str:
    skewed = {"partition": "labels-1", "distribution": "non-iid"}
    lost = {
        name_part(part): flat(losses(result, {"distribution": "iid"}, skewed))
        for part, result in find(data, "figure4.6").items()
    }
    said = [f"{name} {tell_span(gaps)}" for name, gaps in lost.items()]
    first = "Yes: " if max(map(max, lost.values())) < -LITTLE else ""
    return f"{first}{'; '.join(said)}. All documents of a list are alike, so clicks say nothing of which is better"


def two(data: Path) -> str:
    """User by user where one of them differs by more than the margin."""
    return "; ".join(f"{name_part(part)} {show_users(result)}" for part, result in find(data, "figure4.6").items())


def show_users(result: dict[str, Any]) -> str:
    found = two_labels(result)
    if all(abs(value) <= LITTLE for value in flat(found)):
        return tell_span(flat(found))
    return ", ".join(f"{format_signed(values[0])} ({user})" for user, values in found.items())


def quantity(data: Path) -> str:
    alone, mixed = (
        tell_span([gap for result in find(data, "figure4.9").values() for gap in quantity_gaps(result, how)])
        for how in ("Alone", "Mixed with intents")
    )
    return (
        f"Alone {alone} (linear rankers, MQ2008). Together with intents {mixed} beside these with equal searches, by "
        "own labels, [because of how they are weighed]"
        "(../findings.md#why-unequal-searches-cost-clients-with-different-intents)"
    )


def beside_alike(data: Path, case: str) -> str:
    """Of each user; with everybody's labels."""
    rows = read(data, "expelled")["rows"]
    found = {(row["case"], row["user"]): row["average"] for row in rows if row["labels"] == "everybody's"}
    lost = [found[f"{case}, 10 clients", user] - found["alike", user] for user in USERS]
    return ", ".join(map(format_signed, lost))


def remedies(data: Path) -> str:
    """What to do, what it costs and what it tells."""
    cost = format_value(find_cost(data))
    rows = [
        [
            "you do not know",
            "`tastes`",
            f"nothing where clients are alike; up to {cost} on new queries where tastes do not carry over; memory of "
            "one ranker per client",
            "up to 32 tastes: [see below](#how-tastes-works). `n_tastes=0`: nothing",
        ],
        [
            "what people look for; a linear ranker",
            "`tastes`",
            "for people who click noisily it opens late: with 1,000 clients plan for 1,000 rounds",
            "the same",
        ],
        [
            "what people look for; few clients, or many searches of each",
            "`interpolation`",
            "worse than averaging where each client has few or noisy clicks",
            "nothing",
        ],
        [
            "what people look for; a network",
            "`fedper`",
            f"needs `ranker=mlp`; {beyond_fedper(data)}",
            "nothing; the last layer stays on the device",
        ],
        *_LABELS,
        ["two labels", "none was tested", two_labels_cost(data), ""],
        ["clicks, quantity", "none", "", ""],
        ["intents that are new in every query (`carry=0`)", "none for new queries", "", ""],
    ]
    return make_markdown(
        ["what differs", "remedy", "what it costs", "what it sends beyond the update"], rows, n_words=4
    )


_LABELS = (
    [
        "one label per client",
        "`data-sharing`",
        "a tenth of the clients' queries, documents and grades become known to everybody",
        "whole queries, once",
    ],
    [
        "one label per client, and documents must stay",
        "`synthetic-sharing`",
        ".01 to .02 of nDCG@10 against real queries",
        "sums over documents by grade, once; no noise protects them",
    ],
)


def two_labels_cost(data: Path) -> str:
    """Who loses more than the margin by plain averaging."""
    lost = [
        f"{user} users {format_signed(values[0])} ({name_part(part)})"
        for part, result in find(data, "figure4.6").items()
        for user, values in two_labels(result).items()
        if values[0] < -LITTLE
    ]
    margin = format_value(LITTLE)
    if not lost:
        return f"plain averaging: nobody's mean is lower by more than {margin} where it was measured"
    return f"plain averaging costs more than {margin}: {'; '.join(lost)}"


TABLES: Tables = {"differ-kinds": kinds, "differ-remedies": remedies}
