"""Little Is Enough: malicious clients that hide in the spread of honest updates [baruch2019]."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

from hushrank.attacks.knowledge import explain_no_spread, knowledge_key, known_updates, send_alike
from hushrank.keys import key as setting
from hushrank.types import Array, AttackView

_MOST = 0.999  # Why: liars that are most of a small cohort need no supporters, and the quantile of 1 is infinite
_LIKE_HONEST = -1.0  # Why: down to this z forged updates lie above the mean, and no further out than most honest ones


@dataclass(frozen=True)
class LittleIsEnough:
    """All send mean - z * std, coordinate by coordinate.

    Differs: [baruch2019] takes the largest z that still has supporters; at n = 10 and m = 1 that z is below zero.
    """

    knowledge: str = knowledge_key()
    z: float | None = setting(None, "standard deviations below the mean; default: from the number of liars")

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        del key
        known, z = known_updates(view), self.find_z(view.n_clients, view.n_malicious)
        sent = known.mean(axis=0) - z * known.std(axis=0)  # [thesis, Section 5.2.3]
        return send_alike(view, sent)

    def find_z(self, n_clients: int, n_malicious: int) -> float:
        return largest_z(n_clients, n_malicious) if self.z is None else self.z

    def why_harmless(self, *, n_clients: int, n_malicious: int) -> str | None:
        """Why these malicious clients lie about nothing; None: they do."""
        z = self.find_z(n_clients, n_malicious)
        if _LIKE_HONEST <= z <= 0:
            return (
                f"z is {z:.2f} for {n_malicious} of {n_clients} clients, so that nothing is sent below the honest mean"
            )
        return explain_no_spread(self.knowledge, n_malicious=n_malicious)


def largest_z(n_clients: int, n_malicious: int) -> float:
    """z with Phi(z) = (n - floor(n / 2 + 1)) / (n - m): so many honest clients lie further out that, with the liars,
    they are the majority [baruch2019, Section 3.3]."""
    beyond = (n_clients - (n_clients // 2 + 1)) / max(n_clients - n_malicious, 1)
    return NormalDist().inv_cdf(min(max(beyond, 1 - _MOST), _MOST))
