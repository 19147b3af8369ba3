"""Effective and privacy-preserving federated online learning to rank [fpdgd]: Table 2 and Figures 2 to 6.

Protocol: 1,000 clients; MQ2007 four interactions a round and 1,000 updates, MSLR-WEB10K two and 200. Noise as
published; each epsilon stands beside a p of FOLtR-ES, which makes MaxRR of the clicks larger.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from hushrank.privacy.named import PAPER_SETTINGS, published_sensitivity
from hushrank.reproduce.reproduction import (
    PUBLISHED_CODE,
    DataChoice,
    Reproduction,
    ReproductionSize,
    Trial,
    make_trial,
)
from hushrank.reproduce.verdicts import (
    OFFLINE,
    ONLINE,
    Cell,
    Pair,
    Trials,
    Values,
    Verdict,
    all_better,
    all_equal,
    both,
    for_every_user,
)

_LITTLE = 0.01  # nDCG@10 that counts as "little" or "similar"; Why: half of the spread between folds
_SMALL, _LARGE = ("mq",), ("mslr", "yahoo", "istella")
_EARLY = 0.1  # share of the interactions that counts as "early"
_EPSILON = 4.5  # of Figures 4 to 6, with Delta = 5
_SAME_SUM = 0.02  # share of an online sum that counts as "little"


def protocol(data: DataChoice, scale: ReproductionSize) -> tuple[int, int]:
    """(interactions per client and round, updates)"""
    b, updates = (2, 200) if data.is_large else (4, 1000)
    return (b, updates // 10) if scale.quick else (b, updates)


def noisy(data: DataChoice, scale: ReproductionSize, epsilon: float, cell: Cell, **changes: object) -> Trial:
    about = {"privacy": "paper", "epsilon": epsilon, "sensitivity": published_sensitivity(epsilon)}
    return make_trial(data, scale, "fpdgd", {**about, **cell}, privacy="paper", epsilon=epsilon, **changes)


def budgets(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """FPDGD without noise and at four budgets, and FOLtR-ES at the p that stands beside each."""
    b, updates = protocol(data, scale)
    size = {"interactions": b, "rounds": updates}
    trials = [make_trial(data, scale, "fpdgd", {"privacy": "none"}, **size)]
    for setting in PAPER_SETTINGS.values():
        trials.append(noisy(data, scale, setting.epsilon, {}, **size))
        cell = {"epsilon": setting.epsilon, "p": setting.p}
        trials.append(make_trial(data, scale, "foltr-es", cell, n_clients=1000, p=setting.p, **size))
    return trials


def budgets_with_either_bound(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Table 2 also with the bound of the published code, Delta instead of Delta/2."""
    b, updates = protocol(data, scale)
    cell = {"variant": PUBLISHED_CODE}
    size = {"interactions": b, "rounds": updates}
    published = [noisy(data, scale, s.epsilon, cell, **cell, **size) for s in PAPER_SETTINGS.values()]
    return [*budgets(data, scale), *published]


