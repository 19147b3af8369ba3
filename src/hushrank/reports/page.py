"""The report of runs: one alone, or several compared with the first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushrank.reports.cost import cost_section
from hushrank.reports.curves import PublishedValue
from hushrank.reports.sections import (
    curve_section,
    difference_section,
    environment_section,
    privacy_section,
    recipe_section,
    result_section,
)
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import date_text, run_labels, summary_sentences, title


def render_report(runs: Sequence[RunSummary], *, references: Sequence[PublishedValue] = ()) -> str:
    """HTML of one run, or of several compared; the first is the one that others are compared with.

    `references` are published values, drawn as thin lines in the charts that they belong to.
    """
    if not runs:
        raise ValueError("a report needs at least one run. Name a directory that hushrank run wrote.")
    labels = run_labels(runs)
    sections = (
        result_section(runs, labels),
        curve_section(runs, labels, references=references),
        difference_section(runs, labels),
        cost_section(runs, labels),
        privacy_section(runs, labels),
        recipe_section(runs, labels),
        environment_section(runs, labels),
    )
    return render_page(
        title(labels),
        "".join(sections),
        kind="report",
        when=date_text(runs[0].environment.get("started")),
        lead=summary_sentences(runs, labels),
    )


def write_report(runs: Sequence[RunSummary], path: Path, *, references: Sequence[PublishedValue] = ()) -> Path:
    """Write the report to a file and say where it is."""
    return write_page(render_report(runs, references=references), path)
