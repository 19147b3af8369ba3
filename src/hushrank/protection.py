"""A federation whose updates are protected: the mechanisms of `privacy/` in the places of a round.

`paper` clips the weights while a client learns and noises what it uploads; `sound` clips the update and noises the sum.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeAlias

from hushrank.cohort import Quorum
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.round import Federation

Protection: TypeAlias = PaperNoise | NoisySum


def protect(federation: Federation, protection: Protection) -> Federation:
    """The federation with this mechanism."""
    if isinstance(protection, PaperNoise):
        return replace(federation, weight_norm=protection.weight_norm, privatise=protection.privatise)
    cohort = float(federation.population.cohort_size)
    return replace(
        federation,
        privatise=protection.privatise,
        combine=partial(protection.combine, cohort=cohort),
        quorum=quorum_of(protection),
    )


def quorum_of(protection: Protection | None) -> Quorum:
    """Answers that a round needs. Clients' noise: those who make it whole.

    The server's noise: none, because a step that is taken only where somebody answers would tell that somebody did.
    """
    if not isinstance(protection, NoisySum):
        return Quorum()
    if protection.n_honest is not None:
        return Quorum(protection.n_honest)
    return Quorum(0 if protection.noise_multiplier > 0 else 1)
