"""Clients that differ [thesis, Chapter 4]: Figures 4.3 to 4.9, Tables 4.2 and 4.3.

Protocol: FPDGD without noise, learning rate .1, 10,000 rounds, five searches of every client in each, all clients in
every round. A type of skew stands beside its control, whose clients are all alike.
"""

from __future__ import annotations

from itertools import product
from statistics import fmean
from typing import NamedTuple

from hushrank.metrics.online import discounted_sum
from hushrank.remedies.named import REMEDIES
from hushrank.reproduce.papers.study import gain, users_pairs
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
    all_at_least,
    all_better,
    all_equal,
    both,
    none_better,
)

PERSONAL = "personal/nDCG@10"  # each client's own ranker by its own labels, mean over clients
RANKERS = ("linear", "mlp")
USERS = ("perfect", "navigational", "informational")
STEPS = (2, 5, 10)
MUS = (0.001, 0.01, 0.1, 1.0, 10.0)
_B = 5
_LITTLE = 0.005  # nDCG@10 that counts as no difference
_EXACT = 0.005  # a sum as printed, to two decimals
_IID, _SKEWED = {"distribution": "iid"}, {"distribution": "non-iid"}
_QUICK = (
    "The quick version has the linear ranker and 300 rounds instead of 10,000: it shows that everything runs and which "
    "way large gaps point, but nothing about networks, the end of training or differences near .005."
)


class Skew(NamedTuple):
    """How clients differ."""

    partition: str
    n_clients: int


def federation(data: DataChoice, scale: ReproductionSize, skew: Skew, cell: Cell, **changes: object) -> Trial:
    """Clients that differ, or with control=True are alike; what the cell says of the ranker holds."""
    size = {**skew._asdict(), "rounds": 300 if scale.quick else 10_000, "interactions": _B}
    ranker = {"ranker": cell["ranker"]} if "ranker" in cell else {}
    return make_trial(data, scale, "fpdgd", cell, **{**size, **ranker, **changes})


def beside_control(data: DataChoice, scale: ReproductionSize, skew: Skew, cell: Cell, **changes: object) -> list[Trial]:
    return [
        federation(data, scale, skew, {**cell, **_IID}, control=True, **changes),
        federation(data, scale, skew, {**cell, **_SKEWED}, **changes),
    ]


def rankers_of(scale: ReproductionSize) -> tuple[str, ...]:
    """Why no networks when quick: a processor makes a few hundred of their searches a second."""
    return RANKERS[:1] if scale.quick else RANKERS


def pairs_of(
    outcome: Trials, ours: Cell, theirs: Cell, *, metric: str = OFFLINE, users: tuple[str, ...] = USERS
) -> list[Pair]:
    """Two trials on every data set, for every user."""
    return users_pairs(outcome, outcome.data, ours, theirs, metric=metric, users=users)


# Type 1, document preferences: Figures 4.3 and 4.4, Table 4.2
def intents_of(data: DataChoice) -> int:
    if not data.n_intents:
        raise ValueError(
            f"{data.label} has the same grades for everybody, and Type 1 needs grades by intent: leave --data out for "
            "intent-change-like, or name a set with a folder intents."
        )
    return data.n_intents


