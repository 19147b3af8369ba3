"""A sweep: what was chosen, every run, and quality against a setting, as a page and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hushrank.files import JsonObject
from hushrank.reports.cells import VALUES_NOTE, count_cell, spread_cells
from hushrank.reports.markup import (
    TableCell,
    definition_list,
    disclosure,
    paragraph,
    relative_link,
    section,
    table,
)
from hushrank.reports.shell import render_page, write_page
from hushrank.reports.sweep_chart import chart_section
from hushrank.reports.sweep_summary import (
    MeanQuality,
    SweepRun,
    SweepSummary,
    axis_text,
    chosen_text,
    outcome,
    read_sweep,
    run_users,
    setting_keys,
)
from hushrank.reports.terminal import Column, FittedTable, plain_table, spread_column
from hushrank.reports.wording import count_text, setting_text

_WHY = (
    "Settings are chosen for each user and for each fold, on that fold's validation queries; what they are worth is "
    "then read on the fold's test queries. Why not once, on the mean over folds: a LETOR fold's validation queries are "
    "another fold's test queries, so choosing on the mean would look at test."
)
_WHY_POOLED = (
    "One setting is chosen for each user, by its mean over all folds' validation queries; what it is worth is then "
    "read on the test queries. A LETOR fold's validation queries are another fold's test queries, so this is not "
    "quite as strict as a choice in each fold (--select vali); with few validation queries it is less noisy."
)
_GO_ON = "hushrank sweep --resume --out DIRECTORY (the one that holds this page)"
_NO_CHOICE = (
    "Nothing was chosen. The highest of several results on test queries flatters itself; to choose settings without "
    "looking at test queries, run the sweep with --select vali."
)


def render_sweep(sweep: JsonObject) -> str:
    """HTML of a sweep, from the JSON that it leaves behind."""
    found = read_sweep(sweep)
    sections = (
        selected_section(found),
        runs_section(found),
        chart_section(found),
        failed_section(found),
        settings_section(found),
    )
    return render_page(found.name, "".join(sections), kind="sweep", lead=outcome(found))


def write_sweep(sweep: JsonObject, path: Path) -> Path:
    """Write the page of a sweep to a file and say where it is."""
    return write_page(render_sweep(sweep), path)


def sweep_table(sweep: JsonObject) -> FittedTable:
    """A rich table of every run, then of what was chosen."""
    return FittedTable(*_terminal(read_sweep(sweep)))


def sweep_text(sweep: JsonObject) -> str:
    """The same as aligned plain text, for pipes and logs."""
    return plain_table(*_terminal(read_sweep(sweep)))


def selected_section(sweep: SweepSummary) -> str:
    """The chosen settings with their quality on test queries, and why they were chosen fold by fold."""
    if not sweep.runs:
        return ""
    if not sweep.is_selecting:
        return section("Chosen settings", paragraph(_NO_CHOICE, style="empty"))
    if not sweep.selected:
        text = f"None yet: settings are chosen when runs have finished. Go on with: {_GO_ON}"
        return section("Chosen settings", paragraph(_why(sweep)), paragraph(text, style="empty"))
    columns = [spread_cells([_pair(s.metrics.get(name)) for s in sweep.selected]) for name in sweep.measures.words]
    rows = [
        [TableCell(s.click), columns[0][i], TableCell(chosen_text(s)), *(c[i] for c in columns[1:]), _n_cell(s.metrics)]
        for i, s in enumerate(sweep.selected)
    ]
    measured = _metric_headings(sweep)
    headings = [TableCell("user"), measured[0], TableCell("chosen"), *measured[1:], _N_HEADING]
    chosen = table(headings, rows, label="Chosen settings", has_tools=True)
    return section("Chosen settings", paragraph(_why(sweep)), chosen, disclosure("Fold by fold", _fold_table(sweep)))


def _why(sweep: SweepSummary) -> str:
    return _WHY_POOLED if sweep.is_pooled else _WHY


def runs_section(sweep: SweepSummary) -> str:
    """A row for each run and user, with a link to the run's own report and, where they are several, its settings."""
    if not sweep.runs:
        text = "A sweep's runs would be listed here. Name values to try in its file, such as server_rate = [1, 10]."
        return section("Runs", paragraph(text, style="empty"))
    pairs = run_users(sweep)
    named = [run.metrics.get(click, {}) for run, click in pairs]
    columns = [spread_cells([_pair(metrics.get(name)) for metrics in named]) for name in sweep.measures.words]
    keys = setting_keys(sweep)
    has_states = bool(sweep.in_state("failed") or sweep.in_state("waiting"))
    rows = [
        [
            TableCell(click),
            *(column[i] for column in columns),
            _n_cell(named[i]),
            *([TableCell(run.state)] if has_states else []),
        ]
        for i, (run, click) in enumerate(pairs)
    ]
    headings = [TableCell("user"), *_metric_headings(sweep), _N_HEADING, *([TableCell("state")] if has_states else [])]
    if len(keys) == 1:  # the name says it all
        headings = [TableCell("run"), *headings]
        rows = [[_run_cell(run), *row] for (run, _), row in zip(pairs, rows, strict=True)]
    else:
        headings = [*(TableCell(key) for key in keys), *headings, TableCell("run")]
        rows = [
            [*(_setting_cell(run, key) for key in keys), *row, _run_cell(run, text="report")]
            for (run, _), row in zip(pairs, rows, strict=True)
        ]
    shown = table(headings, rows, label="Runs", has_tools=True)
    note = f"{VALUES_NOTE} Links lead to the runs' own reports."
    return section("Runs", shown, paragraph(note, style="note"))


