"""Who adds the noise of a sum, and which two federations it must make look alike."""

from __future__ import annotations

from enum import StrEnum


class Placement(StrEnum):
    """Who adds the noise."""

    server = "server"
    clients = "clients"


class Adjacency(StrEnum):
    """Which two federations must look alike."""

    add_remove = "add-remove"
    replace_one = "replace-one"

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        raise ValueError(f"adjacency is {value!r}, must be one of {', '.join(cls)}.")

    @property
    def factor(self) -> int:
        """How many clip norms one client can move a sum."""
        return 1 if self is Adjacency.add_remove else 2

    @property
    def words(self) -> str:
        return "adding or removing one client" if self is Adjacency.add_remove else "replacing one client by another"
