"""Malicious clients whose people click on what is not relevant [thesis, Section 5.2.2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushrank.attacks.stage import Stage
from hushrank.keys import key


@dataclass(frozen=True)
class PoisonedClicks:
    """They learn from such clicks as everybody does, and send what they learnt: nothing is forged."""

    stage: ClassVar[Stage] = Stage.clicks
    poison: str = key("poison", "user as which malicious clients click [thesis, Table 5.1]")
