"""Tables of docs/findings.md about FPDGD with its published noise: Table 2 and Figures 2 to 6 of [fpdgd] on MQ2008."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tables import USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.look.numbers import format_count, format_signed, format_value
from hushrank.privacy.named import PAPER_SETTINGS, PaperSetting
from hushrank.reproduce.literature import find_result

SETTINGS = tuple(PAPER_SETTINGS.values())
CONTROLS = {
    "equal updates": "PDGD, central, as many updates",
    "equal interactions": "PDGD, central, as many searches",
    "batches": "PDGD, central, batches of 4,000",
}
Cell = tuple[str, float | str | None]  # (method, epsilon; of central PDGD its control)


def list_methods() -> dict[Cell, str]:
    """{cell: what the page calls it}, FPDGD first."""
    fpdgd = {("fpdgd", s.epsilon): f"FPDGD, epsilon {s.epsilon:g}, Delta {s.sensitivity:g}" for s in SETTINGS}
    foltr = {("foltr-es", s.epsilon): f"FOLtR-ES, p = {write_chance(s.p)}" for s in SETTINGS}
    central = {("pdgd", control): name for control, name in CONTROLS.items()}
    return {("fpdgd", None): "FPDGD, no noise", **fpdgd, **foltr, **central}


def write_chance(p: float) -> str:
    return f"{p:g}".removeprefix("0")


def read_cells(data: Path, name: str) -> dict[tuple[Cell, str], Row]:
    """{(cell, user): row} of a rerun result."""
    rows = read(data, f"reproduced/{name}")["rows"]
    return {((row["method"], row.get("control", row.get("epsilon"))), row["clicks"]): row for row in rows}


def read_controls(data: Path) -> dict[tuple[Cell, str], Row]:
    return {(("pdgd", row["control"]), row["clicks"]): row for row in read(data, "central_controls")["rows"]}


def online(data: Path) -> str:
    """Table 2: what people saw while it learnt."""
    found = {key: (row["ours"], row["std"]) for key, row in read_cells(data, "fpdgd.table2").items()}
    found |= {key: (row["online/nDCG@10"], row["std"]) for key, row in read_controls(data).items()}
    rows = [[name, *(show_spread(*found[cell, user]) for user in USERS)] for cell, name in list_methods().items()]
    return make_markdown(["method", *USERS], rows)


def steps(data: Path) -> str:
    """Differences within Table 2, ours beside those of the printed numbers, which are of another data set."""
    ours = {key: row["ours"] for key, row in read_cells(data, "fpdgd.table2").items()}
    printed = {
        ((row.cell["method"], row.cell["epsilon"]), row.cell["clicks"]): row.published
        for row in find_result("fpdgd.table2").rows
        if row.cell["data"] == "mq2007"
    }
    pairs = {
        f"FPDGD, epsilon {b.epsilon:g} less {a.epsilon:g}{describe_delta(a, b)}": (
            ("fpdgd", b.epsilon),
            ("fpdgd", a.epsilon),
        )
        for a, b in pairwise(SETTINGS)
    }
    pairs |= {
        f"FOLtR-ES less FPDGD, epsilon {s.epsilon:g}": (("foltr-es", s.epsilon), ("fpdgd", s.epsilon)) for s in SETTINGS
    }
    rows = [[name, *(compare(ours, printed, high, low, user) for user in USERS)] for name, (high, low) in pairs.items()]
    return make_markdown(["difference", *USERS], rows)


def describe_delta(a: PaperSetting, b: PaperSetting) -> str:
    same = a.sensitivity == b.sensitivity
    return f" (Delta {a.sensitivity:g} both)" if same else f" (Delta {b.sensitivity:g} less {a.sensitivity:g})"


def compare(ours: Mapping[Any, float], printed: Mapping[Any, float], high: Cell, low: Cell, user: str) -> str:
    gaps = (format_signed(found[high, user] - found[low, user], decimals=1) for found in (ours, printed))
    return "{} ({})".format(*gaps)


def offline(data: Path) -> str:
    """Figure 2: the last ranker on test queries."""
    found = {key: (row["ours"], row["std"]) for key, row in read_cells(data, "fpdgd.figure2").items()}
    rows = [[name, *(show_spread(*found[cell, user]) for user in USERS)] for cell, name in list_methods().items()]
    return make_markdown(["method", *USERS], rows)


def max_rr(data: Path) -> str:
    """Figure 3: the same by MaxRR."""
    found = {key: row["ours"] for key, row in read_cells(data, "fpdgd.figure3").items()}
    found |= {key: row["offline/MaxRR"] for key, row in read_controls(data).items()}
    rows = [[name, *(format_value(found[cell, user]) for user in USERS)] for cell, name in list_methods().items()]
    return make_markdown(["method", *USERS], rows)


def clients(data: Path) -> str:
    """Figure 4."""
    rows = read(data, "reproduced/fpdgd.figure4")["rows"]
    cells = {(row["clicks"], row["n_clients"], row["privacy"]): row for row in rows}
    lines = []
    for user in USERS:
        for n in sorted({n for _, n, _ in cells}):
            quiet, loud = (cells[user, n, privacy] for privacy in ("none", "paper"))
            shown = [show_spread(row["ours"], row["std"]) for row in (quiet, loud)]
            cost = format_value(quiet["ours"] - loud["ours"], decimals=4)
            lines.append([user if n == 10 else "", format_count(n), *shown, cost])
    return make_markdown(["user", "clients", "no noise", "epsilon 4.5", "cost"], lines)


def batches(data: Path) -> str:
    """Figures 5 and 6."""
    lines = []
    for figure, what in {"figure5": "1,000 rounds", "figure6": "2,000 searches of each client"}.items():
        rows = read(data, f"reproduced/fpdgd.{figure}")["rows"]
        cells = {(row["interactions"], row["clicks"]): row for row in rows}
        for b in sorted({b for b, _ in cells}):
            shown = [show_spread(cells[b, user]["ours"], cells[b, user]["std"]) for user in USERS]
            lines.append([what if b == 2 else "", str(b), *shown])
    return make_markdown(["alike", "B", *USERS], lines)


TABLES: Tables = {
    "fpdgd-online": online,
    "fpdgd-steps": steps,
    "fpdgd-offline": offline,
    "fpdgd-max-rr": max_rr,
    "fpdgd-clients": clients,
    "fpdgd-batches": batches,
}
