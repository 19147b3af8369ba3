"""The sections of a report, each a function of the runs and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from hushrank.metrics.ndcg import ndcg_variant
from hushrank.reports.budgets import Footing, explain_budgets, tabulate_budgets
from hushrank.reports.cells import count_cell, spread_cells
from hushrank.reports.curves import PublishedValue, curve_figure, curves_of, drawn_runs, references_for
from hushrank.reports.differences import compare_with_first
from hushrank.reports.markup import TableCell, aside, csv_link, definition_list, disclosure, paragraph, section, table
from hushrank.reports.shell import keep_powers_whole
from hushrank.reports.side_by_side import side_by_side
from hushrank.reports.summary import Metric, RunSummary, RunWarning
from hushrank.reports.wording import (
    OFFLINE,
    ONLINE,
    PER_SEARCH,
    PERSONAL,
    Measures,
    click_models,
    measures_of,
    n_values_text,
    setting_text,
    some_of,
)

_MOST_GROUPS = 8  # of clients, whose own measures are shown; a run's JSON has all of them
_FEW_BOXES = 3  # up to which everything is shown
_OF_LOGS = (
    "MAP is the mean, over all searches of all users that have a click, of the average precision: clicked documents "
    "are relevant, and equal scores keep the search engine's order.",
    "Searches without a click are left out.",
)
_Rows = Sequence[tuple[str, str, Mapping[str, Metric]]]  # run, user, metrics


def budget_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """What each training was given, where the runs differ in it."""
    sentences = explain_budgets(runs, labels)
    if not sentences:
        return ""
    headings, rows = tabulate_budgets(runs)
    cells = [
        [TableCell(label), *(TableCell(c, style="number") if isinstance(c, str) else count_cell(c) for c in row)]
        for label, row in zip(labels, rows, strict=True)
    ]
    columns = [TableCell("run"), *(TableCell(text, style="number") for text in headings)]
    said = [paragraph(text) for text in sentences]
    note = paragraph("Of one training: a user, a fold, a repeat.", style="note")
    return section("Budgets", *said, table(columns, cells, label="Budgets", has_tools=True), note)


def warning_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """What was noticed in each run, warnings first; runs in which that is the same share a line."""
    by_warning: dict[RunWarning, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        for warning in run.warnings:
            by_warning.setdefault(warning, []).append(label)
    found = sorted(by_warning.items(), key=lambda pair: pair[0].kind != "warning")
    whose = {warning: f" ({some_of(names)})" if len(runs) > 1 else "" for warning, names in found}
    lines = [paragraph(f"{warning.kind.capitalize()}{whose[warning]}: {warning.text}") for warning, _ in found]
    return section("Warnings and notes", aside(*lines)) if lines else ""


def result_sections(runs: Sequence[RunSummary], labels: Sequence[str], footing: Footing | None) -> str:
    """One table, or two for runs of unequal length: where they had searched equally often, and where each ended."""
    if footing is None:
        return result_section(runs, labels)
    ends = [_without_sums(run) for run in runs]
    fair = (
        result_section(footing.runs, labels, title=f"Result up to {footing.searches:,} searches")
        if footing.searches
        else ""
    )
    return fair + result_section(ends, labels, title="Result where each run ended")


def result_section(runs: Sequence[RunSummary], labels: Sequence[str], *, title: str = "Result") -> str:
    """The final table, what its numbers mean, and all other measures one click away."""
    rows = _run_click_rows(runs, labels)
    if not rows:
        return section(title, paragraph("This run recorded no metrics.", style="empty"))
    measures = measures_of(runs)
    counts = [n_values_text(named.get(measures.offline) or next(iter(named.values()), None)) for _, _, named in rows]
    return section(
        title,
        _metric_table(rows, tuple(measures.compared.items()), counts, label=title),
        paragraph(_metric_note(runs, rows), style="note"),
        _other_measures(rows, counts, measures),
        _result_csv(rows),
    )


def curve_section(
    runs: Sequence[RunSummary],
    labels: Sequence[str],
    *,
    references: Sequence[PublishedValue] = (),
    title: str = "Learning curves",
    name: str = "curve",
    remark: str = "",
) -> str:
    """Two charts per click model: what was learnt, and what people saw meanwhile. `name` is unique on the page."""
    drawn = drawn_runs(runs)
    shown, shown_labels = [runs[i] for i in drawn], [labels[i] for i in drawn]
    rows = []
    for i, click in enumerate(click_models(runs)):
        figures = [
            curve_figure(
                shown,
                shown_labels,
                kind,
                click=click,
                name=f"{name}-{i}-{j}",
                references=references_for(references, metric=kind.metric, click=click),
            )
            for j, kind in enumerate(curves_of(measures_of(runs)))
        ]
        heading = escape(measures_of(runs).heading(click))
        rows.append(f'<h3>{heading}</h3><div class="pair">{"".join(figures)}</div>')
    left_out = [label for i, label in enumerate(labels) if i not in drawn]
    note = paragraph(f"{_curve_note(shown, references)} {remark}".strip(), style="note")
    return section(title, note, _left_out(left_out, n_drawn=len(drawn)), *rows) if rows else ""


def difference_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Paired tests against the first run."""
    return section("Is the difference real?", compare_with_first(runs, labels)) if len(runs) > 1 else ""


