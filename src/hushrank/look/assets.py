"""The stylesheet and the script that pages carry inside them, so that nothing is fetched."""

from __future__ import annotations

from importlib.resources import files


def stylesheet() -> str:
    """The CSS of every page."""
    return files(__package__).joinpath("look.css").read_text(encoding="utf-8")


def sort_script() -> str:
    """A few lines of JavaScript that let a reader sort tables marked `data-sortable`; pages work without it."""
    return files(__package__).joinpath("sort.js").read_text(encoding="utf-8")
