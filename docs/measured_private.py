"""Tables and charts of docs/private_training.md, from docs/benchmarks/private_training.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import nan
from pathlib import Path

from tables import USERS, Row, Tables, make_markdown, read, show_spread

from hushrank.look.chart import AxisScale, ChartText, Line, Reference, line_chart
from hushrank.look.numbers import format_count, format_short, format_signed, format_value

NAME = "private_training"
X_TITLE = "epsilon (logarithmic, strictest to the right)"
DEAREST = "informational"  # the user for whom noise costs most: a test says so
Cells = dict[tuple[int, float | None, str], Row]  # {(clients, epsilon, user): row}; epsilon None: no noise


def read_cells(data: Path) -> Cells:
    rows = read(data, NAME)["rows"]
    return {(row["n_clients"], row["epsilon"], row["clicks"]): row for row in rows if row["mode"] == "sound"}


def list_sizes(cells: Cells) -> list[int]:
    return sorted({n for n, _, _ in cells})


def list_budgets(cells: Cells) -> list[float]:
    return sorted({epsilon for _, epsilon, _ in cells if epsilon is not None})


def overview(data: Path) -> str:
    """What noise costs the user who pays most; bold where it is shown to be below the margin for all three."""
    cells = read_cells(data)
    budgets = list_budgets(cells)
    rows = [[format_count(n), *(describe_worst(cells, n, epsilon) for epsilon in budgets)] for n in list_sizes(cells)]
    return make_markdown(["clients", *(f"epsilon {format_short(epsilon)}" for epsilon in budgets)], rows, n_words=0)


def describe_worst(cells: Cells, n: int, epsilon: float) -> str:
    rows = [cells[n, epsilon, user] for user in USERS]
    worst = format_signed(max(row["cost"] for row in rows), decimals=4)
    return f"**{worst}**" if all(row["holds"] for row in rows) else worst


def of_user(data: Path, user: str) -> str:
    """Every number about one user."""
    cells = read_cells(data)
    header = ["clients", "epsilon", "nDCG@10", "cost of noise (95 % interval)", "below the best", "clip norm", "rate"]
    rows = []
    for n in list_sizes(cells):
        for epsilon in (None, *reversed(list_budgets(cells))):
            row = cells[n, epsilon, user]
            first = ["" if epsilon else format_count(n), format_short(epsilon) if epsilon else "no noise"]
            quality = show_spread(row["nDCG@10"], row["std"])
            setting = [format_short(row["clip_norm"]), format_short(row["server_rate"])]
            rows.append([*first, quality, *(describe_cost(row) if epsilon else ["", ""]), *setting])
    return make_markdown(header, rows, n_words=0)


def describe_cost(row: Row) -> list[str]:
    """The cost, bold where it is shown to be below the margin; and the distance to the best training without noise."""
    cost, low, high = (format_signed(x, decimals=4) for x in (row["cost"], *row["interval"]))
    said = f"**{cost}**" if row["holds"] else cost
    return [f"{said} ({low} to {high})", format_signed(row["below_best_without_noise"], decimals=4)]


def quality_chart(data: Path) -> str:
    """nDCG@10 over epsilon, a line for each number of clients."""
    cells = read_cells(data)
    budgets = list_budgets(cells)[::-1]
    lines = [
        Line(label_size(n), place(budgets), tuple(cells[n, e, DEAREST]["nDCG@10"] for e in budgets), has_dots=True)
        for n in list_sizes(cells)
    ]
    text = ChartText(
        f"nDCG@10 of {DEAREST} users over epsilon of the whole training, for each number of clients",
        X_TITLE,
        f"test nDCG@10, {DEAREST} users",
    )
    quiet = Reference("no noise", cells[1000, None, DEAREST]["nDCG@10"])
    return line_chart(lines, text, name="private-quality", references=[quiet], scale=make_scale(budgets))


def cost_chart(data: Path) -> str:
    """What noise costs where it costs little, with 95 % intervals: from 1,000 clients on."""
    cells = read_cells(data)
    budgets = list_budgets(cells)[::-1]
    lines = []
    for n in list_sizes(cells):
        rows = [cells[n, epsilon, DEAREST] for epsilon in budgets]
        half = tuple((row["interval"][1] - row["interval"][0]) / 2 for row in rows)
        y = tuple(row["cost"] if n >= 1000 else nan for row in rows)  # Why: a size keeps its colour
        lines.append(Line(label_size(n), place(budgets), y, half, has_dots=True))
    text = ChartText(
        f"What noise costs {DEAREST} users in nDCG@10 over epsilon, for each number of clients",
        X_TITLE,
        f"nDCG@10 lost to noise, {DEAREST} users",
    )
    margin = read(data, NAME)["margin"]
    limit = Reference(format_value(margin), margin)
    return line_chart(lines, text, name="private-cost", references=[limit], scale=make_scale(budgets))


def place(budgets: Sequence[float]) -> tuple[float, ...]:
    """Where an epsilon stands: what promises more stands further right, where lines end apart and are named."""
    return tuple(1 / epsilon for epsilon in budgets)


def make_scale(budgets: Sequence[float]) -> AxisScale:
    return AxisScale(place(budgets), is_log=True, texts=tuple(map(format_short, budgets)))


def label_size(n: int) -> str:
    return f"{format_short(n)} clients"


def published(data: Path) -> str:
    """The published mechanism with the noise that an epsilon of the whole training takes, beside the sound one."""
    rows = [row for row in read(data, NAME)["rows"] if row["n_clients"] == 1000]
    lines = []
    for epsilon in sorted({row["epsilon"] for row in rows if row["mode"] == "paper"}):
        stated = next(row["stated_epsilon_of_a_round"] for row in rows if is_of(row, "paper", epsilon))
        lines.append([format_short(epsilon), f"published; it would say {format_value(stated)} a round"])
        lines[-1] += show_users(rows, "paper", epsilon)
        if any(is_of(row, "sound", epsilon) for row in rows):
            lines.append(["", "updates clipped, noise on their sum", *show_users(rows, "sound", epsilon)])
    lines.append(["no noise", "FPDGD, nothing clipped, server rate 1", *show_users(rows, "none", None)])
    lines.append(["", "updates clipped to .3, server rate 30", *show_users(rows, "sound", None)])
    return make_markdown(["epsilon", "mechanism", *USERS], lines, n_words=2)


WAYS = {
    "independent": "in turn, independent noise",
    "correlated": "in turn, noise that is taken back",
    "sampled": "drawn by chance, independent noise",
}


def resting(data: Path) -> str:
    """Clients that take turns, with either noise, beside clients that are drawn by chance."""
    rows = read(data, "resting")["rows"]
    cells = {(row["epsilon"], row["way"], row["clicks"]): row for row in rows}
    lines = []
    for epsilon in sorted({row["epsilon"] for row in rows}, reverse=True):
        for place, (way, words) in enumerate(WAYS.items()):
            found = [cells[epsilon, way, user] for user in USERS]
            shown = [f"{format_value(row['nDCG@10'])} ({format_signed(row['cost'], decimals=4)})" for row in found]
            lines.append(["" if place else format_short(epsilon), words, *shown, format_short(found[0]["server_rate"])])
    return make_markdown(["epsilon", "who takes part, and the noise", *USERS, "rate"], lines, n_words=2)


def is_of(row: Row, mode: str, epsilon: float | None) -> bool:
    return (row["mode"], row["epsilon"]) == (mode, epsilon)


def show_users(rows: Sequence[Row], mode: str, epsilon: float | None) -> list[str]:
    found = {row["clicks"]: row for row in rows if is_of(row, mode, epsilon)}
    return [show_spread(found[user]["nDCG@10"], found[user]["std"]) for user in USERS]


TABLES: Tables = {
    "private-overview": overview,
    "private-quality-chart": quality_chart,
    "private-cost-chart": cost_chart,
    "private-published": published,
    "resting": resting,
    **{f"private-{user}": partial(of_user, user=user) for user in USERS},
}
