"""Charts and tables of docs/howto/differ.md: how clients differ, and what was measured to help.

A row of `benchmarks/differ.json` has what each remedy reached on each data set, from which means and tests are made.
Rows from before values were kept have means, standard errors and p instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student
from tables import USERS, Row, Tables, make_markdown, read, show_spread
from told import Case, join_words, tell_place

from hushrank.data.shapes import shape_named
from hushrank.data.synthetic import generate_folds, generate_wrapped
from hushrank.look.chart import ChartText, Line, line_chart
from hushrank.look.numbers import format_p, format_signed, format_value
from hushrank.metrics.significance import equivalence_test, paired_t_test
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
LEAST_GAP = 2.0  # standard errors between averaging and the ceiling. Why: a share of less is a share of chance
LEAST_CLOSED = 0.5  # of that gap, by the best remedy
LEVEL = 0.05
MARGIN = 0.002  # within which a remedy costs nothing
OTHERS = ("averaging", "local", "fedper")  # what remedies are tested against
NEEDED = OTHERS[:2]  # without a test against these nothing is said to hold
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
    "four-long": "with rounds=30000: four clients",
    "other-many-long": "with rounds=3000: other data (common .3, noise 1): 1,000 clients",
    "many-network": "with ranker=mlp: 1,000 clients",
    "private-network-1": "with ranker=mlp, server_rate=1.0: epsilon 4",
    "private-network-3": "with ranker=mlp, server_rate=3.0: epsilon 4",
    "private-network-10": "with ranker=mlp, server_rate=10.0: epsilon 4",
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
    return {row["user"]: complete(row) for row in found if row["metric"] == metric}


def complete(row: Row) -> Row:
    """With means and tests of what was kept; over the data sets that all remedies have."""
    values: dict[str, Mapping[str, float]] = {
        remedy: found["values"] for remedy, found in row["remedies"].items() if "values" in found
    }
    if not values:
        return row
    common = sorted(set.intersection(*(set(by_set) for by_set in values.values())), key=int)
    if not common:
        raise ValueError(f"{row['setting']}, {row['user']}: no data set has all of {', '.join(values)}. Run the rest.")
    each = {remedy: [by_set[one] for one in common] for remedy, by_set in values.items()}
    same = {}
    if len(common) > 1 and {"averaging", "tastes"} <= each.keys():
        same["equivalent_within_.002_p"] = equivalence_test(each["tastes"], each["averaging"], margin=MARGIN).p
    remedies = {
        remedy: {**summarise(remedy, each), "values": dict(zip(common, found, strict=True))}
        for remedy, found in each.items()
    }
    return {**row, **same, "data_sets": len(common), "remedies": remedies}


def summarise(remedy: str, each: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Mean, standard error, share of the gap and p, over data sets: {remedy: what it reached on each}."""
    ours, n = each[remedy], len(each[remedy])
    found: dict[str, Any] = {"mean": fmean(ours), "se": stdev(ours) / sqrt(n) if n > 1 else None}
    if {"averaging", "ceiling"} <= each.keys() and (gap := fmean(each["ceiling"]) - fmean(each["averaging"])):
        found["closed"] = (fmean(ours) - fmean(each["averaging"])) / gap
    tested = [other for other in OTHERS if other in each and other != remedy and n > 1]
    return found | {f"p against {other}": paired_t_test(ours, each[other]).p for other in tested}


def of_settings(data: Path, settings: Sequence[str], metric: str = QUALITY, titles: Sequence[str] = ()) -> str:
    """Remedies by user; of several settings titles and numbers of data sets stand in a first column."""
    lines = []
    for place, setting in enumerate(settings):
        rows = find_rows(data, setting, metric)
        for i, remedy in enumerate(r for r in NAMES if r in rows[USERS[0]]["remedies"]):
            title = f"{titles[place]} ({rows[USERS[0]]['data_sets']} data sets)" if titles and i == 0 else ""
            first = [title] if titles else []
            lines.append([*first, NAMES[remedy], *(describe_cell(rows[user], remedy) for user in USERS)])
    header = [*(["setting"] if titles else []), "remedy", *USERS]
    return make_markdown(header, lines, n_words=len(header) - len(USERS))


