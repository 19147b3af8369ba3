"""What a round shows of itself, as named numbers.

online             mean nDCG@k of the lists that people saw: over a client's lists, then over clients; without those
                   whose people click to mislead
online/GROUP       the same over the clients of a group; NaN where none of them took part
evidence/NAME      what an aggregation rule tells about the round, and how many updates were refused
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hushrank.federation.groups import Group, measured_groups
from hushrank.types import Array, Client

if TYPE_CHECKING:
    from hushrank.federation.round import Federation

ONLINE, SEARCHES, EVIDENCE = "online", "searches", "evidence"


def describe_seen(federation: Federation, cohort: Sequence[Client], qualities: Sequence[float]) -> dict[str, float]:
    """Who saw nothing (NaN) is left out."""
    seen = [quality for quality in qualities if not np.isnan(quality)]
    found = {ONLINE: sum(seen) / max(len(seen), 1)}
    groups = np.array([client.group for client in cohort], np.int64)
    return found | group_means(federation.groups, groups, np.asarray(qualities))


def group_means(groups: Sequence[Group], of_client: Array, qualities: Array) -> dict[str, float]:
    """The mean quality of each group's clients [n] in a round; of all honest ones, if some are not."""
    is_known = ~np.isnan(qualities)
    sums = np.bincount(of_client[is_known], weights=qualities[is_known], minlength=len(groups))
    counts = np.bincount(of_client[is_known], minlength=len(groups))
    found = {
        f"{ONLINE}/{groups[g].name}": float(sums[g] / counts[g]) if counts[g] else float("nan")
        for g in measured_groups(groups)
    }
    is_honest = np.array([group.is_honest for group in groups], bool)
    return (
        found if is_honest.all() else {**found, ONLINE: float(sums[is_honest].sum() / max(counts[is_honest].sum(), 1))}
    )
