"""What tables on the pages share: where measurements are, how they are read, how a table is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hushrank.look.numbers import format_spread

DATA = Path(__file__).parent / "benchmarks"
USERS = ("perfect", "navigational", "informational")

Row = Mapping[str, Any]
Tables = dict[str, Callable[[Path], str]]  # {name of a block: what it makes of the measurements in a folder}


def read(data: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / f"{name}.json").read_text(encoding="utf-8"))
    return found


def make_markdown(header: Sequence[str], rows: Sequence[Sequence[str]], *, n_words: int = 1) -> str:
    """The first `n_words` columns are words, the others numbers."""
    rule = ["---" if i < n_words else "---:" for i in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def show_spread(mean: float, std: float) -> str:
    """On one line."""
    return format_spread(mean, std).replace(" ", "\u00a0")
