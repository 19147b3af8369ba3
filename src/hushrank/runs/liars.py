"""Keys about liars that change nothing in a run: its owner is told before it begins."""

from __future__ import annotations

from hushrank.aggregation.named import RULES
from hushrank.aggregation.tolerance import ASSUMED, assumes_malicious
from hushrank.attacks.named import find_attack
from hushrank.recipes.options import options_for
from hushrank.recipes.recipe import Recipe
from hushrank.types import Notice


def foresee_liars(recipe: Recipe, *, n_asked: int) -> list[Notice]:
    """A number that the rule does not ask for, and an attack that is as good as honest; n_asked: clients of a round."""
    return [*notice_unasked(recipe), *notice_harmless(recipe, n_asked=n_asked)]


def notice_unasked(recipe: Recipe) -> list[Notice]:
    """Why no error: a sweep over `aggregation` gives all its rules the same keys."""
    if recipe.assumed_malicious is None or assumes_malicious(RULES.get(recipe.aggregation)):
        return []
    sentence = f"{ASSUMED} is {recipe.assumed_malicious}, but aggregation={recipe.aggregation} "
    asking = ", ".join(name for name, rule in RULES.items() if assumes_malicious(rule))
    advice = f"Leave {ASSUMED} out. Rules that ask: {asking}."
    return [Notice("assumed-unused", f"{sentence}does not ask how many clients lie: it changes nothing.", advice)]


def notice_harmless(recipe: Recipe, *, n_asked: int) -> list[Notice]:
    """An attack that with these numbers of clients lies about nothing, as some do with one or two liars."""
    attack = find_attack(recipe.attack, **options_for(recipe, "attack"))
    n_lying = min(recipe.n_malicious, n_asked)
    explain = getattr(attack, "why_harmless", None)
    reason = explain(n_clients=n_asked, n_malicious=n_lying) if explain is not None and n_lying else None
    if reason is None:
        return []
    advice = "Take more malicious clients, another setting of the attack, or another attack."
    return [Notice("attack-harmless", f"attack={recipe.attack} is as good as honest here: {reason}.", advice)]
