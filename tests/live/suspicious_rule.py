"""An aggregation rule with a setting, a memory by client and trust: small enough to be checked by hand.

It leaves out whoever has pulled against the median of all updates in `patience` rounds or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.aggregation.named import RULES
from hushrank.cli.main import main
from hushrank.keys import at_least, key
from hushrank.types import Combined, Gathered

NAME = "suspicious"


@dataclass(frozen=True, slots=True)
class Suspicious:
    patience: int = key(2, "rounds of pulling against the others that are forgiven", check=at_least(1))

    def __call__(self, gathered: Gathered) -> Combined:
        memory = gathered.memory
        known = dict(zip(memory["ids"].tolist(), memory["times"].tolist(), strict=True)) if memory else {}
        opposes = gathered.updates @ np.median(gathered.updates, axis=0) < 0
        for client in gathered.ids[opposes].tolist():
            known[client] = known.get(client, 0) + 1
        trust = np.array([float(known.get(client, 0) < self.patience) for client in gathered.ids.tolist()])
        weights = gathered.weights * trust
        mean = weights @ gathered.updates / max(weights.sum(), 1)
        kept = {
            "ids": np.array(sorted(known), np.int64),
            "times": np.array([known[i] for i in sorted(known)], np.int64),
        }
        return Combined(mean, {"opposed": float(opposes.sum())}, kept, trust)


if __name__ == "__main__":  # the command line of a server that has this rule
    RULES[NAME] = Suspicious
    main()
