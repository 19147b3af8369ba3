"""The audit of a recipe: its mechanism, sampling and placement, against what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from hushrank.audit.audit import AuditOptions, Look, audit_trial, choose_runs, claim_epsilon
from hushrank.audit.rewards import RewardTrial
from hushrank.audit.trial import AuditTrial
from hushrank.audit.updates import UpdateTrial
from hushrank.federation.evolution import Evolution
from hushrank.federation.exchange import UpdateExchange
from hushrank.files import Json
from hushrank.privacy.placement import Adjacency
from hushrank.privacy.protection import Exposure
from hushrank.recipes.guarantee import exchange_of, exposure_of
from hushrank.recipes.population import clients_of
from hushrank.recipes.recipe import Recipe

N_PARAMS = 2  # that a canary moves, unless given; Why two: noise that two numbers share is noticed


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a recipe; None: as the recipe has it."""

    relation: str | None = None
    rounds: int | None = None
    delta: float | None = None  # 0: pure epsilon
    n_params: int = N_PARAMS


class Subject(NamedTuple):
    """What is audited, and what it claims."""

    trial: AuditTrial
    exposure: Exposure
    claim: Callable[[int], float]  # (rounds) -> epsilon
    about: Json  # for people: what is audited


def audit_recipe(recipe: Recipe, question: Question, options: AuditOptions) -> Json:
    """As JSON: the claim, the bound, and both after fewer rounds."""
    subject = find_subject(recipe, question)
    looks = audit_trial(subject.trial, subject.claim, delta=subject.exposure.delta, options=options)
    n_runs = (options.runs or choose_runs(subject.trial)) if options.estimator == "runs" else 1
    settings = {"estimator": options.estimator, "runs": n_runs, "confidence": options.confidence, "seed": options.seed}
    return describe_audit(looks, {"recipe": recipe.recipe, **subject.about, **settings})


def find_subject(recipe: Recipe, question: Question) -> Subject:
    if recipe.is_personal:
        raise ValueError(
            f"recipe {recipe.recipe} trains models, and an audit knows rankers: audit fpdgd with its keys."
        )
    if recipe.is_offline or recipe.is_central:
        raise ValueError(f"recipe {recipe.recipe} is trained in one place and promises nothing: nothing to audit.")
    population = replace(clients_of(recipe), dropout=0.0)
    exposure = exposure_of(recipe, population, n_params=question.n_params)
    delta = exposure.delta if question.delta is None else question.delta or None
    exposure = _ask(exposure, rounds=question.rounds or exposure.rounds, delta=delta)
    exchange, _ = exchange_of(recipe, n_params=question.n_params)
    return _SUBJECTS[exchange.name](recipe, exchange, exposure, question)


def _find_updates(recipe: Recipe, exchange: UpdateExchange, exposure: Exposure, question: Question) -> Subject:
    protection, population = exchange.protection, replace(clients_of(recipe), dropout=0.0)
    relation = Adjacency(question.relation or protection.relation(exposure))
    exposure = replace(exposure, adjacency=relation)
    _check_relation(str(relation), str(protection.relation(exposure)))

    def claim(rounds: int) -> float:
        return claim_epsilon(protection, replace(exposure, rounds=rounds))

    promised = protection.explain(replace(exposure, rounds=1)) or {}
    is_sampled = promised.get("sampling", 1.0) < 1
    sees_cohort = relation != Adjacency.add_remove and not is_sampled
    rounds = exposure.rounds or 1
    trial = UpdateTrial(protection, population, str(relation), rounds, question.n_params, sees_cohort)
    about = {
        "privacy": recipe.privacy,
        "mechanism": recipe.mechanism or ("gaussian" if protection.has_normal_noise else "laplace"),
        "noise_at": "clients" if protection.n_makers else "server",
        "sampling": str(population.scheme),
        "clients": population.n_clients,
        "cohort": population.cohort_size,
        "relation": str(relation),
        "params": question.n_params,
        "delta": exposure.delta,
    }
    return Subject(trial, exposure, claim, about)


def _find_rewards(recipe: Recipe, exchange: Evolution, exposure: Exposure, question: Question) -> Subject:
    """One search of a client in each round: what is promised for it, on the device, against everybody."""
    protection, values = exchange.protection, exchange.finite.values
    _check_relation(question.relation or str(Adjacency.replace_one), str(Adjacency.replace_one))
    exposure = _ask(replace(exposure, interactions=1), rounds=question.rounds or 1, delta=question.delta or None)

    def claim(rounds: int) -> float:
        return claim_epsilon(protection, replace(exposure, rounds=rounds))

    trial = RewardTrial(protection, values[-1], values[0], exposure.rounds or 1, clients_of(recipe).n_clients)
    about = {
        "privacy": recipe.privacy,
        "mechanism": "randomised-response",
        "noise_at": "clients",
        "sampling": "one search",
        "clients": 1,
        "cohort": 1,
        "relation": str(Adjacency.replace_one),
        "params": 1,
        "delta": exposure.delta,
    }
    return Subject(trial, exposure, claim, about)


_SUBJECTS: dict[str, Callable[[Recipe, Any, Exposure, Question], Subject]] = {
    UpdateExchange.name: _find_updates,
    Evolution.name: _find_rewards,
}  # {name of the exchange: what of it is audited}


def _ask(exposure: Exposure, **asked: int | float | None) -> Exposure:
    """With other rounds and another delta."""
    return Exposure(**(asdict(exposure) | asked))


def _check_relation(wanted: str, promised: str) -> None:
    if wanted != promised:
        raise ValueError(f"the relation is {wanted}, but this mechanism promises something for {promised} only.")


def describe_audit(looks: list[Look], about: Json) -> Json:
    """The last look first, then all of them."""
    last = looks[-1]
    return {
        **about,
        "rounds": last.rounds,
        "claimed_epsilon": last.claim,
        "lower_bound": last.bound.epsilon,
        "lower_bound_if_normal": last.bound.epsilon_if_normal,
        "counts": last.bound.counts,
        "is_above_claim": last.is_above,
        "looks": [
            {
                "rounds": look.rounds,
                "claimed_epsilon": look.claim,
                "lower_bound": look.bound.epsilon,
                "lower_bound_if_normal": look.bound.epsilon_if_normal,
            }
            for look in looks
        ],
    }
