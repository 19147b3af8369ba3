"""The report: one HTML file that holds everything it shows and fetches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from hushrank.files import write_text
from hushrank.look.assets import sort_script, stylesheet
from hushrank.report.markup import paragraph
from hushrank.report.sections import (
    cost_section,
    curve_section,
    difference_section,
    environment_section,
    privacy_section,
    recipe_section,
    result_section,
)
from hushrank.report.summary import RunSummary
from hushrank.report.wording import date_text, run_labels, summary_sentences, title

_SECTIONS = (
    result_section,
    curve_section,
    difference_section,
    cost_section,
    privacy_section,
    recipe_section,
    environment_section,
)
# Why: a page that may fetch nothing tells nobody that it is being read.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def render_report(runs: Sequence[RunSummary]) -> str:
    """HTML of one run, or of several compared; the first is the one that others are compared with."""
    if not runs:
        raise ValueError("a report needs at least one run. Name a directory that hushrank run wrote.")
    labels = run_labels(runs)
    heading = title(labels)
    started = date_text(runs[0].environment.get("started"))
    product = f"<b>hushrank</b> report{f' · {escape(started)}' if started else ''}"
    body = "".join(make(runs, labels) for make in _SECTIONS)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(heading)} · hushrank</title>\n'
        f'<style>\n{stylesheet()}</style>\n</head>\n<body>\n<main class="page">\n'
        f'<p class="product">{product}</p>\n<h1>{escape(heading)}</h1>\n'
        f"{paragraph(summary_sentences(runs, labels), style='lead')}\n{body}\n</main>\n"
        f"<script>\n{sort_script()}</script>\n</body>\n</html>\n"
    )


def write_report(runs: Sequence[RunSummary], path: Path) -> Path:
    """Write the report so that a reader finds the old file or the new one, never half of one."""
    path = Path(path)
    text = render_report(runs)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
