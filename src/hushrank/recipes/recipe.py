"""A recipe: one experiment as data. It prints, hashes, reruns, and is checked before anything is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hushrank.aggregation.keys import AggregationKeys, ServerStepKeys
from hushrank.attacks.keys import AttackKeys
from hushrank.clicks.keys import LOGGED, ClickKeys
from hushrank.data.keys import DataKeys
from hushrank.federation.keys import EVOLUTION, EvolutionKeys, PopulationKeys
from hushrank.keys import Key, check_value, check_values, hint_names, key, keys_of, read_value
from hushrank.learners.keys import LearnerKeys
from hushrank.partitions.keys import PartitionKeys
from hushrank.personal.keys import PERSONAL_SEARCH, PersonalKeys
from hushrank.privacy.keys import PrivacyKeys
from hushrank.rankers.keys import RankerKeys
from hushrank.recipes.checks import check_rooms
from hushrank.recipes.options import list_options, read_options
from hushrank.recipes.rooms import CHOOSERS, ROOM_KEYS
from hushrank.recipes.training import TrainingKeys
from hushrank.remedies.keys import RemedyKeys
from hushrank.unlearning.keys import UnlearningKeys

OFFLINE = ("mse", "ranking-svm", "lambdamart")


@dataclass(frozen=True)  # Why no slots: several rooms' keys cannot be inherited with them
class Recipe(
    DataKeys,
    ClickKeys,
    PopulationKeys,
    PartitionKeys,
    RankerKeys,
    LearnerKeys,
    RemedyKeys,
    EvolutionKeys,
    AggregationKeys,
    ServerStepKeys,
    AttackKeys,
    PrivacyKeys,
    UnlearningKeys,
    PersonalKeys,
    TrainingKeys,
):
    """Every key that a recipe file, `--set` or Python may give. None means: the default that its help names."""

    recipe: str = key(
        "fpdgd",
        "fpdgd, pdgd (central), foltr-es, fedps (personalised), or trained on labels: mse, ranking-svm, lambdamart",
        choices=lambda: tuple(NAMED),
    )
    options: Mapping[str, object] = field(default_factory=dict)  # keys of the chosen methods, unless at their defaults

    @property
    def is_central(self) -> bool:
        return self.recipe == "pdgd"

    @property
    def is_offline(self) -> bool:
        """Trained on relevance labels, not on clicks."""
        return self.recipe in OFFLINE

    @property
    def is_evolution(self) -> bool:
        return self.recipe == EVOLUTION

    @property
    def is_personal(self) -> bool:
        """Personalised search: models that read users' logs, and no rankers of features."""
        return self.recipe == PERSONAL_SEARCH


NAMED: dict[str, Recipe] = {
    "fpdgd": Recipe("fpdgd"),
    "pdgd": Recipe("pdgd", n_clients=1, interactions=4000, batch=1),
    "foltr-es": Recipe(
        "foltr-es", n_clients=2000, rounds=250, hidden=10, activation="relu", server_optimiser="adam", privacy="paper"
    ),
    **{name: Recipe(name, n_clients=1, interactions=1, rounds=1) for name in OFFLINE},
    PERSONAL_SEARCH: Recipe(
        PERSONAL_SEARCH,
        data="personal-like",
        clicks=LOGGED,
        n_clients=300,
        interactions=1,
        cohort=10,
        rounds=3,
        word_dim=32,
    ),
}
KEYS: dict[str, Key] = {name: keys_of(Recipe)[name] for name in ("recipe", *ROOM_KEYS)}


def change_recipe(recipe: Recipe, values: Mapping[str, object]) -> Recipe:
    """The recipe with some keys changed, checked."""
    if "recipe" in values:
        raise ValueError("recipe is not a key to change: name the method itself, as in hushrank run pdgd.")
    typed = _read_values(values, none_unsets=True)
    if typed.get("log") is not None:
        typed.setdefault("clicks", LOGGED)
    return _settle(replace(recipe, **{**typed, "options": {**recipe.options, **typed["options"]}}))


def _read_values(values: Mapping[str, object], *, none_unsets: bool = False) -> dict[str, Any]:
    """Fields of a recipe: keys of their types, and the rest, which must be options, as it came."""
    given = {name: value for name, value in values.items() if name in KEYS}
    options = {name: value for name, value in values.items() if name not in KEYS}
    typed = {name: read_value(KEYS[name], value, none_unsets=none_unsets) for name, value in given.items()}
    if options:
        _refuse_unknown(options, typed)
    return {**typed, "options": options}


def _refuse_unknown(options: Mapping[str, object], typed: Mapping[str, object]) -> None:
    """Why methods first: a method that no plugin has brought is why its options are not known."""
    for name in CHOOSERS:
        if name in typed:
            check_value(KEYS[name], typed[name])
    known = list_options()
    for name in options:
        if name not in known:
            raise ValueError(f"no recipe key is called {name!r}; {hint_names(name, [*list(KEYS)[1:], *known])}")


def _settle(recipe: Recipe) -> Recipe:
    """Checked, and with its options written in one way."""
    check_recipe(recipe)
    return replace(recipe, options=read_options(recipe))


def check_recipe(recipe: Recipe) -> None:
    """Refuse at the door what cannot work: what came, what is allowed, what to do."""
    check_values(KEYS.values(), recipe)
    check_rooms(replace(recipe, options=read_options(recipe)), NAMED[recipe.recipe])


def as_json(recipe: Recipe) -> dict[str, Any]:
    """Plain values for a JSON file, options beside the other keys; `recipe_from_json` is the way back."""
    values = {**{name: getattr(recipe, name) for name in KEYS}, **recipe.options}
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def recipe_from_json(values: Mapping[str, object]) -> Recipe:
    return _settle(Recipe(**_read_values(values)))


def hash_recipe(recipe: Recipe) -> str:
    """Eight hex digits that differ when anything in the recipe does.

    Only what is not the default counts, so that a key which a later version adds leaves old recipes their names.
    """
    default = as_json(Recipe())
    special = {key: value for key, value in as_json(recipe).items() if key not in default or value != default[key]}
    return hashlib.sha256(json.dumps(special, sort_keys=True).encode()).hexdigest()[:8]
