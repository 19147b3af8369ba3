"""What a federation's protection is where its operator leaves it open, and the noise that a wanted epsilon needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hushrank.privacy.keys import check_one_given
from hushrank.privacy.named import CLIP_NORM, DELTA, published_sensitivity
from hushrank.privacy.renyi import Spend, check_epsilon, composed_epsilon


def complete_protection(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What follows for the settings of a mode that were not given."""
    mode, epsilon = settings.get("privacy"), settings.get("epsilon")
    if mode == "paper" and settings.get("sensitivity") is None and epsilon is not None:
        return {"sensitivity": published_sensitivity(epsilon)}
    if mode != "sound":
        return {}
    defaults: dict[str, object] = {"mechanism": "gaussian", "clip_norm": CLIP_NORM, "placement": "server"}
    return {**defaults, "delta": DELTA} if settings.get("mechanism", "gaussian") == "gaussian" else defaults


def find_noise(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With the least noise that keeps a wanted epsilon over all rounds, as clients' ledgers will count it."""
    epsilon, rest = settings.get("epsilon"), {name: value for name, value in settings.items() if name != "epsilon"}
    check_one_given(epsilon, settings.get("noise_multiplier"))
    if settings["mechanism"] == "gaussian" and settings.get("delta") is None:
        raise ValueError("privacy=sound with Gaussian noise needs delta, such as 1e-5: without it there is no epsilon.")
    if epsilon is None:
        return rest
    check_epsilon(epsilon)
    if not isinstance(settings["rounds"], int) or settings["rounds"] < 1:
        raise ValueError(f"rounds is {settings['rounds']}, must be at least 1: epsilon is of all rounds together.")

    def keeps(noise: float) -> bool:
        spend = Spend(settings["mechanism"], 1.0 / noise, times=settings["rounds"])
        return composed_epsilon([spend], delta=settings.get("delta")) <= epsilon

    low, high = 2.0**-20, 2.0**40
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return {**rest, "noise_multiplier": high}
