"""What runs took: time of the machine, and bytes that clients sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushrank.look.numbers import NOT_KNOWN, format_bytes, format_count, format_seconds
from hushrank.reports.markup import TableCell, definition_list, paragraph, section, table
from hushrank.reports.summary import RunSummary
from hushrank.reports.wording import n_rankers


@dataclass(frozen=True, slots=True)
class _Amount:
    """One column of the table of costs."""

    name: str
    unit: str
    values: list[float | None]  # [n_runs]
    texts: list[str]  # [n_runs]


def cost_section(runs: Sequence[RunSummary], labels: Sequence[str], *, title: str = "Cost") -> str:
    """Interactions, time and bytes of each run."""
    amounts = _amounts(runs)
    note = _explain(runs)
    if len(runs) == 1:
        return section(title, definition_list([(amount.name, amount.texts[0]) for amount in amounts]), note)
    headings = [TableCell("run"), *(TableCell(amount.name, style="number", unit=amount.unit) for amount in amounts)]
    rows = [
        [TableCell(label), *(TableCell(amount.texts[i], value=amount.values[i], style="number") for amount in amounts)]
        for i, label in enumerate(labels)
    ]
    return section(title, table(headings, rows, label=title, has_tools=True), note) if runs else ""


def bytes_up(run: RunSummary) -> float | None:
    """Bytes that all clients together sent: rankers x rounds x clients of a round x bytes of an update."""
    if run.forgetting:
        return float(run.forgetting["work"]["bytes"]["forgetting"])
    clients = run.recipe.get("cohort") or run.recipe.get("n_clients")
    rounds, size = run.recipe.get("rounds"), run.bytes_per_client_round
    if not isinstance(clients, int) or not isinstance(rounds, int) or size is None:
        return None
    return size * (clients * rounds if run.messages is None else run.messages) * n_rankers(run)


def _amounts(runs: Sequence[RunSummary]) -> list[_Amount]:
    counts, wall, cpu = [run.n_interactions for run in runs], [run.wall_s for run in runs], [run.cpu_s for run in runs]
    speed = [_ratio(run.n_interactions, run.cpu_s) for run in runs]
    each, total = [run.bytes_per_client_round for run in runs], [bytes_up(run) for run in runs]
    return [
        _Amount("interactions", "", counts, [format_count(n) for n in counts]),
        _Amount("wall time", "s", wall, [format_seconds(s) for s in wall]),
        _Amount("CPU time", "s", cpu, [format_seconds(s) for s in cpu]),
        _Amount("interactions per CPU second", "", speed, [_rate_text(rate) for rate in speed]),
        _Amount("sent per client and round", "bytes", each, [format_bytes(b) for b in each]),
        _Amount("sent by all clients", "bytes", total, [format_bytes(b) for b in total]),
    ]


def _explain(runs: Sequence[RunSummary]) -> str:
    text = "Interactions are searches. They, the times and what all clients sent are over all users, folds and repeats."
    if any(run.recipe.get("dropout") for run in runs):
        text += " Updates that were sent and never arrived are counted."
    return paragraph(text, style="note")


def _ratio(amount: float | None, seconds: float | None) -> float | None:
    return amount / seconds if amount is not None and seconds else None


def _rate_text(rate: float | None) -> str:
    """Three digits: nobody measures a speed more exactly."""
    return NOT_KNOWN if rate is None else format_count(float(f"{rate:.3g}"))
