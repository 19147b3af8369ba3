"""All clients alike: nothing is divided."""

from __future__ import annotations

from dataclasses import dataclass

IID = "iid"


@dataclass(frozen=True, slots=True)
class Alike:
    """The name of what every client has in common; it is never asked to divide."""
