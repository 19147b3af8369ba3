"""Tables and the chart of docs/audit.md, from docs/benchmarks/audit.json."""

from __future__ import annotations

from pathlib import Path

from tables import Row, Tables, make_markdown, read

from hushrank.look.chart import AxisScale, ChartText, Line, line_chart
from hushrank.look.numbers import format_count, format_value

NAME = "audit"
RELATIONS = ("zero-out", "replace-one", "add-remove")


def show(value: float | None) -> str:
    return "" if value is None else format_value(value, decimals=2)


def name_setting(row: Row) -> tuple[str, str, str]:
    """(mechanism, who adds the noise, sampling)"""
    published = row["privacy"] == "paper" and row["mechanism"] == "laplace"
    return ("FPDGD's published noise" if published else row["mechanism"], row["noise_at"], row["sampling"])


def sound(data: Path) -> str:
    """Claim and bound of every setting, a column for each relation."""
    rows: dict[tuple[str, str, str], dict[str, Row]] = {}
    known = read(data, NAME)
    for row in [*known["sound"], *known["turns"]]:
        rows.setdefault(name_setting(row), {})[row["relation"]] = row
    lines = []
    for setting, found in rows.items():
        claims = {show(row["claimed_epsilon"]) for row in found.values()}
        assert len(claims) == 1, f"{setting} has claims {claims}: a table needs a column for each"
        bounds = [show(found[relation]["lower_bound"]) if relation in found else "" for relation in RELATIONS]
        lines.append([*setting, claims.pop(), *bounds])
    return make_markdown(["mechanism", "noise at", "clients in a round", "claim", *RELATIONS], lines, n_words=3)


def planted(data: Path) -> str:
    rows = [
        [row["bug"], row["says"], show(row["claimed_epsilon"]), show(row["lower_bound"])]
        for row in read(data, NAME)["planted"]["rows"]
    ]
    return make_markdown(["bug", "what is wrong", "claim", "bound"], rows, n_words=2)


def tightness(data: Path) -> str:
    rows = [
        [
            row["estimator"],
            format_count(row["rounds"]),
            format_count(row["runs"]) if row["estimator"] == "runs" else f"{format_count(row['clients'])} canaries",
            show(row["claimed_epsilon"]),
            show(row["lower_bound"]),
            show(row["lower_bound_if_normal"]),
        ]
        for row in read(data, NAME)["tightness"]
    ]
    header = ["estimator", "rounds", "runs", "claim", "bound", "bound, if the noise is normal"]
    return make_markdown(header, rows)


def chart(data: Path) -> str:
    """Claim against bound for Gaussian noise, one round."""
    found = read(data, NAME)["tightness"]
    rows = [row for row in found if row["estimator"] == "runs" and row["rounds"] == 1]
    x = tuple(row["claimed_epsilon"] for row in rows)
    names = {
        "claimed_epsilon": "claimed",
        "lower_bound": "measured, at least",
        "lower_bound_if_normal": "if the noise is normal",
    }
    lines = [Line(text, x, tuple(row[name] for row in rows), has_dots=True) for name, text in names.items()]
    words = ChartText("Measured lower bounds beside claimed epsilons", "claimed epsilon", "epsilon")
    return line_chart(lines, words, name="audit", scale=AxisScale(x, texts=tuple(f"{claim:.2g}" for claim in x)))


TABLES: Tables = {
    "audit-sound": sound,
    "audit-planted": planted,
    "audit-tightness": tightness,
    "audit-chart": chart,
}
