"""What all clients of a federation agree on before the first round, as data: it prints, travels as JSON, has a name.

A client stores the agreement on joining and compares its digest ever after: a server that changes its mind (fewer
clients to hide among, less noise) is noticed at once. Keys have the names of a recipe's.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hushrank.aggregation.server_step import DEFAULT_RATES
from hushrank.privacy.named import MODES, published_sensitivity
from hushrank.privacy.placement import Placement
from hushrank.privacy.renyi import Spend, check_epsilon, composed_epsilon

METHODS = ("fpdgd", "foltr-es")
CLICK_REWARDS = ("MaxRR", "LastRR", "click-through")  # Why: the others need relevance grades, which no person has
_DELTA = 1e-5  # of Gaussian noise, unless given


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a federation learns and what protects its clients. None: not a matter of this method or protection."""

    name: str  # of the federation, for people
    n_features: int  # numbers per query-document pair
    method: str = "fpdgd"  # or foltr-es
    ranker: str = "linear"  # or mlp
    hidden: int = 64  # mlp: units of the hidden layer
    activation: str = "sigmoid"  # mlp: of the hidden layer, or relu
    learning_rate: float = 0.1  # of a client's own steps
    interactions: int = 4  # the most searches that a client learns from in a round
    k: int = 10  # results on a page
    server_optimiser: str = "sgd"  # sgd, momentum or adam
    server_rate: float = 1.0
    server_fade: bool = False  # let the server's rate fall to zero over the rounds
    rounds: int | None = None  # after which the federation is finished; None (endless) only without protection
    privacy: str = "none"  # none, paper (as published) or sound (accounted over all rounds)
    n_clients: int | None = None  # paper: that share the noise, all in every round; sound: expected in a round
    epsilon: float | None = None  # paper: of a round, as published
    sensitivity: float | None = None  # paper: Delta
    mechanism: str | None = None  # sound: gaussian (updates clipped in L2) or laplace (in L1)
    clip_norm: float | None = None  # sound: norm that an update is clipped to
    noise_multiplier: float | None = None  # sound: noise of the sum / clip_norm
    delta: float | None = None  # sound: probability without a promise; None: pure epsilon
    placement: str | None = None  # sound: who adds the noise, server or clients
    n_honest: int | None = None  # sound, placement clients: among how many the noise is divided
    reward: str | None = None  # foltr-es: what is made larger
    sigma: float | None = None  # foltr-es: standard deviation of the perturbations
    antithetic: bool | None = None  # foltr-es: try each perturbation in both directions
    p: float | None = None  # foltr-es: probability that a reward is told as it was
    seed: int | None = None  # of a simulation: all draws can be repeated, so that nothing is private

    def __post_init__(self) -> None:
        check_kinds(self)
        check_choices(self)
        check_keys(self)

    @property
    def is_seeded(self) -> bool:
        return self.seed is not None

    @property
    def is_evolution(self) -> bool:
        return self.method == "foltr-es"

    @property
    def digest(self) -> str:
        """64 hex digits that name this agreement and no other."""
        return hashlib.sha256(canonical(self)).hexdigest()


KEYS = tuple(f.name for f in fields(Agreement))
_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (float,), "bool": (bool,)}
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "method": METHODS,
    "ranker": ("linear", "mlp"),
    "activation": ("sigmoid", "relu"),
    "server_optimiser": tuple(DEFAULT_RATES),
    "privacy": tuple(MODES),
    "mechanism": ("gaussian", "laplace", None),
    "placement": (*Placement, None),
    "reward": (*CLICK_REWARDS, None),
}
_AT_LEAST_ONE = ("n_features", "hidden", "interactions", "k", "rounds", "n_clients", "n_honest")
_ABOVE_ZERO = ("learning_rate", "server_rate", "sensitivity", "clip_norm", "sigma")
_MOST_PARAMS = 10**7  # Why: a message of 40 MB; a larger number is a mistake or an attack on a client's memory
_OF_PAPER = ("n_clients", "epsilon", "sensitivity")
_OF_SOUND = ("n_clients", "mechanism", "clip_norm", "noise_multiplier", "placement")
_OF_EVOLUTION = ("reward", "sigma", "antithetic", "p")
_OPTIONAL = ("delta", "n_honest")  # of sound


