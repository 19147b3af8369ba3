"""No protection: the update leaves as it is, and says so."""

from __future__ import annotations

from hushrank.types import Array, DenseUpdate, PrivateUpdate

GUARANTEE = "no guarantee: whoever sees this update sees exactly what the client learnt"


def send_openly(update: DenseUpdate, *, key: Array | None = None) -> PrivateUpdate:
    """The update itself, labelled. No draws are needed, whatever the key."""
    del key
    return PrivateUpdate(update.delta, float(update.n_interactions), GUARANTEE)
