"""What forgetting spends of the privacy of those who stay: the run and the trainings that forget, composed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hushrank.engine.setting import Method, Setting
from hushrank.files import Json
from hushrank.recipes.guarantee import explain_guarantee
from hushrank.recipes.recipe import Recipe
from hushrank.runs.directory import locked
from hushrank.runs.forget_ledger import Counted, count_training, join_counted, read_counted, write_counted
from hushrank.runs.forget_methods import METHODS, Forgetting, check_drawn_anew


class ForgetCharge(NamedTuple):
    """What all published rankers together guarantee."""

    guarantee: Json | None  # of the run and of all that forgot in it; None: nothing is promised
    alone: float | None  # epsilon of the run; None: there is none
    rounds: tuple[int, ...]  # of the run, then of each training that was begun to forget in it
    trainings: tuple[str, ...] = ()  # which these are, in words

    @property
    def together(self) -> float | None:
        """epsilon of all of them"""
        return None if self.guarantee is None else self.guarantee.get("epsilon")

    @property
    def spent(self) -> Json | None:
        """For the result; None: nothing is promised."""
        if self.together is None:
            return None
        counted = {"rounds": list(self.rounds), "trainings": list(self.trainings)}
        return {"run_epsilon": self.alone, "epsilon": self.together, **counted}


def agree_charge(
    run: Path,
    recipe: Recipe,
    setting: Setting,
    forgetting: Forgetting,
    *,
    others: Sequence[Counted] = (),
    extra: float | None = None,
) -> ForgetCharge:
    """What everything published of a run costs with a training that forgets. Agreed to, it is entered in its ledger.

    setting: of that training; others: that are begun with it. What was entered before was agreed to, and is not checked
    again. No training that forgets begins without this (`ForgettingExperiment`).
    """
    if METHODS[forgetting.method].subtracts:
        refuse_bare(forgetting.method, recipe, setting.method)
    new = [count_training(setting, forgetting), *others]
    if not setting.method.protection.has_noise:
        charge = charge_rounds(recipe, setting.method, new)
        check_budget(recipe, charge, extra)
        return charge
    with locked(run):
        known = read_counted(run)
        trainings = join_counted(known, new)
        charge = charge_rounds(recipe, setting.method, trainings)
        if len(trainings) > len(known):
            mine = {each.key for each in new}
            check_drawn_anew(setting, chain.from_iterable(each.drawn for each in known if each.key not in mine))
            check_budget(recipe, charge, extra)
            write_counted(run, trainings)
    return charge


def charge_rounds(recipe: Recipe, method: Method, trainings: Sequence[Counted]) -> ForgetCharge:
    """The run and the trainings that forget in it, which published rankers with noise of their own.

    Why rounded up to turns: a client that rests between answers may answer last in one training and first in the next.
    """
    turn, rounds = method.population.separation, (recipe.rounds, *(each.rounds for each in trainings))
    total = sum(-(-each // turn) * turn for each in rounds)
    both = explain_guarantee(replace(recipe, rounds=total), method)
    alone = explain_guarantee(recipe, method)
    names = ("the run", *(each.name for each in trainings))
    return ForgetCharge(both, None if alone is None else alone.get("epsilon"), rounds, names)


def check_budget(recipe: Recipe, charge: ForgetCharge, extra: float | None) -> None:
    """Refuse to spend more than the run promised, unless that was agreed to."""
    if extra is not None and not 0 <= extra < math.inf:
        raise ValueError(f"extra epsilon is {extra}, must be at least 0.")
    if charge.together is None:
        if extra is not None:
            raise ValueError(f"privacy={recipe.privacy} promises no epsilon for all rounds: leave --extra-epsilon out.")
        return
    if recipe.epsilon is None:
        return  # Why: the run was given its noise, and promised what came out of it
    needed = charge.together - recipe.epsilon
    if needed > (extra or 0.0):
        enough = math.ceil(needed * 1000) / 1000
        raise ValueError(
            f"the run promised epsilon {recipe.epsilon:g}. Forgetting trains again with those who stay; together that "
            f"is epsilon {charge.together:.4g} for each of them. To agree, add --extra-epsilon {enough:g}."
        )


def refuse_bare(method: str, recipe: Recipe, protected: Method) -> None:
    """Why: the difference of two published rankers would be the leavers' updates without any noise."""
    if charge_rounds(recipe, protected, ()).alone is not None:
        raise ValueError(
            f"method {method} is not for privacy=sound: whoever compares the old ranker with the new one would see "
            "what the leavers added, without noise. Take eraser, fresh or retrain."
        )