def describe_cell(row: Row, remedy: str) -> str:
    """Mean and standard error; below them the share of the gap that is closed, p against averaging and local training.

    Why the ceiling has no p against local training: with one client for each intent they are the same.
    """
    found = row["remedies"][remedy]
    shown = show_spread(found["mean"], found["se"])
    if remedy == "averaging":
        return shown
    said = [f"p\u00a0{format_p(found['p against averaging'])}"] if "p against averaging" in found else []
    if remedy != "ceiling" and has_gap(row):
        closed = format_value(found["closed"], decimals=2).replace("-", "\u2212")
        said.insert(0, f"closed\u00a0{closed}")
    if remedy != "ceiling" and "p against local" in found:
        said.append(f"local\u00a0p\u00a0{format_p(found['p against local'])}")
    return f"{shown}<br>{', '.join(said)}" if said else shown


def has_gap(row: Row) -> bool:
    """Whether the ceiling is so far above averaging that a share of it says something."""
    if row["metric"] != QUALITY or not {"averaging", "ceiling"} <= row["remedies"].keys():
        return False
    gap, error = find_gap(row)
    return error is not None and gap > LEAST_GAP * error


def find_gap(row: Row) -> tuple[float, float | None]:
    """How far the ceiling is above averaging, and the standard error over data sets: of a row without values from its
    p, as t is the gap over the error."""
    averaging, ceiling = (row["remedies"][name] for name in ("averaging", "ceiling"))
    gap, n = ceiling["mean"] - averaging["mean"], row["data_sets"]
    if n < 2:
        return gap, None
    if "values" in ceiling:
        return gap, stdev(value - averaging["values"][one] for one, value in ceiling["values"].items()) / sqrt(n)
    return gap, abs(gap) / float(student.isf(ceiling["p against averaging"] / 2, n - 1))


CLAIMED = {  # {setting at c = .5: in words}; no setting of a remedy was chosen on any of these data sets
    "four": "four clients",
    "many": "1,000 clients, 20 groups",
    "private": "privacy, 4 groups",
    "private-many": "privacy, 20 groups",
    "other-four": "other data, four clients",
    "other-many": "other data, 1,000 clients",
    "network": "network, four clients",
    "network-linear": "linear, as the network",
}


FEDPERS = {  # {setting: settings with FedPer's networks after as many searches}. Why several: the best of them counts
    "network-linear": ("network",),
    "many": ("many-network",),
    "private": tuple(f"private-network-{rate}" for rate in (1, 3, 10)),
}


def compare_all(data: Path, setting: str, user: str, row: Row) -> dict[str, Case]:
    """{other remedy: how far `tastes` is above it, and p}; a linear ranker has FedPer's network beside it."""
    if "tastes" not in row["remedies"]:
        return {}
    compared = {other: compare_with(row, other) for other in OTHERS if other in row["remedies"]}
    rows = [find_rows(data, each).get(user) for each in FEDPERS.get(setting, ())]
    if there := [each for each in rows if each is not None]:
        best = max(there, key=lambda each: each["remedies"]["fedper"]["mean"])
        compared["fedper"] = compare_with(row, "fedper", best)
    return compared


def claims(data: Path) -> str:
    """Whether `tastes` beats averaging, local training and FedPer, and closes half of the gap."""
    lines = []
    for setting, words in CLAIMED.items():
        for i, (user, row) in enumerate(find_rows(data, setting).items()):
            compared = compare_all(data, setting, user, row)
            cells = [show_difference(*compared[other]) if other in compared else "–" for other in OTHERS]
            title = f"{words} ({row['data_sets']} data sets)" if i == 0 else ""
            lines.append([title, user, *show_gap(row), *cells, judge(row, compared)])
    header = ["setting", "user", "gap", "closed", "over averaging", "over local training", "over `fedper`", "holds"]
    return make_markdown(header, lines, n_words=2)


def verdicts(data: Path) -> str:
    """In words: for whom it holds in each setting, and what fails for whom it does not."""
    lines = []
    for setting, words in CLAIMED.items():
        rows = find_rows(data, setting)
        judged = {user: judge(row, compare_all(data, setting, user, row)) for user, row in rows.items()}
        failed = {user: tell_failures(data, setting, user, row) for user, row in rows.items() if judged[user] != "yes"}
        rest = [f"{user} users: {'; '.join(whys)}" for user, whys in failed.items()]
        said = f"**{words[0].upper()}{words[1:]}: {tell_for_whom(judged)}.**"
        lines.append(" ".join(["-", said, *(f"{why[0].upper()}{why[1:]}." for why in rest)]))
    return "\n".join(lines)


