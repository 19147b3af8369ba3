"""What works together: one table of learner x aggregation x privacy x topology, of who takes part and of who lies.

Whether two parts go together does not depend on the others, so the table holds pairs. What stands in no pair works; a
pair that is refused says why, and what to do instead, in the words of a recipe.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TypeAlias

from hushrank.aggregation.named import STREAMED


class Learner(StrEnum):
    """What a client learns from, and what it sends."""

    updates = "updates"  # from people, simulated or real: a dense update
    log = "updates from a log"  # from logged clicks: a dense update
    rewards = "rewards"  # an evolution strategy: a seed and rewards
    central = "central"  # nobody sends anything: one learner sees every click


class Aggregation(StrEnum):
    """What the server needs of a round."""

    streamed = "sum"  # updates added one by one
    gathered = "rule"  # all of them at once, each by itself


class Privacy(StrEnum):
    """What protects a client, and where."""

    none = "none"
    responses = "responses"  # rewards randomised on the device
    paper = "paper"  # shares of noise as published, divided among all clients
    server_noise = "server's noise"  # sound: added to the sum by the server
    client_noise = "clients' noise"  # sound: in the sum before the server sees it


class Topology(StrEnum):
    """What the server sees."""

    direct = "direct"  # every message by itself
    secure_sum = "secure sum"  # the sum alone
    summing_proxy = "summing proxy"  # the sums of proxies


class Attendance(StrEnum):
    """Who answers in a round."""

    everybody = "everybody"
    some = "some"  # a sampled cohort, or dropouts


class Conduct(StrEnum):
    """What clients do with what they learnt."""

    honest = "honest"
    lying = "lying"  # an attack replaces the updates of some
    misclicking = "misclicking"  # some click to mislead, and send what they learnt
    misreporting = "misreporting"  # an attack replaces the rewards, or the seeds, of some


Part: TypeAlias = Learner | Aggregation | Privacy | Topology | Attendance | Conduct

_CENTRAL = (
    "recipe pdgd is central: one learner sees every click, so there is no cohort, dropout, aggregation, attack, "
    "privacy or secure sum. For a federation run fpdgd."
)
_RESPONSES = "randomised response is for rewards, which only recipe foltr-es sends."
_SOUND_REWARDS = "recipe foltr-es is private per interaction by p (privacy=paper); privacy=sound is for fpdgd."
_SHARED_REWARDS = (
    "recipe foltr-es sends a seed and rewards; noise in shares, as published, is for the updates of fpdgd."
)
_NO_REWARDS = "attack={attack} replaces rewards, which only recipe foltr-es sends: leave attack out, or run foltr-es."
_NO_SUM = "noise hides a client in a sum, and aggregation={aggregation} is none: use aggregation=mean or privacy=none."

REFUSED: dict[tuple[Part, Part], str] = {
    **{
        (Learner.central, part): _CENTRAL
        for part in (
            Aggregation.gathered,
            *(privacy for privacy in Privacy if privacy != Privacy.none),
            *(topology for topology in Topology if topology != Topology.direct),
            Attendance.some,
            Conduct.lying,
            Conduct.misclicking,
            Conduct.misreporting,
        )
    },
    (Learner.updates, Privacy.responses): _RESPONSES,
    (Learner.log, Privacy.responses): _RESPONSES,
    (Learner.rewards, Privacy.paper): _SHARED_REWARDS,
    (Learner.rewards, Privacy.server_noise): _SOUND_REWARDS,
    (Learner.rewards, Privacy.client_noise): _SOUND_REWARDS,
    (Learner.rewards, Aggregation.gathered): (
        "aggregation={aggregation} compares updates, but recipe foltr-es sends a seed and rewards, not updates: leave "
        "aggregation out."
    ),
    (Learner.rewards, Topology.secure_sum): (
        "recipe foltr-es sends a seed and rewards, not updates: the server decodes each client's by itself, and under "
        "masks they cannot be added. Leave secure_sum out, or run fpdgd."
    ),
    (Learner.rewards, Conduct.lying): (
        "attack={attack} replaces updates, but recipe foltr-es sends a seed and rewards, not updates: leave attack "
        "out, or use false-rewards or poisoned-clicks."
    ),
    (Learner.updates, Conduct.misreporting): _NO_REWARDS,
    (Learner.log, Conduct.misreporting): _NO_REWARDS,
    (Learner.log, Conduct.misclicking): (
        "attack={attack} replaces clicks, and a click log says who clicked what: leave attack out, or log."
    ),
    (Aggregation.gathered, Privacy.paper): _NO_SUM,
    (Aggregation.gathered, Privacy.server_noise): _NO_SUM,
    (Aggregation.gathered, Privacy.client_noise): _NO_SUM,
    (Aggregation.gathered, Topology.secure_sum): (
        "aggregation={aggregation} needs every update by itself, and a secure sum shows only their sum: use "
        "aggregation=mean, or leave secure_sum out."
    ),
    (Aggregation.gathered, Topology.summing_proxy): (
        "aggregation={aggregation} needs every update by itself, and a summing proxy passes on only sums: use "
        "aggregation=mean, or let clients reach the server directly."
    ),
    (Privacy.paper, Attendance.some): (
        "privacy=paper divides its noise among all clients, so all must take part in every round: leave cohort and "
        "dropout out, or use privacy=sound."
    ),
    (Privacy.server_noise, Topology.secure_sum): (
        "behind a secure sum the noise must be in the sum before the server sees it: set noise_at=clients and "
        "n_honest, or leave secure_sum out and let the server add the noise."
    ),
    (Topology.secure_sum, Conduct.lying): (
        "attack={attack} is made from all updates of a round, and a secure sum shows none: leave one of the two out."
    ),
}


@dataclass(frozen=True, slots=True)
class Combination:
    """One federation, by its parts."""

    learner: Learner = Learner.updates
    aggregation: str = STREAMED  # by name
    privacy: Privacy = Privacy.none
    topology: Topology = Topology.direct
    attendance: Attendance = Attendance.everybody
    attack: str | None = None  # by name; None: everybody is honest
    misconduct: Conduct = Conduct.lying  # of malicious clients, where there is an attack

    @property
    def parts(self) -> tuple[Part, ...]:
        """In the order in which the table names pairs."""
        aggregation = Aggregation.streamed if self.aggregation == STREAMED else Aggregation.gathered
        conduct = Conduct.honest if self.attack is None else self.misconduct
        return (self.learner, aggregation, self.privacy, self.attendance, self.topology, conduct)


def check_compatible(combination: Combination) -> None:
    """Refuse at the door what cannot work, with the reason."""
    for pair in combinations(combination.parts, 2):
        if pair in REFUSED:
            reason = REFUSED[pair]
            raise ValueError(reason.format(aggregation=combination.aggregation, attack=combination.attack))
