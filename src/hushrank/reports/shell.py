"""The frame around every page: one HTML file that holds everything it shows and fetches nothing."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from hushrank.files import write_text
from hushrank.look.assets import scripts, stylesheet
from hushrank.reports.markup import labels_line, paragraph

# Why: a page that may fetch nothing tells nobody that it is being read.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def render_page(
    heading: str, body: str, *, kind: str, when: str = "", lead: str = "", labels: tuple[str, ...] = ()
) -> str:
    """A whole page: what kind of page it is and from when, its title, the outcome in a sentence or two, the rest."""
    product = f"<b>hushrank</b> {escape(kind)}{f' · {escape(when)}' if when else ''}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(heading)} · hushrank</title>\n'
        f'<style>\n{stylesheet()}</style>\n</head>\n<body>\n<main class="page">\n'
        f'<p class="product">{product}</p>\n<h1>{escape(heading)}</h1>\n{labels_line(labels)}'
        f"{paragraph(keep_spreads_whole(lead), style='lead') if lead else ''}\n{body}\n</main>\n"
        f"<script>\n{scripts()}</script>\n</body>\n</html>\n"
    )


def write_page(text: str, path: Path) -> Path:
    """Write a page so that a reader finds the old file or the new one, never half of one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def keep_spreads_whole(text: str) -> str:
    """No line ends between a mean and its spread."""
    return text.replace(" ± ", "\u00a0±\u00a0")


def keep_powers_whole(text: str) -> str:
    """No line ends inside 1e-05, which becomes 1e-5."""
    return re.sub(r"(\de)-0?(\d)", "\\1\u2011\\2", text)
