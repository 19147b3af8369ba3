"""Tables of docs/findings.md about clients that differ [thesis, Chapter 4].

`benchmarks/chapter4` has the JSON of `hushrank reproduce` of each part that was run: PART.NAME.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from joined_claims import write_claims
from judged_again import judge_again
from scipy.stats import ttest_ind_from_stats
from tables import USERS, Row, Tables, make_markdown, read, show_spread
from told import tell_cases

from hushrank.look.numbers import format_p, format_signed, format_value
from hushrank.metrics.significance import paired_t_test

PARTS = {  # {part: (its name, rounds)} in the order of the page
    "three-grades": ("MQ2008, linear", 10_000),
    "three-grades-network": ("MQ2008, network", 10_000),
    "mslr-like": ("generated `mslr-like` of 500 queries, linear", 10_000),
    "mslr-like-network": ("generated `mslr-like` of 500 queries, network", 10_000),
    "intents": ("generated `intent-change-like`, linear", 10_000),
    "intents-network": ("generated `intent-change-like`, network", 10_000),
}
TYPES = {"thesis.figure4.3": "1", "thesis.figure4.6": "2", "thesis.figure4.8": "3", "thesis.figure4.9": "4"}
OFFLINE, ONLINE = "offline/nDCG@10", "online/nDCG@10"
N_FOLDS = 5  # of every data set that parts were run on
MEASURES = {OFFLINE: "", "personal/nDCG@10": ", own labels"}


def list_parts(
    data: Path, chapter: str = "chapter4", parts: Mapping[str, tuple[str, int]] = PARTS
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(part, result), table by table."""
    found = [
        (file.name.partition(".")[0], judge_again(json.loads(file.read_text(encoding="utf-8"))))
        for file in (data / chapter).glob("*.json")
    ]
    order = list(parts)
    yield from sorted(found, key=lambda pair: (pair[1]["number"].split()[1], pair[1]["name"], order.index(pair[0])))


def claims(data: Path, chapter: str = "chapter4", parts: Mapping[str, tuple[str, int]] = PARTS) -> str:
    """Every claim that was judged, on everything that it was run on."""
    return write_claims(list_parts(data, chapter, parts), parts)


def gaps(data: Path) -> str:
    """nDCG@10 of the last ranker and of the lists shown: the control, clients that differ, their difference and p."""
    header = ["type", "run on", "user", "control", "clients that differ", "difference", "online: control", "difference"]
    found = [
        (part, result, *each)
        for part, result in list_parts(data)
        if result["name"] in TYPES
        for each in match_controls(result["rows"])
    ]
    rows = []
    for part, result, words, control, other in found:
        cells = [show_spread(row["ours"], row["std"]) for row in (control, other)]
        seen = [find_online(result["rows"], row) for row in (control, other)] if control["metric"] == OFFLINE else []
        online = [format_value(seen[0]["ours"]), show_gap(*seen, n_rows=len(found))] if all(seen) and seen else ["", ""]
        first = [f"{TYPES[result['name']]}{words}", PARTS[part][0], control["clicks"]]
        rows.append([*first, *cells, show_gap(control, other, n_rows=len(found)), *online])
    return make_markdown(header, rows, n_words=3)


def show_gap(control: Row, other: Row, *, n_rows: int) -> str:
    """The mean difference with p times the rows of the table: of a paired test where the trainings' values are kept,
    otherwise, online, of Welch's, from the two means, spreads and numbers of trainings.

    Why not offline: folds make both sides of a pair go up and down together, so that Welch's test errs towards 1.
    """
    loss = format_signed(other["ours"] - control["ours"], decimals=1 if control["metric"] == ONLINE else 3)
    ours, theirs = (
        {(each["fold"], each["repeat"]): each["value"] for each in row.get("values", ())} for row in (other, control)
    )
    if not ours or ours.keys() != theirs.keys():
        if control["metric"] != ONLINE:
            return loss
        test = ttest_ind_from_stats(
            *(row[key] for row in (other, control) for key in ("ours", "std", "n")), equal_var=False
        )
        return f"{loss} (u\u00a0{format_p(min(1.0, n_rows * float(test.pvalue)))})"
    test = paired_t_test([ours[each] for each in ours], [theirs[each] for each in ours])
    return f"{loss} (p\u00a0{format_p(min(1.0, n_rows * test.p))})"


def find_online(rows: list[Row], row: Row) -> Row | None:
    """What the same clients saw meanwhile; None where that was not measured."""
    same = ("clicks", "distribution", "partition", "ranker", "behaviour", "data")
    found = [each for each in rows if each["metric"] == ONLINE and all(each.get(k) == row.get(k) for k in same)]
    return next((each for each in found if each["ours"] is not None), None)


