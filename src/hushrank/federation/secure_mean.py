"""A federation whose server sees only sums: the secure sum of `privacy/` in the place of a round's mean.

Every round runs the whole protocol between simulated clients and server. Who never answers falls silent after the
secrets are shared, the latest moment and the costliest: the others must remove its masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushrank.federation.cohort import Population, answer_mask, sample_ids
from hushrank.federation.round import Federation
from hushrank.privacy.fixed_point import FixedPoint, encode_values
from hushrank.privacy.protection import Protection
from hushrank.privacy.quorum import Quorum
from hushrank.privacy.secure_messages import SumConfig, SumPhase
from hushrank.privacy.secure_sum import run_secure_sum
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, draw_bits, stream
from hushrank.types import Array, PrivateUpdate


@dataclass(frozen=True, slots=True)
class SecureMean:
    """A `Federation.combine`."""

    format: SumFormat
    population: Population
    quorum: Quorum
    divisor: float | None  # None: the sum of the weights

    def __call__(self, messages: Sequence[PrivateUpdate], *, n_params: int, key: Array, round: int) -> Array:
        """[n_params] the mean, of the sum that the protocol gives; key: of the run."""
        asked = sample_ids(self.population, key, round)
        arrives = answer_mask(self.population, key, round, asked)
        sent = zip(asked[arrives].tolist(), messages, strict=True)
        silent = asked[~arrives].tolist()
        config = SumConfig(
            session=key.tobytes() + np.uint64(round).tobytes(),
            n_clients=len(asked),
            n_entries=n_params + 1,
            bound=self.format.encoding.bound,
            threshold=int(self.quorum.needed(len(asked))),
            neighbours_from=len(asked) + 1,  # Why: with neighbours a sum may be lost that the quorum counts on
        )
        values = {client: self._encode(message, config.encoding) for client, message in sent}
        found = run_secure_sum(
            {**values, **dict.fromkeys(silent, np.zeros(0))},
            config,
            entropy={i: draw_bits(stream(key, Purpose.MASK, round, i), 8).tobytes() for i in asked.tolist()},
            lost=dict.fromkeys(silent, SumPhase.MASK),
        )
        total, weight = self.format.read(found.total)
        return total / (self.divisor or weight or 1.0)

    def _encode(self, message: PrivateUpdate, encoding: FixedPoint) -> Array:
        """[n_params + 1] words. Noise may wrap, which the protocol by itself refuses."""
        return encode_values(self.format.write(message.delta, message.weight), encoding, wraps=self.format.wraps)


def hide_updates(federation: Federation, protection: Protection, format: SumFormat) -> Federation:
    """The federation, protected already, with a secure sum instead of its mean."""
    quorum = protection.quorum(is_secure=True)
    divisor = protection.divisor(float(federation.population.cohort_size))
    return replace(federation, combine=SecureMean(format, federation.population, quorum, divisor), quorum=quorum)
