"""Clients that differ [thesis, Chapter 4]: Figures 4.3 to 4.9, Tables 4.2 and 4.3.

A type of skew stands beside its control, whose clients are all alike. Type 1 is in `thesis_intents.py`.
"""

from __future__ import annotations

from itertools import product
from math import comb, lcm
from statistics import fmean

from hushrank.metrics.online import discounted_sum
from hushrank.reproduce.papers import thesis_intents
from hushrank.reproduce.papers.study import gain, users_pairs
from hushrank.reproduce.papers.thesis_skew import (
    IID,
    LITTLE,
    PERSONAL,
    RANKERS,
    SKEWED,
    USERS,
    SkewedClients,
    beside_control,
    federation,
    for_all,
    pairs_of,
    rankers_of,
    remedies,
    remedy_over_plain,
)
from hushrank.reproduce.reproduction import DataChoice, Reproduction, ReproductionSize, Trial
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
    all_at_least,
    all_better,
    all_equal,
    both,
    none_better,
)

STEPS = (2, 5, 10)
_EXACT = 0.005  # a sum as printed, to two decimals
_QUICK = (
    "The quick version has the linear ranker and 300 rounds instead of 10,000: it shows that everything runs and which "
    "way large gaps point, but nothing about networks, the end of training or differences near .005."
)