def privacy_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Who learns what: what is promised, and who sees what. Runs in which that is the same share a box."""
    boxes: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        promise = run.privacy or "No statement was recorded. Assume that the server sees every client's update."
        boxes.setdefault((promise, run.learns), []).append(label)
    parts = []
    for (promise, learns), names in boxes.items():
        lines = definition_list((who, keep_powers_whole(what)) for who, what in learns) if learns else ""
        lines = disclosure("Who sees what", lines) if lines and len(boxes) > _FEW_BOXES else lines
        heading = f"<h3>{escape(some_of(names))}</h3>" if len(boxes) > 1 else ""
        parts.append(heading + aside(paragraph(keep_powers_whole(promise)), lines))
    return section("Who learns what", *parts)


def recipe_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """The settings: first those in which the runs differ, then those that they share."""
    extra = [{"data": run.data.get("name"), "normalise": run.data.get("normalise"), "seed": run.seed} for run in runs]
    settings = [
        {**run.recipe, **{k: v for k, v in more.items() if k not in run.recipe and v is not None}}
        for run, more in zip(runs, extra, strict=True)
    ]
    parts = side_by_side(settings, labels, "setting", all_same="The settings are the same in every run.")
    return section("Recipe", *parts)


def environment_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Where and with what the runs were made."""
    facts = [{**({"device": run.device} if run.device else {}), **run.environment} for run in runs]
    if not any(facts):
        return section("Environment", paragraph("Nothing was recorded about it.", style="empty"))
    return section("Environment", *side_by_side(facts, labels, "fact", all_same="The same for every run."))


def _run_click_rows(runs: Sequence[RunSummary], labels: Sequence[str]) -> _Rows:
    return [
        (label, click, run.metrics[click])
        for click in click_models(runs)
        for run, label in zip(runs, labels, strict=True)
        if click in run.metrics
    ]


def _metric_table(rows: _Rows, columns: Sequence[tuple[str, str]], counts: Sequence[str], *, label: str) -> str:
    present = [(name, text) for name, text in columns if any(name in named for _, _, named in rows)]
    cells = {name: _metric_cells([named.get(name) for _, _, named in rows]) for name, _ in present}
    headings = [
        TableCell("run"),
        TableCell("user"),
        *(TableCell(text, style="number") for _, text in present),
        TableCell("over"),
    ]
    body = [
        [TableCell(run), TableCell(click), *(cells[name][i] for name, _ in present), TableCell(counts[i])]
        for i, (run, click, _) in enumerate(rows)
    ]
    return table(headings, body, label=label, has_tools=True)


def _without_sums(run: RunSummary) -> RunSummary:
    """Why: sums over unequally many rounds side by side say who ran longer."""
    kept = {click: {k: v for k, v in named.items() if k != ONLINE} for click, named in run.metrics.items()}
    return replace(run, metrics=kept)