def match_controls(rows: list[Row]) -> Iterator[tuple[str, Row, Row]]:
    """(what differs in words, control, clients that differ) of every user and measure."""
    ours = [row for row in rows if row["ours"] is not None and row["metric"] in MEASURES]
    for row in (row for row in ours if row["distribution"] == "non-iid"):
        same = ("clicks", "metric", "ranker", "behaviour")
        near = [r for r in ours if r["distribution"] == "iid" and all(r.get(k) == row.get(k) for k in same)]
        name = str(row.get("partition") or row.get("behaviour") or "")
        exact = [r for r in near if r.get("partition") == row.get("partition")]
        for control in (exact or near)[:1] if exact or not name.startswith("labels-1") else ():
            yield f"{', ' * bool(name)}{name}{MEASURES[row['metric']]}", control, row


WAYS = {  # {way to weigh updates: in words}, as in benchmarks/quantity.py
    "equal": "four searches each, weighed by searches",
    "by searches": "1, 3, 5, 7 searches, weighed by searches",
    "alike": "1, 3, 5, 7 searches, weighed alike",
    "by step": "1, 3, 5, 7 searches, weighed so that clients move the ranker alike",
    "equal, as if unequal": "four searches each, weighed as if they made 1, 3, 5, 7",
}


def quantity(data: Path) -> str:
    """By how much clients with different intents gain or lose over those with equal searches: all, and each."""
    found = read(data, "quantity")["ways"]
    rows = []
    for way, words in WAYS.items():
        if way in found:
            lost = [show_loss(found, way, user, "own") for user in USERS]
            each = [show_mean(found, way, client) for client in "1234"]
            n_trainings = len(found[way][USERS[0]]["own"])
            rows.append([words, str(n_trainings), *lost, *each])
    return make_markdown(["", "trainings", *USERS, *(f"client {n}" for n in "1234")], rows)


def pair_with_equal(found: dict[str, Any], way: str, user: str, metric: str) -> tuple[list[float], list[float]]:
    """(ours, those of equal searches) of the trainings that both have."""
    ours, equal = (found[each][user][metric] for each in (way, "equal"))
    both = [training for training in ours if training in equal]
    return [ours[training] for training in both], [equal[training] for training in both]


def show_loss(found: dict[str, Any], way: str, user: str, metric: str) -> str:
    """The mean, or the mean difference from equal searches with p of a paired test."""
    ours, equal = pair_with_equal(found, way, user, metric)
    if way == "equal":
        return format_value(fmean(ours), decimals=3)
    test = paired_t_test(ours, equal)
    return f"{format_signed(test.mean_difference)} (p\u00a0{format_p(test.p)})"


def tell_quantity(data: Path) -> str:
    """Way by way, beside equal searches: for whom a loss is shown, and what the client with the most searches loses."""
    found = read(data, "quantity")["ways"]
    lines = []
    for way in (way for way in WAYS if way in found and way != "equal"):
        tests = {user: paired_t_test(*pair_with_equal(found, way, user, "own")) for user in USERS}
        cases = {user: (test.mean_difference, test.p) for user, test in tests.items()}
        most = show_mean(found, way, "4")
        n = len(found[way][USERS[0]]["own"])
        words = f"{WAYS[way][0].upper()}{WAYS[way][1:]} ({n} trainings)"
        lines.append(f"- {words}: {tell_cases(cases, 'equal searches')}; client 4 {most}.")
    return "\n".join(lines)


def show_mean(found: dict[str, Any], way: str, client: str) -> str:
    """Over users: a client's own nDCG@10, or its difference from equal searches."""
    pairs = [pair_with_equal(found, way, user, client) for user in USERS]
    ours, equal = (fmean(value for pair in pairs for value in pair[side]) for side in (0, 1))
    return format_value(ours, decimals=3) if way == "equal" else format_signed(ours - equal)


def commands(data: Path, chapter: str = "chapter4") -> str:
    """The commands that gave the kept results, from what these record; one for all results of the same options."""
    groups: dict[str, list[str]] = {}
    for _, result in list_parts(data, chapter):
        groups.setdefault(tell_options(result), []).append(result["name"])
    return "\n".join(f"    hushrank reproduce {' '.join(names)}{options}" for options, names in groups.items())


def tell_options(result: Mapping[str, Any]) -> str:
    """`--data MQ2008 --repeats 2 --only ranker=linear`"""
    where = "" if result["data"]["is_stand_in"] else f" --data {result['data']['name'].upper()}"
    changes, only = (
        "".join(f" --{option} {key}={show_setting(value)}" for key, value in result[name].items())
        for option, name in (("set", "changes"), ("only", "only"))
    )
    return f"{where} --repeats {count_repeats(result)}{changes}{only}"


def count_repeats(result: Mapping[str, Any]) -> int:
    """Of the rows' values; where these were not kept, of their number, which is that of folds and repeats."""
    ran = [row for row in result["rows"] if row["ours"] is not None]
    kept = [{each["repeat"] for each in row["values"]} for row in ran if row.get("values")]
    n_folds = len(result["changes"].get("folds") or range(N_FOLDS))
    return max(map(len, kept)) if kept else max(row["n"] for row in ran) // n_folds


def show_setting(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"'{text}'" if " " in text or "[" in text else text


TABLES: Tables = {
    "chapter4-claims": claims,
    "chapter4-gaps": gaps,
    "chapter4-quantity": quantity,
    "chapter4-quantity-said": tell_quantity,
    "chapter4-commands": commands,
}
