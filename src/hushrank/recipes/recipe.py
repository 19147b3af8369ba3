"""A recipe: one experiment as data. It prints, hashes, reruns, and is checked before anything is written."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hushrank.aggregation.compatibility import (
    Attendance,
    Combination,
    Learner,
    Privacy,
    Topology,
    check_compatible,
)
from hushrank.aggregation.named import aggregation_names
from hushrank.aggregation.server_step import DEFAULT_RATES
from hushrank.attacks.named import ATTACKS
from hushrank.federation.cohort import SAMPLINGS, Population
from hushrank.federation.evolution import Evolution
from hushrank.learners.named import LEARNERS
from hushrank.metrics.rewards import REWARD_NAMES
from hushrank.privacy.laplace import VARIANTS
from hushrank.privacy.named import MODES, make_paper_noise
from hushrank.privacy.placement import Placement
from hushrank.privacy.renyi import check_delta, check_epsilon

ClickTables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Every key that a recipe file, `--set` or Python may give. None means: the default that the comment names."""

    recipe: str = "fpdgd"  # fpdgd, pdgd (central), foltr-es, or trained on labels: mse, ranking-svm, lambdamart
    data: str = "mq2008-like"  # a shape, a catalogue name or a directory
    normalise: str | None = None  # none, query-minmax, standard; default: the catalogue's, none for a directory
    folds: tuple[int, ...] | None = None  # default: every fold present
    clicks: str | tuple[str, ...] = "navigational"  # a user's name, or several
    click_tables: ClickTables = field(default_factory=dict)  # own users: {name: {click, stop}} or {name: {click, eta}}
    log: str | None = None  # a click log to learn from instead of simulated people; clicks is then "log"
    max_weight: float | None = None  # with log: clip of the correction for outdated lists; default: no correction
    n_clients: int = 1000  # clients of the federation; 1 for pdgd
    interactions: int | tuple[int, ...] = 4  # per client and round; a list: client c gets the entry c modulo its length
    cohort: int | None = None  # clients sampled for each round; default: all
    sampling: str = "fixed"  # cohort is a fixed number, or with poisson an average: each client by a coin of its own
    dropout: float = 0.0  # probability that a sampled client's update never arrives
    rounds: int = 100  # rounds of training
    batch: int | None = None  # pdgd: gradients of so many interactions at the same weights, summed; default 1
    ranker: str = "linear"  # the scoring function: linear or mlp
    hidden: int = 64  # mlp: units of the hidden layer
    activation: str = "sigmoid"  # mlp: of the hidden layer, sigmoid or relu
    learner: str = "pdgd"  # how one interaction moves the parameters
    learning_rate: float = 0.1  # of a client's own steps
    server_optimiser: str = "sgd"  # sgd, momentum or adam
    server_rate: float | None = None  # default 1; adam .001
    server_fade: bool = False  # let the server's rate fall to zero, round by round: what noise it added is forgotten
    reward: str | None = None  # foltr-es: what is made larger; MaxRR (default), LastRR, click-through, nDCG or DCG
    reward_points: int | None = None  # foltr-es: values that nDCG and DCG are rounded to; default 11
    sigma: float | None = None  # foltr-es: standard deviation of the perturbations; default .01
    antithetic: bool | None = None  # foltr-es: try each perturbation in both directions; default true
    p: float | None = None  # foltr-es: probability that a reward is told as it was; default .9, 1 without privacy
    aggregation: str = "mean"  # how updates become one
    attack: str | None = None  # what malicious clients send instead of what they learnt; default: everybody is honest
    n_malicious: int = 0  # how many clients do that
    secure_sum: bool = False  # the server learns the sum of a round's updates, and no single one
    sum_bound: float | None = None  # secure_sum without noise: largest number of an update; default 1
    privacy: str = "none"  # what protects a client: none, paper (as published) or sound (accounted over all rounds)
    epsilon: float | None = None  # paper: of a round, as published; sound: of the whole training
    delta: float | None = None  # sound: default 1e-5
    sensitivity: float | None = None  # paper: Delta; default the one published with this epsilon
    mechanism: str | None = None  # sound: gaussian (default, updates clipped in L2) or laplace (in L1)
    clip_norm: float | None = None  # sound: norm that an update is clipped to; default .1
    noise_multiplier: float | None = None  # sound: noise of the sum / clip_norm; default: what epsilon needs
    noise_at: str | None = None  # sound: who adds the noise, server (default) or clients, each a share
    n_honest: int | None = None  # noise_at=clients: among how many clients the noise is divided
    variant: str = "paper"  # which reading of the method
    eval_every: int | None = None  # rounds between two looks at test and validation; default: a twentieth of the rounds
    repeats: int = 1  # trainings for each user and fold, each with draws of its own
    seed: int = 0  # of every draw but those of a generated data set; from 0 to 2^64 - 1

    @property
    def users(self) -> tuple[str, ...]:
        return (self.clicks,) if isinstance(self.clicks, str) else self.clicks

    @property
    def is_central(self) -> bool:
        return self.recipe == "pdgd"

    @property
    def is_offline(self) -> bool:
        """Trained on relevance labels, not on clicks."""
        return self.recipe in OFFLINE

    @property
    def is_evolution(self) -> bool:
        return self.recipe == "foltr-es"


