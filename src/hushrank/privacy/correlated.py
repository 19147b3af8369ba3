"""Gaussian noise of which later rounds take part back: for federations in which nobody can vouch for who was asked.

Sampling makes epsilon smaller only against those who do not know who was drawn, if it was drawn as said. Instead, every
client rests: its answers are at least `separation` rounds apart, which it can see to itself. Then a server's noise may
be that of `banded.py`, which hides each answer as well and adds up to far less in the ranker.

Shapes: noise [n_params], or [..., n_params] for batched keys.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Self

import numpy as np

from hushrank.privacy.accounting import Training
from hushrank.privacy.banded import BITS, coefficients, column_norm, next_noise
from hushrank.privacy.discrete_account import NoiseGrid
from hushrank.privacy.draws import draw_discrete_gaussian
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.placement import Placement
from hushrank.privacy.protection import Exposure
from hushrank.privacy.sum_format import SumFormat
from hushrank.streams import Purpose, stream
from hushrank.types import Array, NamedArrays

_WORD_BITS = 60  # of whole numbers on the way to a round's noise, which has up to twice the deviation of fresh noise
_MOST_KEPT = 1 << 24  # numbers, 128 MB
_CHAINS: OrderedDict[tuple[object, ...], list[Array]] = OrderedDict()  # {training: noise of its rounds, in steps}
_LOCK = Lock()  # Why: cells of a simulation run in threads, and those that differ in their users share their noise


@dataclass(frozen=True, slots=True)
class CorrelatedGaussian(SoundGaussian):
    """An answer costs what it costs with independent noise of the same multiplier; there are as many as rests allow."""

    separation: int = 1  # rounds from one answer of a client to its next, at least

    def __post_init__(self) -> None:
        SoundGaussian.__post_init__(self)
        if self.separation < 2:
            raise ValueError(
                "mechanism=correlated needs clients that rest between answers: sampling=rotation and cohort in a "
                "recipe, separation in an agreement."
            )
        if self.placement == Placement.clients:
            raise ValueError("mechanism=correlated is noise of the server, who remembers it; noise_at must be server.")

    @property
    def most_bits(self) -> int:
        """The noise of several rounds, each times its coefficient, must fit into a word."""
        reach = sum(coefficients(self.separation)) * column_norm(self.separation)
        return _WORD_BITS - math.ceil(math.log2(reach))

    @property
    def echo(self) -> tuple[float, ...]:
        return tuple(each / 2**BITS for each in coefficients(self.separation))

    def without_amount(self) -> Self:
        """On the grid of the true amount, which 1 does not make coarser."""
        return replace(self, noise_multiplier=min(1.0, self.noise_multiplier), least_step=self.step)

    def log_ratio(self, noise: Array, moved: Array) -> Array:
        return SoundGaussian.log_ratio(self, noise, moved) / column_norm(self.separation) ** 2

    def noise_at(self, n_params: int, *, key: Array, round: int) -> Array:
        """Kept for all rounds, because round t would draw all rounds before again."""
        with _LOCK:
            rounds = _CHAINS.setdefault((self, n_params, key.tobytes()), [])
            _CHAINS.move_to_end((self, n_params, key.tobytes()))
            past, newest = self._silence(n_params, key), len(rounds)
            for place, noise in enumerate(reversed(rounds[-self.separation + 1 :])):
                past[..., place, :] = noise
            rounds += self._go_on(past, range(newest + 1, round + 1), key=key)[1]
            found = rounds[round - 1]
            while len(_CHAINS) > 1 and sum(len(kept) * kept[0].size for kept in _CHAINS.values()) > _MOST_KEPT:
                _CHAINS.popitem(last=False)
        return found * self.step

    def draw_in_turn(self, n_params: int, *, key: Array, round: int, past: NamedArrays) -> tuple[Array, NamedArrays]:
        newest = (
            int(past["round"]) if past else round - 1
        )  # Why not from round 1 on: what was never added is not missed
        before, noise = self._go_on(
            past["noise"] if past else self._silence(n_params, key), range(newest + 1, round + 1), key=key
        )
        return np.sum(noise, axis=0) * self.step, {"noise": before, "round": np.array(round)}

    def sum_noise(
        self, n_params: int, *, key: Array, round: int, ids: Callable[[], Array], format: SumFormat | None = None
    ) -> Array:
        del ids, format
        return self.noise_at(n_params, key=key, round=round)

    def training(self, exposure: Exposure) -> Training:
        """The discrete numbers are those of `v` in `banded.py`: finer by 2^BITS, and moved by a whole column."""
        composed = SoundGaussian.training(self, exposure)
        clip_steps = self.clip_norm / self.step * 2**BITS * column_norm(self.separation)
        return replace(composed, grid=NoiseGrid(clip_steps, exposure.n_params))

    def _silence(self, n_params: int, key: Array) -> Array:
        return np.zeros((*key.shape[:-1], self.separation - 1, n_params), np.int64)

    def _go_on(self, past: Array, rounds: range, *, key: Array) -> tuple[Array, list[Array]]:
        """The noise up to the last of these rounds, latest first, and that of each, in steps."""
        noise = []
        for round in rounds:
            fresh = np.zeros((*key.shape[:-1], past.shape[-1]), np.int64)
            if self.scale:
                drawn = stream(key, Purpose.SERVER_NOISE, round)
                fresh = draw_discrete_gaussian(drawn, past.shape[-1], variance=self._fresh_variance)
            noise.append(next_noise(past, fresh))
            past = np.concatenate([noise[-1][..., None, :], past], axis=-2)[..., : self.separation - 1, :]
        return past, noise

    @property
    def _fresh_variance(self) -> int:
        """Of a round's fresh noise, in squared steps of 2^-BITS, rounded up; exact, as the coefficients are whole."""
        return math.ceil(self.scale_steps**2 * sum(each**2 for each in coefficients(self.separation)))
