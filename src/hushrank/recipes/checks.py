"""What cannot work across rooms: each room checks its own keys, and this those that meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hushrank.aggregation.compatibility import (
    Attendance,
    Combination,
    Conduct,
    Learner,
    Privacy,
    Topology,
    check_compatible,
)
from hushrank.aggregation.named import STREAMED, CheckedRule, find_rule
from hushrank.aggregation.tolerance import check_assumed, check_defined, share_of_cohort
from hushrank.attacks.keys import check_malicious
from hushrank.attacks.named import ATTACKS, find_poison, stage_of
from hushrank.attacks.stage import Stage
from hushrank.clicks.keys import check_users
from hushrank.clicks.named import USERS
from hushrank.federation.keys import check_no_evolution, evolution_of
from hushrank.keys import hint_names, keys_of, method_keys
from hushrank.personal.keys import PersonalKeys, check_no_personal, check_personal, settings_of
from hushrank.privacy.keys import check_mode, check_noise, check_sum
from hushrank.privacy.laplace import PaperNoise
from hushrank.privacy.named import MODES
from hushrank.privacy.none import OpenUpdates
from hushrank.privacy.placement import Adjacency
from hushrank.rankers.named import named_ranker
from hushrank.recipes.options import options_for
from hushrank.recipes.population import check_partition, clients_of, count_users, partition_of
from hushrank.remedies.named import NONE, find_remedy
from hushrank.remedies.remedy import Remedy

if TYPE_CHECKING:
    from hushrank.recipes.recipe import Recipe

MISCONDUCT = {
    Stage.updates: Conduct.lying,
    Stage.clicks: Conduct.misclicking,
    Stage.rewards: Conduct.misreporting,
}
_LOGGED = "learns from users' logs, which say who searched, what was listed and what was clicked"
_OWN_MODELS = "has models of its own (model, local_batch, local_rate)"
_LAST_STEP = "has a last step in every round with fewer clients than the others, too few for shares of noise or masks"
_BELOW_PROXIES = f"{_LAST_STEP} (with topology=proxy, clients of one proxy can have a secure sum)"
WHY_NOT_PERSONAL = {
    **dict.fromkeys(("normalise", "folds", "clicks", "click_tables", "log", "max_weight", "interactions"), _LOGGED),
    **dict.fromkeys(("partition", "control"), _LOGGED),
    **dict.fromkeys(("ranker", "hidden", "activation", "learner", "batch", "learning_rate", "remedy"), _OWN_MODELS),
    **dict.fromkeys(("noise_at", "n_honest"), _LAST_STEP),
    **dict.fromkeys(("secure_sum", "sum_bound"), _BELOW_PROXIES),
    "update_norm": "weighs an update by its number of pairs, so that its length alone bounds nobody's influence",
    "sampling": "asks every client once in every round, in an order that is drawn anew",
    "keep_every": "cannot forget a client yet",
    "variant": "has one variant",
}
OF_SUMS_BELOW = ("secure_sum", "sum_bound")  # Why: a proxy picks at least two clients for each of its sums
OF_CENTRAL = ("data", "n_clients", "rounds", "eval_every", "repeats", "seed", *keys_of(PersonalKeys))  # of fedps
OF_OFFLINE = ("recipe", "data", "normalise", "folds", "clicks", "click_tables", "seed")


def check_rooms(recipe: Recipe, default: Recipe) -> None:
    """Refuse at the door what cannot work; `default`: the named recipe that this one is a change of."""
    if recipe.is_personal:
        check_personal_recipe(recipe, default)
        return
    check_no_personal(recipe, method=recipe.recipe)
    check_users(recipe)
    if recipe.log is not None and recipe.learner != "pdgd":
        raise ValueError(f"learner is {recipe.learner!r}, but a click log is read by pdgd alone: leave learner out.")
    if recipe.is_offline:
        check_offline(recipe, default)
    check_partition(recipe)
    population = clients_of(recipe)
    check_central(recipe, population.interactions)
    check_compatible(combination_of(recipe))
    check_malicious(recipe, n_clients=recipe.n_clients, n_rounds=recipe.rounds)
    check_poison(recipe)
    check_rule(recipe)
    if recipe.remedy != NONE:
        check_remedy(recipe)
    if recipe.keep_every is not None:
        check_keeping(recipe)
    if recipe.is_evolution:
        check_evolution(recipe, default)
    else:
        check_no_evolution(recipe, method=recipe.recipe)
    check_mode(recipe, is_evolution=recipe.is_evolution)
    if not recipe.is_evolution:
        check_noise(recipe, n_clients=recipe.n_clients)
    check_sum(recipe, cohort_size=population.cohort_size, n_malicious=recipe.n_malicious)


def check_personal_recipe(recipe: Recipe, default: Recipe) -> None:
    """Personalised search: its own keys, and those of federations whose clients send updates."""
    special = [name for name in keys_of(type(recipe)) if getattr(recipe, name) != getattr(default, name)]
    settings = settings_of(recipe)
    check_no_evolution(recipe, method=recipe.recipe)
    for name in special:
        if name in WHY_NOT_PERSONAL and not (settings.has_proxies and name in OF_SUMS_BELOW):
            raise ValueError(f"recipe {recipe.recipe} {WHY_NOT_PERSONAL[name]}: leave {name} out.")
    check_personal(recipe, special)
    of_clients = [name for name in (*special, *recipe.options) if name not in OF_CENTRAL]
    if settings.is_central and of_clients:
        what = "topology=central trains in one place" if settings.is_trained else "model=original trains nothing"
        raise ValueError(f"{what}, without clients that send anything: leave {of_clients[0]} out.")
    if settings.is_staged and recipe.eval_every is not None:
        raise ValueError(f"updating={settings.updating} is measured after every stage: leave eval_every out.")
    if not settings.is_central:
        check_personal_clients(count_users(recipe), special)


def check_personal_clients(recipe: Recipe, special: Sequence[str]) -> None:
    """Who takes part in a step, what protects it and who lies."""
    settings, population = settings_of(recipe), clients_of(recipe)
    if population.cohort_size < 2:
        raise ValueError(
            f"cohort is {population.cohort_size}: a step with one client would show what that client alone has learnt, "
            "to the server and in the next model to everybody. Take 2 or more."
        )
    if settings.updating == "online":
        check_online(recipe, special)
    if "bound" in method_keys(ATTACKS, recipe.attack) and "bound" not in options_for(recipe, "attack"):
        raise ValueError(
            f"attack={recipe.attack} sends updates of the length that a server accepts, and recipe {recipe.recipe} "
            "bounds none: say how long they are with bound, as in bound=0.5."
        )
    check_personal_noise(recipe)
    check_compatible(combination_of(recipe))
    n_rounds = None if settings.updating == "online" else recipe.rounds * settings.n_trainings
    check_malicious(recipe, n_clients=recipe.n_clients, n_rounds=n_rounds)
    check_rule(recipe)
    rule = rule_of(recipe)
    if rule is not None and rule.gives_one:
        raise ValueError(
            f"aggregation={recipe.aggregation} makes one client's update the step, which shows everybody what that "
            "client alone has learnt: use multi-krum or another rule that joins several."
        )
    check_mode(recipe, is_evolution=False)
    check_noise(recipe, n_clients=recipe.n_clients)
    check_sum(recipe, cohort_size=population.cohort_size, n_malicious=recipe.n_malicious)


def check_personal_noise(recipe: Recipe) -> None:
    """Mechanisms that do not hold for clients that are put in a new order in every round, or for sums of proxies."""
    if recipe.privacy == PaperNoise.mode:
        raise ValueError(
            "privacy=paper bounds the weights of a linear ranker after every search, which models of personalised "
            "search do not have: use privacy=sound."
        )
    if recipe.mechanism == "correlated" or recipe.adjacency == Adjacency.add_remove:
        what = "mechanism=correlated" if recipe.mechanism == "correlated" else "adjacency=add-remove"
        raise ValueError(
            f"{what} does not hold for recipe {recipe.recipe}, whose clients are put in a new order in every round: "
            "use mechanism=gaussian or laplace, and adjacency=zero-out or replace-one."
        )
    if recipe.secure_sum and recipe.privacy != OpenUpdates.mode:
        raise ValueError(
            f"privacy={recipe.privacy} adds its noise at the server, and a secure sum under a proxy is written in "
            "numbers without noise: leave secure_sum out, or privacy."
        )


def check_online(recipe: Recipe, special: Sequence[str]) -> None:
    """Clients that apply when they have new searches: how many steps that makes, nobody knows before."""
    if "rounds" in special:
        raise ValueError("updating=online has no rounds: clients apply when they have new searches. Leave rounds out.")
    if recipe.privacy != OpenUpdates.mode:
        raise ValueError(
            f"updating=online lets active clients send more often, and how often is not bounded, so that privacy="
            f"{recipe.privacy} promises nothing: use updating=retrain or continue."
        )
    if recipe.server_fade:
        raise ValueError(
            "server_fade lets the rate fall to zero over a known number of steps; updating=online takes as many as "
            "clients apply for: leave server_fade out."
        )


def combination_of(recipe: Recipe) -> Combination:
    """What meets in this recipe."""
    kind = Privacy(MODES[recipe.privacy].kind({"placement": recipe.noise_at}))
    privacy = Privacy.responses if recipe.is_evolution and kind is Privacy.paper else kind
    is_partial = not clients_of(recipe).draws_everybody or recipe.dropout > 0
    return Combination(
        learner=learner_of(recipe),
        aggregation=recipe.aggregation,
        privacy=privacy,
        topology=topology_of(recipe),
        attendance=Attendance.some if is_partial else Attendance.everybody,
        attack=recipe.attack,
        misconduct=MISCONDUCT[Stage.updates if recipe.attack is None else stage_of(recipe.attack)],
    )


def topology_of(recipe: Recipe) -> Topology:
    if recipe.secure_sum:
        return Topology.secure_sum
    return Topology.summing_proxy if recipe.is_personal and settings_of(recipe).has_proxies else Topology.direct


def check_poison(recipe: Recipe) -> None:
    """Malicious clients click as a user that exists, in every round."""
    poison = find_poison(recipe.attack, **options_for(recipe, "attack"))
    if poison is None:
        return
    if poison not in USERS and poison not in (recipe.click_tables or {}):
        raise ValueError(f"poison is {poison!r}; {hint_names(poison, [*(recipe.click_tables or {}), *USERS])}")
    if (recipe.attack_from, recipe.attack_every) != (1, 1):
        raise ValueError(f"attack={recipe.attack} lies in every round: leave attack_from and attack_every out.")
    if recipe.attack_disguise:
        raise ValueError(f"attack={recipe.attack} changes no update: leave attack_disguise out.")
    if recipe.control and partition_of(recipe).is_redrawn:
        raise ValueError(
            f"attack={recipe.attack} lets the same clients click otherwise all the time, but the control of "
            f"partition={recipe.partition} draws anew in every round how each clicks: leave control out, or attack."
        )


def learner_of(recipe: Recipe) -> Learner:
    if recipe.is_personal:
        return Learner.log
    if recipe.is_evolution:
        return Learner.rewards
    if recipe.is_central or recipe.is_offline:
        return Learner.central
    return Learner.updates if recipe.log is None else Learner.log


def rule_of(recipe: Recipe) -> CheckedRule | None:
    """How all updates at once become one; None: by the weighted mean."""
    return find_rule(recipe.aggregation, assumed_malicious=count_assumed(recipe), **options_for(recipe, "aggregation"))


def count_assumed(recipe: Recipe) -> int:
    """Malicious clients that a rule reckons with among those asked in a round."""
    if recipe.assumed_malicious is not None:
        return recipe.assumed_malicious
    n_asked = clients_of(recipe).cohort_size
    return share_of_cohort(recipe.n_malicious, n_clients=recipe.n_clients, n_asked=n_asked)


def check_rule(recipe: Recipe) -> None:
    """Refuse a rule with too few clients for the malicious ones that it reckons with."""
    rule, n_asked = rule_of(recipe), clients_of(recipe).cohort_size
    if recipe.assumed_malicious is not None or (rule is not None and rule.assumed_malicious):
        check_assumed(count_assumed(recipe), n_asked=n_asked)
    if rule is not None:
        check_defined(rule, n_asked=n_asked)


def check_offline(recipe: Recipe, default: Recipe) -> None:
    """A ranker trained on labels has data and, for its metrics, users; nothing else to set."""
    special = [name for name in keys_of(type(recipe)) if getattr(recipe, name) != getattr(default, name)]
    for name in (*special, *recipe.options):
        if name not in OF_OFFLINE:
            raise ValueError(f"{name} is for learning from clicks; recipe {recipe.recipe} learns from labels.")


def check_remedy(recipe: Recipe) -> None:
    """A remedy is for simulated clients that take steps of their own, and send what their server can average."""
    remedy = find_remedy(recipe.remedy, **options_for(recipe, "remedy"))
    if recipe.is_central or recipe.is_evolution or recipe.log is not None:
        what = "a click log" if recipe.log is not None else f"recipe {recipe.recipe}"
        raise ValueError(
            f"remedy is {recipe.remedy!r}, but {what} has no simulated clients that send updates: leave remedy out, or "
            "run fpdgd."
        )
    if remedy.warning is not None and recipe.privacy != OpenUpdates.mode:
        raise ValueError(
            f"remedy={recipe.remedy} shares something of clients' data that privacy={recipe.privacy} does not protect, "
            "so that no guarantee would hold: leave privacy out, or the remedy."
        )
    check_layers(recipe, remedy)
    if not remedy.has_memory:
        return
    if recipe.aggregation != STREAMED or recipe.attack is not None:
        raise ValueError(
            f"remedy={recipe.remedy} keeps something on clients, and its server needs the mean of what they send: use "
            "aggregation=mean and no attack."
        )
    if recipe.privacy == PaperNoise.mode:
        raise ValueError(
            f"privacy=paper bounds a client's weights, not where remedy={recipe.remedy} lets it begin or what it sends "
            "beside them: use privacy=sound or privacy=none."
        )


def check_keeping(recipe: Recipe) -> None:
    """Lengths are kept of updates, and of nothing that is sent beside them."""
    if recipe.is_central or recipe.is_evolution:
        raise ValueError(
            f"keep_every is {recipe.keep_every}, but recipe {recipe.recipe} has no clients that send updates: leave it "
            "out, or run fpdgd."
        )
    if find_remedy(recipe.remedy, **options_for(recipe, "remedy")).has_memory:
        raise ValueError(
            f"keep_every is {recipe.keep_every}, but clients with remedy={recipe.remedy} send more than an update, and "
            "its length alone does not say how to repeat it: leave one of them out."
        )


def check_layers(recipe: Recipe, remedy: Remedy) -> None:
    """Whether the ranker has the parameters that each client keeps for itself."""
    known = [part.name for part in named_ranker(recipe.ranker, n_features=1).parameters]
    missing = [name for name in remedy.layers if name not in known]
    if missing:
        raise ValueError(
            f"remedy={recipe.remedy} keeps {missing[0]} for each client, but ranker={recipe.ranker} has "
            f"{', '.join(known)}: name some of these, or choose ranker=mlp."
        )


def check_evolution(recipe: Recipe, default: Recipe) -> None:
    """What an evolution strategy cannot have, and numbers that it cannot work with."""
    for name in ("learner", "batch", "log"):
        if getattr(recipe, name) != getattr(default, name):
            raise ValueError(
                f"{name} is {getattr(recipe, name)!r}, but recipe foltr-es sends a seed and rewards, not updates: "
                f"leave {name} out."
            )
    evolution_of(recipe, privacy=recipe.privacy).check_interactions(clients_of(recipe).interactions)


def check_central(recipe: Recipe, interactions: tuple[int, ...]) -> None:
    """One learner who sees everything has batches, and nobody beside him."""
    if not recipe.is_central:
        if recipe.batch is not None:
            raise ValueError(
                "batch is for recipe pdgd (central); in a federation set interactions, a client's searches per round."
            )
        return
    if recipe.update_norm is not None:
        raise ValueError("update_norm is for updates that clients send; recipe pdgd is central: leave it out.")
    if recipe.n_clients != 1 or len(interactions) != 1 or recipe.server_fade:
        raise ValueError(
            "recipe pdgd is central: one learner sees every click, so n_clients is 1, interactions is one number and "
            "there is no server_fade. For a federation run fpdgd."
        )
    if interactions[0] % (recipe.batch or 1):
        raise ValueError(
            f"interactions is {interactions[0]} a round, which batch={recipe.batch} does not divide: take a multiple."
        )
