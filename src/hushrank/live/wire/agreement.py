"""What all clients of a federation agree on before the first round, as data: it prints, travels as JSON, has a name.

A client stores the agreement on joining and compares its digest ever after: a server that changes its mind (fewer
clients to hide among, less noise) is noticed at once. Keys have the names of a recipe's, and most are the same keys.

An agreement may gain keys. One that the first agreements did not have is written only where it differs from its
default, so that they keep their digests; neither its default nor its being essential may ever change. Names that a
client must know are listed under `essential`; it keeps every other key that it does not know, as part of the digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from hushrank.aggregation.compatibility import Combination, Learner, Privacy, check_compatible
from hushrank.aggregation.keys import AggregationKeys, ServerStepKeys
from hushrank.aggregation.named import RULES
from hushrank.aggregation.server_step import DEFAULT_RATES
from hushrank.aggregation.tolerance import ASSUMED, assumes_malicious
from hushrank.federation.evolution import Evolution
from hushrank.federation.keys import EVOLUTION, RewardKeys, check_told, default_p
from hushrank.keys import (
    Key,
    Settings,
    above_zero,
    at_least,
    check_seed,
    check_value,
    check_values,
    hint_names,
    key,
    keys_of,
    method_keys,
    read_settings,
    read_value,
    required,
)
from hushrank.learners.keys import LocalStepKeys
from hushrank.privacy.keys import AgreedProtectionKeys
from hushrank.privacy.named import MODES
from hushrank.rankers.keys import RankerKeys

METHODS = ("fpdgd", EVOLUTION)
CLICK_REWARDS = ("MaxRR", "LastRR", "click-through")  # Why: the others need relevance grades, which no person has
ERASER, FRESH = "eraser", "fresh"  # how a federation forgets a client
ESSENTIAL = "essential"  # in the JSON: names of keys that whoever joins must know
_MOST_PARAMS = 10**7  # Why: a message of 40 MB; a larger number is a mistake or an attack on a client's memory
_FIRST = (
    "name n_features method ranker hidden activation learning_rate interactions k server_optimiser server_rate "
    "server_fade rounds privacy n_clients epsilon sensitivity mechanism clip_norm noise_multiplier delta placement "
    "n_honest reward sigma antithetic p seed"
)
FIRST_KEYS = frozenset(_FIRST.split())  # always written; Why a list: clients compare digests, so it may never change
_KNOWN_RULES = keys_of(AggregationKeys)["aggregation"]


def _check_rule_name(name: str) -> str | None:
    """Why any name: only the server runs the rule, and a client may be older than it."""
    return None if 1 <= len(name) <= 40 and name.isprintable() else "must have 1 to 40 printable characters"


@dataclass(frozen=True)  # Why no slots: several rooms' keys cannot be inherited with them
class Agreement(RankerKeys, LocalStepKeys, ServerStepKeys, AggregationKeys, AgreedProtectionKeys, RewardKeys):
    """How a federation learns and what protects its clients. None: not a matter of this method or protection."""

    name: str = required("of the federation, for people")
    n_features: int = required("numbers per query-document pair", check=at_least(1))
    _: KW_ONLY
    method: str = key("fpdgd", "fpdgd or foltr-es", choices=METHODS)
    interactions: int = key(4, "the most searches that a client learns from in a round", check=at_least(1))
    k: int = key(10, "results on a page", check=at_least(1))
    server_rate: float = key(1.0, "of the server's steps; adam .001", check=above_zero)
    aggregation: str = key(
        "mean",
        "how the server makes one update of many: mean, or a rule that compares single updates",
        check=_check_rule_name,
        is_essential=False,
    )
    assumed_malicious: int | None = key(
        None,
        "malicious clients that the rule reckons with in a round; needed by those that have to be told",
        check=at_least(0),
        is_essential=False,
    )
    rounds: int | None = key(
        None, "after which the federation is finished; None (endless) only without protection", check=at_least(1)
    )
    keep_every: int | None = key(
        None,
        "rounds from one whose update's length every client keeps to the next: by them a client that left is forgotten",
        check=at_least(1),
        only_for=(METHODS[0],),
        is_essential=False,  # Why: who does not know it learns as ever, and leaves rounds that forget out
    )
    forget_method: str | None = key(
        None,
        "how a client is forgotten: eraser (default with keep_every) or fresh, which needs no kept lengths",
        choices=(ERASER, FRESH),
        only_for=(METHODS[0],),
        is_essential=False,
    )
    reward: str | None = key(
        None, "foltr-es: what is made larger", choices=CLICK_REWARDS, only_for=(EVOLUTION,), is_needed=True
    )
    seed: int | None = key(
        None, "of a simulation: all draws can be repeated, so that nothing is private", check=check_seed
    )
    others: tuple[tuple[str, str], ...] = ()  # (key, its JSON) of the rule's settings, which its server reads
    # (`terms.rule_of`), and of a later version, which has no effect: all are part of the digest

    def __post_init__(self) -> None:
        check_kinds(self)
        check_values(keys_of(type(self)).values(), self)
        check_sizes(self)
        check_terms(self)

    @property
    def is_seeded(self) -> bool:
        return self.seed is not None

    @property
    def is_evolution(self) -> bool:
        return self.method == EVOLUTION

    @property
    def digest(self) -> str:
        """64 hex digits that name this agreement and no other."""
        return hashlib.sha256(canonical(self)).hexdigest()


KEYS: Mapping[str, Key] = keys_of(Agreement)


def canonical(agreement: Agreement) -> bytes:
    """The JSON from which the digest is made: keys in order, no spaces."""
    return _as_text(as_json(agreement)).encode()


def _as_text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def as_json(agreement: Agreement) -> dict[str, Any]:
    """Plain values; `parse_agreement` is the way back."""
    declared = keys_of(type(agreement))
    later = [n for n, key in declared.items() if n not in FIRST_KEYS and getattr(agreement, n) != key.default]
    values = {name: getattr(agreement, name) for name in declared if name in FIRST_KEYS or name in later}
    essential = sorted(name for name in later if declared[name].is_essential)
    others = {name: json.loads(text) for name, text in agreement.others}
    return {**values, **({ESSENTIAL: essential} if essential else {}), **others}


def parse_agreement(values: object) -> Agreement:
    """From JSON that anybody may have written: every key that the first agreements had, and none that cannot be."""
    if not isinstance(values, Mapping) or not set(values) >= FIRST_KEYS:
        raise ValueError(
            "this is no agreement of a federation: it must have all the keys of wire version 1. "
            "Client and server may be of different versions: update the older one."
        )
    check_essential(values.get(ESSENTIAL, []))
    unknown = sorted(set(values) - set(KEYS) - {ESSENTIAL})
    others = tuple((name, _as_text(values[name])) for name in unknown)
    try:
        typed = {name: read_value(KEYS[name], value) for name, value in values.items() if name in KEYS}
        return Agreement(**typed, others=others)
    except ValueError as error:  # Why: a later version may give a key that we know a value that we do not
        raise ValueError(
            f"this version of hushrank cannot keep the federation's agreement: {error} If the server is newer, update "
            "hushrank to join."
        ) from error


def check_essential(names: object) -> None:
    """Refuse an agreement that cannot be kept without keys of a later version."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"this is no agreement of a federation: {ESSENTIAL} must be a list of names.")
    unknown = [name for name in names if name not in KEYS]
    if unknown:
        raise ValueError(
            f"this federation has agreed on {', '.join(map(repr, unknown))}, which this version of hushrank does not "
            "know and may not ignore. Update hushrank to join."
        )


