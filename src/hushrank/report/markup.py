"""The few pieces of HTML that a report is made of. Everything that enters as text leaves escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

_LONG = 28  # letters in a cell that may be broken over lines


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    value: float | None = None  # to sort by
    style: str = ""  # CSS class


def section(title: str, *parts: str) -> str:
    """A heading and what follows it; nothing when nothing follows."""
    content = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def paragraph(text: str, *, style: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(style)}>{escape(text)}</p>"


def table(
    headings: Sequence[Cell], rows: Iterable[Sequence[Cell]], *, label: str, is_sortable: bool = False, style: str = ""
) -> str:
    """A table in its own scroll box; the first cell of each row is that row's heading."""
    head = "".join(f'<th scope="col"{_class(cell.style)}>{escape(cell.text)}</th>' for cell in headings)
    body = "".join(f"<tr>{_row(cells)}</tr>" for cells in rows)
    sortable = " data-sortable" if is_sortable else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table{sortable}{_class(style)}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def definition_list(pairs: Iterable[tuple[str, str]], *, is_code: bool = False) -> str:
    """Terms with their values."""
    style = ' class="code"' if is_code else ""
    return f"<dl>{''.join(f'<dt>{escape(term)}</dt><dd{style}>{escape(value)}</dd>' for term, value in pairs)}</dl>"


def disclosure(summary: str, *parts: str) -> str:
    """Something one click away."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def csv_link(rows: Iterable[Sequence[object]], *, file_name: str, text: str) -> str:
    """A link that saves rows as a CSV file, carried inside the page."""
    lines = "\r\n".join(",".join(_csv_field(field) for field in row) for row in rows)
    return (
        f'<p class="note"><a download="{escape(file_name)}" href="data:text/csv;charset=utf-8,{quote(lines)}">'
        f"{escape(text)}</a></p>"
    )


def _row(cells: Sequence[Cell]) -> str:
    first, *rest = cells
    return _cell(first, "th", ' scope="row"') + "".join(_cell(cell, "td") for cell in rest)


def _cell(cell: Cell, tag: str, scope: str = "") -> str:
    style = f"{cell.style} long" if len(cell.text) > _LONG else cell.style
    return f"<{tag}{scope}{_class(style.strip())}{_sort_value(cell)}>{escape(cell.text)}</{tag}>"


def _sort_value(cell: Cell) -> str:
    return "" if cell.value is None else f' data-value="{cell.value!r}"'


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def _csv_field(field: object) -> str:
    text = str(field)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text