def intents(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    skew = Skew("intents", intents_of(data))
    return [t for ranker in rankers_of(scale) for t in beside_control(data, scale, skew, {"ranker": ranker})]


def control_over_intents(
    outcome: Trials, control: str, skewed: str, *, along: bool = False, **theirs: object
) -> list[Pair]:
    """The control by one measure over clients with intents by another; along: means over the whole training."""

    def read(trial: Finished, user: str, metric: str) -> Values:
        return trial.mean_along(user, metric) if along else trial.values(user, metric)

    cells = product(outcome.data, outcome.present("ranker", [theirs.get("ranker")] if "ranker" in theirs else RANKERS))
    return [
        Pair(
            f"{data} {ranker} {user}",
            read(outcome.find(data=data, ranker=ranker, **_IID), user, control),
            read(outcome.find(**{"data": data, "ranker": ranker, **_SKEWED, **theirs}), user, skewed),
        )
        for data, ranker in cells
        for user in outcome.users(data)
    ]


def name_cause(published: list[Pair], own: list[Pair], more: str = "") -> Verdict:
    """Held when clients lose as published *and* by their own labels, by which the gap is defined here.

    Differs: the published control is judged by the union of intents and the others by their own [thesis, 4.3.1].
    """
    as_published, by_own = all_better(published), all_better(own)
    gaps = f"The published gap is {gain(published):+.4f} on average; by the clients' own labels it is {gain(own):+.4f}."
    if as_published.holds and not by_own.holds:
        gaps += (
            " So its sign comes from the two sets of labels: the control is judged by the union, others by their own."
        )
    texts = [gaps, f"Own labels for both: {by_own.why}", more, f"As published: {as_published.why}"]
    p = max(p for p in (as_published.p, by_own.p) if p is not None)
    return Verdict(as_published.holds and by_own.holds, p, " ".join(filter(None, texts)))


def intents_hurt(outcome: Trials) -> Verdict:
    union = all_better(control_over_intents(outcome, OFFLINE, OFFLINE))
    published = control_over_intents(outcome, OFFLINE, PERSONAL)
    return name_cause(published, control_over_intents(outcome, PERSONAL, PERSONAL), f"Union for both: {union.why}")


def intents_hurt_online(outcome: Trials) -> Verdict:
    """Why by rankers where it is by own labels: the control's people search by the union, so that its lists are too."""
    own = control_over_intents(outcome, PERSONAL, PERSONAL, along=True)
    said = "Own labels: of the ranker, mean over the training."
    return name_cause(control_over_intents(outcome, ONLINE, ONLINE), own, said)


def remedies(data: DataChoice, scale: ReproductionSize, skew: Skew) -> list[Trial]:
    """The control, plain averaging, FedProx at each mu and, for networks, FedPer."""
    trials = []
    for ranker in rankers_of(scale):
        trials += beside_control(data, scale, skew, {"ranker": ranker, "remedy": "none"})
        for mu in MUS:
            cell = {"ranker": ranker, "remedy": "fedprox", "mu": mu, **_SKEWED}
            trials.append(federation(data, scale, skew, cell, remedy="fedprox", mu=mu))
        if ranker == "mlp":
            cell = {"ranker": ranker, "remedy": "fedper", **_SKEWED}
            trials.append(federation(data, scale, skew, cell, remedy="fedper"))
    return trials


def intents_and_remedies(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    return remedies(data, scale, Skew("intents", intents_of(data)))


def remedy_over_plain(outcome: Trials, remedy: Cell) -> list[Pair]:
    """By the clients' own labels, for every ranker that was run with it."""
    trials = [t for t in outcome.finished if remedy.items() <= t.cell.items()]
    if not trials:
        raise NotJudged(f"Not run: {', '.join(f'{key}={value}' for key, value in remedy.items())}.")
    return [
        Pair(
            " ".join(str(t.cell[key]) for key in ("data", "ranker", "remedy", "mu") if key in t.cell) + f" {user}",
            t.values(user, PERSONAL),
            outcome.find(data=t.cell["data"], ranker=t.cell["ranker"], remedy="none", **_SKEWED).values(user, PERSONAL),
        )
        for t in trials
        for user in t.users
    ]


def turn(pairs: list[Pair]) -> list[Pair]:
    return [Pair(f"{pair.name}, none over it", pair.theirs, pair.ours) for pair in pairs]


def gap_stays(outcome: Trials, remedy: Cell) -> Verdict:
    """Little is gained on plain averaging and, where there is a gap by the clients' own labels, it stays."""
    little = all_at_least(turn(remedy_over_plain(outcome, remedy)), margin=_LITTLE)
    rankers = outcome.present(
        "ranker", [t.cell["ranker"] for t in outcome.finished if remedy.items() <= t.cell.items()]
    )
    plain = [
        pair
        for ranker in dict.fromkeys(rankers)
        for pair in control_over_intents(outcome, PERSONAL, PERSONAL, ranker=ranker, remedy="none")
    ]
    if not all_better(plain).holds:
        said = (
            f"By the clients' own labels no gap to the control is shown ({gain(plain):+.4f} on average): none to close."
        )
        return Verdict(little.holds, little.p, f"{said} Gained on plain averaging: {little.why}")
    settings = [t.cell for t in outcome.finished if remedy.items() <= t.cell.items()]
    left = all_better(
        [
            pair
            for cell in settings
            for pair in control_over_intents(
                outcome, PERSONAL, PERSONAL, **{key: cell[key] for key in ("ranker", "remedy", "mu") if key in cell}
            )
        ]
    )
    return both(little, Verdict(left.holds, left.p, f"Gap left: {left.why}"))


def fedprox_closes_no_gap(outcome: Trials) -> Verdict:
    return gap_stays(outcome, {"remedy": "fedprox"})


def fedper_closes_no_gap(outcome: Trials) -> Verdict:
    return gap_stays(outcome, {"remedy": "fedper"})


# Type 2, labels: Figures 4.5 to 4.7, Table 4.3
def one_label(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """As many clients as grades."""
    skew = Skew("labels-1", data.n_grades)
    return [
        trial
        for ranker, b in product(rankers_of(scale), STEPS)
        for trial in beside_control(data, scale, skew, {"ranker": ranker, "interactions": b}, interactions=b)
    ]


def one_label_hurts(outcome: Trials) -> Verdict:
    cells = [{"ranker": r, "interactions": b} for r in outcome.present("ranker", RANKERS) for b in STEPS]
    return all_better([pair for cell in cells for pair in pairs_of(outcome, {**cell, **_IID}, {**cell, **_SKEWED})])


def more_steps(outcome: Trials, ranker: str, more: int, fewer: int, users: tuple[str, ...] = USERS) -> list[Pair]:
    outcome.present("ranker", [ranker])
    ours, theirs = ({"ranker": ranker, "interactions": b, **_SKEWED} for b in (more, fewer))
    return pairs_of(outcome, ours, theirs, users=users)


def more_steps_help(outcome: Trials) -> Verdict:
    return all_better(more_steps(outcome, "linear", STEPS[-1], STEPS[0], users=("perfect",)))


def more_steps_hurt_a_little(outcome: Trials) -> Verdict:
    """Lower on average, and by less than the margin."""
    pairs = more_steps(outcome, "linear", STEPS[-1], STEPS[0], users=USERS[1:])
    lower = Verdict(gain(pairs) < 0, None, f"From B = 2 to 10 {gain(pairs):+.4f} on average (below 0).")
    return both(lower, all_equal(pairs, margin=_LITTLE))


def steps_indifferent(outcome: Trials) -> Verdict:
    pairs = [pair for more, fewer in ((5, 2), (10, 5), (10, 2)) for pair in more_steps(outcome, "mlp", more, fewer)]
    return all_equal(pairs, margin=_LITTLE)


def one_label_is_constant_online(outcome: Trials) -> Verdict:
    """A list of one label always scores the same: 0 for label 0, otherwise 1."""
    said, largest = [], 0.0
    for trial in (t for t in outcome.finished if _SKEWED.items() <= t.cell.items()):
        recipe = trial.result["recipe"]
        expected = discounted_sum([1 - 1 / recipe["n_clients"]] * recipe["rounds"])
        found = [value for user in trial.users for value in trial.values(user, ONLINE).values()]
        largest = max(largest, *(abs(value - expected) for value in found))
        said.append(f"{trial.cell['data']} {expected:.2f} after {recipe['rounds']:,} rounds")
    if not said:
        raise NotJudged("Not run: distribution=non-iid.")
    why = f"Exact by formula, (1 - 1/n)(1 - .9995^T) / .0005: {'; '.join(dict.fromkeys(said))}. Largest deviation of "
    return Verdict(largest < _EXACT, None, f"{why}any training: {largest:.4f} (below {_EXACT:g}).")


def two_labels(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """As many clients as pairs of grades, also where each has one label and in the control."""
    n = data.n_grades * (data.n_grades - 1) // 2
    trials = []
    for ranker in rankers_of(scale):
        one, two = ({"ranker": ranker, "partition": name} for name in ("labels-1", "labels-2"))
        trials += beside_control(data, scale, Skew("labels-1", n), one)
        trials.append(federation(data, scale, Skew("labels-2", n), {**two, **_SKEWED}))
    return trials


def two_labels_over(outcome: Trials, theirs: Cell) -> list[Pair]:
    return [
        pair
        for ranker in outcome.present("ranker", RANKERS)
        for pair in pairs_of(outcome, {"ranker": ranker, "partition": "labels-2"}, {"ranker": ranker, **theirs})
    ]


def two_labels_above_one(outcome: Trials) -> Verdict:
    return all_better(two_labels_over(outcome, {"partition": "labels-1", **_SKEWED}))


def two_labels_near_iid(outcome: Trials) -> Verdict:
    return all_equal(two_labels_over(outcome, _IID), margin=_LITTLE)


def one_label_and_remedies(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """And a tenth of the queries as everybody's, all of it given to every client."""
    skew = Skew("labels-1", data.n_grades)
    trials = remedies(data, scale, skew)
    sharing = {"remedy": "data-sharing", "shared_share": 0.1, "alpha": 1.0}
    for ranker in rankers_of(scale) if "data-sharing" in REMEDIES else ():
        cell = {"ranker": ranker, "remedy": "data-sharing", **_SKEWED}
        trials.append(federation(data, scale, skew, cell, **sharing))
    return trials


def data_sharing_helps(outcome: Trials) -> Verdict:
    return all_better(remedy_over_plain(outcome, {"remedy": "data-sharing"}))


def fedprox_does_not_help(outcome: Trials) -> Verdict:
    return none_better(remedy_over_plain(outcome, {"remedy": "fedprox"}))


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
            data, scale, Skew("clicks", n), {"behaviour": name}, behaviour=name, clicks="perfect"
        )
    ]


def behaviour_harmless(outcome: Trials, name: str) -> Verdict:
    ours, theirs = ({"behaviour": name, **cell} for cell in (_SKEWED, _IID))
    return all_equal(pairs_of(outcome, ours, theirs, users=USERS[:1]), margin=_LITTLE)


def ccm_harmless(outcome: Trials) -> Verdict:
    return behaviour_harmless(outcome, "ccm")


def pbm_harmless(outcome: Trials) -> Verdict:
    return behaviour_harmless(outcome, "pbm")


# Type 4, quantity: Figure 4.9
def quantities(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Alone and mixed with another type; the other type alone has as many searches in all, equal for every client."""
    if data.n_intents:
        return mixed_with(data, scale, "intents", data.n_intents)
    alone = beside_control(data, scale, Skew("quantity", 5), {"partition": "quantity"})
    return [*alone, *mixed_with(data, scale, "labels-1", data.n_grades)]


def mixed_with(data: DataChoice, scale: ReproductionSize, other: str, n_clients: int) -> list[Trial]:
    mean = round(fmean((1, 3, 5, 7, 9)[:n_clients]))
    name = f"{other}+quantity"
    cell = {"partition": other, **_SKEWED}
    return [
        *beside_control(data, scale, Skew(name, n_clients), {"partition": name}),
        federation(data, scale, Skew(other, n_clients), cell, interactions=mean),
    ]


def quantity_harmless(outcome: Trials) -> Verdict:
    """Lower by less than the margin: than the control alone, than the other type mixed, by the clients' own labels."""
    pairs = []
    for trial in outcome.finished:
        data, name = trial.cell["data"], str(trial.cell["partition"])
        if not name.endswith("quantity") or trial.cell["distribution"] == "iid":
            continue
        other = name.removesuffix("+quantity")
        than = {"partition": name, **_IID} if other == name else {"partition": other, **_SKEWED}
        metric = PERSONAL if other == "intents" else OFFLINE
        pairs += users_pairs(outcome, (data,), {"partition": name, **_SKEWED}, than, metric=metric)
    return all_at_least(pairs, margin=_LITTLE)


_BOTH: dict[str, Cell] = {OFFLINE: {}, ONLINE: {}}
_ALL: dict[str, Cell] = {**_BOTH, PERSONAL: {}}
REPRODUCTIONS = (
    Reproduction("thesis.figure4.3", intents, {"intents-hurt": intents_hurt}, metrics=_ALL, quick_limits=_QUICK),
    Reproduction("thesis.table4.2", intents, {"intents-hurt-online": intents_hurt_online}, quick_limits=_QUICK),
    Reproduction(
        "thesis.figure4.4",
        intents_and_remedies,
        {
            "fedprox-does-not-close-the-gap": fedprox_closes_no_gap,
            "fedper-does-not-close-the-gap": fedper_closes_no_gap,
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
        "thesis.figure4.9", quantities, {"quantity-harmless": quantity_harmless}, metrics=_BOTH, quick_limits=_QUICK
    ),
)
