"""Facts of several runs side by side: what differs first and marked, what they share one click away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushrank.reports.cells import known
from hushrank.reports.markup import TableCell, definition_list, disclosure, paragraph, table
from hushrank.reports.wording import setting_text

_MAX_COLUMNS = 6  # runs that stand beside each other; more stand below each other, where a reader can filter them
_NOTE = "Only what differs. Values unlike those of the first run are bold and carry a ≠."


def side_by_side(
    facts: Sequence[Mapping[str, object]], labels: Sequence[str], noun: str, *, all_same: str
) -> list[str]:
    """A table of the keys that differ between the runs, then the shared ones; for one run a list of all."""
    keys = list(dict.fromkeys(key for fact in facts for key in fact))
    texts = {key: [setting_text(fact[key]) if key in fact else "not set" for fact in facts] for key in keys}
    same = [key for key in keys if len(set(texts[key])) == 1]
    shared = definition_list([(key, texts[key][0]) for key in same], is_code=True)
    if len(facts) == 1:
        return [shared]
    if len(same) == len(keys):
        return [paragraph(all_same), disclosure(f"{len(same)} {noun}s", shared)]
    differing = {key: _marked(texts[key]) for key in keys if key not in same}
    parts = [paragraph(_NOTE, style="note"), _difference_table(differing, labels, noun)]
    return [*parts, disclosure(f"{len(same)} that all runs share", shared)] if same else parts


def _difference_table(differing: Mapping[str, Sequence[TableCell]], labels: Sequence[str], noun: str) -> str:
    """A row per key; for many runs a row per run."""
    name = f"{noun}s that differ"
    if len(labels) <= _MAX_COLUMNS:
        rows = [[TableCell(key, style="code"), *cells] for key, cells in differing.items()]
        return table([TableCell(noun), *(TableCell(label) for label in labels)], rows, label=name, has_tools=True)
    rows = [[TableCell(label), *(cells[i] for cells in differing.values())] for i, label in enumerate(labels)]
    return table([TableCell("run"), *(TableCell(key) for key in differing)], rows, label=name, has_tools=True)


def _marked(texts: Sequence[str]) -> list[TableCell]:
    """Values unlike the first are marked; what is copied is the value alone."""
    return [
        TableCell(f"≠ {text}", style="code differs", value=_number(text), copy=text)
        if text != texts[0]
        else TableCell(text, style="code", value=_number(text), copy=text)
        for text in texts
    ]


def _number(text: str) -> float | None:
    """To sort by, where a setting is a number."""
    try:
        return known(float(text))
    except ValueError:
        return None
