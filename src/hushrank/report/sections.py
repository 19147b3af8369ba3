"""The sections of a report, each a function of the runs and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hushrank.look.numbers import (
    align_spreads,
    format_bytes,
    format_count,
    format_seconds,
    format_spread,
)
from hushrank.metrics.ndcg import ndcg_variant
from hushrank.report.curves import CURVES, curve_figure
from hushrank.report.differences import compare_with_first
from hushrank.report.markup import Cell, csv_link, definition_list, disclosure, paragraph, section, table
from hushrank.report.summary import Metric, RunSummary
from hushrank.report.wording import OFFLINE, ONLINE, VALI, click_models, n_values_text, setting_text

_COLUMNS = ((OFFLINE, "test nDCG@10"), (VALI, "validation nDCG@10"), (ONLINE, "online nDCG@10"))


def result_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """The final table, what its numbers mean, and all other measures one click away."""
    rows = _run_click_rows(runs, labels)
    if not rows:
        return section("Result", paragraph("This run recorded no metrics.", style="empty"))
    counts = [n_values_text(named.get(OFFLINE) or next(iter(named.values()), None)) for _, _, named in rows]
    return section(
        "Result",
        _metric_table(rows, _COLUMNS, counts, label="Result"),
        paragraph(_metric_note(runs, rows), style="note"),
        _other_measures(rows, counts),
        _result_csv(rows),
    )


def curve_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Two charts per click model: what was learnt, and what people saw meanwhile."""
    clicks = click_models(runs)
    rows = []
    for i, click in enumerate(clicks):
        figures = [
            curve_figure(runs, labels, kind, click=click, name=f"curve-{i}-{j}") for j, kind in enumerate(CURVES)
        ]
        rows.append(f'<h3>The {escape(click)} user</h3><div class="pair">{"".join(figures)}</div>')
    has_spread = any(
        metric.std is not None for run in runs for named in run.metrics.values() for metric in named.values()
    )
    band = "The band is one standard deviation over folds and repeats to each side." if has_spread else ""
    note = f"In pairs: the ranker on test queries, and the lists that people were shown while it learnt. {band}".strip()
    return section("Learning curves", paragraph(note, style="note"), *rows) if rows else ""


def difference_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Paired tests against the first run."""
    return section("Is the difference real?", compare_with_first(runs, labels)) if len(runs) > 1 else ""


def cost_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """What a run took, from the machine and from each client."""
    texts = [
        ("searches", [format_count(run.n_interactions) for run in runs]),
        ("time", [format_seconds(run.wall_s) for run in runs]),
        ("processor time", [format_seconds(run.cpu_s) for run in runs]),
        ("searches per second", [format_count(_ratio(run.n_interactions, run.wall_s)) for run in runs]),
        ("searches per processor second", [format_count(_ratio(run.n_interactions, run.cpu_s)) for run in runs]),
        ("sent per client and round", [format_bytes(run.bytes_per_client_round) for run in runs]),
    ]
    if len(runs) == 1:
        return section("Cost", definition_list([(name, cells[0]) for name, cells in texts]))
    headings = [Cell("run"), *(Cell(name, style="number") for name, _ in texts)]
    rows = [[Cell(label), *(Cell(cells[i], style="number") for _, cells in texts)] for i, label in enumerate(labels)]
    return section("Cost", table(headings, rows, label="Cost"))


def privacy_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Who learns what."""
    by_text: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        text = run.privacy or "No statement was recorded. Assume that the server sees every client's update."
        by_text.setdefault(text, []).append(label)
    if len(by_text) == 1:
        boxes = [f'<div class="aside">{paragraph(text)}</div>' for text in by_text]
    else:
        boxes = [definition_list([(", ".join(names), text) for text, names in by_text.items()])]
    return section("Who learns what", *boxes)


def recipe_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """The settings: first those in which the runs differ, then those that they share."""
    extra = [{"data": run.data.get("name"), "normalise": run.data.get("normalise"), "seed": run.seed} for run in runs]
    settings = [
        {**run.recipe, **{k: v for k, v in more.items() if k not in run.recipe and v is not None}}
        for run, more in zip(runs, extra, strict=True)
    ]
    return section("Recipe", *_side_by_side(settings, labels, "setting", "The settings are the same in every run."))


def environment_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """Where and with what the runs were made."""
    facts = [{**({"device": run.device} if run.device else {}), **run.environment} for run in runs]
    if not any(facts):
        return section("Environment", paragraph("Nothing was recorded about it.", style="empty"))
    return section("Environment", *_side_by_side(facts, labels, "fact", "The same for every run."))


