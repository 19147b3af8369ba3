"""What privacy=sound is where an operator leaves it open: the defaults, and the noise that a wanted epsilon needs."""

from __future__ import annotations

import math
from typing import Any

from hushrank.keys import Settings
from hushrank.privacy.banded import count_answers
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.renyi import Spend, check_epsilon, composed_epsilon

CLIP_NORM = 0.1  # of an update, unless given
DELTA = 1e-5  # of Gaussian noise, unless given


def check_sound(settings: Settings) -> None:
    """Epsilon and noise follow from each other."""
    epsilon = settings.get("epsilon")
    if (epsilon is None) == (settings.get("noise_multiplier") is None):
        raise ValueError("privacy=sound needs epsilon (the noise follows) or noise_multiplier (epsilon follows): one.")
    if epsilon is not None:
        check_epsilon(epsilon)


def settle_sound(settings: Settings) -> dict[str, Any]:
    """With the least noise that keeps a wanted epsilon over all rounds, as clients' ledgers will count it."""
    chosen = {"mechanism": "gaussian", "clip_norm": CLIP_NORM, "placement": "server", **settings}
    if chosen["mechanism"] != "laplace" and chosen.setdefault("delta", DELTA) is None:
        raise ValueError("privacy=sound with Gaussian noise needs delta, such as 1e-5: without it there is no epsilon.")
    check_sound(chosen)
    epsilon = chosen.pop("epsilon", None)
    return chosen if epsilon is None else {**chosen, "noise_multiplier": _least_noise(chosen, epsilon)}


def _least_noise(settings: Settings, epsilon: float) -> float:
    if not isinstance(settings["rounds"], int) or settings["rounds"] < 1:
        raise ValueError(f"rounds is {settings['rounds']}, must be at least 1: epsilon is of all rounds together.")

    factor = Adjacency(settings.get("adjacency") or Adjacency.zero_out).factor()

    family = "laplace" if settings["mechanism"] == "laplace" else "gaussian"
    answers = count_answers(settings["rounds"], settings.get("separation") or 1)

    def keeps(noise: float) -> bool:
        spend = Spend(family, factor / noise, times=answers)
        return composed_epsilon([spend], delta=settings.get("delta")) <= epsilon

    low, high = 2.0**-20, 2.0**40
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
