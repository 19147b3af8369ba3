"""The reproducibility study of FOLtR-ES [study], thesis section 3.1: other data, fewer clients, PDGD beside it, nDCG.

Protocol: two million interactions; PDGD in batches of as many interactions as FOLtR-ES has in a round, 8,000.
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from hushrank.files import Json
from hushrank.reproduce.papers.foltr_es import RANKERS, TEST, TRAIN, evolve, rounds_for
from hushrank.reproduce.reproduction import DataChoice, Reproduction, ReproductionSize, Trial, make_trial
from hushrank.reproduce.verdicts import (
    OFFLINE,
    ONLINE,
    Cell,
    Finished,
    NotJudged,
    Pair,
    Trials,
    Values,
    Verdict,
    all_better,
    all_equal,
    both,
    ordered,
)

_BATCH = 8000
_LITTLE = 0.01
_UNSTABLE = 1.5  # how many times as much repeats must differ to be called unstable
_SMALL, _MSLR, _YAHOO = ("mq2007", "mq2008"), ("mslr",), ("yahoo",)
_OPEN: Json = {"privacy": "none"}


def users_pairs(
    outcome: Trials,
    names: tuple[str, ...],
    ours: Cell,
    theirs: Cell,
    *,
    metric: str = OFFLINE,
    users: tuple[str, ...] = ("perfect", "navigational", "informational"),
) -> list[Pair]:
    """Two trials on every data set of these names, for every user."""
    return [
        Pair(
            f"{data} {user} {_words(ours)} over {_words(dict(theirs.items() - ours.items()))}",
            outcome.find(data=data, **ours).values(user, metric),
            outcome.find(data=data, **theirs).values(user, metric),
        )
        for data in outcome.only(*names)
        for user in users
    ]


def _words(cell: Cell) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(cell.items()))


# Figure 1: other data
PS = (0.5, 0.9, 1.0)


def data_sets(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    return [evolve(data, scale, {"ranker": r, "p": p}, ranker=r, p=p) for r in RANKERS for p in PS]


def higher_p_better_on_mq(outcome: Trials) -> Verdict:
    return all_better(
        [
            pair
            for ranker in RANKERS
            for pair in users_pairs(
                outcome, _SMALL, {"ranker": ranker, "p": 1.0}, {"ranker": ranker, "p": 0.5}, metric=TRAIN
            )
        ]
    )


def layers(
    outcome: Trials, names: tuple[str, ...], p: float, *, above: str = "mlp", below: str = "linear"
) -> list[Pair]:
    return users_pairs(outcome, names, {"ranker": above, "p": p}, {"ranker": below, "p": p}, metric=TRAIN)


def two_layer_above_linear_on_mq(outcome: Trials) -> Verdict:
    """Above for p near 1, and not shown to be above at p = .5."""
    near = all_better([pair for p in (0.9, 1.0) for pair in layers(outcome, _SMALL, p)])
    half = all_better(layers(outcome, _SMALL, 0.5))
    return both(near, Verdict(not half.holds, None, f"At p = 0.5: {half.why}"))


def two_layer_below_linear_on_large(outcome: Trials) -> Verdict:
    large = (*_MSLR, *_YAHOO)
    return all_better([pair for p in PS for pair in layers(outcome, large, p, above="linear", below="mlp")])


def spread_within_folds(values: Values) -> float:
    """How much repeats differ, the folds' own levels apart."""
    folds = {fold for fold, _ in values}
    if len(values) < 2 * len(folds):
        raise NotJudged("One training per fold has no spread: it needs two repeats or more.")
    return fmean(stdev([v for (f, _), v in values.items() if f == fold]) for fold in folds)


def instability(trial: Finished, user: str, metric: str) -> float:
    return spread_within_folds(trial.values(user, metric))


def informational_unstable_on_large(outcome: Trials) -> Verdict:
    ratios = {
        data: fmean(
            instability(trial, "informational", TRAIN) / max(instability(trial, "perfect", TRAIN), 1e-9)
            for trial in outcome.finished
            if trial.cell["data"] == data
        )
        for data in outcome.only(*_MSLR, *_YAHOO)
    }
    said = "; ".join(f"{data} {ratio:.2f}" for data, ratio in ratios.items())
    mslr = [ratio for data, ratio in ratios.items() if data.startswith(_MSLR)]
    return Verdict(
        bool(mslr) and mslr[0] == max(ratios.values()) and mslr[0] > _UNSTABLE,
        None,
        f"How many times as much repeats differ for informational as for perfect users (more than {_UNSTABLE:g}, and "
        f"most on MSLR-WEB10K): {said}.",
    )


# Figure 2: the number of clients
CLIENTS = (50, 1000, 2000)