def _run_click_rows(runs: Sequence[RunSummary], labels: Sequence[str]) -> list[tuple[str, str, Mapping[str, Metric]]]:
    return [
        (label, click, run.metrics[click])
        for click in click_models(runs)
        for run, label in zip(runs, labels, strict=True)
        if click in run.metrics
    ]


def _metric_table(
    rows: Sequence[tuple[str, str, Mapping[str, Metric]]],
    columns: Sequence[tuple[str, str]],
    counts: Sequence[str],
    *,
    label: str,
) -> str:
    present = [(name, text) for name, text in columns if any(name in named for _, _, named in rows)]
    cells = {name: _metric_cells([named.get(name) for _, _, named in rows]) for name, _ in present}
    headings = [Cell("run"), Cell("user"), *(Cell(text, style="number") for _, text in present), Cell("over")]
    body = [
        [Cell(run), Cell(click), *(cells[name][i] for name, _ in present), Cell(counts[i])]
        for i, (run, click, _) in enumerate(rows)
    ]
    return table(headings, body, label=label, is_sortable=len(body) > 1)


def _metric_cells(metrics: Sequence[Metric | None]) -> list[Cell]:
    texts = [format_spread(m.mean, m.std) if m else format_spread(None, None) for m in metrics]
    return [
        Cell(text, value=m.mean if m and m.mean == m.mean else None, style="number")
        for text, m in zip(align_spreads(texts), metrics, strict=True)
    ]


def _metric_note(runs: Sequence[RunSummary], rows: Sequence[tuple[str, str, Mapping[str, Metric]]]) -> str:
    skipped = {setting_text(run.data["n_queries_skipped"]) for run in runs if "n_queries_skipped" in run.data}
    count = f" ({' / '.join(sorted(skipped))} here)" if skipped else ""
    parts = [
        f"nDCG@10 is what ir-measures calls {ndcg_variant(10)}: gain 2^grade \u2212 1, discount 1/log2(1 + rank), the "
        "ideal order over all documents of the query, equal scores in the order of the file.",
        f"Queries without a relevant document are skipped{count}; trec_eval counts them as 0.",
        "Online is a sum over rounds: the mean nDCG@10 of the lists shown, discounted by .9995 per round.",
    ]
    if any(metric.std is not None for _, _, named in rows for metric in named.values()):
        parts.append("± is one standard deviation.")
    if any(metric.std is None for _, _, named in rows for metric in named.values()):
        parts.append("A result of a single fold and repeat has no spread to show; more --repeats would give it one.")
    return " ".join(parts)


def _other_measures(rows: Sequence[tuple[str, str, Mapping[str, Metric]]], counts: Sequence[str]) -> str:
    known = {name for name, _ in _COLUMNS}
    others = dict.fromkeys(name for _, _, named in rows for name in named if name not in known)
    if not others:
        return ""
    columns = [(name, name.replace("offline/", "")) for name in others]
    return disclosure("Other measures", _metric_table(rows, columns, counts, label="Other measures"))


def _result_csv(rows: Sequence[tuple[str, str, Mapping[str, Metric]]]) -> str:
    lines: list[tuple[object, ...]] = [("run", "click", "metric", "fold", "repeat", "value")]
    for label, click, named in rows:
        for name, metric in named.items():
            lines += [(label, click, name, v.fold, v.repeat, v.value) for v in metric.values]
    return csv_link(lines, file_name="results.csv", text="Save every single result as CSV")


def _side_by_side(facts: Sequence[Mapping[str, Any]], labels: Sequence[str], noun: str, all_same: str) -> list[str]:
    """What differs as a table, values unlike the first run's in bold with a sign; what is shared as a list."""
    keys = list(dict.fromkeys(key for fact in facts for key in fact))
    texts = {key: [setting_text(fact[key]) if key in fact else "not set" for fact in facts] for key in keys}
    same = [key for key in keys if len(set(texts[key])) == 1]
    shared = definition_list([(key, texts[key][0]) for key in same], is_code=True)
    if len(facts) == 1:
        return [shared]
    if len(same) == len(keys):
        return [paragraph(all_same), shared]
    rows = [[Cell(key), *_marked(texts[key])] for key in keys if key not in same]
    headings = [Cell(noun), *(Cell(label) for label in labels)]
    note = "Only what differs. Values unlike those of the first run are bold and carry a ≠."
    parts = [paragraph(note, style="note"), table(headings, rows, label=f"{noun}s that differ")]
    return [*parts, disclosure(f"{len(same)} that all runs share", shared)] if same else parts


def _marked(texts: Sequence[str]) -> list[Cell]:
    first, *rest = texts
    others = [Cell(f"≠ {text}", style="code differs") if text != first else Cell(text, style="code") for text in rest]
    return [Cell(first, style="code"), *others]


def _ratio(amount: float | None, seconds: float | None) -> float | None:
    return amount / seconds if amount is not None and seconds else None
