"""No protection: the update leaves as it is, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hushrank.privacy.clipping import check_norm, clip_update
from hushrank.privacy.disclosure import MASKED, STAYS, Disclosure, describe_mean
from hushrank.privacy.protection import Clipping, Exposure, NormBound, UpdateProtection
from hushrank.types import Array, DenseUpdate, PrivateUpdate

_ROUNDING = 1.0 + 1e-5  # Why: float32 numbers may add up to a little more than the norm they were scaled to
HONEST_NORM = 2.5  # times learning rate and searches: longer than every honest update that was measured
GUARANTEE = "no guarantee: whoever sees this update sees exactly what the client learnt"
_HIDDEN = (
    "no guarantee in numbers: a secure sum shows the server only the sum of a round's updates and who took part, no "
    "single update, but the sum carries no noise"
)


def choose_norm(*, learning_rate: float, interactions: int) -> float:
    """The norm that bounds a client's influence and that honest updates hardly ever reach."""
    return round(HONEST_NORM * learning_rate * interactions, 6)


def send_openly(update: DenseUpdate, *, key: Array | None = None) -> PrivateUpdate:
    """The update itself, labelled. No draws are needed, whatever the key."""
    del key
    return PrivateUpdate(update.delta, float(update.n_interactions), GUARANTEE)


@dataclass(frozen=True, slots=True)
class OpenUpdates(UpdateProtection):
    """Updates that leave as they are: the mechanism that protects nothing.

    A norm bounds how far one client can move the ranker. It protects the ranker from the client, not the client.
    """

    mode: ClassVar[str] = "none"
    tells_lengths: ClassVar[bool] = True  # nothing is promised, so that it breaks nothing

    update_norm: float | None = None  # L2 norm that an update is scaled down to; None: any

    def __post_init__(self) -> None:
        if self.update_norm is not None:
            check_norm(self.update_norm)

    @property
    def clipping(self) -> Clipping:
        return Clipping(update_norm=self.update_norm or 0.0)

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        if self.update_norm is not None:
            clipped = clip_update(update.delta, self.update_norm).astype(update.delta.dtype)
            update = DenseUpdate(clipped, update.n_interactions)
        return send_openly(update, key=key)

    def bound_norm(self, n_params: int) -> NormBound:
        del n_params
        return NormBound() if self.update_norm is None else NormBound(2, self.update_norm * _ROUNDING)

    def why_not_fast(self, interactions: Sequence[int]) -> str | None:
        del interactions
        return None

    def describe_message(self, exposure: Exposure) -> str:
        del exposure
        return GUARANTEE

    def explain(self, exposure: Exposure) -> dict[str, Any] | None:
        return {"mode": self.mode, "epsilon": None, "guarantee": _HIDDEN} if exposure.is_secure else None

    def disclose(self, exposure: Exposure) -> Disclosure:
        others = ("everybody else", describe_mean(exposure.cohort))
        if exposure.is_secure:
            return Disclosure(
                f"No guarantee in numbers, but nobody sees a single update. {STAYS}; the server learns their sum.",
                (("the server", f"{MASKED} The sum carries no noise: the fewer clients, the more it says."), others),
            )
        seen = (
            "Every client's update as it is, how many searches are behind it, and who sent it. Whoever also knows the "
            "documents can work out queries and clicks from it: of a linear ranker and one search nearly all."
        )
        return Disclosure(
            f"No guarantee. {STAYS}, but the server sees every client's update as it is.",
            (("the server", seen), others),
        )
