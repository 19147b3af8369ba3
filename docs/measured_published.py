"""Tables of docs/findings.md about the published code's variants on MQ2008: printed, as published, ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measured_noise import SETTINGS, describe_delta
from measured_noise import read_cells as read_rerun
from tables import USERS, Row, Tables, make_markdown, read

from hushrank.look.numbers import format_count, format_signed, format_value
from hushrank.reproduce.literature import find_result

RANKERS = {"linear": ("foltr-es", "linear"), "mlp": ("foltr-es two-layer", "two-layer")}  # {ranker: (part, name)}
TRAIN, TEST, OFFLINE, ONLINE = "train/MaxRR", "offline/MaxRR", "offline/nDCG@10", "online/nDCG@10"
PUBLISHED, OURS = "published-code", "paper"


def read_evolution(data: Path) -> dict[tuple[str, str, str], Row]:
    """{(ranker, variant, user): row}"""
    parts = read(data, "as_published")["parts"]
    rows = [row for part, _ in RANKERS.values() for row in parts[part]]
    return {(row["ranker"], row["variant"], row["clicks"]): row for row in rows}


def evolution(data: Path) -> str:
    """FOLtR-ES at p = 1 beside Table 3: printed, with the published seeds, and ours."""
    found = read_evolution(data)
    splits = {"train": TRAIN, "test": TEST}
    header = ["ranker", "user", *(f"{s}, {c}" for s in splits for c in ("printed", "as published", "ours"))]
    lines = []
    for ranker, (_, name) in RANKERS.items():
        for user in USERS:
            cells = [
                cell for split, metric in splits.items() for cell in stand_beside(found, ranker, user, split, metric)
            ]
            lines.append([name if user == USERS[0] else "", user, *cells])
    return make_markdown(header, lines, n_words=2)


def stand_beside(found: Mapping[Any, Row], ranker: str, user: str, split: str, metric: str) -> list[str]:
    printed = found[ranker, OURS, user]["printed"][split]
    means = (found[ranker, variant, user][metric]["mean"] for variant in (PUBLISHED, OURS))
    return [format_value(printed), *(f"{format_value(m)} ({format_signed(m - printed)})" for m in means)]


def decline(data: Path) -> str:
    """The linear ranker on test queries, after a fifth of the searches and at the end."""
    found = read_evolution(data)
    measures = {TEST: "MaxRR", OFFLINE: "nDCG@10"}
    header = ["user", *(f"{m}, {c}" for m in measures.values() for c in ("as published", "ours"))]
    lines = [
        [user, *(tell_way(found["linear", variant, user], m) for m in measures for variant in (PUBLISHED, OURS))]
        for user in USERS
    ]
    return make_markdown(header, lines)


def tell_way(row: Row, metric: str) -> str:
    early, late = row["early"][metric], row[metric]["mean"]
    return f"{format_value(early)} to {format_value(late)} ({format_signed(late - early)})"


def read_bound(data: Path) -> dict[tuple[Any, ...], Row]:
    """{(epsilon, clients, searches, rounds, user): row} of FPDGD with the published bound."""
    parts = read(data, "as_published")["parts"]
    names = ("epsilon", "n_clients", "interactions", "rounds", "clicks")
    return {tuple(row[name] for name in names): row for row in (*parts["fpdgd"], *parts["fpdgd sizes"])}


def bound(data: Path) -> str:
    """Table 2 and Figures 2 and 3 of FPDGD: as published, in brackets ours."""
    found = read_bound(data)
    measures = {
        "sum of nDCG@10 shown": ("fpdgd.table2", ONLINE),
        "nDCG@10 of the last ranker": ("fpdgd.figure2", OFFLINE),
        "its MaxRR": ("fpdgd.figure3", TEST),
    }
    lines = []
    for what, (name, metric) in measures.items():
        ours = {key: row["ours"] for key, row in read_rerun(data, name).items()}
        write = (lambda x: f"{x:.1f}") if metric == ONLINE else format_value
        quiet = [write(ours[("fpdgd", None), user]) for user in USERS]
        lines.append([what, "no noise, no bound", *quiet])
        for s in SETTINGS:
            means = [(found[s.epsilon, 1000, 4, 1000, u][metric]["mean"], ours[("fpdgd", s.epsilon), u]) for u in USERS]
            pairs = [f"{write(published)} ({write(own)})" for published, own in means]
            lines.append(["", f"epsilon {s.epsilon:g}, Delta {s.sensitivity:g}", *pairs])
    return make_markdown(["measure", "setting", *USERS], lines, n_words=2)


def bound_step(data: Path) -> str:
    """What the larger Delta brings online: in print, with either bound."""
    a, b = SETTINGS[1], SETTINGS[2]
    ours = {key: row["ours"] for key, row in read_rerun(data, "fpdgd.table2").items()}
    found = {
        (key[0], key[4]): row[ONLINE]["mean"] for key, row in read_bound(data).items() if key[1:4] == (1000, 4, 1000)
    }
    printed = {
        (row.cell["epsilon"], row.cell["clicks"]): row.published
        for row in find_result("fpdgd.table2").rows
        if row.cell["data"] == "mq2007" and row.cell["method"] == "fpdgd"
    }
    rows = {
        "printed, MQ2007": [printed[b.epsilon, u] - printed[a.epsilon, u] for u in USERS],
        "as published, MQ2008": [found[b.epsilon, u] - found[a.epsilon, u] for u in USERS],
        "ours, MQ2008": [ours[("fpdgd", b.epsilon), u] - ours[("fpdgd", a.epsilon), u] for u in USERS],
    }
    header = [f"epsilon {b.epsilon:g} less {a.epsilon:g}{describe_delta(a, b)}", *USERS]
    return make_markdown(header, [[name, *(format_signed(x, decimals=1) for x in gaps)] for name, gaps in rows.items()])


FIGURES = {  # {figure: (what is alike, [(clients, searches, rounds)])}
    "figure4": ("four searches, 1,000 rounds", [(10, 4, 1000), (100, 4, 1000), (1000, 4, 1000)]),
    "figure5": ("1,000 rounds", [(1000, 2, 1000), (1000, 4, 1000), (1000, 8, 1000)]),
    "figure6": ("2,000 searches of each client", [(1000, 2, 1000), (1000, 4, 500), (1000, 8, 250)]),
}


def bound_sizes(data: Path) -> str:
    """Figures 4 to 6 of FPDGD at epsilon 4.5: as published, in brackets ours."""
    found, lines = read_bound(data), []
    for figure, (what, sizes) in FIGURES.items():
        rows = [row for row in read(data, f"reproduced/fpdgd.{figure}")["rows"] if row.get("privacy") != "none"]
        ours = {(row.get("n_clients", 1000), row.get("interactions", 4), row["clicks"]): row["ours"] for row in rows}
        for n, b, rounds in sizes:
            pairs = [(found[4.5, n, b, rounds, u][OFFLINE]["mean"], ours[n, b, u]) for u in USERS]
            cells = [f"{format_value(published)} ({format_value(own)})" for published, own in pairs]
            lines.append([what if (n, b, rounds) == sizes[0] else "", format_count(n), str(b), *cells])
    return make_markdown(["alike", "clients", "B", *USERS], lines)


TABLES: Tables = {
    "as-published": evolution,
    "as-published-decline": decline,
    "fpdgd-bound": bound,
    "fpdgd-bound-step": bound_step,
    "fpdgd-bound-sizes": bound_sizes,
}