# Type 2, labels: Figures 4.5 to 4.7, Table 4.3
def one_label(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """As many clients as grades."""
    skew = SkewedClients("labels-1", data.n_grades)
    return [
        trial
        for ranker, b in product(rankers_of(scale), STEPS)
        for trial in beside_control(data, scale, skew, {"ranker": ranker, "interactions": b}, interactions=b)
    ]


def one_label_hurts(outcome: Trials) -> Verdict:
    """And whether anything is learnt: a list of one label tells nothing of which document is better."""
    cells = [{"ranker": r, "interactions": b} for r in outcome.present("ranker", RANKERS) for b in STEPS]
    hurts = all_better([pair for cell in cells for pair in pairs_of(outcome, {**cell, **IID}, {**cell, **SKEWED})])
    told = Verdict(hurts.holds, hurts.p, f"{hurts.why} {tell_learnt(outcome, SKEWED)}")
    return for_all(outcome, told, SKEWED, ranker=RANKERS)


def tell_learnt(outcome: Trials, cell: Cell) -> str:
    """How much better the last rankers of these trials are than those before the first round."""
    trials = [t for t in outcome.finished if cell.items() <= t.cell.items()]
    pairs = [
        Pair(f"{trial_words(t.cell)} {user}", t.values(user), t.values_after(user, 0))
        for t in trials
        for user in t.users
    ]
    return f"Over the ranker before the first round ({gain(pairs):+.4f} on average): {none_better(pairs).why}"


def trial_words(cell: Cell) -> str:
    return " ".join(str(value) for key, value in cell.items() if key not in ("method", "distribution"))


def more_steps(outcome: Trials, ranker: str, more: int, fewer: int, users: tuple[str, ...] = USERS) -> list[Pair]:
    outcome.present("ranker", [ranker])
    ours, theirs = ({"ranker": ranker, "interactions": b, **SKEWED} for b in (more, fewer))
    return pairs_of(outcome, ours, theirs, users=users)


def more_steps_help(outcome: Trials) -> Verdict:
    return all_better(more_steps(outcome, "linear", STEPS[-1], STEPS[0], users=("perfect",)))


def more_steps_hurt_a_little(outcome: Trials) -> Verdict:
    """Significantly lower, and by less than the margin."""
    more, fewer = STEPS[-1], STEPS[0]
    above = all_better(more_steps(outcome, "linear", fewer, more, users=USERS[1:]))
    return both(above, all_equal(more_steps(outcome, "linear", more, fewer, users=USERS[1:]), margin=LITTLE))


def steps_indifferent(outcome: Trials) -> Verdict:
    pairs = [pair for more, fewer in ((5, 2), (10, 5), (10, 2)) for pair in more_steps(outcome, "mlp", more, fewer)]
    return all_equal(pairs, margin=LITTLE)


def one_label_is_constant_online(outcome: Trials) -> Verdict:
    """A list of one label always scores the same: 0 for label 0, otherwise 1."""
    said, largest = [], 0.0
    for trial in (t for t in outcome.finished if SKEWED.items() <= t.cell.items()):
        recipe = trial.result["recipe"]
        expected = discounted_sum([1 - 1 / recipe["n_clients"]] * recipe["rounds"])
        found = [value for user in trial.users for value in trial.values(user, ONLINE).values()]
        largest = max(largest, *(abs(value - expected) for value in found))
        said.append(f"{trial.cell['data']} {expected:.2f} after {recipe['rounds']:,} rounds")
    if not said:
        raise NotJudged("Not run: distribution=non-iid.")
    why = f"Exact by formula, (1 - 1/n)(1 - .9995^T) / .0005: {'; '.join(dict.fromkeys(said))}. Largest deviation of "
    found_exact = Verdict(largest < _EXACT, None, f"{why}any training: {largest:.4f} (below {_EXACT:g}).")
    return for_all(outcome, found_exact, SKEWED, ranker=RANKERS, interactions=STEPS)


def two_labels(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """As many clients for each grade as for each other and for each pair as for each other; the same in the control."""
    n = lcm(data.n_grades, comb(data.n_grades, 2))
    trials = []
    for ranker in rankers_of(scale):
        one, two = ({"ranker": ranker, "partition": name} for name in ("labels-1", "labels-2"))
        trials += beside_control(data, scale, SkewedClients("labels-1", n), one)
        trials.append(federation(data, scale, SkewedClients("labels-2", n), {**two, **SKEWED}))
    return trials


def two_labels_over(outcome: Trials, theirs: Cell) -> list[Pair]:
    return [
        pair
        for ranker in outcome.present("ranker", RANKERS)
        for pair in pairs_of(outcome, {"ranker": ranker, "partition": "labels-2"}, {"ranker": ranker, **theirs})
    ]


def two_labels_above_one(outcome: Trials) -> Verdict:
    above = all_better(two_labels_over(outcome, {"partition": "labels-1", **SKEWED}))
    return for_all(outcome, above, {"partition": "labels-2"}, ranker=RANKERS)


def two_labels_near_iid(outcome: Trials) -> Verdict:
    near = all_equal(two_labels_over(outcome, IID), margin=LITTLE)
    return for_all(outcome, near, {"partition": "labels-2"}, ranker=RANKERS)


def one_label_and_remedies(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """And a tenth of the queries as everybody's, all of it given to every client."""
    skew = SkewedClients("labels-1", data.n_grades)
    trials = remedies(data, scale, skew)
    sharing = {"remedy": "data-sharing", "shared_share": 0.1, "alpha": 1.0}
    for ranker in rankers_of(scale):
        cell = {"ranker": ranker, "remedy": "data-sharing", **SKEWED}
        trials.append(federation(data, scale, skew, cell, **sharing))
    return trials


def data_sharing_helps(outcome: Trials) -> Verdict:
    """And what of it comes from the shared data alone: its first ranker was trained on them."""
    sharing = {"remedy": "data-sharing"}
    helps = all_better(remedy_over_plain(outcome, sharing))
    told = Verdict(helps.holds, helps.p, f"{helps.why} {tell_learnt(outcome, sharing)}")
    return for_all(outcome, told, sharing, ranker=RANKERS)


def fedprox_does_not_help(outcome: Trials) -> Verdict:
    fedprox = {"remedy": "fedprox"}
    return for_all(outcome, none_better(remedy_over_plain(outcome, fedprox)), fedprox, ranker=RANKERS)


def fedper_does_not_help(outcome: Trials) -> Verdict:
    return none_better(remedy_over_plain(outcome, {"remedy": "fedper"}))


# Type 3, clicks: Figure 4.8
_BEHAVIOURS = {"ccm": 3, "pbm": 5}  # {of people: clients}


def behaviours(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """The people are the clients' own, so that `clicks` only names whose MaxRR is measured."""
    return [
        trial
        for name, n in _BEHAVIOURS.items()
        for trial in beside_control(
            data, scale, SkewedClients("clicks", n), {"behaviour": name}, behaviour=name, clicks="perfect"
        )
    ]


def behaviour_harmless(outcome: Trials, name: str) -> Verdict:
    ours, theirs = ({"behaviour": name, **cell} for cell in (SKEWED, IID))
    return all_equal(pairs_of(outcome, ours, theirs, users=USERS[:1]), margin=LITTLE)


def ccm_harmless(outcome: Trials) -> Verdict:
    return behaviour_harmless(outcome, "ccm")


def pbm_harmless(outcome: Trials) -> Verdict:
    return behaviour_harmless(outcome, "pbm")


# Type 4, quantity: Figure 4.9
def quantities(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Alone and mixed with another type; the other type alone has as many searches in all, equal for every client."""
    if data.n_intents:
        return mixed_with(data, scale, "intents", data.n_intents)
    alone = beside_control(data, scale, SkewedClients("quantity", 5), {"partition": "quantity"})
    return [*alone, *mixed_with(data, scale, "labels-1", data.n_grades)]


def mixed_with(data: DataChoice, scale: ReproductionSize, other: str, n_clients: int) -> list[Trial]:
    mean = round(fmean((1, 3, 5, 7, 9)[:n_clients]))
    name = f"{other}+quantity"
    cell = {"partition": other, **SKEWED}
    return [
        *beside_control(data, scale, SkewedClients(name, n_clients), {"partition": name}),
        federation(data, scale, SkewedClients(other, n_clients), cell, interactions=mean),
    ]


def read_own_labels(trial: Finished, user: str, name: str) -> Values:
    """At the end; nothing by own labels where clients are tested by everybody's: only intents have others."""
    if name == PERSONAL and "intents" not in str(trial.cell["partition"]):
        return {}
    return trial.values(user, name)


def quantity_harmless(outcome: Trials) -> Verdict:
    """Equal within the margin: alone to its control, mixed to the other type alone; intents by own labels.

    Told beside it: whether it is lower by less than the margin, for a ranker that is better is harmed no more.
    """
    judged = {how: pairs for how, pairs in pair_quantities(outcome).items() if pairs}
    if not judged:
        raise NotJudged("Not run: partition=quantity.")
    found = {how: all_equal(pairs, margin=LITTLE) for how, pairs in judged.items()}
    beside = {how: all_at_least(pairs, margin=LITTLE) for how, pairs in judged.items()}
    p = max(verdict.p or 0.0 for verdict in found.values())
    said = [
        f"{how} ({_shown(v)}): {v.why} Not lower ({_shown(beside[how])}): {beside[how].why}" for how, v in found.items()
    ]
    tests = tuple(test for how in judged for verdict in (found[how], beside[how]) for test in verdict.tests)
    return Verdict(all(verdict.holds for verdict in found.values()), p, " ".join(said), tests=tests)


def _shown(verdict: Verdict) -> str:
    return f"{'shown' if verdict.holds else 'not shown'}, p {verdict.p:.2g}"


def pair_quantities(outcome: Trials) -> dict[str, list[Pair]]:
    """{"Alone" or "Mixed": unequal searches over equal ones}"""
    found: dict[str, list[Pair]] = {"Alone": [], "Mixed": []}
    for trial in outcome.finished:
        data, name = trial.cell["data"], str(trial.cell["partition"])
        other = name.removesuffix("+quantity")
        if not name.endswith("quantity") or trial.cell["distribution"] == "iid":
            continue
        ours = {"partition": name, **SKEWED}
        if other == name:
            found["Alone"] += users_pairs(outcome, (data,), ours, {"partition": name, **IID})
        else:
            metric = PERSONAL if other == "intents" else OFFLINE
            found["Mixed"] += users_pairs(outcome, (data,), ours, {"partition": other, **SKEWED}, metric=metric)
    return found


_BOTH: dict[str, Cell] = {OFFLINE: {}, ONLINE: {}}
_ALL: dict[str, Cell] = {**_BOTH, PERSONAL: {}}
REPRODUCTIONS = (
    Reproduction(
        "thesis.figure4.3",
        thesis_intents.intents,
        {"intents-hurt": thesis_intents.intents_hurt},
        metrics=_ALL,
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.table4.2",
        thesis_intents.intents,
        {"intents-hurt-online": thesis_intents.intents_hurt_online},
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.figure4.4",
        thesis_intents.intents_and_remedies,
        {
            "fedprox-does-not-close-the-gap": thesis_intents.fedprox_closes_no_gap,
            "fedper-does-not-close-the-gap": thesis_intents.fedper_closes_no_gap,
        },
        metrics=_ALL,
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.figure4.5",
        one_label,
        {
            "one-label-hurts": one_label_hurts,
            "more-steps-help-linear-perfect": more_steps_help,
            "more-steps-hurt-linear-noisy": more_steps_hurt_a_little,
            "steps-indifferent-for-neural": steps_indifferent,
        },
        metrics=_BOTH,
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.table4.3",
        one_label,
        {"one-label-is-always-perfect-online": one_label_is_constant_online},
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.figure4.6",
        two_labels,
        {"two-labels-above-one": two_labels_above_one, "two-labels-near-iid": two_labels_near_iid},
        metrics=_BOTH,
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.figure4.7",
        one_label_and_remedies,
        {
            "data-sharing-helps": data_sharing_helps,
            "fedprox-does-not-help": fedprox_does_not_help,
            "fedper-does-not-help": fedper_does_not_help,
        },
        metrics=_BOTH,
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.figure4.8",
        behaviours,
        {"click-behaviour-harmless-ccm": ccm_harmless, "click-behaviour-harmless-pbm": pbm_harmless},
        metrics=_BOTH,
        quick_limits=_QUICK,
    ),
    Reproduction(
        "thesis.figure4.9",
        quantities,
        {"quantity-harmless": quantity_harmless},
        metrics=_ALL,
        read=read_own_labels,
        quick_limits=_QUICK,
    ),
)
