"""What a server does with all updates of a round at once, and what liars may find out about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from hushrank.aggregation.named import CheckedRule
from hushrank.federation.seen import EVIDENCE
from hushrank.types import Array, Combined, Gathered


def combine_gathered(rule: CheckedRule | None, gathered: Gathered) -> Combined:
    """One update of all; without a rule their weighted mean."""
    if rule is not None:
        return rule(gathered)
    weights = gathered.weights[:, None]
    return Combined(np.add.reduce(weights * gathered.updates, axis=0) / np.add.reduce(weights), memory=gathered.memory)


def rule_on_trial(rule: CheckedRule | None, gathered: Gathered) -> Callable[[Array, Array], Array]:
    """(updates [n, n_params], who [n]) -> what the server would make of these; it remembers nothing of the trial."""

    def try_rule(updates: Array, who: Array) -> Array:
        trial = replace(gathered, updates=updates, weights=gathered.weights[who], ids=gathered.ids[who])
        return combine_gathered(rule, trial).update

    return try_rule


def name_evidence(combined: Combined, is_malicious: Array) -> dict[str, float]:
    """What a rule tells about a round, as numbers of the round; is_malicious [n_clients].

    With a rule that says how much of each update counted: evidence/caught is how much of the liars' did not, and
    evidence/wronged how much of the honest clients' did not, from 0 to 1; NaN where there are none.
    """
    found = dict(combined.evidence)
    if combined.trust is not None:
        ignored = 1 - combined.trust
        found |= {"caught": _mean(ignored[is_malicious]), "wronged": _mean(ignored[~is_malicious])}
    return prefix_evidence(found)


def prefix_evidence(evidence: Mapping[str, float]) -> dict[str, float]:
    return {f"{EVIDENCE}/{name}": value for name, value in evidence.items()}


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
