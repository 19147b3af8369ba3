"""FedProx: local steps are held near the shared ranker [li2020]."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.keys import at_least, key
from hushrank.remedies.remedy import Remedy


@dataclass(frozen=True)
class FedProx(Remedy):
    """gradient - mu (w - w_global) in every local step [thesis, section 4.3.3]."""

    mu: float = key(0.1, "fedprox: how strongly a local step is pulled to the shared ranker", check=at_least(0))

    @property
    def pull(self) -> float:
        return self.mu
