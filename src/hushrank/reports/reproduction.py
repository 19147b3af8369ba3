"""A reproduced table or figure: what was claimed and whether it holds, ours beside the published numbers, curves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from hushrank.files import JsonObject
from hushrank.look.numbers import format_p, format_seconds, format_signed, format_value, spread_decimals
from hushrank.reports.cells import VALUES_NOTE, count_cell, spread_cells
from hushrank.reports.cost import cost_section
from hushrank.reports.curves import PublishedValue
from hushrank.reports.markup import TableCell, disclosure, paragraph, relative_link, section, table
from hushrank.reports.reproduction_summary import (
    MARKS,
    Finding,
    ReproductionSummary,
    Row,
    cell_keys,
    cell_text,
    count_findings,
    findings_text,
    published_decimals,
    read_reproduction,
    real_name,
)
from hushrank.reports.sections import curve_section
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.summary import RunSummary
from hushrank.reports.terminal import Column, FittedTable, Records, plain_table, spread_column
from hushrank.reports.wording import (
    OFFLINE,
    count_text,
    date_text,
    join_words,
    metric_text,
    run_labels,
    setting_text,
    some_of,
)

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

MAX_REFERENCES = 4  # published values in one chart
_HEADINGS = {"clicks": "user", "click": "user", "n_clients": "clients"}  # keys that people call otherwise


def render_reproduction(result: JsonObject, runs: Sequence[RunSummary] = ()) -> str:
    """HTML of a table or figure that was run again, from the JSON that this leaves behind and its runs."""
    found = read_reproduction(result)
    labels = [data.label for data in found.stand_ins] + (["quick version"] if found.is_quick else [])
    labels += [f"{key} changed to {setting_text(value)}" for key, value in found.changes.items()]
    sections = (
        findings_section(found),
        rows_section(found),
        curves_section(found, runs),
        cost_section(runs, run_labels(runs)),
        about_section(found),
    )
    lead = f"{_sentence(found.shows)} {outcome(found)}".strip()
    heading = f"{found.number} of {found.paper}"
    when = date_text(found.when)
    return render_page(heading, "".join(sections), kind="reproduction", when=when, lead=lead, labels=tuple(labels))


def write_reproduction(result: JsonObject, path: Path, runs: Sequence[RunSummary] = ()) -> Path:
    """Write the page of a reproduction to a file and say where it is."""
    return write_page(render_reproduction(result, runs), path)


def reproduction_table(result: JsonObject) -> Group:
    """The findings as paragraphs, the rows as a table that fits, and what to know about them."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    found = read_reproduction(result)
    parts: list[RenderableType] = [_finding_records(found)] if found.findings else []
    if found.rows:
        parts += [FittedTable(*_number_rows(found)), Padding(Text(" ".join(row_notes(found))), (0, 0, 0, 1))]
    return Group(*parts)


def reproduction_text(result: JsonObject) -> str:
    """The same as plain lines, for pipes and logs."""
    found = read_reproduction(result)
    tables = [plain_table(_FINDING_COLUMNS, _finding_rows(found))] if found.findings else []
    rows = [plain_table(*_number_rows(found)), "\n".join(row_notes(found))] if found.rows else []
    return "\n\n".join([*tables, *filter(None, rows)])


def outcome(found: ReproductionSummary) -> str:
    """How the findings fared, in a sentence."""
    texts = [findings_text(count_findings(found.findings))] if found.findings else []
    texts += ["The data are a stand-in, so the numbers are not the paper's."] if found.stand_ins else []
    return " ".join(texts)


def findings_section(found: ReproductionSummary) -> str:
    """Each claim with its verdict, as a mark and a word, and what it rests on."""
    if not found.findings:
        return section(
            "Findings", paragraph("The paper draws no conclusion from it that is tested here.", style="empty")
        )
    return section("Findings", f'<ul class="findings">{"".join(_finding(finding) for finding in found.findings)}</ul>')


def rows_section(found: ReproductionSummary) -> str:
    """Ours beside the published numbers."""
    if not found.rows:
        text = "The paper prints no numbers here, only a drawing to compare the curves with."
        return section("Ours and the published", paragraph(text, style="empty"))
    headings, rows = _row_cells(found)
    shown = table(headings, rows, label="Ours and the published", has_tools=True)
    return section("Ours and the published", shown, paragraph(" ".join(row_notes(found)), style="note"))