def make_agreement(name: str, *, n_features: int, method: str = "fpdgd", **settings: Any) -> Agreement:
    """An agreement from what an operator chose, the rest filled in as in the recipe of that name.

    privacy=sound takes epsilon (of all rounds together; the noise follows) or noise_multiplier.
    """
    rule = settings.get("aggregation", _KNOWN_RULES.default)
    check_value(_KNOWN_RULES, rule)
    known = method_keys(RULES, str(rule))
    for given in settings:
        if given not in KEYS and given not in known:
            raise ValueError(f"no key of an agreement is called {given!r}; {hint_names(given, (*KEYS, *known))}")
    check_value(KEYS["method"], method)
    own = {given: value for given, value in settings.items() if given in KEYS}
    typed = {given: read_value(KEYS[given], value, none_unsets=True) for given, value in own.items()}
    check_value(KEYS["privacy"], typed.get("privacy", KEYS["privacy"].default))
    chosen = (_settle_evolution if method == EVOLUTION else _settle_updates)(typed)
    chosen.setdefault("server_rate", DEFAULT_RATES.get(chosen.get("server_optimiser", "sgd"), 1.0))
    of_rule = {given: value for given, value in settings.items() if given not in KEYS}
    check_told_malicious(str(rule), typed.get(ASSUMED))
    read = read_settings(RULES, str(rule), of_rule) if rule in RULES else {}
    others = tuple((given, _as_text(value)) for given, value in read.items())
    return Agreement(name, n_features, method=method, **chosen, others=others)


def check_told_malicious(rule: str, assumed: int | None) -> None:
    """Whoever makes a federation knows nothing of its liars, so that a rule which has to be told has no default."""
    if assumes_malicious(RULES.get(rule)) and assumed is None:
        raise ValueError(f"aggregation={rule} needs {ASSUMED}: the malicious clients that it reckons with in a round.")
    if not assumes_malicious(RULES.get(rule)) and assumed is not None:
        raise ValueError(f"aggregation={rule} does not ask how many clients lie: leave {ASSUMED} out.")


