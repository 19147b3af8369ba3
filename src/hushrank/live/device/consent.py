"""What the owner of a device accepts from a federation, decided on this device and remembered with the home.

A server writes the agreement; nothing in it protects a client from a bad one. So before it joins, and whenever it
starts, a client refuses agreements that promise nothing while they seem to (a seed, noise shares that no secure sum
hides, a delta that gives somebody away in every round), those that lack what the owner requires, and those that cost
more than the owner's cap, unless the owner has typed otherwise.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hushrank.keys import hint_names
from hushrank.live.device.store import Interactions
from hushrank.live.wire.agreement import KEYS, Agreement
from hushrank.live.wire.terms import price_of, total_epsilon_of
from hushrank.privacy.banded import count_answers
from hushrank.privacy.chain import LedgerError
from hushrank.privacy.device_ledger import LIFETIME_EPSILON, Charge, check_cap, compose_charges, read_device
from hushrank.privacy.ledger import BudgetSpentError
from hushrank.privacy.placement import Placement
from hushrank.privacy.renyi import Spend, composed_epsilon

_REQUIREMENT = re.compile(r"\s*([a-z_]+)\s*(<=|>=|=)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Consent:
    """What was typed, now or on joining."""

    epsilon: float | None = None  # the most that this device may have spent, in all federations; None: the default
    requires: tuple[str, ...] = ()  # KEY=VALUE, KEY<=NUMBER or KEY>=NUMBER of the agreement
    takes_seeded: bool = False  # a federation whose draws can be repeated: no privacy
    takes_shares: bool = False  # noise at the clients, although no secure sum hides a client's own share

    @property
    def cap(self) -> float:
        return LIFETIME_EPSILON if self.epsilon is None else self.epsilon


def recall_consent(store: Interactions, typed: Consent) -> Consent:
    """With what was typed before: what was required stays required, and a cap that was typed stays."""
    said = store.consent()
    if said is None:
        return typed
    kept = Consent(**{**json.loads(said), "requires": tuple(json.loads(said)["requires"])})
    if None not in (kept.epsilon, typed.epsilon) and kept.epsilon != typed.epsilon:
        raise LedgerError(
            f"the budget of {store.path.parent} is epsilon {kept.epsilon:g}. Budgets are not changed in place."
        )
    return Consent(
        kept.epsilon if typed.epsilon is None else typed.epsilon,
        tuple(dict.fromkeys((*kept.requires, *typed.requires))),
        kept.takes_seeded or typed.takes_seeded,
        kept.takes_shares or typed.takes_shares,
    )


def keep_consent(store: Interactions, consent: Consent) -> None:
    store.keep_consent(json.dumps(asdict(consent)))


def check_consent(agreement: Agreement, consent: Consent) -> None:
    """Refuse what the owner has not accepted, before anything is sent."""
    if agreement.is_seeded and not consent.takes_seeded:
        raise ValueError(
            f"{agreement.name} is a simulation: its noise comes from a seed that everybody can know, so that nothing "
            "is private. Nothing was sent. Pretend people join with --simulate; with --seeded this device joins, too."
        )
    if agreement.placement == Placement.clients and not agreement.is_seeded:
        check_shares(agreement, consent)
    if agreement.delta is not None and agreement.delta * (agreement.n_clients or 1) >= 1:
        raise ValueError(
            f"{agreement.name} agrees on delta {agreement.delta:g} for {agreement.n_clients} clients: with 1/n or "
            "more, it may give one client away entirely and still keep its word. Nothing was sent."
        )
    for requirement in consent.requires:
        check_requirement(agreement, requirement, price=price_for(agreement))


def check_shares(agreement: Agreement, consent: Consent) -> None:
    """Noise that is divided among clients hides a client in their sum only, and here the server sees each message."""
    if agreement.mechanism != "gaussian":
        raise ValueError(
            f"{agreement.name} divides {agreement.mechanism} noise among its clients, and no secure sum hides a "
            "client's own message from the server: one share alone promises nothing. Nothing was sent."
        )
    if not consent.takes_shares:
        epsilon = total_of(agreement, price_for(agreement))
        raise ValueError(
            f"{agreement.name} divides its noise among {agreement.n_honest} clients, and no secure sum hides a "
            f"client's own message from the server: all its rounds cost epsilon {epsilon:.4g}, not "
            f"{total_epsilon_of(agreement) or 0.0:.4g}. Nothing was sent. --noise-shares joins at that price."
        )


def price_for(agreement: Agreement) -> Spend | None:
    """What one answer costs a person's own client: where clients add the noise, that of a message by itself."""
    price = price_of(agreement)
    if price is None or agreement.placement != Placement.clients:
        return price
    return replace(price, ratio=price.ratio * math.sqrt(agreement.n_honest or 1))


