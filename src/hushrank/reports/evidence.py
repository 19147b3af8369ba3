"""What an aggregation rule or a remedy noticed during training, over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite

from hushrank.reports.curves import CurveKind, curve_figure, drawn_runs
from hushrank.reports.markup import paragraph, section
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import click_models, measures_of

_EVIDENCE = "evidence/"
WORDS = {  # {evidence: what its axis says}; others are called by their own names
    "caught": "part of the liars' updates that did not count",
    "wronged": "part of the honest updates that did not count",
    "left_out": "clients left out of a round",
    "opposition": "most evidence of opposition; 1 is enough",
    "loudness": "most evidence of loudness; 1 is enough",
    "copies": "most evidence of copies; 1 is enough",
    "alike": "updates for which a copy counted",
    "consensus": "agreement of most clients",
    "refused": "updates refused in a round",
    "suspects": "clients suspected in a round",
    "open_tastes": "tastes that are open",
    "answers": "clients that answered in time, of a step",
    "attempts": "attempts until half of the clients answered",
}


def evidence_section(runs: Sequence[RunSummary], labels: Sequence[str]) -> str:
    """A chart for each kind of evidence and each user; nothing where nothing was noticed or looked for."""
    drawn = drawn_runs(runs)
    shown, shown_labels = [runs[i] for i in drawn], [labels[i] for i in drawn]
    rows = []
    for i, click in enumerate(click_models(runs)):
        kinds = [CurveKind(name, WORDS.get(name.removeprefix(_EVIDENCE), name)) for name in _recorded(shown, click)]
        figures = [
            curve_figure(shown, shown_labels, kind, click=click, name=f"evidence-{i}-{j}")
            for j, kind in enumerate(kinds)
        ]
        if figures:
            rows.append(
                f'<h3>{escape(measures_of(runs).heading(click))}</h3><div class="pair">{"".join(figures)}</div>'
            )
    note = "What the aggregation rule, or the remedy, told about the rounds: the mean since the look before."
    return section("Evidence", paragraph(note, style="note"), *rows) if rows else ""


def _recorded(runs: Sequence[RunSummary], click: str) -> list[str]:
    """Names of evidence with a number somewhere, in the order of WORDS and then of the alphabet."""
    names = {
        found.name
        for run in runs
        for found in run.curve
        if found.click == click and found.name.startswith(_EVIDENCE) and isfinite(found.value)
    }
    order = {f"{_EVIDENCE}{name}": place for place, name in enumerate(WORDS)}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))