def row_notes(found: ReproductionSummary) -> list[str]:
    """What a reader of the rows must know, in sentences."""
    shared = [key for key in cell_keys(found.rows) if key not in _columns(found.rows)]
    same = [f"{_HEADINGS.get(key, key)} {setting_text(found.rows[0].cell[key])}" for key in shared]
    notes = [f"The same in all rows: {', '.join(same)}."] if same else []
    notes += [VALUES_NOTE] if any(row.n > 1 for row in found.rows) else []
    if found.directories and any(row.n == 1 for row in found.rows):
        notes.append("One training has no spread: for one, run more folds or more --repeats.")
    if any(row.as_published is not None for row in found.rows):
        notes.append(f"As published: {found.published_code} (variant=published-code).")
    notes += [found.limits] if found.limits else []
    if not any(row.published is not None for row in found.rows):
        notes.append("The paper draws its results and prints no numbers.")
    elif found.stand_ins:
        sets = join_words(list(dict.fromkeys(real_name(data.wanted) for data in found.stand_ins)))
        notes.append(
            f"Published values are for the real {sets}, ours for the stand-in: a difference is to be expected."
        )
    return notes


def curves_section(found: ReproductionSummary, runs: Sequence[RunSummary]) -> str:
    """Learning curves, one section for each data set, with published values as thin lines where they fit."""
    sets = list(dict.fromkeys(str(run.data.get("name", "")) for run in runs))
    parts = []
    for i, name in enumerate(sets):
        group = [run for run in runs if str(run.data.get("name", "")) == name]
        title = f"Learning curves on {name}" if len(sets) > 1 else "Learning curves"
        lines, n_left_out = published_lines(found, data=name if len(sets) > 1 else None)
        remark = f"{count_text(n_left_out, 'published value')} more in the table above." if n_left_out else ""
        labels = run_labels(group)
        parts.append(curve_section(group, labels, references=lines, title=title, name=f"curve-{i}", remark=remark))
    return "".join(parts)


def published_lines(found: ReproductionSummary, *, data: str | None = None) -> tuple[list[PublishedValue], int]:
    """The published values on one data set that belong into its charts, a few for each user, and how many do not fit.

    Rows with the same value share a line.
    """
    names = {data, *(used.wanted for used in found.data if used.name == data)}
    rows = [row for row in found.rows if row.metric == OFFLINE and row.published is not None]
    rows = [row for row in rows if data is None or row.cell.get("data") is None or row.cell["data"] in names]
    keys = [key for key in _varying(rows) if key not in ("data", "clicks", "click", "user")]
    cells: dict[str | None, dict[float, list[str]]] = {}
    for row in rows:
        if row.published is not None:
            text = cell_text(row, keys, names=_HEADINGS)
            cells.setdefault(row.click, {}).setdefault(row.published, []).append(text)
    lines = [
        PublishedValue(f"published {some_of([text for text in texts if text], n=1)}".strip(), value, OFFLINE, click)
        for click, by_value in cells.items()
        for value, texts in list(by_value.items())[:MAX_REFERENCES]
    ]
    return lines, sum(len(by_value) for by_value in cells.values()) - len(lines)


def about_section(found: ReproductionSummary) -> str:
    """The data, the size, what is open in the paper, and the runs behind the page."""
    parts = [paragraph(text) for text in _about(found)]
    links = [
        f'<li><a href="{escape(relative_link(directory, "report.html"))}">{escape(directory)}</a></li>'
        for directory in found.directories
    ]
    if links:
        parts.append(disclosure(f"{count_text(len(links), 'run')} behind this page", f"<ul>{''.join(links)}</ul>"))
    return section("About this reproduction", *parts)


def _about(found: ReproductionSummary) -> list[str]:
    texts = [
        f"{data.name} is generated data, shaped like {real_name(data.wanted)}; it is not the real "
        "set. With the real one on disk, repeat the command with --data DIRECTORY."
        for data in found.stand_ins
    ]
    real = [real_name(data.name) for data in found.data if not data.is_stand_in]
    texts += [f"Run on {join_words(real)}."] if real else []
    if found.is_quick:
        texts.append("The quick version is smaller than the published setting: read the numbers as a try-out.")
    texts += [found.note] if found.note else []
    texts += [f"The same result stands elsewhere as {join_words(found.aliases)}."] if found.aliases else []
    texts += [f"It took {format_seconds(found.seconds)}."] if found.seconds is not None else []
    return texts


def _finding(finding: Finding) -> str:
    mark, word = MARKS[finding.verdict], finding.verdict
    claim = f"{finding.claim.rstrip('.')} ({finding.where})." if finding.where else finding.claim
    why = " ".join(filter(None, (_p_text(finding), finding.why)))
    note = paragraph(why, style="note") if why else ""
    return f'<li><b><span aria-hidden="true">{mark}</span> {word}</b>{paragraph(claim)}{note}</li>'


