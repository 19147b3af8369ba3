"""The report of runs: one alone, or several compared with the first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hushrank.reports.budgets import find_footing
from hushrank.reports.cost import cost_section
from hushrank.reports.curves import PublishedValue
from hushrank.reports.evidence import evidence_section
from hushrank.reports.forgetting import forgetting_section
from hushrank.reports.sections import (
    budget_section,
    curve_section,
    difference_section,
    environment_section,
    privacy_section,
    recipe_section,
    result_sections,
    warning_section,
)
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.skew import skew_section
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import date_text, run_labels, summary_sentences, title

PAGE = "report.html"


def render_report(runs: Sequence[RunSummary], *, references: Sequence[PublishedValue] = ()) -> str:
    """HTML of one run, or of several compared; the first is the one that others are compared with.

    `references` are published values, drawn as thin lines in the charts that they belong to.
    """
    if not runs:
        raise ValueError("a report needs at least one run. Name a directory that hushrank run wrote.")
    labels, footing = run_labels(runs), find_footing(runs)
    sections = (
        budget_section(runs, labels),
        warning_section(runs, labels),
        forgetting_section(runs, labels),
        result_sections(runs, labels, footing),
        skew_section(runs, labels),
        curve_section(runs, labels, references=references),
        evidence_section(runs, labels),
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
        lead=summary_sentences(runs, labels)
        if footing is None
        else summary_sentences(footing.runs, labels, searches=footing.searches),
    )


def default_page(runs: Sequence[Path]) -> Path:
    """Where a report goes: into the run, or beside several runs, in the nearest directory that holds them all.

    A sweep or a run that is that directory has a report.html of its own, which stays.
    """
    if len(runs) == 1:
        return runs[0] / PAGE
    parents = [run.resolve().parent for run in runs]
    common = Path(os.path.commonpath(parents))
    place = parents[0] if common == Path(common.anchor) else common
    is_taken = any((place / name).exists() for name in ("grid.json", "result.json", "recipe.json"))
    page = place / ("comparison.html" if is_taken else PAGE)
    return page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page


def write_report(runs: Sequence[RunSummary], path: Path, *, references: Sequence[PublishedValue] = ()) -> Path:
    """Write the report to a file and say where it is."""
    return write_page(render_report(runs, references=references), path)
