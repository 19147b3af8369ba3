"""No protection: the update leaves as it is, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hushrank.privacy.disclosure import MASKED, STAYS, Disclosure, describe_mean
from hushrank.privacy.protection import Exposure, UpdateProtection
from hushrank.types import Array, DenseUpdate, PrivateUpdate

GUARANTEE = "no guarantee: whoever sees this update sees exactly what the client learnt"
_HIDDEN = (
    "no guarantee in numbers: a secure sum shows the server only the sum of a round's updates and who took part, no "
    "single update, but the sum carries no noise"
)


def send_openly(update: DenseUpdate, *, key: Array | None = None) -> PrivateUpdate:
    """The update itself, labelled. No draws are needed, whatever the key."""
    del key
    return PrivateUpdate(update.delta, float(update.n_interactions), GUARANTEE)


@dataclass(frozen=True, slots=True)
class OpenUpdates(UpdateProtection):
    """Updates that leave as they are: the mechanism that protects nothing."""

    mode: ClassVar[str] = "none"

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        return send_openly(update, key=key)

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
