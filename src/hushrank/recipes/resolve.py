"""From a recipe to what the simulator needs: the data loaded, the people and the ranker made, everything checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from hushrank.aggregation.compatibility import Privacy
from hushrank.aggregation.server_step import DEFAULT_RATES, ServerStep
from hushrank.attacks.false_rewards import FalseRewards
from hushrank.attacks.named import ATTACKS, find_attack, find_misreports, find_poison
from hushrank.attacks.tactics import Tactics, use_tactics
from hushrank.clicks.keys import LOGGED
from hushrank.clicks.named import named_user
from hushrank.data.clicklog import read_click_log
from hushrank.data.load import load_dataset
from hushrank.engine.setting import Method, Setting
from hushrank.federation.groups import Group, corrupt_people
from hushrank.federation.replay import Replay
from hushrank.keys import method_keys
from hushrank.learners.named import find_learner
from hushrank.partitions.mixture import Divided, divide_clients
from hushrank.privacy.none import choose_norm
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.rankers.named import describe_ranker, named_ranker, read_ranker
from hushrank.recipes.checks import combination_of, rule_of
from hushrank.recipes.guarantee import exchange_of
from hushrank.recipes.options import options_for
from hushrank.recipes.population import clients_of, partition_of
from hushrank.recipes.recipe import Recipe, check_recipe
from hushrank.recipes.sharing import share_data
from hushrank.remedies.named import find_remedy
from hushrank.remedies.remedy import Remedy
from hushrank.types import Array, Attack, Dataset, User

_EVALUATIONS = 20  # Why: a curve of twenty points shows its shape; more only costs time


def resolve(recipe: Recipe, *, tell: Callable[[str], None] | None = None, start: Path | None = None) -> Setting:
    """`start`: an exported ranker to begin with instead of a fresh one."""
    check_recipe(recipe)
    dataset = load_dataset(
        recipe.data,
        folds=recipe.folds,
        normalise=recipe.normalise,
        keep_document_ids=recipe.log is not None,
        progress=tell,
    )
    refuse_unusable(dataset)
    replays = None if recipe.log is None else read_replays(recipe, dataset, tell=tell)
    if replays is not None and not recipe.is_central:
        recipe = replace(recipe, n_clients=len(replays[0].own))  # the log says who there is
        check_recipe(recipe)
    method = resolve_method(recipe, n_features=dataset.n_features, top_grade=dataset.n_grades - 1)
    divided = divide_clients(partition_of(recipe), dataset, method.population, repeats=recipe.repeats)
    divided = corrupt_clicks(recipe, dataset, divided)
    if start is not None:
        first: tuple[float, ...] | None = read_start(start, method)
    else:
        first = (0.0,) * method.n_params if method.exchange.starts_at_zero else None
    setting = Setting(
        dataset=dataset,
        users=resolve_users(recipe, n_grades=dataset.n_grades),
        method=replace(method, population=divided.population),
        rounds=recipe.rounds,
        repeats=recipe.repeats,
        seed=recipe.seed,
        eval_every=recipe.eval_every or -(-recipe.rounds // _EVALUATIONS),
        replays=replays,
        start=first,
        groups=divided.groups,
    )
    return share_data(setting)


def corrupt_clicks(recipe: Recipe, dataset: Dataset, divided: Divided) -> Divided:
    """Malicious clients in groups of their own, if they click otherwise."""
    poison = find_poison(recipe.attack, **options_for(recipe, "attack"))
    if poison is None or not recipe.n_malicious:
        return divided
    user = named_user(poison, n_grades=dataset.n_grades, own_tables=recipe.click_tables)
    groups = divided.groups or tuple((Group("all", fold.train),) for fold in dataset.folds)
    return Divided(*corrupt_people(divided.population, groups, n_malicious=recipe.n_malicious, user=user))


def resolve_users(recipe: Recipe, *, n_grades: int) -> tuple[tuple[str, User], ...]:
    if recipe.log is not None:
        return ((LOGGED, nobody),)
    return tuple((name, named_user(name, n_grades=n_grades, own_tables=recipe.click_tables)) for name in recipe.users)


def nobody(grades: Array, click_draws: Array, stop_draws: Array) -> Array:
    """Whose clicks are asked for where a log has them all."""
    del click_draws, stop_draws
    return np.zeros(len(grades), dtype=bool)


def read_replays(recipe: Recipe, dataset: Dataset, *, tell: Callable[[str], None] | None = None) -> tuple[Replay, ...]:
    """The log once for each fold; the training queries are another fold's in part, so each fold has its own share."""
    assert recipe.log is not None
    known = {name for fold in dataset.folds for split in (fold.train, fold.vali, fold.test) for name in split.query_ids}
    replays = []
    for fold in dataset.folds:
        log = read_click_log(recipe.log, fold.train, known_queries=known)
        if tell is not None:
            tell(f"fold {fold.number}: {log.n_impressions:,} impressions, {log.n_skipped:,} of other queries left out")
        everything = (np.arange(log.n_impressions),)
        own = tuple(np.flatnonzero(log.clients == client) for client in range(log.n_clients))
        replays.append(Replay(log, everything if recipe.is_central else own, recipe.max_weight))
    return tuple(replays)


