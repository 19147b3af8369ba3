"""Where in a round an attack acts."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """What of a malicious client is replaced."""

    clicks = "clicks"  # its person's; all else is as with everybody
    updates = "updates"  # what it sends, an update
    rewards = "rewards"  # what it sends, a seed and rewards
