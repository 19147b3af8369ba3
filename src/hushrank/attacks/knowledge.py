"""How much of the honest updates malicious clients know, as a setting of attacks that can do with more or less."""

from __future__ import annotations

import numpy as np

from hushrank.keys import key
from hushrank.types import Array, AttackView, Knowledge


def knowledge_key() -> str:
    """partial is the thesis' threat model [thesis, Section 5.2.1]."""
    return key(
        "partial",
        "of malicious clients: partial (what they themselves learnt) or full (what everybody learnt)",
        choices=("partial", "full"),
    )


def known_updates(view: AttackView) -> Array:
    """[n, n_params] the honest updates that are known: what the malicious clients learnt, then the others' if known."""
    assert view.own is not None
    return view.own if view.others is None else np.concatenate([view.own, view.others])


def mean_length(updates: Array) -> float:
    """The mean L2 norm of updates [n, n_params]."""
    return float(np.sqrt((updates.astype(np.float64) ** 2).sum(axis=1)).mean())


def send_alike(view: AttackView, update: Array) -> Array:
    """[n_malicious, n_params] everybody the same, in the type of what was learnt."""
    assert view.own is not None
    return np.tile(update, (view.n_malicious, 1)).astype(view.own.dtype)


def explain_no_spread(knowledge: str, *, n_malicious: int) -> str | None:
    """Why an attack that goes by the spread of the known updates sends an honest one; None: there is a spread."""
    if Knowledge(knowledge) is Knowledge.everybody or n_malicious != 1:
        return None
    return "one malicious client alone knows one update, which has no spread, and sends it as it is"
