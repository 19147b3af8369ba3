"""A federation whose updates are protected: the mechanisms of `privacy/` in the places of a round.

`paper` clips the weights while a client learns and noises what it uploads; `sound` clips the update and noises the sum.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.round import Federation

Protection: TypeAlias = PaperNoise | NoisySum


def protect(federation: Federation, protection: Protection) -> Federation:
    """The federation with this mechanism."""
    if isinstance(protection, PaperNoise):
        return replace(federation, weight_norm=protection.weight_norm, privatise=protection.privatise)
    cohort = float(federation.population.cohort_size)
    return replace(federation, privatise=protection.privatise, combine=partial(protection.combine, cohort=cohort))
