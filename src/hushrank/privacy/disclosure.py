"""Who learns what from a training: the sentences that mechanisms share, and the shape that all of them fill."""

from __future__ import annotations

from dataclasses import dataclass

STAYS = "Queries, documents and clicks stay on each client"
MASKED = (
    "Who took part, and the sum of a round's updates. Each of them is masked: the server could read one only together "
    "with most of the other clients, or by not following the protocol."
)


@dataclass(frozen=True, slots=True)
class Disclosure:
    """The words of the box."""

    promise: str  # in a sentence or two
    lines: tuple[tuple[str, str], ...]  # (who, what they learn)


def describe_mean(n: int) -> str:
    """What a ranker says that was moved by the mean of n clients."""
    few = " With so few, each can tell much about the others." if n < 10 else ""
    return f"The new ranker of every round: the old one, moved by the mean of {n:,} clients.{few}"


def as_sentence(text: str) -> str:
    """With a capital at its beginning and a full stop at its end."""
    return text[0].upper() + text[1:].removesuffix(".") + "."
