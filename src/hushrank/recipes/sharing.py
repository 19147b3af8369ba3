"""What a remedy shares before the first round: other training queries for the clients, and a warm-up."""

from __future__ import annotations

from dataclasses import replace

from hushrank.engine.setting import Method, Setting
from hushrank.federation.cohort import Population
from hushrank.federation.groups import Group
from hushrank.remedies.remedy import Shared
from hushrank.streams import Purpose, seed_key, stream

_MOST_SEARCHES = 100  # of a warm-up's round. Why: a run that is stopped ends its round first


def share_data(setting: Setting) -> Setting:
    """The setting with what its remedy makes of the training data; the same where nothing is shared."""
    places = [(fold, repeat) for fold in range(len(setting.dataset.folds)) for repeat in range(setting.repeats)]
    shared, groups = [], []
    for place in places:
        before = setting.groups_of(*place)
        found = share_place(setting, *place)
        if found is None:
            return setting
        shared.append(found)
        parts = zip(before, found.parts, strict=True)
        groups.append(tuple(replace(group, train=train) for group, train in parts))
    is_same = all(
        new.train is old.train
        for place, after in zip(places, groups, strict=True)
        for new, old in zip(after, setting.groups_of(*place), strict=True)
    )
    return replace(setting, groups=setting.groups if is_same else tuple(groups), warm_up=plan_warm_up(setting, shared))


def share_place(setting: Setting, fold: int, repeat: int) -> Shared | None:
    """What is shared of one fold's training queries in one repeat."""
    chosen = setting.dataset.folds[fold]
    key = stream(seed_key(setting.seed), repeat, chosen.number, Purpose.SHARE)
    parts = [group.train for group in setting.groups_of(fold, repeat)]
    return setting.method.remedy.share(chosen.train, parts, key=key)


def plan_warm_up(setting: Setting, shared: list[Shared]) -> Setting | None:
    """Central training on what is shared, by the setting's users; None: no searches."""
    n_searches, method = shared[0].n_searches, setting.method
    if not n_searches:
        return None
    each = next(n for n in range(_MOST_SEARCHES, 0, -1) if n_searches % n == 0)
    central = Method(
        ranker=method.ranker,
        population=Population(1, (each,)),
        batch=1,
        learner=method.learner,
        learning_rate=method.learning_rate,
        k=method.k,
    )
    return Setting(
        dataset=setting.dataset,
        users=setting.users,
        method=central,
        rounds=n_searches // each,
        repeats=setting.repeats,
        seed=setting.seed,
        eval_every=n_searches // each,
        start=setting.start,
        groups=tuple((Group("all", found.common),) for found in shared),
        purpose=Purpose.WARM_UP,
    )
