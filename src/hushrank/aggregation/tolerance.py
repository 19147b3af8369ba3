"""How many malicious clients a rule assumes, and from how many clients on it works.

A rule that needs the number has a field `assumed_malicious`, which `find_rule` fills from the recipe key of that name.
A rule that needs more than one update says so by these properties:

n_needed    answers without which the rule is not defined: a round with fewer is lost, as one without a quorum is
n_proven    clients from which on its paper proves something; with fewer it runs, and the run's owner is told
n_judged    clients from which on it judges them; with fewer it is the mean, and the run's owner is told
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushrank.aggregation.named import CheckedRule

ASSUMED = "assumed_malicious"


class NotDefinedError(ValueError):
    """A rule is asked for where its definition does not reach: too few clients for the malicious ones it assumes."""


class BadResultError(ValueError):
    """A rule gave what is no update; the message holds sizes and no number of an update."""


def assumes_malicious(method: object) -> bool:
    """Whether a registered rule wants to be told how many clients lie."""
    return isinstance(method, type) and is_dataclass(method) and any(f.name == ASSUMED for f in fields(method))


def share_of_cohort(n_malicious: int, *, n_clients: int, n_asked: int) -> int:
    """Malicious clients among those asked: of everybody all, of a sampled cohort as many as expected, rounded up."""
    return -(-n_malicious * n_asked // n_clients)


def check_assumed(assumed: int, *, n_asked: int) -> None:
    """A majority of honest clients is what every rule needs."""
    if not 0 <= 2 * assumed < n_asked:
        raise ValueError(
            f"{ASSUMED} is {assumed} of {n_asked} clients that are asked in a round, must be at least 0 and fewer than "
            f"half of them. Its default is n_malicious; give {ASSUMED} a smaller number, or ask more clients."
        )


def check_defined(rule: CheckedRule, *, n_asked: int) -> None:
    """Refuse a rule that would lose every round."""
    if n_asked < rule.n_needed:
        raise NotDefinedError(
            f"aggregation={rule.name} is not defined for {n_asked} clients of which {rule.assumed_malicious} are "
            f"assumed malicious: it needs at least {rule.n_needed}. Lower {ASSUMED}, ask more clients, or choose "
            "another rule."
        )