OFFLINE = ("mse", "ranking-svm", "lambdamart")
NAMED: dict[str, Recipe] = {
    "fpdgd": Recipe("fpdgd"),
    "pdgd": Recipe("pdgd", n_clients=1, interactions=4000, batch=1),
    "foltr-es": Recipe(
        "foltr-es", n_clients=2000, rounds=250, hidden=10, activation="relu", server_optimiser="adam", privacy="paper"
    ),
    **{name: Recipe(name, n_clients=1, interactions=1, rounds=1) for name in OFFLINE},
}
LOGGED = "log"  # the name of the people whose clicks come from a log
KEYS: tuple[str, ...] = tuple(f.name for f in fields(Recipe))
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "ranker": ("linear", "mlp"),
    "activation": ("sigmoid", "relu"),
    "server_optimiser": tuple(DEFAULT_RATES),
    "sampling": SAMPLINGS,
    "privacy": tuple(MODES),
    "mechanism": ("gaussian", "laplace", None),
    "noise_at": (*Placement, None),
    "reward": (*REWARD_NAMES, None),
    "variant": VARIANTS,
    "normalise": ("none", "query-minmax", "standard", None),
}
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "tuple": (tuple,),
    "None": (type(None),),
    "ClickTables": (dict,),
}
_PUBLISHED = re.compile(r"[a-z-]+\.(table|figure)[\d.]+")
_AT_LEAST_ONE = ("rounds", "hidden", "repeats", "batch", "eval_every")


def find_recipe(name_or_file: str) -> Recipe:
    """A named recipe, or one from a TOML file (`recipe = "fpdgd"` and any other keys)."""
    if name_or_file in NAMED:
        return NAMED[name_or_file]
    if Path(name_or_file).suffix in (".toml", ".json") or Path(name_or_file).is_file():
        return read_recipe(Path(name_or_file))
    if _PUBLISHED.fullmatch(name_or_file):
        raise ValueError(f"{name_or_file} is a table or figure: rerun it with hushrank reproduce {name_or_file}")
    near = difflib.get_close_matches(name_or_file, NAMED, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(NAMED)}, or the path of a TOML file."
    raise ValueError(f"no recipe is called {name_or_file!r}; {hint}")