def canonical(agreement: Agreement) -> bytes:
    """The JSON from which the digest is made: keys in order, no spaces."""
    return json.dumps(asdict(agreement), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def as_json(agreement: Agreement) -> dict[str, Any]:
    """Plain values; `parse_agreement` is the way back."""
    return asdict(agreement)


def parse_agreement(values: object) -> Agreement:
    """From JSON that anybody may have written: every key, of its kind, and nothing that cannot be."""
    if not isinstance(values, Mapping) or set(values) != set(KEYS):
        raise ValueError(
            "this is no agreement of a federation: it must have exactly the keys of wire version 1. "
            "Client and server may be of different versions: update the older one."
        )
    typed = {key: _as_float(key, value) for key, value in values.items()}
    return Agreement(**typed)


def make_agreement(name: str, *, n_features: int, method: str = "fpdgd", **settings: Any) -> Agreement:
    """An agreement from what an operator chose, the rest filled in as in the recipe of that name.

    privacy=sound takes epsilon (of all rounds together; the noise follows) or noise_multiplier.
    """
    for key in settings:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KEYS)}."
            raise ValueError(f"no key of an agreement is called {key!r}; {hint}")
    if method not in METHODS:
        raise ValueError(f"method is {method!r}, must be one of {', '.join(METHODS)}.")
    chosen: dict[str, Any] = (_evolution_defaults if method == "foltr-es" else _gradient_defaults)(settings) | settings
    optimiser = chosen.get("server_optimiser", "sgd")
    chosen.setdefault("server_rate", DEFAULT_RATES.get(optimiser, 1.0))
    if chosen["privacy"] == "sound" and method == "fpdgd":
        chosen = _find_noise(chosen)
    return Agreement(
        name, method=method, **{key: _as_float(key, v) for key, v in {**chosen, "n_features": n_features}.items()}
    )


def _gradient_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"privacy": "none", "rounds": 100}
    if settings.get("privacy") == "paper" and settings.get("sensitivity") is None and "epsilon" in settings:
        defaults["sensitivity"] = published_sensitivity(float(settings["epsilon"]))
    if settings.get("privacy") == "sound":
        defaults |= {"mechanism": "gaussian", "clip_norm": 0.1, "placement": "server"}
        if settings.get("mechanism", "gaussian") == "gaussian":
            defaults["delta"] = _DELTA
    return defaults


def _evolution_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    privacy = settings.get("privacy", "paper")
    return {
        "privacy": "paper",
        "rounds": 250,
        "hidden": 10,
        "activation": "relu",
        "server_optimiser": "adam",
        "reward": "MaxRR",
        "sigma": 0.01,
        "antithetic": True,
        "p": 1.0 if privacy == "none" else 0.9,
    }


def _find_noise(chosen: dict[str, Any]) -> dict[str, Any]:
    """With the least noise that keeps a wanted epsilon over all rounds, as clients' ledgers will count it."""
    epsilon, rest = chosen.get("epsilon"), {key: value for key, value in chosen.items() if key != "epsilon"}
    if (epsilon is None) == (chosen.get("noise_multiplier") is None):
        raise ValueError("privacy=sound needs epsilon (the noise follows) or noise_multiplier (epsilon follows): one.")
    if epsilon is None:
        return rest
    check_epsilon(epsilon)
    if not isinstance(chosen["rounds"], int) or chosen["rounds"] < 1:
        raise ValueError(f"rounds is {chosen['rounds']}, must be at least 1: epsilon is of all rounds together.")

    def keeps(noise: float) -> bool:
        spend = Spend(chosen["mechanism"], 1.0 / noise, times=chosen["rounds"])
        return composed_epsilon([spend], delta=chosen.get("delta")) <= epsilon

    low, high = 2.0**-20, 2.0**40
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return {**rest, "noise_multiplier": high}


