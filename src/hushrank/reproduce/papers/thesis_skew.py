"""What the results of Chapter 4 share [thesis]: its protocol, clients that differ beside their control, remedies.

FPDGD without noise, learning rate .1, 10,000 rounds, five searches of every client in each, all clients in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from hushrank.reports.reproduction_summary import HELD_IN_PART
from hushrank.reproduce.papers.study import users_pairs
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize, Trial, make_trial
from hushrank.reproduce.verdicts import OFFLINE, Cell, NotJudged, Pair, Trials, Verdict

PERSONAL = "personal/nDCG@10"  # each client's own ranker by its own labels, mean over clients
RANKERS = ("linear", "mlp")
USERS = ("perfect", "navigational", "informational")
MUS = (0.001, 0.01, 0.1, 1.0, 10.0)
LITTLE = 0.005  # nDCG@10 that counts as no difference
IID, SKEWED = {"distribution": "iid"}, {"distribution": "non-iid"}
_B = 5


class SkewedClients(NamedTuple):
    """How clients differ."""

    partition: str
    n_clients: int


def federation(data: DataChoice, scale: ReproductionSize, skew: SkewedClients, cell: Cell, **changes: object) -> Trial:
    """Clients that differ, or with control=True are alike; what the cell says of the ranker holds."""
    size = {**skew._asdict(), "rounds": 300 if scale.quick else 10_000, "interactions": _B}
    ranker = {"ranker": cell["ranker"]} if "ranker" in cell else {}
    return make_trial(data, scale, "fpdgd", cell, **{**size, **ranker, **changes})


def beside_control(
    data: DataChoice, scale: ReproductionSize, skew: SkewedClients, cell: Cell, **changes: object
) -> list[Trial]:
    return [
        federation(data, scale, skew, {**cell, **IID}, control=True, **changes),
        federation(data, scale, skew, {**cell, **SKEWED}, **changes),
    ]


def rankers_of(scale: ReproductionSize) -> tuple[str, ...]:
    """Why no networks when quick: their searches take three to seven times as long."""
    return RANKERS[:1] if scale.quick else RANKERS


def pairs_of(
    outcome: Trials, ours: Cell, theirs: Cell, *, metric: str = OFFLINE, users: tuple[str, ...] = USERS
) -> list[Pair]:
    """Two trials on every data set, for every user."""
    return users_pairs(outcome, outcome.data, ours, theirs, metric=metric, users=users)


def remedies(data: DataChoice, scale: ReproductionSize, skew: SkewedClients) -> list[Trial]:
    """The control, plain averaging, FedProx at each mu and, for networks, FedPer."""
    trials = []
    for ranker in rankers_of(scale):
        trials += beside_control(data, scale, skew, {"ranker": ranker, "remedy": "none"})
        for mu in MUS:
            cell = {"ranker": ranker, "remedy": "fedprox", "mu": mu, **SKEWED}
            trials.append(federation(data, scale, skew, cell, remedy="fedprox", mu=mu))
        if ranker == "mlp":
            cell = {"ranker": ranker, "remedy": "fedper", **SKEWED}
            trials.append(federation(data, scale, skew, cell, remedy="fedper"))
    return trials


def remedy_over_plain(outcome: Trials, remedy: Cell) -> list[Pair]:
    """By the clients' own labels, for every ranker that was run with it."""
    trials = [t for t in outcome.finished if remedy.items() <= t.cell.items()]
    if not trials:
        raise NotJudged(f"Not run: {', '.join(f'{key}={value}' for key, value in remedy.items())}.")
    return [
        Pair(
            " ".join(str(t.cell[key]) for key in ("data", "ranker", "remedy", "mu") if key in t.cell) + f" {user}",
            t.values(user, PERSONAL),
            outcome.find(data=t.cell["data"], ranker=t.cell["ranker"], remedy="none", **SKEWED).values(user, PERSONAL),
        )
        for t in trials
        for user in t.users
    ]


def for_all(outcome: Trials, verdict: Verdict, among: Cell, **wanted: Sequence[object]) -> Verdict:
    """The verdict on a claim about all combinations of what is wanted; held in some, it is open for the others."""
    cells = [dict(zip(wanted, values, strict=True)) for values in product(*wanted.values())]
    run = [cell for cell in cells if all(_is_run(outcome, {**among, **cell, "data": data}) for data in outcome.data)]
    left = [cell for cell in cells if cell not in run]
    if left and verdict.holds:
        why = f"{HELD_IN_PART}{_list_cells(run)}; {_list_cells(left)} not run. {verdict.why}"
        raise NotJudged(why, verdict.p, verdict.tests)
    return verdict


def _is_run(outcome: Trials, cell: Cell) -> bool:
    return any(cell.items() <= trial.cell.items() for trial in outcome.finished)


def _list_cells(cells: Sequence[Cell]) -> str:
    return ", ".join(
        " ".join(f"B = {value}" if key == "interactions" else str(value) for key, value in cell.items())
        for cell in cells
    )
