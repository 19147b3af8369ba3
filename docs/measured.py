"""Tables of docs/findings.md and of other pages, from the measurements in docs/benchmarks.

A page's words are written by hand. Between a line `<!-- measured: NAME -->` and the next `<!-- end -->` stands what
`TABLES[NAME]` makes of the measurements; `docs/generate.py` writes it there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import measured_attacks
import measured_audit
import measured_chapter4
import measured_chapter4_said
import measured_chapter5
import measured_chapter6
import measured_differ
import measured_differ_kinds
import measured_differ_said
import measured_fedps
import measured_forget
import measured_leaks
import measured_live
import measured_noise
import measured_personal
import measured_private
import measured_published
import measured_queries
import measured_rules
import measured_sharing
import measured_sum
from shortened import LEVEL, VERDICTS, shorten_test
from tables import DATA, USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_count, format_p, format_signed, format_value
from hushrank.reproduce.literature import find_result
from hushrank.reproduce.papers.foltr_es_table2 import make_table

_BLOCK = re.compile(r"(^<!-- measured: ([\w-]+) -->\n).*?(^<!-- end -->$)", re.MULTILINE | re.DOTALL)
NAMES = {  # of methods, as the page calls them
    "pdgd": "PDGD, central",
    "fpdgd": "FPDGD",
    "fpdgd, server rate 30": "FPDGD, server rate 30",
    "foltr-es linear, not privatised": "FOLtR-ES, linear, p = 1",
    "foltr-es linear, p = .9": "FOLtR-ES, linear, p = .9",
    "foltr-es mlp 10, p = .9": "FOLtR-ES, two-layer, p = .9",
    "mse": "MSE, from labels",
    "ranking-svm": "RankingSVM, from labels",
    "lambdamart": "LambdaMART, from labels",
}


def fill_page(text: str, data: Path = DATA) -> str:
    """The page with every table made anew."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{TABLES[found[2]](data)}\n\n{found[3]}", text)


# Rerun results
METHODS = {
    ("foltr-es", "linear"): "FOLtR-ES, linear",
    ("foltr-es", "mlp"): "FOLtR-ES, two-layer",
    ("mse", "linear"): NAMES["mse"],
    ("ranking-svm", "linear"): NAMES["ranking-svm"],
}


def table3(data: Path) -> str:
    """Ours beside Table 3 of FOLtR-ES."""
    found = {
        (row["method"], row["ranker"], row["clicks"], row["split"]): row
        for row in read(data, "reproduced/foltr-es.table3")["rows"]
    }
    header = ["ranker", "user", "train, ours", "printed (ours higher by)", "test, ours", "printed (ours higher by)"]
    rows = [
        [name if user == USERS[0] else "", user, *(c for s in ("train", "test") for c in beside(found[*key, user, s]))]
        for key, name in METHODS.items()
        for user in USERS
    ]
    return make_markdown(header, rows, n_words=2)


def beside(row: Row) -> tuple[str, str]:
    printed = f"{format_value(row['published'])} ({format_signed(row['difference'])})"
    return show_spread(row["ours"], row["std"]), printed


def list_reproduced(data: Path) -> list[dict[str, Any]]:
    """Every rerun result, paper by paper, tables first; Table 2 of FOLtR-ES is computed."""
    table = find_result("foltr-es.table2")
    exact = {"name": table.name, "aliases": [], "shows": table.shows, "rows": [], "findings": make_table()["findings"]}
    found = [read(data, f"reproduced/{file.stem}") for file in (data / "reproduced").glob("*.json")]
    return sorted(
        [exact, *found], key=lambda result: (result["name"].split(".")[0], "figure" in result["name"], result["name"])
    )


def claims(data: Path) -> str:
    """Every claim of every rerun result, with its verdict and the test in short."""
    header = ["claim", "verdict", "how it was tested"]
    parts = []
    for result in list_reproduced(data):
        rows = [[claim["claim"], VERDICTS[claim["holds"]], shorten_test(claim)] for claim in result["findings"]]
        parts += [introduce(result), make_markdown(header, rows, n_words=3)]
    return "\n\n".join(parts)


def introduce(result: Row) -> str:
    """What a result is called and asks, on how many trainings ours stands, and where the paper's stands."""
    names = " = ".join(f"`{name}`" for name in (result["name"], *result["aliases"]))
    if not result["rows"]:
        return f"**{names}** {result['shows']}. Exact: nothing is drawn."
    elsewhere = [name for name in result["data"]["wanted"].split(", ") if name != result["data"]["name"]]
    papers = f"; the paper's data: {', '.join(elsewhere)}" if elsewhere == result["data"]["wanted"].split(", ") else ""
    n = max(row["n"] for row in result["rows"])
    return f"**{names}** {result['shows']}. {n} trainings for each case{papers}."


def count_claims(data: Path) -> str:
    verdicts = [claim["holds"] for result in list_reproduced(data) for claim in result["findings"]]
    return (
        f"Of {len(verdicts)} claims **{verdicts.count(True)} held, {verdicts.count(False)} did not, and "
        f"{verdicts.count(None)} could not be judged** on MQ2008."
    )


def table2(data: Path) -> str:  # noqa: ARG001 - computed, not measured
    """Epsilon of one answer, exactly; the printed numbers are the same to their digits."""
    rows = make_table()["rows"]
    chances = list(dict.fromkeys(row["p"] for row in rows))
    cells = {(row["clicks"], row["p"]): row for row in rows}
    header = ["user", *(f"p = {format_value(p, decimals=2)}" for p in chances)]
    return make_markdown(
        header,
        [
            [user, *(f"{cells[user, p]['ours']:.2f} ({cells[user, p]['published']:.2f})" for p in chances)]
            for user in USERS
        ],
    )


