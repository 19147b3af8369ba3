"""The page of an audit: what is claimed after so many rounds, and what was measured."""

from __future__ import annotations

from math import nan
from pathlib import Path

from hushrank.files import Json
from hushrank.look.chart import AxisScale, ChartText, Line, line_chart
from hushrank.look.numbers import format_count, format_value
from hushrank.reports.markup import TableCell, csv_link, definition_list, disclosure, paragraph, section, table
from hushrank.reports.shell import render_page, write_page

PAGE = "audit.html"
_COLUMNS = {
    "claimed_epsilon": "claimed",
    "lower_bound": "measured, at least",
    "lower_bound_if_normal": "if the noise is normal",
}


def summarise_audit(found: Json) -> str:
    """The outcome in two sentences."""
    sure = f"{100 * found['confidence']:g} %"
    rounds = f"{format_count(found['rounds'])} {'round' if found['rounds'] == 1 else 'rounds'}"
    said = (
        f"Claimed for {rounds}: epsilon {found['claimed_epsilon']:.4g} ({found['relation']}). "
        f"Measured with confidence {sure}: at least {found['lower_bound']:.3g}."
    )
    if found["is_above_claim"]:
        return f"{said} The claim is refuted: look for noise, clipping or accounting that is not what it should be."
    return f"{said} Nothing speaks against the claim."


def describe_settings(found: Json) -> list[tuple[str, str]]:
    """What was audited, and how, in pairs."""
    delta = "none: pure epsilon" if found.get("delta") is None else f"{found['delta']:g}"
    pairs = [
        ("recipe", str(found["recipe"])),
        ("mechanism", f"{found['mechanism']} (privacy={found['privacy']}), noise added by the {found['noise_at']}"),
        (
            "clients",
            f"{format_count(found['clients'])}, {format_count(found['cohort'])} in a round ({found['sampling']})",
        ),
        ("relation", str(found["relation"])),
        ("delta", delta),
        ("estimator", f"{found['estimator']}, seed {found['seed']}"),
    ]
    return [*pairs, *((name.replace("_", " "), format_count(n)) for name, n in found["counts"].items())]


def render_audit(found: Json) -> str:
    """HTML of one audit."""
    how = (
        "A bound says what a leak is at least. A bound below the claim does not prove the claim: a better attack, or "
        "more runs, might show more. A bound above it refutes the claim, except once in "
        f"{format_count(round(1 / (1 - found['confidence'])))} audits of a claim that holds."
    )
    return render_page(
        "Claim and measurement",
        section("Epsilon by rounds", f"<figure>{_draw(found)}{_tabulate(found)}</figure>")
        + section("What was audited", definition_list(describe_settings(found)))
        + section("How to read it", paragraph(how)),
        kind="audit",
        lead=summarise_audit(found),
    )


def write_audit(found: Json, directory: Path) -> Path:
    return write_page(render_audit(found), directory / PAGE)


def _draw(found: Json) -> str:
    looks = found["looks"]
    rounds = tuple(float(look["rounds"]) for look in looks)
    lines = [
        Line(text, rounds, tuple(nan if look[name] is None else look[name] for look in looks), has_dots=True)
        for name, text in _COLUMNS.items()
        if looks[-1][name] is not None
    ]
    words = ChartText("Claimed and measured epsilon after so many rounds", "rounds", "epsilon")
    scale = AxisScale(rounds, is_log=True) if len(looks) > 1 else None
    return line_chart(lines, words, name="audit", scale=scale)


def _tabulate(found: Json) -> str:
    names = [name for name in _COLUMNS if found["looks"][-1][name] is not None]
    headings = [TableCell("rounds"), *(TableCell(_COLUMNS[name], style="number") for name in names)]
    rows = [
        [TableCell(format_count(look["rounds"])), *(_number(look[name]) for name in names)] for look in found["looks"]
    ]
    csv = [("rounds", *names), *((look["rounds"], *(look[name] for name in names)) for look in found["looks"])]
    shown = table(headings, rows, label="Claimed and measured epsilon")
    return disclosure(
        "Numbers behind this chart", shown, csv_link(csv, file_name="audit.csv", text="Save these numbers as CSV")
    )


def _number(value: float | None) -> TableCell:
    return TableCell(format_value(value), value=value, style="number")