def failed_section(sweep: SweepSummary) -> str:
    """What went wrong, a line for each run, and what still has to run."""
    failed, waiting = sweep.in_state("failed"), sweep.in_state("waiting")
    if not failed and not waiting:
        return ""
    rows = [[TableCell(run.label), TableCell(run.error or "No reason was recorded.")] for run in failed]
    parts = [table([TableCell("run"), TableCell("error")], rows, label="Failed runs", has_tools=True)] if failed else []
    left = [
        count_text(len(runs), "run") + words
        for runs, words in ((failed, " failed"), (waiting, f" {'has' if len(waiting) == 1 else 'have'} not begun"))
        if runs
    ]
    text = f"{' and '.join(left)}. Run them with: {_GO_ON}; what has finished is kept."
    return section("Failed and waiting" if waiting else "Failed", *parts, paragraph(text, style="note"))


def settings_section(sweep: SweepSummary) -> str:
    """What was varied, and what all runs share."""
    axes = definition_list([(key, axis_text(values)) for key, values in sweep.axes.items()], is_code=True)
    shared = [(key, setting_text(value)) for key, value in sweep.recipe.items() if key not in setting_keys(sweep)]
    rest = disclosure(f"{len(shared)} that all runs share", definition_list(shared, is_code=True)) if shared else ""
    return section("Settings tried", axes if sweep.axes else "", rest)


_N_HEADING = TableCell("values", style="number slim")


def _metric_headings(sweep: SweepSummary) -> list[TableCell]:
    return [TableCell(text, style="number") for text in sweep.measures.words.values()]


def _fold_table(sweep: SweepSummary) -> str:
    choices = [(selected.click, choice) for selected in sweep.selected for choice in selected.folds]
    vali = spread_cells([(choice.vali, None) for _, choice in choices])
    test = spread_cells([(choice.test, None) for _, choice in choices])
    headings = [TableCell("user"), TableCell("fold", style="number"), TableCell("chosen")]
    words = sweep.measures.words
    headings += [TableCell(words[name], style="number") for name in (sweep.measures.vali, sweep.measures.offline)]
    rows = [
        [TableCell(click), count_cell(choice.fold), TableCell(choice.label), vali[i], test[i]]
        for i, (click, choice) in enumerate(choices)
    ]
    return table(headings, rows, label="Chosen fold by fold", has_tools=True)


def _pair(quality: MeanQuality | None) -> tuple[float | None, float | None]:
    return (quality.mean, quality.std) if quality else (None, None)


def _n_cell(metrics: Mapping[str, MeanQuality]) -> TableCell:
    quality = next(iter(metrics.values()), None)
    return count_cell(quality.n if quality else None)


def _run_cell(run: SweepRun, *, text: str | None = None) -> TableCell:
    """Leads to the run's own report; copied and filtered by the run's name, whatever is shown."""
    is_there = run.state == "finished"
    href = relative_link(run.directory, "report.html") if is_there else ""
    return TableCell(run.label if text is None else text if is_there else "", copy=run.label, href=href)


def _setting_cell(run: SweepRun, key: str) -> TableCell:
    if key not in run.settings:
        return TableCell("")
    value = run.settings[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return TableCell(setting_text(value), value=value if is_number else None, style="code", copy=setting_text(value))


def _terminal(sweep: SweepSummary) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows of the terminal's table."""
    found = [(run.label, click, run.metrics.get(click, {}), _state(run)) for run, click in run_users(sweep)]
    found += [("chosen on validation", s.click, s.metrics, "") for s in sweep.selected]
    columns = [spread_column([_pair(metrics.get(name)) for _, _, metrics, _ in found]) for name in sweep.measures.words]
    rows = [
        [label, click, *(column[i] for column in columns), _n_cell(metrics).text, state]
        for i, (label, click, metrics, state) in enumerate(found)
    ]
    numbers = [Column(text, is_number=True) for text in (*sweep.measures.words.values(), "values")]
    headings = [Column("run"), Column("user"), *numbers, Column("state")]
    if any(row[-1] for row in rows):
        return headings, rows
    return headings[:-1], [row[:-1] for row in rows]


def _state(run: SweepRun) -> str:
    """What is worth saying about a run; nothing when all went well."""
    if run.state == "finished":
        return ""
    return f"{run.state}: {run.error}" if run.error else run.state