def printed_elsewhere(data: Path) -> str:
    """Rows outside Table 3 that a paper gives a number for."""
    rows = [
        [f"`{result['name']}`", f"{NAMES[row['method']]}, batches of {row['batch']}", row["clicks"], *beside(row)]
        for result in list_reproduced(data)
        if result["name"] != "foltr-es.table3"
        for row in result["rows"]
        if row["published"] is not None
    ]
    return make_markdown(
        ["result", "method", "user", "test nDCG@10, ours", "printed (ours higher by)"], rows, n_words=3
    )


def antithetic(data: Path) -> str:
    """How much higher MaxRR is with antithetic perturbations, on the way."""
    rows = read(data, "antithetic")["rows"]
    steps = list(dict.fromkeys(row["n_interactions"] for row in rows))
    cells = {(row["clicks"], row["n_interactions"]): describe_lead(row) for row in rows}
    return make_markdown(["user", *map(format_count, steps)], [[u, *(cells[u, n] for n in steps)] for u in USERS])


def describe_lead(row: Row) -> str:
    """The level, and the lead, bold where it is significant."""
    level, lead = format_value(row["antithetic"]), format_signed(row["difference"])
    if row["n_interactions"] == 0:
        return level
    return f"{level} (**{lead}**)" if row["p"] < LEVEL else f"{level} ({lead})"


# Methods beside each other
def methods(data: Path) -> str:
    found = {(row["method"], row["clicks"]): row for row in read(data, "methods")["rows"]}
    names = list(dict.fromkeys(name for name, _ in found))
    header = ["method", *(f"nDCG@10, {user}" for user in USERS), *(f"MaxRR, {user}" for user in USERS)]
    rows = [
        [
            NAMES[name],
            *(show_spread(found[name, user]["offline/nDCG@10"], found[name, user]["std"]) for user in USERS),
            *(format_value(found[name, user]["offline/MaxRR"]) for user in USERS),
        ]
        for name in names
    ]
    return make_markdown(header, rows + [describe_labels(row) for row in read(data, "labels")["rows"]])


def describe_labels(row: Row) -> list[str]:
    """A ranker trained on labels is the same for every user."""
    same = show_spread(row["offline/nDCG@10"], row["std"])
    return [NAMES[row["method"]], same, same, same, *(format_value(row[f"offline/MaxRR {u}"]) for u in USERS)]


def method_pairs(data: Path) -> str:
    """Differences of methods that met the same queries."""
    rows = read(data, "method_pairs")["rows"]
    cells = {(row["method"], row["against"], row["clicks"]): row for row in rows}
    pairs = list(dict.fromkeys((method, against) for method, against, _ in cells))
    lines = [
        [NAMES[ours], NAMES[theirs], *(describe_pair(cells[ours, theirs, u]) for u in USERS)] for ours, theirs in pairs
    ]
    return make_markdown(["method", "less", *USERS], lines, n_words=2)


def describe_pair(row: Row) -> str:
    return f"{format_signed(row['difference'], decimals=4)} (p {format_p(row['p'])})"


def server_steps(data: Path) -> str:
    """FPDGD with a server step, less central PDGD."""
    rows = read(data, "server_steps")["rows"]
    by_user = {user: [row for row in rows if row["user"] == user] for user in USERS}
    header = [
        "user",
        "chosen in each fold, against central as published",
        "against central, chosen in each fold",
        "chosen once, against central as published",
        "against central with rate .03, chosen once",
    ]
    return make_markdown(header, [[user, *map(describe_interval, found)] for user, found in by_user.items()])


def describe_interval(row: Row) -> str:
    difference, low, high = (format_signed(x, decimals=4) for x in (row["difference"], *row["interval"]))
    return f"{difference} ({low} to {high})"


def speed(data: Path) -> str:
    """Evolution strategies on a processor and on a GPU."""
    known = {row["name"]: row for row in read(data, "published_speed")["side_by_side"]["rows"]}
    header = ["benchmark", "per CPU-second", "times the published code, side by side", "per second, one H200"]
    rows = [
        [
            f"`{row['name']}`",
            format_count(row["per_cpu_second"]),
            "{ratio} ({spread[0]} to {spread[1]})".format(**known[row["name"]]),
            format_count(row["gpu_per_second"]),
        ]
        for row in read(data, "evolution_speed")["rows"]
    ]
    return make_markdown(header, rows)


TABLES: Tables = {
    "table2": table2,
    "table3": table3,
    "count-claims": count_claims,
    "claims": claims,
    "printed-elsewhere": printed_elsewhere,
    "antithetic": antithetic,
    "methods": methods,
    "method-pairs": method_pairs,
    "server-steps": server_steps,
    "speed": speed,
    **measured_live.TABLES,
    **measured_noise.TABLES,
    **measured_published.TABLES,
    **measured_private.TABLES,
    **measured_leaks.TABLES,
    **measured_sum.TABLES,
    **measured_audit.TABLES,
    **measured_attacks.TABLES,
    **measured_differ.TABLES,
    **measured_differ_said.TABLES,
    **measured_differ_kinds.TABLES,
    **measured_sharing.TABLES,
    **measured_rules.TABLES,
    **measured_chapter4.TABLES,
    **measured_chapter4_said.TABLES,
    **measured_chapter5.TABLES,
    **measured_chapter6.TABLES,
    **measured_forget.TABLES,
    **measured_fedps.TABLES,
    **measured_personal.TABLES,
    **measured_queries.TABLES,
}
