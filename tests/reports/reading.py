"""Pages as a browser and as a person read them."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Checker(HTMLParser):
    """Notes everything that a browser would fetch, and tags that were never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [v or "" for name, v in attrs if name in ("src", "href", "srcset", "action", "poster")]
        if tag not in ("meta", "link", "br") and not self.is_empty:
            self.open.append(tag)

    is_empty = False

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_empty = True
        self.handle_starttag(tag, attrs)
        self.is_empty = False

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def text_of(page: str) -> str:
    """What a person reads."""
    visible = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", visible))
