"""The keys of a recipe that say who lies, and how."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.attacks.named import ATTACKS
from hushrank.keys import key


@dataclass(frozen=True, kw_only=True)
class AttackKeys:
    """Malicious clients."""

    attack: str | None = key(
        None,
        "what malicious clients send instead of what they learnt; default: everybody is honest",
        methods=ATTACKS,
        alias="name",
    )
    n_malicious: int = key(0, "number of malicious clients")


def check_malicious(keys: AttackKeys, *, n_clients: int) -> None:
    if not 0 <= keys.n_malicious <= n_clients or (keys.n_malicious and keys.attack is None):
        raise ValueError(
            f"n_malicious is {keys.n_malicious} of n_clients={n_clients} with attack={keys.attack}: give an attack and "
            "at most as many malicious clients as there are."
        )