def _as_float(key: str, value: Any) -> Any:
    """Whole numbers become fractions where these are asked for, so that one agreement has one digest."""
    is_fraction = next((str(f.type).startswith("float") for f in fields(Agreement) if f.name == key), False)
    return float(value) if is_fraction and isinstance(value, int) and not isinstance(value, bool) else value


def check_kinds(agreement: Agreement) -> None:
    for f in fields(Agreement):
        value, (kind, _, rest) = getattr(agreement, f.name), str(f.type).partition(" | ")
        right = isinstance(value, _KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))
        if not (right or (rest == "None" and value is None)):
            raise ValueError(f"{f.name} is {value!r}, must be of kind {f.type}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{f.name} is {value}, must be a finite number.")


def check_choices(agreement: Agreement) -> None:
    for key, allowed in _CHOICES.items():
        if getattr(agreement, key) not in allowed:
            raise ValueError(
                f"{key} is {getattr(agreement, key)!r}, must be one of {', '.join(filter(None, allowed))}."
            )
    for key in _AT_LEAST_ONE:
        if (value := getattr(agreement, key)) is not None and value < 1:
            raise ValueError(f"{key} is {value}, must be at least 1.")
    for key in _ABOVE_ZERO:
        if (value := getattr(agreement, key)) is not None and not value > 0:
            raise ValueError(f"{key} is {value}, must be > 0.")
    if not 1 <= len(agreement.name) <= 100 or not agreement.name.isprintable():
        raise ValueError("name must have 1 to 100 printable characters.")
    if agreement.seed is not None and not 0 <= agreement.seed < 2**64:
        raise ValueError(f"seed is {agreement.seed}, must be a whole number from 0 to 2^64 - 1.")
    if agreement.n_features * (agreement.hidden if agreement.ranker == "mlp" else 1) > _MOST_PARAMS:
        raise ValueError(f"the ranker would have more than {_MOST_PARAMS:,} parameters: too many to send around.")


def check_keys(agreement: Agreement) -> None:
    """Every key that the method and its protection need is there, and none of another."""
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    if agreement.is_evolution:
        needed = _OF_EVOLUTION
        if agreement.privacy == "sound":
            raise ValueError("foltr-es is private per interaction by p (privacy=paper); privacy=sound is for fpdgd.")
        if agreement.privacy == "none" and agreement.p != 1:
            raise ValueError(f"p is {agreement.p}, but privacy=none tells every reward as it was: p must be 1.")
        if agreement.antithetic and agreement.interactions % 2:
            raise ValueError(f"interactions is {agreement.interactions}, must be even: antithetic halves are equal.")
    elif agreement.privacy == "paper":
        needed = _OF_PAPER
    elif agreement.privacy == "sound":
        needed, optional = _OF_SOUND, _OPTIONAL
    for key in dict.fromkeys((*_OF_PAPER, *_OF_SOUND, *_OPTIONAL, *_OF_EVOLUTION)):
        is_given = getattr(agreement, key) is not None
        if is_given and key not in (*needed, *optional):
            raise ValueError(
                f"{key} is no matter of {agreement.method} with privacy={agreement.privacy}: leave it out."
            )
        if not is_given and key in needed:
            hint = ", the answers expected in a round" if key == "n_clients" else ""
            raise ValueError(f"{agreement.method} with privacy={agreement.privacy} needs {key}{hint}.")
    if agreement.rounds is None and agreement.privacy != "none":
        raise ValueError(f"privacy={agreement.privacy} is accounted over all rounds: rounds must be a number.")
    if agreement.rounds is None and agreement.server_fade:
        raise ValueError("server_fade lets the rate fall to zero in the last round: rounds must be a number.")
    if agreement.n_honest is not None and agreement.n_clients is not None and agreement.n_honest > agreement.n_clients:
        raise ValueError(
            f"n_honest is {agreement.n_honest}, more than the {agreement.n_clients} clients expected in a round."
        )
