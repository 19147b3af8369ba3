"""What `aggregation/compatibility.py` refuses, as a section of the reference."""

from __future__ import annotations

from hushrank.aggregation.compatibility import (
    REFUSED,
    Aggregation,
    Attendance,
    Conduct,
    Learner,
    Part,
    Privacy,
    Topology,
)

_KINDS = (Learner, Aggregation, Privacy, Attendance, Topology, Conduct)
_NAMES = {"aggregation": "NAME", "attack": "NAME"}  # of whatever a recipe names


def describe_compatibility() -> str:
    """The parts that meet in a recipe, and which two of them cannot."""
    kinds = "; ".join(f"{kind.__name__.lower()} ({', '.join(kind)})" for kind in _KINDS)
    rows: dict[tuple[Part, str], list[str]] = {}
    for (first, second), reason in REFUSED.items():
        rows.setdefault((first, reason.format(**_NAMES)), []).append(str(second))
    lines = [f"| {first} | {', '.join(seconds)} | {reason} |" for (first, reason), seconds in rows.items()]
    return "\n\n".join(
        [
            "## What works together",
            f"A recipe has one part of each kind: {kinds}. A combination works when every two of its parts do. These "
            "do not; everything else does:",
            "\n".join(["| part | not with | because |", "| --- | --- | --- |", *lines]),
        ]
    )
