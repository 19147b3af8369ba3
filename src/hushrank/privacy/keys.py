"""The keys that say what protects a client, and what is wrong with them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from hushrank.keys import above_zero, at_least, key, keys_of
from hushrank.privacy.agreed import CLIP_NORM, DELTA
from hushrank.privacy.laplace import VARIANTS
from hushrank.privacy.named import MODES
from hushrank.privacy.placement import Adjacency, Placement
from hushrank.privacy.renyi import check_delta

_PAPER, _SOUND = ("paper",), ("sound",)


@dataclass(frozen=True, kw_only=True)
class ProtectionKeys:
    """Of recipes and agreements."""

    privacy: str = key(
        "none",
        "what protects a client: none, paper (as published) or sound (accounted over all rounds)",
        choices=lambda: tuple(MODES),
        alias="mode",
    )
    epsilon: float | None = key(
        None, "paper: of a round, as published; sound: of the whole training", only_for=(*_PAPER, *_SOUND)
    )
    delta: float | None = key(None, f"sound: default {DELTA:g}", only_for=_SOUND)
    sensitivity: float | None = key(
        None,
        "paper: Delta; default the one published with this epsilon",
        check=above_zero,
        only_for=_PAPER,
        is_needed=True,
    )
    mechanism: str | None = key(
        None,
        "sound: gaussian (default, updates clipped in L2), laplace (in L1), or correlated: gaussian noise of which "
        "later rounds take part back, for clients that rest",
        choices=("gaussian", "laplace", "correlated"),
        only_for=_SOUND,
        is_needed=True,
    )
    clip_norm: float | None = key(
        None,
        f"sound: norm that an update is clipped to; default {CLIP_NORM:g}",
        check=above_zero,
        only_for=_SOUND,
        is_needed=True,
    )
    noise_multiplier: float | None = key(
        None, "sound: noise of the sum / clip_norm; default: what epsilon needs", only_for=_SOUND, is_needed=True
    )
    update_norm: float | None = key(
        None,
        "none: L2 norm that an update is scaled down to; bounds a client's influence, not what it betrays",
        check=above_zero,
        only_for=("none",),
    )
    n_honest: int | None = key(None, "noise_at=clients: among how many clients the noise is divided", only_for=_SOUND)
    adjacency: str | None = key(
        None,
        "sound: which two federations must look alike: zero-out (default), replace-one or add-remove",
        choices=tuple(Adjacency),
        only_for=_SOUND,
    )


def _check_live(adjacency: str) -> str | None:
    if adjacency != Adjacency.add_remove:
        return None
    return (
        "must be zero-out or replace-one: in a live federation nobody can vouch for who is asked, and whether a client "
        "answers is seen, so that its being there or not cannot be hidden"
    )


@dataclass(frozen=True, kw_only=True)
class AgreedProtectionKeys(ProtectionKeys):
    """Of agreements."""

    n_clients: int | None = key(
        None,
        "paper: that share the noise, all in every round; sound: expected in a round",
        check=at_least(1),
        only_for=(*_PAPER, *_SOUND),
        is_needed=True,
    )
    epsilon: float | None = key(None, "paper: of a round, as published", only_for=_PAPER, is_needed=True)
    adjacency: str | None = key(
        None,
        "sound: which two federations must look alike: zero-out (default) or replace-one",
        choices=tuple(Adjacency),
        check=_check_live,
        only_for=_SOUND,
    )
    separation: int | None = key(
        None,
        "sound: rounds from one answer of a client to its next, at least; default 1, every round",
        check=at_least(1),
        only_for=_SOUND,
    )
    placement: str | None = key(
        None,
        "sound: who adds the noise, server or clients",
        choices=tuple(Placement),
        only_for=_SOUND,
        is_needed=True,
    )


@dataclass(frozen=True, kw_only=True)
class PrivacyKeys(ProtectionKeys):
    """Of recipes."""

    noise_at: str | None = key(
        None,
        "sound: who adds the noise, server (default) or clients, each a share",
        choices=tuple(Placement),
        only_for=_SOUND,
    )
    variant: str = key(
        "paper",
        "paper or published-code: privacy=paper bounds weights by Delta, not Delta/2; foltr-es shares one seed",
        choices=VARIANTS,
    )
    secure_sum: bool = key(False, "the server learns the sum of a round's updates, and no single one")
    sum_bound: float | None = key(
        None, "secure_sum without noise: largest number of an update; default 1", check=above_zero
    )


def check_mode(keys: PrivacyKeys, *, is_evolution: bool) -> None:
    """Keys of another mode are a mistake; an evolution strategy has none of them."""
    for declared in keys_of(PrivacyKeys).values():
        is_known = keys.privacy in declared.only_for and not is_evolution
        if declared.only_for and getattr(keys, declared.name) is not None and not is_known:
            modes = " or ".join(declared.only_for)
            raise ValueError(
                f"{declared.name} is for privacy={modes} of recipe fpdgd; here privacy is {keys.privacy!r}."
            )


def check_noise(keys: PrivacyKeys, *, n_clients: int) -> None:
    """What each mode needs; numbers that cannot be are refused where the mechanism is made."""
    MODES[keys.privacy].check({**asdict(keys), "n_clients": n_clients})
    if keys.delta is not None:
        check_delta(keys.delta)


def check_sum(keys: PrivacyKeys, *, cohort_size: int) -> None:
    """Numbers of a secure sum, and of clients that make its noise."""
    if keys.sum_bound is not None and (not keys.secure_sum or keys.privacy != "none"):
        raise ValueError("sum_bound is for secure_sum without noise; clipping and noise bound an update otherwise.")
    if keys.secure_sum and cohort_size < 2:
        raise ValueError("secure_sum with 1 client in a round hides nothing: set cohort or n_clients to 2 or more.")
    if (keys.noise_at == Placement.clients) != (keys.n_honest is not None):
        raise ValueError(
            f"noise_at is {keys.noise_at} and n_honest {keys.n_honest}: give noise_at=clients and n_honest, the "
            "number of clients that the noise is divided among, both or neither."
        )
    if keys.noise_at == Placement.clients and keys.adjacency == Adjacency.add_remove:
        raise ValueError(
            "adjacency is add-remove, which does not hold with noise_at=clients: a round needs n_honest answers, so "
            "that one client can decide whether there is a step. Use zero-out or replace-one."
        )
    if keys.n_honest is not None and not 1 <= keys.n_honest <= cohort_size:
        raise ValueError(
            f"n_honest is {keys.n_honest}, must be from 1 to {cohort_size}, the clients in a round: with fewer than "
            "the noise is divided among, the sum would carry less noise than promised."
        )