def tell_for_whom(judged: Mapping[str, str]) -> str:
    """{user: verdict}"""
    held = [user for user, verdict in judged.items() if verdict == "yes"]
    if held:
        return f"holds for {'all' if len(held) == len(USERS) else join_words(held)} users"
    if "no" in judged.values():
        return "does not hold"
    return "not tested" if judged else "not run"


_IN_WORDS = {"averaging": "averaging", "local": "local training", "fedper": "`fedper`"}


def tell_failures(data: Path, setting: str, user: str, row: Row) -> list[str]:
    """What is not as it should be."""
    whys = []
    compared = compare_all(data, setting, user, row)
    if has_gap(row) and compared and row["remedies"]["tastes"]["closed"] < LEAST_CLOSED:
        closed = format_value(row["remedies"]["tastes"]["closed"], decimals=2).replace("-", "\u2212")
        whys.append(f"{closed} of the gap is closed")
    whys += [f"not tested against {_IN_WORDS[other]}, which was not run" for other in NEEDED if other not in compared]
    for other, (difference, p) in compared.items():
        if difference <= 0 or p is None or p >= LEVEL:
            whys.append(f"{tell_place(difference, p)} {_IN_WORDS[other]}, {show_difference(difference, p)}")
    if "ceiling" in row["remedies"] and not has_gap(row):
        whys.append("the ceiling is not above averaging by two standard errors, so no share is asked")
    return whys


def compare_with(row: Row, other: str, theirs: Row | None = None, *, ours: str = "tastes") -> Case:
    """How far a remedy is above another one, perhaps of another setting, and p; None where no test can be made."""
    mine, beside = row["remedies"][ours], (theirs or row)["remedies"][other]
    if theirs is None or "values" not in mine or "values" not in beside:
        return mine["mean"] - beside["mean"], mine.get(f"p against {other}") if theirs is None else None
    common = [one for one in mine["values"] if one in beside["values"]]
    if len(common) < 2:
        return mine["mean"] - beside["mean"], None
    test = paired_t_test(*([each["values"][one] for one in common] for each in (mine, beside)))
    return test.mean_difference, test.p


def show_difference(difference: float, p: float | None) -> str:
    tested = "not tested" if p is None else f"p\u00a0{format_p(p)}"
    return f"{format_signed(difference)} ({tested})"


def show_gap(row: Row) -> list[str]:
    """The gap with its standard error, and the share of it that is closed."""
    if not {"averaging", "ceiling", "tastes"} <= row["remedies"].keys():
        return ["–", "–"]
    gap, error = find_gap(row)
    shown = f"{format_signed(gap)}{'' if error is None else f' ± {format_value(error)}'}"
    closed = format_value(row["remedies"]["tastes"]["closed"], decimals=2).replace("-", "\u2212")
    return [shown, closed if has_gap(row) else "no gap"]


def judge(row: Row, compared: Mapping[str, Case]) -> str:
    """Above each of the others with p below .05, and half of the gap closed where there is one.

    What was not compared with averaging and local training by a test is not tested, whatever it was compared with.
    """
    if compared and has_gap(row) and row["remedies"]["tastes"]["closed"] < LEAST_CLOSED:
        return "no"
    if any(difference <= 0 or (p is not None and p >= LEVEL) for difference, p in compared.values()):
        return "no"
    is_tested = all(other in compared for other in NEEDED) and all(p is not None for _, p in compared.values())
    return "yes" if is_tested else "not tested"


def alike(data: Path) -> str:
    """Clients that do not differ."""
    lines = []
    for setting, title in (("alike-four", "four clients"), ("alike-many", "1,000 clients")):
        rows = find_rows(data, setting)
        for i, user in enumerate(USERS):
            row = rows[user]
            means = [format_value(row["remedies"][r]["mean"], decimals=4) for r in ("averaging", "tastes")]
            named = f"{title} ({row['data_sets']} data sets)" if i == 0 else ""
            lines.append([named, user, *means, format_p(row["equivalent_within_.002_p"])])
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
    "differ-claims": claims,
    "differ-verdicts": verdicts,
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