def _p_text(finding: Finding) -> str:
    if finding.p is None:
        return ""
    text = format_p(finding.p)
    return f"p {text}." if text.startswith("<") else f"p = {text}."


def _row_cells(found: ReproductionSummary) -> tuple[list[TableCell], list[list[TableCell]]]:
    keys, decimals = _columns(found.rows), published_decimals(found.rows)
    has_metrics, has_reasons = len({row.metric for row in found.rows}) > 1, any(row.why for row in found.rows)
    ours = spread_cells([(row.ours, row.std) for row in found.rows])
    headings = [TableCell(_HEADINGS.get(key, key.replace("_", " "))) for key in keys]
    headings += [TableCell("measure")] if has_metrics else []
    what = "" if has_metrics else f", {metric_text(found.rows[0].metric)}"
    headings += [TableCell(f"ours{what}", style="number"), TableCell("values", style="number slim")]
    has_code = any(row.as_published is not None for row in found.rows)
    as_published = spread_cells([(row.as_published, row.as_published_std) for row in found.rows]) if has_code else []
    headings += [TableCell("as published", style="number")] if has_code else []
    is_printed = any(row.published is not None for row in found.rows)
    headings += [TableCell(text, style="number") for text in ("published", "difference") if is_printed]
    rows = [
        [
            *(_setting_cell(row, key) for key in keys),
            *([TableCell(metric_text(row.metric))] if has_metrics else []),
            ours[i],
            count_cell(row.n if row.ours is not None else None),
            *as_published[i : i + 1],
            *(_published_cells(row, decimals) if is_printed else ()),
            *([TableCell(row.why)] if has_reasons else []),
        ]
        for i, row in enumerate(found.rows)
    ]
    return [*headings, *([TableCell("why there is none")] if has_reasons else [])], rows


def _setting_cell(row: Row, key: str) -> TableCell:
    value = row.cell.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return TableCell(
        "" if value is None else setting_text(value), value=float(value) if is_number and value is not None else None
    )


def _published_cells(row: Row, decimals: int) -> tuple[TableCell, TableCell]:
    published = TableCell(format_value(row.published, decimals=decimals), value=row.published, style="number")
    return published, TableCell(_difference_text(row, decimals), value=row.difference, style="number")


def _difference_text(row: Row, decimals: int) -> str:
    """With the digits of the less exact of the two."""
    return format_signed(row.difference, decimals=min(decimals, spread_decimals(row.std)) if row.std else decimals)


def _columns(rows: Sequence[Row]) -> list[str]:
    """What rows differ in; all that names them when they differ in nothing."""
    return _varying(rows) or cell_keys(rows)


def _varying(rows: Sequence[Row]) -> list[str]:
    return [key for key in cell_keys(rows) if len({setting_text(row.cell.get(key)) for row in rows}) > 1]


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "?")) else f"{text}."


_FINDING_COLUMNS = (Column("finding"), Column("claim"), Column("p", is_number=True), Column("why"))


def _finding_rows(found: ReproductionSummary) -> list[list[str]]:
    return [
        [f"{MARKS[f.verdict]} {f.verdict}", f.claim, format_p(f.p) if f.p is not None else "", f.why]
        for f in found.findings
    ]


def _finding_records(found: ReproductionSummary) -> Records:
    """The verdict and the claim in one line, what they rest on below."""
    rows = [[f"{finding}: {claim}", *rest] for finding, claim, *rest in _finding_rows(found)]
    return Records((_FINDING_COLUMNS[0], *_FINDING_COLUMNS[2:]), rows)


def _number_rows(found: ReproductionSummary) -> tuple[list[Column], list[list[str]]]:
    """The same columns as on the page, with spaces for the terminal."""
    headings, rows = _row_cells(found)
    texts = [[cell.text for cell in row] for row in rows]
    spreads = {
        "ours": [(row.ours, row.std) for row in found.rows],
        "as published": [(row.as_published, row.as_published_std) for row in found.rows],
    }
    for at, heading in enumerate(headings):
        pairs = next((pairs for name, pairs in spreads.items() if heading.text.startswith(name)), None)
        for text, spread in zip(texts, spread_column(pairs), strict=True) if pairs is not None else ():
            text[at] = spread
    return [Column(heading.text, is_number=heading.style.startswith("number")) for heading in headings], texts
