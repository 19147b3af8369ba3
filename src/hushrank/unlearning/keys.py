"""The keys of a recipe that say what clients keep for the day on which one of them is to be forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import at_least, key


@dataclass(frozen=True, kw_only=True)
class UnlearningKeys:
    """Of recipes."""

    keep_every: int | None = key(
        None,
        "fpdgd: each client keeps the length of its update in rounds 1, 1 + keep_every, ..., for unlearning",
        check=at_least(1),
    )
