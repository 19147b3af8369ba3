"""The stylesheet and the scripts that pages carry inside them, so that nothing is fetched."""

from __future__ import annotations

from importlib.resources import files

_SCRIPTS = ("sort.js", "filter.js", "copy.js", "ago.js")  # one idea each; a page works without any of them


def stylesheet() -> str:
    """The CSS of every page."""
    return _read("look.css")


def scripts() -> str:
    """A few lines of JavaScript: tables marked for it can be sorted, filtered and copied, times become relative."""
    return "".join(_read(name) for name in _SCRIPTS)


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