def _settle_updates(settings: Settings) -> dict[str, Any]:
    chosen = {"privacy": "none", "rounds": 100, **settings}
    return MODES[chosen["privacy"]].settle(chosen)


def _settle_evolution(settings: Settings) -> dict[str, Any]:
    chosen = {
        "privacy": "paper",
        "rounds": 250,
        "hidden": 10,
        "activation": "relu",
        "server_optimiser": "adam",
        **{name: getattr(Evolution(), name) for name in ("reward", "sigma", "antithetic")},
        **settings,
    }
    return {"p": default_p(chosen["privacy"]), **chosen}


def check_kinds(agreement: Agreement) -> None:
    """Each value is of its type; fractions are written as such, so that one agreement has one digest."""
    for name, declared in keys_of(type(agreement)).items():
        value = getattr(agreement, name)
        if isinstance(read := read_value(declared, value), float) and not isinstance(value, float):
            raise ValueError(f"{name} is {value!r}, must be written as the fraction {read}.")


def check_sizes(agreement: Agreement) -> None:
    if not 1 <= len(agreement.name) <= 100 or not agreement.name.isprintable():
        raise ValueError("name must have 1 to 100 printable characters.")
    if agreement.n_features * (agreement.hidden if agreement.ranker == "mlp" else 1) > _MOST_PARAMS:
        raise ValueError(f"the ranker would have more than {_MOST_PARAMS:,} parameters: too many to send around.")


def check_terms(agreement: Agreement) -> None:
    """Every key that the method and its protection need is there, none of another, and all fit together."""
    check_evolution(agreement)
    chosen = {agreement.method} if agreement.is_evolution else {agreement.method, agreement.privacy}
    for name, declared in keys_of(type(agreement)).items():
        is_given, applies = getattr(agreement, name) is not None, bool(chosen & set(declared.only_for))
        if declared.only_for and is_given and not applies:
            raise ValueError(
                f"{name} is no matter of {agreement.method} with privacy={agreement.privacy}: leave it out."
            )
        if applies and declared.is_needed and not is_given:
            hint = ", the answers expected in a round" if name == "n_clients" else ""
            raise ValueError(f"{agreement.method} with privacy={agreement.privacy} needs {name}{hint}.")
    check_compatible(combination_of(agreement))
    check_rounds(agreement)
    check_forgetting(agreement)


def combination_of(agreement: Agreement) -> Combination:
    """What meets in this agreement; every client reaches the server directly, and answers or not as it likes."""
    kind = Privacy(MODES[agreement.privacy].kind({"placement": agreement.placement}))
    if agreement.is_evolution:
        privacy = Privacy.responses if kind is Privacy.paper else kind
        return Combination(Learner.rewards, agreement.aggregation, privacy)
    return Combination(Learner.updates, agreement.aggregation, kind)


def check_evolution(agreement: Agreement) -> None:
    if not agreement.is_evolution:
        return
    check_told(agreement.p, agreement.privacy)
    if agreement.antithetic and agreement.interactions % 2:
        raise ValueError(f"interactions is {agreement.interactions}, must be even: antithetic halves are equal.")


def check_rounds(agreement: Agreement) -> None:
    """Numbers of rounds and of clients in them."""
    if agreement.rounds is None and MODES[agreement.privacy].is_accounted:
        raise ValueError(f"privacy={agreement.privacy} is accounted over all rounds: rounds must be a number.")
    if agreement.rounds is None and agreement.server_fade:
        raise ValueError("server_fade lets the rate fall to zero in the last round: rounds must be a number.")
    if agreement.n_honest is not None and agreement.n_honest < 1:
        raise ValueError(f"n_honest is {agreement.n_honest}, must be at least 1.")
    if agreement.n_honest is not None and agreement.n_clients is not None and agreement.n_honest > agreement.n_clients:
        raise ValueError(
            f"n_honest is {agreement.n_honest}, more than the {agreement.n_clients} clients expected in a round."
        )


def check_forgetting(agreement: Agreement) -> None:
    if agreement.forget_method == ERASER and agreement.keep_every is None:
        raise ValueError(f"forget_method={ERASER} needs keep_every: clients must keep the lengths of their updates.")
    if (agreement.separation or 1) > 1 and (agreement.keep_every or agreement.forget_method):
        raise ValueError(
            "a federation whose clients rest (separation) cannot forget a client: leave keep_every and forget_method "
            "out."
        )


def describe_agreement() -> dict[str, Any]:
    """The JSON of an agreement as a JSON Schema."""
    names: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
    properties: dict[str, object] = {
        name: {"type": [names.get(kind, "null") for kind in declared.kinds], "description": declared.help}
        for name, declared in KEYS.items()
    }
    properties[ESSENTIAL] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "keys of later versions that whoever joins must know; other unknown keys are kept and ignored",
    }
    return {"type": "object", "required": sorted(FIRST_KEYS), "properties": properties}