def resolve_method(recipe: Recipe, *, n_features: int, top_grade: int = 2) -> Method:
    rate = DEFAULT_RATES[recipe.server_optimiser] if recipe.server_rate is None else recipe.server_rate
    ranker, remedy = ranker_of(recipe, n_features=n_features), remedy_of(recipe)
    n_params = sum(part.size for part in ranker.parameters)
    n_sent = n_params + remedy.n_extra(n_params)
    exchange, summation = exchange_of(recipe, n_params=n_sent, top_grade=top_grade)
    return Method(
        ranker=ranker,
        population=clients_of(recipe),
        batch=(recipe.batch or 1) if recipe.is_central else None,
        learner=find_learner(recipe.learner, **options_for(recipe, "learner")),
        remedy=remedy,
        learning_rate=recipe.learning_rate,
        exchange=exchange,
        summation=summation,
        attack=attack_of(recipe),
        misreports=misreports_of(recipe),
        n_malicious=recipe.n_malicious,
        rule=rule_of(recipe),
        server_step=ServerStep(recipe.server_optimiser, rate, recipe.rounds if recipe.server_fade else None),
        keep_every=recipe.keep_every,
    )


def attack_of(recipe: Recipe) -> Attack | Tactics[Attack] | None:
    """What malicious clients send. Where nothing says how long that may be, they go by what a live server accepts."""
    options = options_for(recipe, "attack")
    if "bound" in method_keys(ATTACKS, recipe.attack) and "bound" not in options:
        most = max(clients_of(recipe).interactions)
        options["bound"] = recipe.update_norm or choose_norm(learning_rate=recipe.learning_rate, interactions=most)
    return use_tactics(
        find_attack(recipe.attack, **options),
        first=recipe.attack_from,
        every=recipe.attack_every,
        is_disguised=recipe.attack_disguise,
    )


def misreports_of(recipe: Recipe) -> FalseRewards | Tactics[FalseRewards] | None:
    """What malicious clients of an evolution strategy send."""
    found = find_misreports(recipe.attack, **options_for(recipe, "attack"))
    return use_tactics(found, first=recipe.attack_from, every=recipe.attack_every)


def remedy_of(recipe: Recipe) -> Remedy:
    """What is done about clients that differ."""
    remedy = find_remedy(recipe.remedy, **options_for(recipe, "remedy"))
    return remedy.among(recipe.n_clients, is_noisy=combination_of(recipe).privacy is not Privacy.none)


def ranker_of(recipe: Recipe, *, n_features: int) -> LinearRanker | MlpRanker:
    """The scoring function, whose personal layers are the remedy's."""
    ranker = named_ranker(recipe.ranker, n_features=n_features, hidden=recipe.hidden, activation=recipe.activation)
    return replace(ranker, personal=remedy_of(recipe).layers)


def refuse_unusable(dataset: Dataset) -> None:
    """Data on which nothing can be measured."""
    for fold in dataset.folds:
        for split in ("test", "vali"):
            if not getattr(fold, split).grades.any():
                raise ValueError(
                    f"{dataset.name}: no document in fold {fold.number}'s {split} queries is relevant: nothing can be "
                    "measured. Choose other folds or data."
                )


def read_start(path: Path, method: Method) -> tuple[float, ...]:
    """The parameters of an exported ranker, refused when they belong to another kind."""
    ranker, params, _ = read_ranker(path)
    if ranker != replace(method.ranker, personal=()):
        raise ValueError(
            f"{path} holds {_in_words(ranker)}, this recipe trains {_in_words(method.ranker)}: make them agree."
        )
    return tuple(map(float, params))


def _in_words(ranker: LinearRanker | MlpRanker) -> str:
    return " ".join(f"{key} {value}" for key, value in describe_ranker(ranker).items())
