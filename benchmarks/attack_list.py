"""The attacks that every rule is measured under; NAME:full is one with full knowledge."""

from __future__ import annotations

THESIS = (
    *("poisoned-clicks", "little-is-enough", "fang-krum", "fang-krum:full", "fang-multi-krum", "fang-multi-krum:full"),
    *("fang-trimmed-mean", "fang-trimmed-mean:full"),
)
OTHERS = (
    *("sign-flip", "gaussian", "scaled", "min-max", "min-max:full", "min-sum", "min-sum:full"),
    *("tailored", "tailored:full", "at-bound", "promote"),
)
LEFT_OUT = ("fang-median", "false-rewards", "opposite-model", "sidestep", "framing", "cycle")
