"""Charts and tables of docs/howto/differ.md: how clients differ, and what was measured to help."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tables import USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.data.shapes import shape_named
from hushrank.data.synthetic import generate_folds, generate_wrapped
from hushrank.look.chart import ChartText, Line, line_chart
from hushrank.look.numbers import format_p, format_value
from hushrank.partitions.division import Skew
from hushrank.partitions.mixture import Partition
from hushrank.partitions.named import find_parts
from hushrank.reports.skew import skew_figure
from hushrank.reports.summary import RunSkew

QUALITY, ONLINE = "personal/nDCG@10", "online/nDCG@10"
GRADED = "mq2008-like:n_queries=100"
JUDGED = "intent-change-like:n_queries=20,shortest=50,mean_length=100,longest=200"
DIVIDED = {  # {partition: (data, clients)}, small enough to be made whenever pages are
    "intents": (JUDGED, 4),
    "labels-1": (GRADED, 3),
    "labels-2": (GRADED, 3),
    "clicks": (GRADED, 3),
    "quantity": (GRADED, 5),
}
LEAST_GAP = 0.01  # between averaging and the ceiling. Why: a share of less is a share of chance
NAMES = {  # of remedies, as the page calls them
    "averaging": "averaging (`none`)",
    "local": "local training",
    "ceiling": "ceiling",
    "interpolation": "`interpolation`",
    "control-variates": "`control-variates`",
    "fedper": "`fedper`",
    "tastes": "`tastes`",
}
SETTINGS = {  # {name of a block: how the setting begins in the measurements}
    "four": "four clients",
    "many": "1,000 clients, 20 intents",
    "private": "epsilon 4 (sound",
    "private-many": "epsilon 4, 20 intents",
    "other-four": "other data (common .3, noise 1): four clients",
    "other-many": "other data (common .3, noise 1): 1,000 clients",
    "carry-0-four": "carry 0: four clients",
    "carry-0-many": "carry 0: 1,000 clients",
    "carry-1-four": "carry 1: four clients",
    "carry-1-many": "carry 1: 1,000 clients",
    "network": "network of 64 units",
    "network-linear": "linear, as the network",
    "alike-four": "clients alike (control): four clients",
    "alike-many": "clients alike (control): 1,000 clients",
}


def measure_skew(partition: str, **options: object) -> Skew:
    """As a run of the first fold does."""
    data, n_clients = DIVIDED[partition]
    shape = shape_named(data)
    fold = generate_folds(generate_wrapped(shape), shape.n_parts)[0]
    divided = Partition(find_parts(partition, options))
    (skew,) = divided.measure(divided.whole_of(fold, 0, n_clients=n_clients, n_grades=shape.n_grades))
    return skew


def skew_picture(data: Path, partition: str) -> str:
    """The chart that a run's report has, and what the skew is."""
    del data
    skew = measure_skew(partition)
    same = RunSkew(skew.name, skew.value, skew.measure, skew.unit, skew.rows)
    figure = skew_figure(same, name=f"skew-{partition}")
    return f"{figure}\n\nSkew {format_value(skew.value)}: the {skew.measure}."


def find_rows(data: Path, setting: str, metric: str = QUALITY) -> dict[str, Row]:
    """{user: row} of a setting."""
    found = [row for row in read(data, "differ")["rows"] if row["setting"].startswith(SETTINGS[setting])]
    return {row["user"]: row for row in found if row["metric"] == metric}


def of_settings(data: Path, settings: Sequence[str], metric: str = QUALITY, titles: Sequence[str] = ()) -> str:
    """Remedies by user; where there are several settings, their titles stand in a first column."""
    lines = []
    for place, setting in enumerate(settings):
        rows = find_rows(data, setting, metric)
        for i, remedy in enumerate(r for r in NAMES if r in rows[USERS[0]]["remedies"]):
            first = [titles[place] if i == 0 else ""] if titles else []
            lines.append([*first, NAMES[remedy], *(describe_cell(rows[user], remedy) for user in USERS)])
    header = [*(["setting"] if titles else []), "remedy", *USERS]
    return make_markdown(header, lines, n_words=len(header) - len(USERS))


def describe_cell(row: Row, remedy: str) -> str:
    """Mean and standard error; below them the share of the gap that is closed, and p against averaging."""
    found = row["remedies"][remedy]
    shown = show_spread(found["mean"], found["se"])
    if remedy == "averaging":
        return shown
    said = [f"p\u00a0{format_p(found['p against averaging'])}"]
    if remedy != "ceiling" and has_gap(row):
        closed = format_value(found["closed"], decimals=2).replace("-", "\u2212")
        said.insert(0, f"closed\u00a0{closed}")
    return f"{shown}<br>{', '.join(said)}"


def has_gap(row: Row) -> bool:
    """Whether the ceiling is so far above averaging that a share of it says something."""
    remedies = row["remedies"]
    is_share = row["metric"] == QUALITY and "ceiling" in remedies
    return is_share and remedies["ceiling"]["mean"] - remedies["averaging"]["mean"] >= LEAST_GAP


def alike(data: Path) -> str:
    """Clients that do not differ."""
    lines = []
    for setting, title in (("alike-four", "four clients"), ("alike-many", "1,000 clients")):
        rows = find_rows(data, setting)
        for i, user in enumerate(USERS):
            row = rows[user]
            means = [format_value(row["remedies"][r]["mean"], decimals=4) for r in ("averaging", "tastes")]
            lines.append([title if i == 0 else "", user, *means, format_p(row["equivalent_within_.002_p"])])
    return make_markdown(["", "user", NAMES["averaging"], NAMES["tastes"], "p, equal within .002"], lines, n_words=2)


def opening_chart(data: Path) -> str:
    """Clients' own rankers and the shared one, on the clients' own labels, while tastes open."""
    rows = read(data, "differ_opening")["rows"]
    rounds = tuple(float(row["round"]) for row in rows)
    lines = [
        Line(name, rounds, tuple(row[key] for row in rows), has_dots=True)
        for key, name in (("own", "own rankers"), ("shared", "shared ranker"))
    ]
    text = ChartText(
        "nDCG@10 of the clients' own rankers and of the shared ranker over rounds, informational users",
        "rounds",
        "test nDCG@10 by the clients' own labels",
    )
    return line_chart(lines, text, name="differ-opening")


BOTH = ("four clients", "1,000 clients, 20 groups")
TABLES: Tables = {
    **{f"differ-skew-{partition}": partial(skew_picture, partition=partition) for partition in DIVIDED},
    "differ-four": partial(of_settings, settings=["four"]),
    "differ-many": partial(of_settings, settings=["many"]),
    "differ-private": partial(of_settings, settings=["private", "private-many"], titles=["4 groups", "20 groups"]),
    "differ-carry-0": partial(of_settings, settings=["carry-0-four", "carry-0-many"], titles=BOTH),
    "differ-carry-0-online": partial(
        of_settings, settings=["carry-0-four", "carry-0-many"], titles=BOTH, metric=ONLINE
    ),
    "differ-carry-1": partial(of_settings, settings=["carry-1-four", "carry-1-many"], titles=BOTH),
    "differ-other": partial(of_settings, settings=["other-four", "other-many"], titles=BOTH),
    "differ-network": partial(
        of_settings, settings=["network", "network-linear"], titles=["network, 64 units", "linear"]
    ),
    "differ-alike": alike,
    "differ-opening": opening_chart,
}
