"""Which mechanism a recipe asks for, and what it guarantees, in numbers and in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hushrank.federation.keys import population_of
from hushrank.federation.protection import Protection, format_sum
from hushrank.privacy.accounting import Training, describe_account, make_account
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.privacy.keys import paper_noise_of
from hushrank.privacy.laplace import PaperNoise, SoundLaplace
from hushrank.privacy.noisy_sum import NoisySum, Placement
from hushrank.privacy.sum_format import SumFormat
from hushrank.recipes.recipe import Recipe

CLIP_NORM, DELTA, SUM_BOUND = 0.1, 1e-5, 1.0
_HIDDEN = (
    "no guarantee in numbers: a secure sum shows the server only the sum of a round's updates and who took part, no "
    "single update, but the sum carries no noise"
)


def protection_of(recipe: Recipe) -> Protection | None:
    """The mechanism; for a sound one with an epsilon, with just the noise that keeps it over all rounds."""
    if recipe.privacy == "none" or recipe.is_evolution:
        return None
    if recipe.privacy == "paper":
        return paper_noise_of(recipe, n_clients=recipe.n_clients)
    noise = recipe.noise_multiplier
    if noise is None:
        found = make_account(training_of(recipe, 1.0), epsilon=recipe.epsilon, find="noise", delta=delta_of(recipe))
        noise = found.training.noise_multiplier
    made = SoundGaussian if mechanism_of(recipe) == "gaussian" else SoundLaplace
    return made(recipe.clip_norm or CLIP_NORM, noise, recipe.noise_at or Placement.server, recipe.n_honest)


def secure_sum_of(
    recipe: Recipe, protection: Protection | None, *, n_params: int
) -> tuple[SumFormat | None, Protection | None]:
    """How updates are written for a secure sum, if there is one, and the mechanism on the grid of its numbers."""
    if not recipe.secure_sum:
        return None, protection
    format = format_sum(protection, population_of(recipe), n_params=n_params, largest=recipe.sum_bound or SUM_BOUND)
    if isinstance(protection, NoisySum):
        protection = replace(protection, least_step=format.step)
    return format, protection


def training_of(recipe: Recipe, noise_multiplier: float) -> Training:
    """What is composed. Sampling counts only where each client is drawn by a coin of its own, and only for the server's
    noise: clients add theirs because of the server, which knows whom it asked.
    """
    population = population_of(recipe)
    is_hidden = population.is_poisson and recipe.noise_at != Placement.clients
    rate = population.cohort_size / population.n_clients if is_hidden else 1.0
    return Training(mechanism_of(recipe), noise_multiplier, recipe.rounds, rate, population.sampling)


def mechanism_of(recipe: Recipe) -> str:
    return recipe.mechanism or "gaussian"


def delta_of(recipe: Recipe) -> float:
    return DELTA if recipe.delta is None else recipe.delta


def explain_guarantee(recipe: Recipe, protection: Protection | None, *, n_params: int) -> dict[str, Any] | None:
    """What a whole training guarantees; None where nothing is done to a client's update."""
    if protection is not None:
        return explain_protection(recipe, protection, n_params=n_params)
    return {"mode": "none", "epsilon": None, "guarantee": _HIDDEN} if recipe.secure_sum else None


def explain_protection(recipe: Recipe, protection: Protection, *, n_params: int) -> dict[str, Any]:
    """What a mechanism guarantees over a whole training, as JSON with a sentence."""
    if isinstance(protection, PaperNoise):
        hidden = "; a secure sum shows the server no single upload" if recipe.secure_sum else ""
        said = f"{protection.describe(n_params)}{hidden}"
        return {"mode": "paper", "epsilon_as_published": protection.epsilon, "guarantee": said}
    settings = {
        "mode": "sound",
        "clip_norm": protection.clip_norm,
        "noise_multiplier": protection.noise_multiplier,
        "noise_at": str(protection.placement),
        "n_honest": protection.n_honest,
    }
    if protection.noise_multiplier == 0:
        return {**settings, "epsilon": None, "guarantee": protection.guarantee}
    training = training_of(recipe, protection.noise_multiplier)
    account = make_account(training, delta=delta_of(recipe))
    words = describe_account(
        account, placement=protection.placement, n_honest=protection.n_honest, is_secure=recipe.secure_sum
    )
    counted = {"adjacency": str(training.adjacency), "rounds": recipe.rounds, "sampling": training.sampling}
    return {**settings, "epsilon": account.epsilon, "delta": account.delta, "guarantee": words, **counted}