def budgets_and_controls(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """And central PDGD at as many updates, at as many interactions, and in batches of a round."""
    b, updates = protocol(data, scale)
    n = 1000 * b
    batches = {"control": "batches", "batch": n}
    return [
        *budgets(data, scale),
        make_trial(data, scale, "pdgd", {"control": "equal updates"}, interactions=1, rounds=updates),
        make_trial(data, scale, "pdgd", {"control": "equal interactions"}, interactions=n, rounds=updates),
        make_trial(data, scale, "pdgd", batches, interactions=n, rounds=updates, batch=n),
    ]


def at_each_budget(
    outcome: Trials,
    names: tuple[str, ...],
    *,
    metric: str,
    users: tuple[str, ...] = (),
    above: str = "fpdgd",
    below: str = "foltr-es",
) -> list[Pair]:
    """One method against the other."""
    return [
        Pair(
            f"{data} {user} epsilon {setting.epsilon:g} {above} over {below}",
            outcome.find(data=data, method=above, epsilon=setting.epsilon).values(user, metric),
            outcome.find(data=data, method=below, epsilon=setting.epsilon).values(user, metric),
        )
        for data in outcome.only(*names)
        for user in users or outcome.users(data)
        for setting in PAPER_SETTINGS.values()
    ]


def budget_steps(outcome: Trials, names: tuple[str, ...], *, metric: str) -> list[Pair]:
    """The largest budget against each other one."""
    *others, largest = (setting.epsilon for setting in PAPER_SETTINGS.values())
    return [
        Pair(
            f"{data} {user} epsilon {largest:g} over {epsilon:g}",
            outcome.find(data=data, method="fpdgd", epsilon=largest).values(user, metric),
            outcome.find(data=data, method="fpdgd", epsilon=epsilon).values(user, metric),
        )
        for data in outcome.only(*names)
        for user in outcome.users(data)
        for epsilon in others
    ]


def online_above_es_on_mslr(outcome: Trials) -> Verdict:
    return all_better(at_each_budget(outcome, _LARGE, metric=ONLINE))


def es_above_online_navigational(outcome: Trials) -> Verdict:
    turned = {"above": "foltr-es", "below": "fpdgd"}
    return all_better(at_each_budget(outcome, _SMALL, metric=ONLINE, users=("navigational",), **turned))


def budget_matters_little_online(outcome: Trials) -> Verdict:
    pairs = budget_steps(outcome, _LARGE, metric=ONLINE)
    return all_equal(pairs, margin=_SAME_SUM * fmean(value for pair in pairs for value in pair.ours.values()))


def smaller_budget_lower_online(outcome: Trials) -> Verdict:
    """Lower on average at the smallest budget than at the largest, without a significant difference."""
    pairs = [pair for pair in budget_steps(outcome, _SMALL, metric=ONLINE) if pair.name.endswith(" 1.2")]
    gain = fmean(a - b for pair in pairs for a, b in zip(*pair.aligned(), strict=True))
    shown = all_better(pairs)
    said = f"From epsilon 1.2 to 10 {gain:+.3f} on average (above 0, and not significant everywhere). {shown.why}"
    return Verdict(gain > 0 and not shown.holds, shown.p, said)


def budget_matters_little(outcome: Trials) -> Verdict:
    return all_equal(budget_steps(outcome, _LARGE, metric=OFFLINE), margin=_LITTLE)


def above_es(outcome: Trials) -> Verdict:
    return all_better(at_each_budget(outcome, tuple(outcome.data), metric=OFFLINE))


def above_es_by_max_rr(outcome: Trials) -> Verdict:
    return all_better(at_each_budget(outcome, tuple(outcome.data), metric="offline/MaxRR"))


def es_declines(outcome: Trials) -> Verdict:
    """Higher after a fifth of the interactions than at the end."""
    pairs = []
    for data in outcome.only(*_SMALL):
        for p in (0.9, 1.0):
            trial = outcome.find(data=data, method="foltr-es", p=p)
            for user in ("perfect", "informational"):
                early = trial.values_after(user, trial.n_interactions // 5)
                pairs.append(Pair(f"{data} {user} p {p:g} after 20% over the end", early, trial.values(user)))
    return all_better(pairs)


def federated_and_central(outcome: Trials, control: str) -> list[tuple[str, Values, Values]]:
    """(data and user, FPDGD without noise, the control) for each."""
    return [
        (
            f"{data} {user}",
            outcome.find(data=data, privacy="none").values(user),
            outcome.find(data=data, control=control).values(user),
        )
        for data in outcome.data
        for user in outcome.users(data)
    ]


def pdgd_below_at_equal_updates(outcome: Trials) -> Verdict:
    found = federated_and_central(outcome, "equal updates")
    return all_better([Pair(f"{who} fpdgd over pdgd", federated, central) for who, federated, central in found])


def pdgd_above_at_equal_interactions(outcome: Trials) -> Verdict:
    found = federated_and_central(outcome, "equal interactions")
    return all_better([Pair(f"{who} pdgd over fpdgd", central, federated) for who, federated, central in found])


def numbers_of_clients(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """With and without noise."""
    b, updates = protocol(data, scale)
    size = {"interactions": b, "rounds": updates}
    return [
        trial
        for n in (10, 100, 1000)
        for trial in (
            make_trial(data, scale, "fpdgd", {"privacy": "none", "n_clients": n}, n_clients=n, **size),
            noisy(data, scale, _EPSILON, {"n_clients": n}, n_clients=n, **size),
        )
    ]


def steps(outcome: Trials, key: str, values: tuple[int, ...], *, privacy: str) -> list[Pair]:
    """Each value of the key against the one before it, with or without noise."""

    def pairs(data: str, user: str) -> list[Pair]:
        found = [outcome.find(data=data, privacy=privacy, **{key: value}).values(user) for value in values]
        names = [f"{data} {user} {b} over {a}" for a, b in pairwise(values)]
        return [Pair(name, b, a) for name, (a, b) in zip(names, pairwise(found), strict=True)]

    return for_every_user(outcome, pairs)


def more_clients_better(outcome: Trials) -> Verdict:
    """Higher on average from ten to a thousand, and each step small: equal within twice what counts as little."""
    ends = steps(outcome, "n_clients", (10, 1000), privacy="none")
    gain = fmean(ours - theirs for pair in ends for ours, theirs in zip(*pair.aligned(), strict=True))
    grows = Verdict(gain > 0, None, f"From 10 to 1,000 clients {gain:+.4f} on average.")
    each = steps(outcome, "n_clients", (10, 100, 1000), privacy="none")
    return both(grows, all_equal(each, margin=2 * _LITTLE))


def further_clients_add_little(outcome: Trials) -> Verdict:
    pairs = [pair for p in ("none", "paper") for pair in steps(outcome, "n_clients", (100, 1000), privacy=p)]
    return all_equal(pairs, margin=_LITTLE)


def silence_over_noise(outcome: Trials, *, n_clients: int) -> list[Pair]:
    def pair(data: str, user: str) -> list[Pair]:
        quiet, loud = (outcome.find(data=data, n_clients=n_clients, privacy=p).values(user) for p in ("none", "paper"))
        return [Pair(f"{data} {user} {n_clients} clients", quiet, loud)]

    return for_every_user(outcome, pair)


def few_clients_poor_with_noise(outcome: Trials) -> Verdict:
    return all_better(silence_over_noise(outcome, n_clients=10))


def noise_harmless_with_many(outcome: Trials) -> Verdict:
    return all_equal([pair for n in (100, 1000) for pair in silence_over_noise(outcome, n_clients=n)], margin=_LITTLE)


_BATCHES = (2, 4, 8)


def batches_at_equal_updates(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    updates = protocol(data, scale)[1]
    return [noisy(data, scale, _EPSILON, {"interactions": b}, interactions=b, rounds=updates) for b in _BATCHES]


def batches_at_equal_budget(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """As many interactions as the smallest batch has in the protocol's updates."""
    budget = 2 * protocol(data, scale)[1]
    looks = {b: max(1, budget // (10 * b)) for b in _BATCHES}
    return [
        noisy(data, scale, _EPSILON, {"interactions": b}, interactions=b, rounds=budget // b, eval_every=looks[b])
        for b in _BATCHES
    ]


def batches_compared(outcome: Trials, ours: int, theirs: int, *, share: float, user: str | None = None) -> list[Pair]:
    """Two batch sizes after a share of each training."""

    def pair(data: str, who: str) -> list[Pair]:
        trials = (outcome.find(data=data, interactions=b) for b in (ours, theirs))
        name = f"{data} {who} B={ours} over {theirs} after {share:.0%}"
        after = [t.values_after(who, int(share * t.n_interactions)) for t in trials]
        return [Pair(name, *after)] if user in (None, who) else []

    return for_every_user(outcome, pair)


def largest_over_smallest(outcome: Trials, *, share: float, user: str | None = None) -> list[Pair]:
    return batches_compared(outcome, _BATCHES[-1], _BATCHES[0], share=share, user=user)


def larger_batch_better(outcome: Trials) -> Verdict:
    return all_better(largest_over_smallest(outcome, share=1.0))


def batches_meet_for_perfect(outcome: Trials) -> Verdict:
    early = all_better(largest_over_smallest(outcome, share=_EARLY, user="perfect"))
    return both(early, all_equal(largest_over_smallest(outcome, share=1.0, user="perfect"), margin=_LITTLE))


def batches_differ_less_for_informational(outcome: Trials) -> Verdict:
    """Early on the gain of a larger batch is smaller for informational users than for perfect ones, and is there."""
    perfect, informational = (
        largest_over_smallest(outcome, share=_EARLY, user=user) for user in ("perfect", "informational")
    )
    gains = [
        Pair(f"{p.name} less informational", _differences(p), _differences(i))
        for p, i in zip(perfect, informational, strict=True)
    ]
    return both(all_better(gains), all_better(informational))


def _differences(pair: Pair) -> dict[tuple[int, int], float]:
    return {cell: pair.ours[cell] - pair.theirs[cell] for cell in pair.ours}


def batch_matters_little(outcome: Trials) -> Verdict:
    return all_equal(steps(outcome, "interactions", _BATCHES, privacy="paper"), margin=_LITTLE)


def small_batch_better_early(outcome: Trials) -> Verdict:
    """After as many interactions, not after the same share of the updates: both have the same budget."""
    return all_better(batches_compared(outcome, _BATCHES[0], _BATCHES[-1], share=_EARLY))


def small_batch_better_online(outcome: Trials) -> Verdict:
    """The mean quality of the lists shown; the discounted sum counts rounds, of which a small batch has more."""

    def pair(data: str, user: str) -> list[Pair]:
        small, large = (outcome.find(data=data, interactions=b) for b in (_BATCHES[0], _BATCHES[-1]))
        name = f"{data} {user} B={_BATCHES[0]} over {_BATCHES[-1]}"
        return [Pair(name, small.mean_along(user, ONLINE), large.mean_along(user, ONLINE))]

    return all_better(for_every_user(outcome, pair))


REPRODUCTIONS = (
    Reproduction(
        "fpdgd.table2",
        budgets_with_either_bound,
        {
            "fpdgd-above-foltr-es-on-mslr": online_above_es_on_mslr,
            "foltr-es-above-fpdgd-navigational": es_above_online_navigational,
            "budget-matters-little-on-mslr": budget_matters_little_online,
            "smaller-budget-lower-on-mq2007": smaller_budget_lower_online,
        },
        published_code="the published code bounds weights by Delta, where the text says Delta/2",
    ),
    Reproduction(
        "fpdgd.figure2",
        budgets_and_controls,
        {
            "pdgd-below-at-equal-updates": pdgd_below_at_equal_updates,
            "pdgd-above-at-equal-interactions": pdgd_above_at_equal_interactions,
            "budget-matters-little-on-mslr": budget_matters_little,
            "fpdgd-above-foltr-es": above_es,
            "foltr-es-declines-on-mq2007": es_declines,
        },
    ),
    Reproduction("fpdgd.figure3", budgets, {"same-trends-by-maxrr": above_es_by_max_rr}),
    Reproduction(
        "fpdgd.figure4",
        numbers_of_clients,
        {
            "more-clients-better-without-noise": more_clients_better,
            "few-clients-poor-with-noise": few_clients_poor_with_noise,
            "noise-harmless-with-many-clients": noise_harmless_with_many,
            "further-clients-add-little": further_clients_add_little,
        },
    ),
    Reproduction(
        "fpdgd.figure5",
        batches_at_equal_updates,
        {
            "larger-batch-better": larger_batch_better,
            "batches-meet-for-perfect": batches_meet_for_perfect,
            "batches-differ-less-for-informational": batches_differ_less_for_informational,
        },
    ),
    Reproduction(
        "fpdgd.figure6",
        batches_at_equal_budget,
        {
            "batch-matters-little-at-equal-budget": batch_matters_little,
            "small-batch-better-early": small_batch_better_early,
            "small-batch-slightly-better-online": small_batch_better_online,
        },
    ),
)
