"""The few pieces of HTML that a report is made of. Everything that enters as text leaves escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

_LONG = 28  # letters in a cell that may be broken over lines
_FEW = 3  # rows up to which a glance does what a filter would
_TALL = 24  # rows above which a table without groups scrolls below its headings


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell of a table."""

    text: str
    value: float | None = None  # the exact number: to sort by, and what a copy as CSV holds
    std: float | None = None  # its spread, a column of its own in CSV
    style: str = ""  # CSS class
    unit: str = ""  # of a heading: what the numbers below it are counted in, for CSV
    copy: str | None = None  # what to copy where it is not what is shown
    href: str = ""  # where the text leads; see `relative_link`
    note: str = ""  # a second, smaller line
    moment: str = ""  # the text as an ISO time, which a script then shows as "3 days ago"


def section(title: str, *parts: str) -> str:
    """A heading and what follows it; nothing when nothing follows."""
    content = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def paragraph(text: str, *, style: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(style)}>{escape(text)}</p>"


def table(
    headings: Sequence[TableCell],
    rows: Iterable[Sequence[TableCell]],
    *,
    label: str,
    has_tools: bool = False,
    style: str = "",
) -> str:
    """A table in its own scroll box; the first cell of each row is that row's heading.

    With tools a reader can sort the rows, filter them if they are many, and copy them as LaTeX and CSV.
    """
    return grouped_table(headings, [("", list(rows))], label=label, has_tools=has_tools, style=style)


def grouped_table(
    headings: Sequence[TableCell],
    groups: Sequence[tuple[str, Sequence[Sequence[TableCell]]]],
    *,
    label: str,
    has_tools: bool = False,
    style: str = "",
) -> str:
    """A table whose rows stand in groups, each below its title; sorting keeps the groups together."""
    n_rows = sum(len(rows) for _, rows in groups)
    tools = _tools(n_rows) if has_tools else ""
    head = "".join(f'<th scope="col"{_class(c.style)}{_facts(c)}>{escape(c.text)}</th>' for c in headings)
    bodies = "".join(_group(title, rows, n_columns=len(headings)) for title, rows in groups)
    box = "scroll tall" if n_rows > _TALL and len(groups) == 1 else "scroll"
    return (
        f'<div class="{box}" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table{tools}{_class(style)}><thead><tr>{head}</tr></thead>{bodies}</table></div>"
    )


def definition_list(pairs: Iterable[tuple[str, str]], *, is_code: bool = False) -> str:
    """Terms with their values."""
    style = ' class="code"' if is_code else ""
    return f"<dl>{''.join(f'<dt>{escape(term)}</dt><dd{style}>{escape(value)}</dd>' for term, value in pairs)}</dl>"


def aside(*parts: str) -> str:
    """Something set apart from the text."""
    return f'<div class="aside">{"".join(parts)}</div>'


def disclosure(summary: str, *parts: str) -> str:
    """Something one click away."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def labels_line(labels: Sequence[str]) -> str:
    """Short labels below a title, such as what the data are; nothing without any."""
    return f'<ul class="labels">{"".join(f"<li>{escape(label)}</li>" for label in labels)}</ul>' if labels else ""


def relative_link(*parts: str) -> str:
    """An address below the page's own folder, whatever the parts hold: no other site, no script."""
    return "./" + "/".join(quote(part) for part in parts)


def csv_link(rows: Iterable[Sequence[object]], *, file_name: str, text: str) -> str:
    """A link that saves rows as a CSV file, carried inside the page."""
    lines = "\r\n".join(",".join(_csv_field(field) for field in row) for row in rows)
    return (
        f'<p class="note"><a download="{escape(file_name)}" href="data:text/csv;charset=utf-8,{quote(lines)}">'
        f"{escape(text)}</a></p>"
    )


def _tools(n_rows: int) -> str:
    marks = ((" data-copyable", 0), (" data-sortable", 1), (" data-filterable", _FEW))
    return "".join(mark for mark, more_than in marks if n_rows > more_than)


def _group(title: str, rows: Sequence[Sequence[TableCell]], *, n_columns: int) -> str:
    head = f'<tr class="group"><th colspan="{n_columns}" scope="rowgroup"><span>{escape(title)}</span></th></tr>'
    return f"<tbody>{head if title else ''}{''.join(f'<tr>{_row(cells)}</tr>' for cells in rows)}</tbody>"


def _row(cells: Sequence[TableCell]) -> str:
    first, *rest = cells
    return _cell(first, "th", ' scope="row"') + "".join(_cell(cell, "td") for cell in rest)


def _cell(cell: TableCell, tag: str, scope: str = "") -> str:
    style = f"{cell.style} long" if len(cell.text) > _LONG else cell.style
    return f"<{tag}{scope}{_class(style.strip())}{_facts(cell)}>{_content(cell)}</{tag}>"


def _content(cell: TableCell) -> str:
    text = escape(cell.text)
    if cell.moment:
        text = f'<time datetime="{escape(cell.moment)}" data-ago>{text}</time>'
    note = f"<small>{escape(cell.note)}</small>" if cell.note else ""
    return (f'<a href="{escape(cell.href)}">{text}</a>' if cell.href else text) + note


def _facts(cell: TableCell) -> str:
    """What the scripts need to know about a cell."""
    facts = {"value": cell.value, "std": cell.std, "unit": cell.unit or None, "copy": cell.copy}
    return "".join(f' data-{name}="{escape(str(fact))}"' for name, fact in facts.items() if fact is not None)


def _class(style: str) -> str:
    return f' class="{escape(style)}"' if style else ""


def _csv_field(field: object) -> str:
    text = str(field)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text
