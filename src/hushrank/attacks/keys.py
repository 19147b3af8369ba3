"""The keys of a recipe that say who lies, and how."""

from __future__ import annotations

from dataclasses import dataclass

from hushrank.attacks.named import ATTACKS
from hushrank.keys import at_least, key, keys_of


@dataclass(frozen=True, kw_only=True)
class AttackKeys:
    """Malicious clients."""

    attack: str | None = key(
        None,
        "what malicious clients do, instead of clicking and sending as the others; default: everybody is honest",
        methods=ATTACKS,
        alias="name",
    )
    n_malicious: int = key(0, "number of malicious clients, less than half of all", check=at_least(0))
    attack_from: int = key(1, "first round in which malicious clients lie; honest until then", check=at_least(1))
    attack_every: int = key(1, "rounds from one in which they lie to the next; honest in between", check=at_least(1))
    attack_disguise: bool = key(
        False, "each adds what sets its own update apart from the other liars', so that no two are equal"
    )


def check_malicious(keys: AttackKeys, *, n_clients: int, n_rounds: int | None) -> None:
    """A majority of liars decides what is honest, so that no rule could do anything [thesis, Section 5.2.1].

    n_rounds: of the whole run; None: nobody knows.
    """
    if keys.attack is None:
        for name in ("n_malicious", "attack_from", "attack_every", "attack_disguise"):
            if (given := getattr(keys, name)) != keys_of(AttackKeys)[name].default:
                raise ValueError(f"{name} is {given}, but there is no attack: name one, or leave {name} out.")
    if 2 * keys.n_malicious >= n_clients and keys.n_malicious:
        raise ValueError(
            f"n_malicious is {keys.n_malicious} of n_clients={n_clients}, must be less than half of them: where half "
            "of the clients or more lie, nothing tells who is honest."
        )
    if n_rounds is not None and keys.attack_from > n_rounds:
        raise ValueError(
            f"attack_from is {keys.attack_from}, but the run has {n_rounds} rounds, so that nobody would ever lie: "
            "make attack_from smaller, or rounds larger."
        )
