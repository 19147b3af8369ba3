"""Clients with different intents [thesis, Section 4.3]: Figures 4.3 and 4.4, Table 4.2."""

from __future__ import annotations

from itertools import product

from hushrank.reproduce.papers.study import gain
from hushrank.reproduce.papers.thesis_skew import (
    IID,
    LITTLE,
    PERSONAL,
    RANKERS,
    SKEWED,
    SkewedClients,
    beside_control,
    for_all,
    rankers_of,
    remedies,
    remedy_over_plain,
)
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize, Trial
from hushrank.reproduce.verdicts import (
    OFFLINE,
    ONLINE,
    Cell,
    Finished,
    Pair,
    Trials,
    Values,
    Verdict,
    all_at_least,
    all_better,
    both,
    select_better,
)


def intents_of(data: DataChoice) -> int:
    if not data.n_intents:
        raise ValueError(
            f"{data.label} has the same grades for everybody, and Type 1 needs grades by intent: leave --data out for "
            "intent-change-like, or name a set with a folder intents."
        )
    return data.n_intents


def intents(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    skew = SkewedClients("intents", intents_of(data))
    return [t for ranker in rankers_of(scale) for t in beside_control(data, scale, skew, {"ranker": ranker})]


def control_over_intents(
    outcome: Trials, control: str, skewed: str, *, along: bool = False, **theirs: object
) -> list[Pair]:
    """The control by one measure over clients with intents by another; along: means over the whole training."""

    def read(trial: Finished, user: str, metric: str) -> Values:
        return trial.mean_along(user, metric) if along else trial.values(user, metric)

    cells = product(outcome.data, outcome.present("ranker", [str(theirs["ranker"])] if "ranker" in theirs else RANKERS))
    return [
        Pair(
            f"{data} {ranker} {user}",
            read(outcome.find(data=data, ranker=ranker, **IID), user, control),
            read(outcome.find(**{"data": data, "ranker": ranker, **SKEWED, **theirs}), user, skewed),
        )
        for data, ranker in cells
        for user in outcome.users(data)
    ]


def judge_gap(outcome: Trials, published: list[Pair], own: list[Pair], told: str) -> Verdict:
    """Held when clients lose as published *and* by their own labels, by which the gap is defined here.

    Differs: the published control is judged by the union of intents and the others by their own [thesis, 4.3.1].
    """
    as_published, by_own = all_better(published), all_better(own)
    p = max(p for p in (as_published.p, by_own.p) if p is not None)
    why = f"{told} Own labels for both: {by_own.why} As published: {as_published.why}"
    return for_all(outcome, Verdict(as_published.holds and by_own.holds, p, why), SKEWED, ranker=RANKERS)


def name_cause(published: list[Pair], own: list[Pair]) -> str:
    """Whether the sign of a published gap comes from its two sets of labels: only if none is there by one of them."""
    if not all_better(published).holds or all_better(own).holds:
        return ""
    if any(gain([pair]) > 0 for pair in own):
        return " It is not shown by their own labels."
    below = ", and significantly below 0 in every case" if all_better(turn(own)).holds else ""
    return (
        f" So its sign comes from the two sets of labels: the control is judged by the union, others by their own. By "
        f"their own labels for both it is nowhere above 0{below}."
    )


def intents_hurt(outcome: Trials) -> Verdict:
    published = control_over_intents(outcome, OFFLINE, PERSONAL)
    own = control_over_intents(outcome, PERSONAL, PERSONAL)
    gaps = f"The published gap is {gain(published):+.4g} on average; by the clients' own labels it is {gain(own):+.4g}."
    union = all_better(control_over_intents(outcome, OFFLINE, OFFLINE))
    return judge_gap(outcome, published, own, f"{gaps}{name_cause(published, own)} Union for both: {union.why}")


def intents_hurt_online(outcome: Trials) -> Verdict:
    """Why by rankers where it is by own labels: the control's people search by the union, so that its lists are too.

    Why no cause is named: the two gaps are of two measures.
    """
    published = control_over_intents(outcome, ONLINE, ONLINE)
    own = control_over_intents(outcome, PERSONAL, PERSONAL, along=True)
    gaps = (
        f"The published gap is {gain(published):+.4g} on average, in discounted sums of the nDCG@10 of the lists that "
        f"were shown; by the clients' own labels it is {gain(own):+.4g}, in nDCG@10 of the ranker, mean over the "
        "training. The two are not on one scale."
    )
    return judge_gap(outcome, published, own, gaps)


def intents_and_remedies(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    return remedies(data, scale, SkewedClients("intents", intents_of(data)))


def turn(pairs: list[Pair]) -> list[Pair]:
    return [Pair(f"{pair.name}, none over it", pair.theirs, pair.ours) for pair in pairs]


def gap_stays(outcome: Trials, remedy: Cell) -> Verdict:
    """Little is gained on plain averaging and, in each case with a gap by the clients' own labels, the gap stays."""
    gained = all_at_least(turn(remedy_over_plain(outcome, remedy)), margin=LITTLE)
    little = Verdict(gained.holds, gained.p, f"Gained on plain averaging: {gained.why}")
    settings = [
        {key: t.cell[key] for key in ("ranker", "remedy", "mu") if key in t.cell}
        for t in outcome.finished
        if remedy.items() <= t.cell.items()
    ]
    plain = [
        pair
        for ranker in dict.fromkeys(cell["ranker"] for cell in settings)
        for pair in control_over_intents(outcome, PERSONAL, PERSONAL, ranker=ranker, remedy="none")
    ]
    with_gap = [pair.name for pair in select_better(plain)]
    said = f"By the clients' own labels a gap to the control is shown in {len(with_gap)} of {len(plain)} cases "
    said += f"({gain(plain):+.4f} on average over all){'' if with_gap else ': none to close'}."
    if not with_gap:
        return Verdict(little.holds, little.p, f"{said} {little.why}")
    pairs = [pair for cell in settings for pair in control_over_intents(outcome, PERSONAL, PERSONAL, **cell)]
    left = all_better([pair for pair in pairs if pair.name in with_gap])
    return both(
        Verdict(little.holds, little.p, f"{said} {little.why}"), Verdict(left.holds, left.p, f"Gap left: {left.why}")
    )


def fedprox_closes_no_gap(outcome: Trials) -> Verdict:
    fedprox = {"remedy": "fedprox"}
    return for_all(outcome, gap_stays(outcome, fedprox), fedprox, ranker=RANKERS)


def fedper_closes_no_gap(outcome: Trials) -> Verdict:
    return gap_stays(outcome, {"remedy": "fedper"})