def read_recipe(path: Path) -> Recipe:
    """From a TOML file, or from the recipe.json of a run: to change one thing of it."""
    if path.suffix == ".json":
        return recipe_from_json({key: value for key, value in read_json(path).items() if key != "format"})
    values = read_toml(path)
    if "grid" in values or "case" in values:
        raise ValueError(f"{path} is a grid of recipes: run it with hushrank sweep {path}")
    name = values.pop("recipe", None)
    if name is None:
        raise ValueError(f'{path} does not say which method to run: add a line such as recipe = "fpdgd".')
    return change_recipe(find_recipe(str(name)), values)


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not the recipe of a run: {error}.") from error
    if not isinstance(found, dict) or not set(found) <= {*KEYS, "format"}:
        raise ValueError(f"{path} is not the recipe of a run: it must hold the keys of a recipe, no others.")
    return found


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(
            f"{path} does not exist. Give a recipe's name ({', '.join(NAMED)}) or the path of a TOML file."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from error


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """`--set key=value` pairs; values are TOML, else strings."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise ValueError(f"--set {assignment!r} has no '='; write --set key=value.")
        values[key.strip()] = parse_value(text)
    return values


def parse_value(text: str) -> Any:
    """TOML, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def change_recipe(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with some keys changed, checked."""
    if "recipe" in values:
        raise ValueError("recipe is not a key to change: name the method itself, as in hushrank run pdgd.")
    for key in values:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KEYS[1:])}."
            raise ValueError(f"no recipe key is called {key!r}; {hint}")
    typed = {key: _as_field(key, value) for key, value in values.items()}
    if typed.get("log") is not None:
        typed.setdefault("clicks", LOGGED)
    changed = replace(recipe, **typed)
    check_recipe(changed)
    return changed


def _as_field(key: str, value: Any) -> Any:
    """Lists become tuples and whole numbers become fractions where these are asked for; a wrong kind is refused."""
    value = tuple(value) if isinstance(value, list) else value
    kind = next(f.type for f in fields(Recipe) if f.name == key)
    kinds = tuple(t for part in str(kind).split(" | ") for t in _KINDS[part.partition("[")[0]])
    if value == "none" and type(None) in kinds and value not in _CHOICES.get(key, ()):
        return None  # the way to take a setting back on the command line
    wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
    if isinstance(value, tuple) and not wrong:
        inside = str if "tuple[str" in str(kind) else int
        wrong = not value or any(not isinstance(item, inside) or isinstance(item, bool) for item in value)
    if isinstance(value, dict):
        wrong = not all(isinstance(table, Mapping) for table in value.values())
    if wrong:
        value = list(value) if isinstance(value, tuple) else value
        raise ValueError(f"{key} is {value!r}, must be {_describe_kind(str(kind))}.")
    return float(value) if float in kinds and not isinstance(value, type(None)) else value


def _describe_kind(kind: str) -> str:
    words = {
        "str": "a word",
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "tuple[int, ...]": "a list of one or more whole numbers",
    }
    words |= {
        "tuple[str, ...]": "a list of one or more words",
        "ClickTables": "a table {name: {click, stop or eta}} for each own user",
    }
    return " or ".join(words[part] for part in kind.split(" | ") if part != "None")


def check_recipe(recipe: Recipe) -> None:
    """Refuse at the door what cannot work: what came, what is allowed, what to do."""
    for key, allowed in _CHOICES.items():
        if getattr(recipe, key) not in allowed:
            raise ValueError(f"{key} is {getattr(recipe, key)!r}, must be one of {', '.join(filter(None, allowed))}.")
    for key, names in registered_names().items():
        if getattr(recipe, key) not in (*names, None):
            raise ValueError(
                f"{key} is {getattr(recipe, key)!r}, must be one of {', '.join(names)}; your own comes with --plugin."
            )
    for key in _AT_LEAST_ONE:
        value = getattr(recipe, key)
        if value is not None and value < 1:
            raise ValueError(f"{key} is {value}, must be at least 1.")
    for key in ("learning_rate", "server_rate", "max_weight", "sum_bound"):
        value = getattr(recipe, key)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{key} is {value}, must be > 0.")
    if not 0 <= recipe.seed < 2**64:
        raise ValueError(f"seed is {recipe.seed}, must be a whole number from 0 to 2^64 - 1.")
    if recipe.folds is not None and (min(recipe.folds) < 1 or len(set(recipe.folds)) < len(recipe.folds)):
        raise ValueError(f"folds is {list(recipe.folds)}, must be different numbers from 1 on.")
    if (recipe.log is not None) != (recipe.clicks == LOGGED):
        raise ValueError(f'log is {recipe.log!r} and clicks {recipe.clicks!r}: with a log, clicks is "log".')
    if recipe.log is not None and recipe.learner != "pdgd":
        raise ValueError(f"learner is {recipe.learner!r}, but a click log is read by pdgd alone: leave learner out.")
    if recipe.log is None and recipe.max_weight is not None:
        raise ValueError("max_weight is for learning from a click log: give log too, or leave it out.")
    if len(set(recipe.users)) < len(recipe.users):
        raise ValueError(f"clicks is {list(recipe.users)}: name each user once.")
    check_offline(recipe)
    check_population(recipe)
    check_compatible(combination_of(recipe))
    check_evolution(recipe)
    check_protection(recipe)
    check_sum(recipe)


def combination_of(recipe: Recipe) -> Combination:
    """What meets in this recipe."""
    kind = Privacy(MODES[recipe.privacy].kind({"placement": recipe.noise_at}))
    privacy = Privacy.responses if recipe.is_evolution and kind is Privacy.paper else kind
    is_partial = population_of(recipe).cohort_size < recipe.n_clients or recipe.dropout > 0
    return Combination(
        learner=learner_of(recipe),
        aggregation=recipe.aggregation,
        privacy=privacy,
        topology=Topology.secure_sum if recipe.secure_sum else Topology.direct,
        attendance=Attendance.some if is_partial else Attendance.everybody,
        attack=recipe.attack,
    )


def learner_of(recipe: Recipe) -> Learner:
    if recipe.is_evolution:
        return Learner.rewards
    if recipe.is_central or recipe.is_offline:
        return Learner.central
    return Learner.updates if recipe.log is None else Learner.log


_OF_MODE = {
    "none": (),
    "paper": ("epsilon", "sensitivity"),
    "sound": ("epsilon", "delta", "mechanism", "clip_norm", "noise_multiplier", "noise_at", "n_honest"),
}


def check_protection(recipe: Recipe) -> None:
    """Keys of another mode are a mistake; numbers that cannot be are refused where the mechanism is made."""
    known = () if recipe.is_evolution else _OF_MODE[recipe.privacy]
    for key in dict.fromkeys(key for keys in _OF_MODE.values() for key in keys):
        if getattr(recipe, key) is not None and key not in known:
            modes = " or ".join(mode for mode, keys in _OF_MODE.items() if key in keys)
            raise ValueError(f"{key} is for privacy={modes} of recipe fpdgd; here privacy is {recipe.privacy!r}.")
    if recipe.privacy == "none" or recipe.is_evolution:
        return
    if recipe.privacy == "paper":
        make_paper_noise(asdict(recipe))
    elif (recipe.epsilon is None) == (recipe.noise_multiplier is None):
        raise ValueError("privacy=sound needs epsilon (the noise follows) or noise_multiplier (epsilon follows): one.")
    elif recipe.epsilon is not None:
        check_epsilon(recipe.epsilon)
    if recipe.delta is not None:
        check_delta(recipe.delta)


def check_sum(recipe: Recipe) -> None:
    """Numbers of a secure sum, and of clients that make its noise."""
    size = population_of(recipe).cohort_size
    if recipe.sum_bound is not None and (not recipe.secure_sum or recipe.privacy != "none"):
        raise ValueError("sum_bound is for secure_sum without noise; clipping and noise bound an update otherwise.")
    if recipe.secure_sum and size < 2:
        raise ValueError("secure_sum with 1 client in a round hides nothing: set cohort or n_clients to 2 or more.")
    if (recipe.noise_at == Placement.clients) != (recipe.n_honest is not None):
        raise ValueError(
            f"noise_at is {recipe.noise_at} and n_honest {recipe.n_honest}: give noise_at=clients and n_honest, the "
            "number of clients that the noise is divided among, both or neither."
        )
    if recipe.n_honest is not None and not 1 <= recipe.n_honest <= size:
        raise ValueError(
            f"n_honest is {recipe.n_honest}, must be from 1 to {size}, the clients in a round: with fewer than the "
            "noise is divided among, the sum would carry less noise than promised."
        )


OF_OFFLINE = ("recipe", "data", "normalise", "folds", "clicks", "click_tables", "seed")


def check_offline(recipe: Recipe) -> None:
    """A ranker trained on labels has data and, for its metrics, users; nothing else to set."""
    if recipe.is_offline:
        for key in KEYS:
            if key not in OF_OFFLINE and getattr(recipe, key) != getattr(NAMED[recipe.recipe], key):
                raise ValueError(f"{key} is for learning from clicks; recipe {recipe.recipe} learns from labels.")


_OF_EVOLUTION = ("reward", "reward_points", "sigma", "antithetic", "p")


def check_evolution(recipe: Recipe) -> None:
    """What only an evolution strategy has, and what it cannot have."""
    if not recipe.is_evolution:
        given = [key for key in _OF_EVOLUTION if getattr(recipe, key) is not None]
        if given:
            raise ValueError(f"{given[0]} is for recipe foltr-es; {recipe.recipe} does not have it.")
        return
    default = NAMED["foltr-es"]
    for key in ("learner", "batch", "log"):
        if getattr(recipe, key) != getattr(default, key):
            raise ValueError(
                f"{key} is {getattr(recipe, key)!r}, but recipe foltr-es sends a seed and rewards, not updates: "
                f"leave {key} out."
            )
    evolution_of(recipe).check_interactions(population_of(recipe).interactions)


def evolution_of(recipe: Recipe, *, top_grade: int = 2) -> Evolution:
    """How the clients of a foltr-es recipe try, judge and answer; refuses what cannot be."""
    if recipe.privacy == "none" and recipe.p not in (None, 1):
        raise ValueError(f"p is {recipe.p}, but privacy=none tells every reward as it was: leave one of them out.")
    chosen = {key: getattr(recipe, key) for key in ("reward", "sigma", "antithetic")}
    chosen["n_points"] = recipe.reward_points
    chosen["p"] = recipe.p if recipe.p is not None else 0.9 if recipe.privacy == "paper" else 1.0
    return Evolution(top_grade=top_grade, **{key: value for key, value in chosen.items() if value is not None})


def registered_names() -> dict[str, tuple[str, ...]]:
    """The keys whose values a plugin may add to."""
    return {"learner": tuple(LEARNERS), "aggregation": aggregation_names(), "attack": tuple(ATTACKS)}


def population_of(recipe: Recipe) -> Population:
    """Who takes part; refuses numbers that cannot be."""
    interactions = recipe.interactions if isinstance(recipe.interactions, tuple) else (recipe.interactions,)
    return Population(
        recipe.n_clients, interactions, cohort=recipe.cohort, dropout=recipe.dropout, sampling=recipe.sampling
    )


def check_population(recipe: Recipe) -> None:
    interactions = population_of(recipe).interactions
    if not 0 <= recipe.n_malicious <= recipe.n_clients or (recipe.n_malicious and recipe.attack is None):
        raise ValueError(
            f"n_malicious is {recipe.n_malicious} of n_clients={recipe.n_clients} with attack={recipe.attack}: give an "
            "attack and at most as many malicious clients as there are."
        )
    if not recipe.is_central:
        if recipe.batch is not None:
            raise ValueError(
                "batch is for recipe pdgd (central); in a federation set interactions, a client's searches per round."
            )
        return
    if recipe.n_clients != 1 or len(interactions) != 1 or recipe.server_fade:
        raise ValueError(
            "recipe pdgd is central: one learner sees every click, so n_clients is 1, interactions is one number and "
            "there is no server_fade. For a federation run fpdgd."
        )
    if interactions[0] % (recipe.batch or 1):
        raise ValueError(
            f"interactions is {interactions[0]} a round, which batch={recipe.batch} does not divide: take a multiple."
        )


def as_json(recipe: Recipe) -> dict[str, Any]:
    """Plain values for a JSON file; `recipe_from_json` is the way back."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return plain


def recipe_from_json(values: Mapping[str, Any]) -> Recipe:
    recipe = Recipe(**{key: _as_field(key, value) for key, value in values.items()})
    check_recipe(recipe)
    return recipe


def hash_recipe(recipe: Recipe) -> str:
    """Eight hex digits that differ when anything in the recipe does.

    Only what is not the default counts, so that a key which a later version adds leaves old recipes their names.
    """
    default = as_json(Recipe())
    special = {key: value for key, value in as_json(recipe).items() if value != default[key]}
    return hashlib.sha256(json.dumps(special, sort_keys=True).encode()).hexdigest()[:8]
