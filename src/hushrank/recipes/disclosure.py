"""Who learns what from a training, in plain words: the box of every report.

The first sentence says what is promised. The lines below it go through those who could learn something, one by one.
"""

from __future__ import annotations

from hushrank.engine.setting import Method
from hushrank.privacy.disclosure import STAYS, Disclosure
from hushrank.recipes.guarantee import exposure_of
from hushrank.recipes.recipe import Recipe

_SHARED_STAYS = "Clicks stay on each client"  # where clients give something of their queries and documents away


def who_learns(recipe: Recipe, method: Method) -> Disclosure:
    """The words for a recipe, and the mechanism it was resolved to."""
    if recipe.is_offline or recipe.is_central:
        seen = "relevance label" if recipe.is_offline else "click"
        return Disclosure(
            f"No protection: one learner sees every query, document and {seen} (the baseline to compare with).",
            (
                ("the learner", f"Every query, every document and every {seen} of everybody."),
                ("whoever gets the ranker", "Its weights. Nothing bounds what they say about a single person."),
            ),
        )
    said = method.exchange.disclose(exposure_of(recipe, method.population, n_params=method.n_sent))
    lines = (*said.lines, *_describe_remedy(recipe, method), ("this run", _describe_run(recipe)))
    warning = method.remedy.warning
    if warning is None:
        own = ("a client", "Its own searches and clicks, which never leave it, and the ranker of every round.")
        return Disclosure(said.promise, (own, *lines))
    own = ("a client", "Its own clicks, which never leave it, what is shared, and the ranker of every round.")
    promise = f"{warning} Of messages: {said.promise.replace(STAYS, _SHARED_STAYS)}"
    return Disclosure(promise, (own, ("the server and every client", warning), *lines))


def _describe_remedy(recipe: Recipe, method: Method) -> tuple[tuple[str, str], ...]:
    """What clients tell, or do not tell, because of a remedy."""
    remedy = method.remedy
    if remedy.tells is not None:
        who = (
            "Behind the secure sum the server learns this as a sum over the round's clients, of no single one."
            if method.is_secure
            else "The server sees it for every client that answers."
        )
        return (("the server, by the remedy", f"A message also says {remedy.tells}. {who}"),)
    if method.has_own_rankers:
        kept = f"What remedy={recipe.remedy} keeps for a client stays on it: a message holds the update alone."
        return (("the server, by the remedy", kept),)
    return ()


def _describe_run(recipe: Recipe) -> str:
    source = "from a click log" if recipe.log else "of people and their clicks"
    return (
        f"A simulation {source}: whoever ran it had everything. The lines above say who would learn what if every "
        "client were a device of its own."
    )