def total_of(agreement: Agreement, price: Spend | None) -> float | None:
    """What all rounds cost at this price; None: nothing is promised, or there is no end."""
    if price is None or agreement.rounds is None or price == price_of(agreement):
        return total_epsilon_of(agreement)
    answers = count_answers(agreement.rounds, agreement.separation or 1)
    return composed_epsilon([replace(price, times=price.times * answers)], delta=agreement.delta)


def check_cost(agreement: Agreement, consent: Consent, device: Path) -> None:
    """Refuse to join what costs more than the owner's cap, with all that this device has spent elsewhere."""
    price = price_for(agreement)
    if price is None or consent.epsilon is not None:
        return
    rounds, spent = agreement.rounds or 1, read_device(device)
    answers = count_answers(rounds, agreement.separation or 1)
    every = Charge("", agreement.name, None, agreement.delta, replace(price, times=price.times * answers))
    alone = total_of(agreement, price)
    total = compose_charges((*spent.charges, every)) if spent.charges or alone is None else alone
    if total > consent.cap:
        before = f", with the {spent.epsilon_spent:.4g} that this device has spent already," if spent.charges else ""
        raise ValueError(
            f"{agreement.name} would cost this device epsilon {total:.4g}{before} over {rounds} rounds; a device "
            f"spends at most {consent.cap:g} in all its federations unless its owner says otherwise. Nothing was sent. "
            "--epsilon X joins and stops at X: it counts all that this device has ever spent."
        )


def check_room(agreement: Agreement, device: Path, *, cap: float) -> None:
    """Refuse to go on where the cap covers no answer more. Why not as ever, by leaving: the owner was never asked."""
    price = price_for(agreement)
    if price is None:
        return
    try:
        check_cap(read_device(device), [Charge("", agreement.name, None, agreement.delta, price)], cap=cap)
    except BudgetSpentError as error:
        raise ValueError(f"{error} To go on, type --epsilon X, the most that this device may ever spend.") from error


def check_requirement(agreement: Agreement, requirement: str, *, price: Spend | None) -> None:
    """Refuse an agreement without what the owner requires; epsilon is that of all agreed rounds."""
    name, sign, wanted = parse_requirement(requirement)
    value = total_of(agreement, price) if name == "epsilon" else getattr(agreement, name)
    if not _holds(value, sign, wanted):
        shown = f"{value:.4g}" if isinstance(value, float) else value
        raise ValueError(
            f"this device requires {requirement}, but {agreement.name} has agreed on {name} {shown}. Nothing was sent."
        )


def parse_requirement(text: str) -> tuple[str, str, str]:
    """(key, sign, value)"""
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"--require {text!r} must be KEY=VALUE, KEY<=NUMBER or KEY>=NUMBER, such as privacy=sound.")
    name, sign, wanted = found.groups()
    if name not in KEYS:
        raise ValueError(f"--require: no key of an agreement is called {name!r}; {hint_names(name, KEYS)}")
    if sign != "=" and _as_number(wanted) is None:
        raise ValueError(f"--require {text!r} compares with {wanted!r}, which is no number.")
    return name, sign, wanted


def check_requirements(requires: Sequence[str]) -> None:
    for requirement in requires:
        parse_requirement(requirement)


def _holds(value: object, sign: str, wanted: str) -> bool:
    number = _as_number(wanted)
    if isinstance(value, bool) or not isinstance(value, int | float) or number is None:
        return sign == "=" and str(value).lower() == wanted.lower()
    return {"=": value == number, "<=": value <= number, ">=": value >= number}[sign]


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
