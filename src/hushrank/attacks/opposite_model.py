"""A malicious client whose model is the opposite of what it learnt: so harmful that its leaving can be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView, Knowledge


@dataclass(frozen=True)
class OppositeModel:
    """Each sends the update that turns the shared ranker into -z times the model that it learnt.

    It is made to be noticed, not to hide: whether a client has been forgotten is checked with it.
    """

    knowledge: ClassVar[Knowledge] = Knowledge.own
    z: float = setting(2.0, "how many times as long as the model, backwards", check=above_zero)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        assert view.own is not None
        sent: Array = -self.z * view.own - (self.z + 1) * view.params  # [thesis, Eq. 6.4]
        return sent.astype(view.own.dtype)
