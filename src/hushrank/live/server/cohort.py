"""Whom a round asks."""

from __future__ import annotations

import numpy as np

from hushrank.live.server.new_ranker import draws_of
from hushrank.live.wire.agreement import Agreement
from hushrank.streams import Purpose, draw_bits, fold_in, stream


def choose_cohort(agreement: Agreement, awake: list[int], *, size: int | None, round: int) -> list[int]:
    """Everybody who is awake, or so many of them: those with the smallest draws."""
    if size is None or size >= len(awake):
        return awake
    keys = fold_in(stream(draws_of(agreement), Purpose.COHORT, round), np.array(awake))
    order = np.argsort(np.ravel(draw_bits(keys, 1)), kind="stable")
    return sorted(awake[place] for place in order[:size])
