"""The keys of a recipe that say what is done about clients that differ."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import key
from hushrank.remedies.named import NONE, REMEDIES


@dataclass(frozen=True, kw_only=True)
class RemedyKeys:
    """Of recipes."""

    remedy: str = key(NONE, "what is done about clients that differ", methods=REMEDIES, alias="name")
