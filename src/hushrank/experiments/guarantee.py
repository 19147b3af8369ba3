"""Which mechanism a recipe asks for, and what it guarantees, in numbers and in words."""

from __future__ import annotations

from typing import Any

from hushrank.experiments.recipe import Recipe, paper_noise_of, population_of
from hushrank.privacy.accounting import Training, describe_account, make_account
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.protection import Protection

CLIP_NORM, DELTA = 0.1, 1e-5


def protection_of(recipe: Recipe) -> Protection | None:
    """The mechanism; for a sound one with an epsilon, with just the noise that keeps it over all rounds."""
    if recipe.privacy == "none" or recipe.is_evolution:
        return None
    if recipe.privacy == "paper":
        return paper_noise_of(recipe)
    noise = recipe.noise_multiplier
    if noise is None:
        found = make_account(training_of(recipe, 1.0), epsilon=recipe.epsilon, find="noise", delta=delta_of(recipe))
        noise = found.training.noise_multiplier
    made = SoundGaussian if mechanism_of(recipe) == "gaussian" else SoundLaplace
    return made(recipe.clip_norm or CLIP_NORM, noise)


def training_of(recipe: Recipe, noise_multiplier: float) -> Training:
    """What is composed. Sampling counts only where each client is drawn by a coin of its own."""
    population = population_of(recipe)
    rate = population.cohort_size / population.n_clients if population.is_poisson else 1.0
    return Training(mechanism_of(recipe), noise_multiplier, recipe.rounds, rate, population.sampling)


def mechanism_of(recipe: Recipe) -> str:
    return recipe.mechanism or "gaussian"


def delta_of(recipe: Recipe) -> float:
    return DELTA if recipe.delta is None else recipe.delta


def explain_protection(recipe: Recipe, protection: Protection, *, n_params: int) -> dict[str, Any]:
    """What a whole training guarantees, as JSON with a sentence."""
    if isinstance(protection, PaperNoise):
        return {"mode": "paper", "epsilon_as_published": protection.epsilon, "guarantee": protection.describe(n_params)}
    settings = {"mode": "sound", "clip_norm": protection.clip_norm, "noise_multiplier": protection.noise_multiplier}
    if protection.noise_multiplier == 0:
        return {**settings, "epsilon": None, "guarantee": protection.guarantee}
    training = training_of(recipe, protection.noise_multiplier)
    account = make_account(training, delta=delta_of(recipe))
    said = {"epsilon": account.epsilon, "delta": account.delta, "guarantee": describe_account(account)}
    counted = {"adjacency": str(training.adjacency), "rounds": recipe.rounds, "sampling": training.sampling}
    return {**settings, **said, **counted}
