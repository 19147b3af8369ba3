"""Tables of docs/data.md: what sharing data brings to clients that differ, and what it betrays."""

from __future__ import annotations

from pathlib import Path

from tables import USERS, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_p, format_signed, format_value

ARMS = {  # as the page calls them
    "none": "`none`",
    "data-sharing": "`data-sharing`",
    "data-sharing, no warm-up": "`data-sharing`, `warm_up` = 0",
    "data-sharing, warm-up alone": "`data-sharing`, `alpha` = 0",
    "synthetic-sharing": "`synthetic-sharing`",
    "synthetic-sharing, no warm-up": "`synthetic-sharing`, `warm_up` = 0",
    "synthetic-sharing, warm-up alone": "`synthetic-sharing`, `alpha` = 0",
    "synthetic-sharing, 500 queries": "`synthetic-sharing`, `synthetic_queries` = 500",
    "clients alike": "`none`, `control` = true",
}
SEEN = {
    "data-sharing": "the shared queries of `data-sharing`",
    "synthetic-sharing": "the synthetic queries",
    "synthetic-sharing, 500 queries": "500 synthetic queries",
    "synthetic-sharing, highest grade": "the synthetic queries; documents of grade 2",
}


def quality(data: Path) -> str:
    found = {(row["arm"], row["user"]): row for row in read(data, "sharing")["quality"]}
    rows = [
        [name, *(show_spread(found[arm, user]["mean"], found[arm, user]["error"]) for user in USERS)]
        for arm, name in ARMS.items()
    ]
    return make_markdown(["`remedy`", *USERS], rows)


def differences(data: Path) -> str:
    found = read(data, "sharing")["differences"]
    pairs = dict.fromkeys((row["ours"], row["theirs"]) for row in found)
    rows = []
    for pair in pairs:
        of_user = {row["user"]: row for row in found if (row["ours"], row["theirs"]) == pair}
        cells = [f"{format_signed(of_user[u]['difference'])} (p {format_p(of_user[u]['p'])})" for u in USERS]
        rows.append([" against ".join(ARMS[arm] for arm in pair), *cells])
    return make_markdown(["difference", *USERS], rows)


def observers(data: Path) -> str:
    leaks = read(data, "sharing")["leaks"]
    rows = [
        [name, show_spread(*leaks["observer"][arm]["auc"]), show_spread(*leaks["observer"][arm]["found"])]
        for arm, name in SEEN.items()
    ]
    sizes = leaks["documents_by_client"]
    rows += [
        [f"the sums of the client with grade {grade} ({sizes[grade]:,} documents)", format_value(auc), ""]
        for grade, auc in enumerate(leaks["auc_of_sums_by_client"])
    ]
    return make_markdown(["the observer has", "area (chance .5)", "found (chance .05)"], rows)


TABLES: Tables = {"sharing-quality": quality, "sharing-differences": differences, "sharing-leaks": observers}
