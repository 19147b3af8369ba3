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


def name_cause(published: list[Pair], own: list[Pair], more: str = "") -> Verdict:
    """Held when clients lose as published *and* by their own labels, by which the gap is defined here.

    Differs: the published control is judged by the union of intents and the others by their own [thesis, 4.3.1].
    """
    as_published, by_own = all_better(published), all_better(own)
    gaps = f"The published gap is {gain(published):+.4g} on average; by the clients' own labels it is {gain(own):+.4g}."
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


def intents_and_remedies(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    return remedies(data, scale, SkewedClients("intents", intents_of(data)))


def turn(pairs: list[Pair]) -> list[Pair]:
    return [Pair(f"{pair.name}, none over it", pair.theirs, pair.ours) for pair in pairs]


def gap_stays(outcome: Trials, remedy: Cell) -> Verdict:
    """Little is gained on plain averaging and, where there is a gap by the clients' own labels, it stays."""
    little = all_at_least(turn(remedy_over_plain(outcome, remedy)), margin=LITTLE)
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
