"""Who adds the noise of a sum, how clients are drawn, and which two federations must look alike."""

from __future__ import annotations

from enum import StrEnum


class Placement(StrEnum):
    """Who adds the noise."""

    server = "server"
    clients = "clients"


class Scheme(StrEnum):
    """How the clients of a round are drawn."""

    poisson = "poisson"  # each independently
    fixed = "fixed"  # so many of a larger number: who is drawn depends on who else is there
    rotation = "rotation"  # in turn, in an order that is drawn once
    everybody = "everybody"  # all, in every round

    @classmethod
    def _missing_(cls, value: object) -> Scheme:
        raise ValueError(f"the sampling scheme is {value!r}, must be one of {', '.join(cls)}.")


class Adjacency(StrEnum):
    """Which two federations must look alike: the neighbouring relation, without which an epsilon says nothing."""

    zero_out = "zero-out"
    replace_one = "replace-one"
    add_remove = "add-remove"

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        raise ValueError(f"adjacency is {value!r}, must be one of {', '.join(cls)}.")

    def factor(self, scheme: str = Scheme.fixed) -> int:
        """How many clip norms one client can move a sum.

        Zero-out: its update or zeros, whoever else is drawn. Add-remove: as much where the others are drawn whether it
        is there or not; in a fixed cohort another client takes its place, which is a replacement. Where clients take
        turns, one more or less changes whose turn it is in every round: no number bounds that.
        """
        if self is Adjacency.add_remove and Scheme(scheme) is Scheme.rotation:
            raise ValueError(
                "adjacency is add-remove, but clients take turns: who is added or removed changes whose turn it is in "
                "every round. Use zero-out or replace-one."
            )
        stays = self is Adjacency.add_remove and Scheme(scheme) is not Scheme.fixed
        return 1 if self is Adjacency.zero_out or stays else 2

    @property
    def words(self) -> str:
        """After "if"."""
        return {
            Adjacency.zero_out: "one client's data is replaced by none, while it stays and answers (zero-out)",
            Adjacency.replace_one: "one client is replaced by another (replace-one)",
            Adjacency.add_remove: "one client is added or removed (add-remove)",
        }[self]
