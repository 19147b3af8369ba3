"""From a recipe of personalised search to what the simulator needs: users found, vectors trained, a model made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from hushrank.aggregation.server_step import DEFAULT_RATES, ServerStep
from hushrank.engine.personal_people import People, training_widths
from hushrank.engine.personal_proxies import ProxySetting, count_proxy_steps
from hushrank.engine.personal_schedule import WEEK
from hushrank.engine.personal_setting import PersonalSetting
from hushrank.federation.exchange import UpdateExchange
from hushrank.federation.hierarchy import Hierarchy
from hushrank.federation.proxy_sum import ProxyFormat
from hushrank.personal.bm25 import Bm25Index
from hushrank.personal.features import N_FEATURES, make_source
from hushrank.personal.keys import COVER_QUERY, GROUP_USER, NOTHING, PersonalSettings, settings_of
from hushrank.personal.lists import even_lists
from hushrank.personal.log import Collection, SearchPopulation
from hushrank.personal.models.parameters import PersonalModel, WordSharing, find_frequent
from hushrank.personal.population import is_population, population_named
from hushrank.personal.queries.ids import CoveredIds, SearchIds, SharedIds
from hushrank.personal.queries.observed import divide_users
from hushrank.personal.spool import SpooledPopulation
from hushrank.personal.training import LocalTraining, bound_move
from hushrank.personal.vectors import train_vectors
from hushrank.privacy.agreed import DELTA
from hushrank.privacy.cover_topics import fit_topics
from hushrank.privacy.covers import N_COVERS, draw_covers
from hushrank.privacy.named import make_protection
from hushrank.privacy.placement import Adjacency, Scheme
from hushrank.privacy.protection import Exposure
from hushrank.recipes.checks import rule_of
from hushrank.recipes.recipe import NAMED, Recipe, check_recipe
from hushrank.recipes.resolve import attack_of
from hushrank.streams import Purpose, seed_key, stream
from hushrank.types import Array

_EVALUATIONS = 20  # looks of a run, unless eval_every says otherwise
_LOOKED_AT = 50  # users by whose logs the end of the data is found


def resolve_personal(recipe: Recipe, tell: Callable[[str], None] = lambda _: None) -> tuple[Recipe, PersonalSetting]:
    """The recipe with as many clients as there are users, and the setting."""
    check_recipe(recipe)
    settings = settings_of(recipe)
    recipe = name_users(recipe)
    population = find_population(recipe.data)
    recipe = with_users(recipe, population)
    check_recipe(recipe)
    check_stages(settings, population)
    population = even_lists(population) if settings.is_staged else population
    tell(f"{population.description}: word vectors and topics of {population.collection.n_documents:,} documents")
    collection = population.collection
    source = make_source(collection, train_vectors(collection))
    hidden = hide_users(settings, population, source.index, seed=recipe.seed)
    people = People(population, source, find_end(settings, population), hidden)
    sharing = sharing_of(settings, collection)
    model = model_of(settings)
    n_sent = 0 if model is None else count_sent(model, collection, sharing)
    setting = PersonalSetting(
        people,
        settings,
        model,
        train_vectors(collection, n_dimensions=settings.word_dim) if model is not None else np.zeros((0, 0)),
        sharing,
        training_of(settings),
        cohort=recipe.n_clients if recipe.cohort is None else recipe.cohort,
        rounds=recipe.rounds,
        eval_every=recipe.eval_every or -(-recipe.rounds // _EVALUATIONS),
        repeats=recipe.repeats,
        seed=recipe.seed,
        dropout=recipe.dropout,
        exchange=UpdateExchange(make_protection({**asdict(recipe)}, exposure_of_clients(recipe, n_params=n_sent))),
        rule=rule_of(recipe) if not settings.is_central else None,
        attack=attack_of(recipe) if not settings.is_central else None,
        n_malicious=recipe.n_malicious,
        server_step=server_step_of(recipe),
        proxies=proxies_of(recipe, people),
    )
    return recipe, setting


def hide_users(
    settings: PersonalSettings, population: SearchPopulation, index: Bm25Index, *, seed: int
) -> SearchIds | None:
    """By the draws of Table 2 of [fedps] with the same seed; None: nobody hides."""
    key, collection = seed_key(seed), population.collection
    if settings.hidden_by == GROUP_USER:
        return SharedIds(population, divide_users(population.n_users, key))
    if settings.hidden_by == COVER_QUERY:
        return CoveredIds(population, index, make_covering(collection, key), N_COVERS)
    return None


def make_covering(collection: Collection, key: Array) -> Callable[[int, Array], Array]:
    """(user, queries [n, L]) -> covers [n, k, L]: the topics of all documents, and a stream for each user."""
    topics = fit_topics(collection.titles, collection.n_words, key=stream(key, Purpose.COVER))
    return lambda user, queries: draw_covers(topics, queries, key=stream(key, Purpose.COVER, user))


def proxies_of(recipe: Recipe, people: People) -> ProxySetting | None:
    """None: clients reach the server directly."""
    settings = settings_of(recipe)
    if not settings.has_proxies:
        return None
    return ProxySetting(
        Hierarchy(recipe.n_clients, settings.users_per_proxy, settings.proxies_per_group),
        settings.clients_per_proxy,
        settings.offload != NOTHING,
        settings.proxy_dropout,
        format_below(recipe, people) if recipe.secure_sum else None,
    )


def format_below(recipe: Recipe, people: People) -> ProxyFormat:
    """How clients write their updates for a secure sum under a proxy: by what the data state and Adam can do, so that
    nobody's own log says how."""
    widths, training = training_widths(people), training_of(settings_of(recipe))
    largest = recipe.sum_bound or bound_move(training, widths.queries)
    most_pairs = widths.queries * (widths.documents**2 // 4)  # half of every list clicked
    return ProxyFormat(largest, most_pairs, n_clients=(recipe.cohort or recipe.n_clients) + 1)


def find_population(name: str) -> SearchPopulation:
    """Generated users, or a log that was read into a directory."""
    if not is_population(name) and Path(name).is_dir():
        return SpooledPopulation(Path(name))
    return population_named(name)


def name_users(recipe: Recipe) -> Recipe:
    """With n_clients as the number of generated users, where somebody chose it and the data do not say another."""
    is_chosen = recipe.n_clients != NAMED[recipe.recipe].n_clients
    if not (is_chosen and is_population(recipe.data)) or "n_users=" in recipe.data:
        return recipe
    joint = "," if ":" in recipe.data else ":"
    return replace(recipe, data=f"{recipe.data}{joint}n_users={recipe.n_clients}")


def with_users(recipe: Recipe, population: SearchPopulation) -> Recipe:
    """The data say who there is."""
    if recipe.n_clients not in (NAMED[recipe.recipe].n_clients, population.n_users):
        raise ValueError(
            f"n_clients is {recipe.n_clients}, but {recipe.data} has {population.n_users} users: leave n_clients out. "
            "Of generated users, name their number in the data, as in --data aol-like:n_users=100."
        )
    return replace(recipe, n_clients=population.n_users)


def check_stages(settings: PersonalSettings, population: SearchPopulation) -> None:
    """Refuse weeks that the data do not have."""
    if not settings.is_staged:
        return
    times = [population.log_of(user).times[-1:] for user in range(min(population.n_users, _LOOKED_AT))]
    end = max((int(time[0]) for time in times if len(time)), default=0)
    n_weeks = -(-(end - population.periods.train) // WEEK)
    if settings.stages > n_weeks:
        raise ValueError(
            f"stages is {settings.stages} weeks, but the data have {n_weeks} from the beginning of training on: take "
            f"at most {n_weeks}."
        )


def find_end(settings: PersonalSettings, population: SearchPopulation) -> float:
    """When the last training data come."""
    periods = population.periods
    return periods.train + settings.n_trainings * WEEK if settings.is_staged else periods.validation


def model_of(settings: PersonalSettings) -> PersonalModel | None:
    """The model, its other sizes in proportion to its word vectors' as in the paper; None: the original order."""
    if not settings.is_trained:
        return None
    from hushrank.personal.models.named_fast import named_model  # Why here: needs JAX

    dim = settings.word_dim
    head = max(dim // 2, 1)
    sizes = {
        "peps": {"head_size": head, "encoded": dim},
        "hrnn": {"hidden": dim},
        "htps": {"head_size": head, "inner": max(256 * dim // 100, 1)},
    }
    return named_model(settings.model, n_features=N_FEATURES, dim=dim, **sizes.get(settings.model, {}))


def sharing_of(settings: PersonalSettings, collection: Collection) -> WordSharing:
    is_frequent = settings.word_vectors == "frequent"
    return WordSharing(settings.word_vectors, find_frequent(collection.document_frequency) if is_frequent else ())


def count_sent(model: PersonalModel, collection: Collection, sharing: WordSharing) -> int:
    """Numbers in one update."""
    n_rows = {"frozen": 0, "frequent": len(sharing.frequent), "all": collection.n_words}[sharing.words]
    return sum(part.size for part in model.parameters if not part.is_personal) + n_rows * model.dim


def training_of(settings: PersonalSettings) -> LocalTraining:
    chunk = next(n for n in (4, 2, 1) if settings.local_batch % n == 0)
    return LocalTraining(settings.epochs, settings.local_batch, settings.local_rate, chunk=chunk)


def server_step_of(recipe: Recipe) -> ServerStep:
    rate = DEFAULT_RATES[recipe.server_optimiser] if recipe.server_rate is None else recipe.server_rate
    return ServerStep(recipe.server_optimiser, rate, count_steps(recipe) if recipe.server_fade else None)


def count_steps(recipe: Recipe) -> int:
    """From one beginning with a new model to the next: of one training where each begins anew, otherwise of all."""
    settings = settings_of(recipe)
    missing = 1 - (1 - recipe.dropout) * (1 - settings.proxy_dropout) if settings.has_proxies else 0.0
    per_round = count_proxy_steps(recipe.n_clients, recipe.cohort or recipe.n_clients, missing)
    return per_round * (recipe.rounds if settings.updating == "retrain" else count_answers(recipe))


def count_answers(recipe: Recipe) -> int:
    """How often a client sends something: once in every round of every training."""
    return recipe.rounds * settings_of(recipe).n_trainings


def exposure_of_clients(recipe: Recipe, *, n_params: int) -> Exposure:
    """How often a client is seen, among how many.

    Clients are divided anew among the steps of each round, and each is in exactly one: as many noisy sums hold
    something of it as there are rounds, and each counts in full. Who is asked when is not hidden, so that nothing is
    gained by drawing. One client more would change everybody's places, as where clients take turns.
    """
    return Exposure(
        n_params=n_params,
        cohort=recipe.cohort or recipe.n_clients,
        rounds=count_answers(recipe),
        delta=DELTA if recipe.delta is None else recipe.delta,
        scheme=Scheme.rotation,
        adjacency=recipe.adjacency or Adjacency.zero_out,
    )