def numbers_of_clients(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    return [
        evolve(data, scale, {"ranker": ranker, "n_clients": n}, ranker=ranker, n_clients=n)
        for ranker in RANKERS
        for n in CLIENTS
    ]


def more_over_fewer(outcome: Trials, names: tuple[str, ...], ranker: str, more: int, fewer: int) -> list[Pair]:
    ours, theirs = ({"ranker": ranker, "n_clients": n} for n in (more, fewer))
    return users_pairs(outcome, names, ours, theirs, metric=TRAIN)


def few_clients_hurt_linear(outcome: Trials) -> Verdict:
    linear = all_better(more_over_fewer(outcome, ("mq2007",), "linear", 2000, 50))
    return both(linear, all_equal(more_over_fewer(outcome, ("mq2007",), "mlp", 2000, 50), margin=2 * _LITTLE))


def gain(pairs: list[Pair]) -> float:
    return fmean(a - b for pair in pairs for a, b in zip(*pair.aligned(), strict=True))


def more_clients_better_on_mq2008(outcome: Trials) -> Verdict:
    gains = {r: gain(more_over_fewer(outcome, ("mq2008",), r, 2000, 50)) for r in RANKERS}
    said = "; ".join(f"{ranker} {value:+.4f}" for ranker, value in gains.items())
    return Verdict(
        all(value > 0 for value in gains.values()), None, f"From 50 to 2,000 clients, mean over users: {said}."
    )


def few_clients_better_on_mslr(outcome: Trials) -> Verdict:
    pairs = [pair for ranker in RANKERS for pair in more_over_fewer(outcome, _MSLR, ranker, 50, 2000)]
    ahead = sum(gain([pair]) > 0 for pair in pairs)
    return Verdict(
        ahead > len(pairs) / 2,
        None,
        f"50 clients are ahead of 2,000 in {ahead} of {len(pairs)} cases (more than half).",
    )


def clients_matter_little_on_yahoo(outcome: Trials) -> Verdict:
    pairs = [pair for ranker in RANKERS for pair in more_over_fewer(outcome, _YAHOO, ranker, 2000, 1000)]
    return all_equal([*pairs, *more_over_fewer(outcome, _YAHOO, "mlp", 2000, 50)], margin=_LITTLE)


# Figures 3 and 5: PDGD beside it
def central(data: DataChoice, scale: ReproductionSize, batch: int) -> Trial:
    rounds = rounds_for(scale)
    return make_trial(
        data,
        scale,
        "pdgd",
        {"batch": batch},
        interactions=_BATCH,
        batch=batch,
        rounds=rounds,
        eval_every=max(1, rounds // 20),
    )


def pdgd_beside(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    learnt = [evolve(data, scale, {"ranker": ranker, "p": 1.0}, ranker=ranker, **_OPEN) for ranker in RANKERS]
    return [*learnt, central(data, scale, _BATCH)]


def pdgd_beside_by_ndcg(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """nDCG is the reward too."""
    learnt = [
        evolve(data, scale, {"ranker": ranker, "p": 1.0}, ranker=ranker, reward="nDCG", **_OPEN) for ranker in RANKERS
    ]
    return [*learnt, central(data, scale, _BATCH), central(data, scale, 200)]


def pdgd_over_es(outcome: Trials, names: tuple[str, ...], metric: str, **more: Any) -> list[Pair]:
    return [
        pair
        for ranker in RANKERS
        for pair in users_pairs(
            outcome,
            names,
            {"method": "pdgd", "batch": _BATCH},
            {"method": "foltr-es", "ranker": ranker},
            metric=metric,
            **more,
        )
    ]


def pdgd_faster_then_caught(outcome: Trials) -> Verdict:
    """Ahead after a tenth of the interactions, and by less at the end."""
    found, words = [], []
    for data in outcome.only("mq2008", *_YAHOO):
        pdgd = outcome.find(data=data, method="pdgd")
        for ranker in RANKERS:
            ours = outcome.find(data=data, method="foltr-es", ranker=ranker)
            for user in pdgd.users:
                early, late = (
                    fmean(pdgd.values_after(user, n, TEST).values()) - fmean(ours.values_after(user, n, TEST).values())
                    for n in (pdgd.n_interactions // 10, pdgd.n_interactions)
                )
                found.append(early > 0 and early > late)
                words.append(f"{data} {user} {ranker} {early:+.4f}, then {late:+.4f}")
    said = f"PDGD's lead after 10% of the interactions, then at the end: {'; '.join(words)}."
    return Verdict(all(found), None, f"In {sum(found)} of {len(found)} cases above 0 and then smaller. {said}")


def es_below_pdgd(outcome: Trials) -> Verdict:
    return all_better(pdgd_over_es(outcome, ("mq2007", *_MSLR), TEST))


def gap_larger_on_mslr(outcome: Trials) -> Verdict:
    large, small = (gain(pdgd_over_es(outcome, names, TEST)) for names in (_MSLR, ("mq2007",)))
    return ordered([("gap to PDGD on MSLR-WEB10K and on MQ2007", large, small)])


def pdgd_above_on_mslr(outcome: Trials) -> Verdict:
    return all_better(pdgd_over_es(outcome, _MSLR, OFFLINE))


def pdgd_above_for_informational(outcome: Trials) -> Verdict:
    return all_better(pdgd_over_es(outcome, tuple(outcome.data), OFFLINE, users=("informational",)))


def es_unstable(outcome: Trials) -> Verdict:
    """Its repeats differ more than those of PDGD, on average over users, data and rankers."""
    by_method: dict[str, list[float]] = {"foltr-es": [], "pdgd": []}
    for trial in outcome.finished:
        if trial.cell.get("batch") in (None, _BATCH):
            by_method[trial.cell["method"]] += [instability(trial, user, OFFLINE) for user in trial.users]
    ratio = fmean(by_method["foltr-es"]) / max(fmean(by_method["pdgd"]), 1e-9)
    said = f"Repeats of FOLtR-ES differ {ratio:.2f} times as much as those of PDGD (more than {_UNSTABLE:g})."
    return Verdict(ratio > _UNSTABLE, None, said)


# Figure 4: judged by labels
def learns(outcome: Trials, names: tuple[str, ...], users: tuple[str, ...], rankers: tuple[str, ...]) -> list[Pair]:
    """The last ranker against the first, on test queries."""
    return [
        Pair(
            f"{data} {user} {trial.cell['ranker']} p={trial.cell['p']:g} at the end over the start",
            trial.values(user),
            trial.values_after(user, 0),
        )
        for data in outcome.only(*names)
        for trial in outcome.finished
        if trial.cell["data"] == data and trial.cell["ranker"] in rankers
        for user in users
    ]


def learns_from_clean_clicks(outcome: Trials) -> Verdict:
    return all_better(learns(outcome, _SMALL, ("perfect", "navigational"), RANKERS))


def two_layer_fails_on_noise(outcome: Trials) -> Verdict:
    linear = all_better(learns(outcome, _SMALL, ("informational",), ("linear",)))
    two = [all_better([pair]) for pair in learns(outcome, _SMALL, ("informational",), ("mlp",))]
    fails = Verdict(not any(v.holds for v in two), None, f"Two-layer: {sum(v.holds for v in two)} of {len(two)} learn.")
    return both(linear, fails)


def no_learning_from_noise_on_large(outcome: Trials) -> Verdict:
    pairs = learns(outcome, (*_MSLR, *_YAHOO), ("informational",), RANKERS)
    found = [all_better([pair]) for pair in pairs]
    return Verdict(not any(v.holds for v in found), None, f"{sum(v.holds for v in found)} of {len(found)} learn.")


def navigational_unstable_on_mslr(outcome: Trials) -> Verdict:
    outcome.only(*_MSLR)
    trials = [trial for trial in outcome.finished if trial.cell["data"].startswith(_MSLR)]
    ratio = fmean(
        instability(t, "navigational", OFFLINE) / max(instability(t, "perfect", OFFLINE), 1e-9) for t in trials
    )
    said = f"Repeats differ {ratio:.2f} times as much as for perfect users (more than {_UNSTABLE:g})."
    return Verdict(ratio > _UNSTABLE, None, said)


REPRODUCTIONS = (
    Reproduction(
        "study.figure1",
        data_sets,
        {
            "higher-p-better-on-mq": higher_p_better_on_mq,
            "two-layer-above-linear-on-mq": two_layer_above_linear_on_mq,
            "two-layer-below-linear-on-large-data": two_layer_below_linear_on_large,
            "informational-unstable-on-large-data": informational_unstable_on_large,
        },
        metrics={TRAIN: {"split": "train"}},
    ),
    Reproduction(
        "study.figure2",
        numbers_of_clients,
        {
            "few-clients-hurt-linear-on-mq2007": few_clients_hurt_linear,
            "more-clients-better-on-mq2008": more_clients_better_on_mq2008,
            "few-clients-better-on-mslr": few_clients_better_on_mslr,
            "clients-matter-little-on-yahoo": clients_matter_little_on_yahoo,
        },
        metrics={TRAIN: {}},
    ),
    Reproduction(
        "study.figure3",
        pdgd_beside,
        {
            "pdgd-faster-on-mq2008-and-yahoo": pdgd_faster_then_caught,
            "foltr-es-below-pdgd": es_below_pdgd,
            "gap-larger-on-mslr": gap_larger_on_mslr,
        },
        metrics={TEST: {}},
    ),
    Reproduction(
        "study.figure4",
        data_sets,
        {
            "learns-from-clean-clicks-on-mq": learns_from_clean_clicks,
            "two-layer-fails-on-noisy-clicks": two_layer_fails_on_noise,
            "no-learning-from-noise-on-large-data": no_learning_from_noise_on_large,
            "navigational-unstable-on-mslr": navigational_unstable_on_mslr,
        },
        metrics={ONLINE: {}},
    ),
    Reproduction(
        "study.figure5",
        pdgd_beside_by_ndcg,
        {
            "foltr-es-unstable": es_unstable,
            "pdgd-above-on-mslr": pdgd_above_on_mslr,
            "pdgd-above-for-informational": pdgd_above_for_informational,
        },
    ),
)