def _metric_cells(metrics: Sequence[Metric | None]) -> list[TableCell]:
    return spread_cells([(m.mean, m.std) if m else (None, None) for m in metrics])


def _metric_note(runs: Sequence[RunSummary], rows: _Rows) -> str:
    skipped = {setting_text(run.data["n_queries_skipped"]) for run in runs if "n_queries_skipped" in run.data}
    count = f" ({' / '.join(sorted(skipped))} here)" if skipped else ""
    usual = [
        f"nDCG@10 is what ir-measures calls {ndcg_variant(10)}: gain 2^grade \u2212 1, discount 1/log2(1 + rank), the "
        "ideal order over all documents of the query, equal scores in the order of the file.",
        f"Queries without a relevant document are skipped{count}; trec_eval counts them as 0.",
    ]
    parts = usual if measures_of(runs).is_usual else list(_OF_LOGS)
    names = {name for _, _, named in rows for name in named}
    if ONLINE in names:
        parts.append("Online is a sum over rounds: the mean nDCG@10 of the lists shown, discounted by .9995 per round.")
    if PER_SEARCH in names:
        parts.append("Online per search is the mean nDCG@10 of the lists shown in these searches, not discounted.")
    if PERSONAL in names:
        parts.append("Personal is each client's own ranker on that client's own test queries, the mean over clients.")
    if any(metric.std is not None for _, _, named in rows for metric in named.values()):
        parts.append("± is one standard deviation.")
    if any(metric.std is None for _, _, named in rows for metric in named.values()):
        parts.append("A result of a single fold and repeat has no spread to show; more --repeats would give it one.")
    return " ".join(parts)


def _other_measures(rows: _Rows, counts: Sequence[str], measures: Measures) -> str:
    others = dict.fromkeys(name for _, _, named in rows for name in named if name not in measures.compared)
    of_groups = [name for name in others if name.count("/") > 1]
    if len({name.rpartition("/")[2] for name in of_groups}) > _MOST_GROUPS:
        others = dict.fromkeys(name for name in others if name not in of_groups)
    if not others:
        return ""
    columns = [(name, name.replace("offline/", "")) for name in others]
    return disclosure("Other measures", _metric_table(rows, columns, counts, label="Other measures"))


def _result_csv(rows: _Rows) -> str:
    lines: list[tuple[object, ...]] = [("run", "click", "metric", "fold", "repeat", "value")]
    for label, click, named in rows:
        for name, metric in named.items():
            lines += [(label, click, name, v.fold, v.repeat, v.value) for v in metric.values]
    return csv_link(lines, file_name="results.csv", text="Save every single result as CSV")


def _curve_note(runs: Sequence[RunSummary], references: Sequence[PublishedValue]) -> str:
    text = "In pairs: the model on test queries, and on validation queries."
    if measures_of(runs).is_usual:
        text = "In pairs: the ranker on test queries, and the lists that people were shown while it learnt."
    if any(metric.std is not None for run in runs for named in run.metrics.values() for metric in named.values()):
        text += " The band is one standard deviation over folds and repeats to each side."
    if references_for(references, metric=OFFLINE, click="") or any(p.click and p.metric == OFFLINE for p in references):
        text += " Dotted lines are published values."
    if any(p.metric == ONLINE for p in references):
        text += " PublishedValue online values are sums over rounds and therefore not drawn."
    return text


def _left_out(labels: Sequence[str], *, n_drawn: int) -> str:
    """Which runs the charts do not show, and how to see them."""
    if not labels:
        return ""
    n = n_drawn + len(labels)
    text = (
        f"Of {n} runs {n_drawn} are drawn: the first, and those that ended highest on test queries, on the mean over "
        "users. All of them are in the tables. To draw others, name fewer: hushrank report RUN..."
    )
    names = "".join(f"<li>{escape(label)}</li>" for label in labels)
    return paragraph(text, style="note") + disclosure(f"{len(labels)} runs that are not drawn", f"<ul>{names}</ul>")
