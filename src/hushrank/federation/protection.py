"""A federation whose updates are protected: the mechanisms of `privacy/` in the places of a round.

`paper` clips the weights while a client learns and noises what it uploads; `sound` clips the update and noises the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from hushrank.federation.cohort import Population, Quorum
from hushrank.federation.round import Federation
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.noisy_sum import NoisySum
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, stream
from hushrank.types import Array, PrivateUpdate

Protection: TypeAlias = PaperNoise | NoisySum
_FAILURE = 1e-12  # Why: the chance that noise leaves a secure sum's range in a round, which ends a run


def protect(federation: Federation, protection: Protection) -> Federation:
    """The federation with this mechanism."""
    federation = replace(federation, privatise=protection.privatise, quorum=quorum_of(protection))
    if isinstance(protection, PaperNoise):
        return replace(federation, weight_norm=protection.weight_norm)
    cohort = float(federation.population.cohort_size)
    return replace(federation, combine=partial(average_noisily, protection, cohort))


def average_noisily(
    protection: NoisySum, cohort: float, messages: Sequence[PrivateUpdate], *, n_params: int, key: Array, round: int
) -> Array:
    """[n_params] the noisy mean; key: of the run."""
    noise_key = stream(key, Purpose.SERVER_NOISE, round)
    return protection.combine(messages, n_params=n_params, cohort=cohort, key=noise_key)


def quorum_of(protection: Protection | None, *, is_secure: bool = False) -> Quorum:
    """Answers that a round needs. Clients' noise: those who make it whole. A secure sum: its threshold, too.

    The server's noise: none, because a step that is taken only where somebody answers would tell that somebody did.
    """
    if isinstance(protection, NoisySum) and protection.n_honest is None and protection.noise_multiplier > 0:
        return Quorum(0)
    makers = protection.n_clients if isinstance(protection, PaperNoise) else protection.n_honest if protection else None
    return Quorum(max(2, makers or 0), is_most=True) if is_secure else Quorum(makers or 1)


def format_sum(
    protection: Protection | None, population: Population, *, n_params: int, largest: float = 1.0
) -> SumFormat:
    """How updates are written for a secure sum. `largest`: of a number of an update that nothing bounds."""
    n_clients, most_weight = population.most_sampled, max(population.interactions)
    if protection is None:
        return SumFormat(largest, n_clients, most_weight)
    share = protection.bound_share(n_values=n_clients * n_params, failure=_FAILURE)
    if isinstance(protection, PaperNoise):
        return SumFormat(2 * protection.weight_norm + share, n_clients, most_weight)
    return SumFormat(protection.clip_norm + share, n_clients)
