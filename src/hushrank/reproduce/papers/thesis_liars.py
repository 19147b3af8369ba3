"""What the results of Chapter 5 share [thesis]: its protocol, malicious clients under a rule, and pairs of such trials.

FPDGD without noise, ten clients, five searches of every client in each of 10,000 rounds, linear ranker.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from hushrank.reproduce.papers.study import gain
from hushrank.reproduce.papers.thesis_skew import USERS
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize, Trial, make_trial
from hushrank.reproduce.verdicts import OFFLINE, Cell, NotJudged, Pair, Trials, Values

N_CLIENTS, B = 10, 5
SHARES = (1, 2, 3, 4)  # malicious clients of ten
RULES = ("mean", "krum", "multi-krum", "trimmed-mean", "median")
ASSUMED = 2  # malicious clients that rules reckon with in peace. Differs: the text names no number
POISON, LIE, FANG = "poisoned-clicks", "little-is-enough", "fang-krum"
NOBODY = {"attack": "none", "n_malicious": 0}


def liars(
    data: DataChoice,
    scale: ReproductionSize,
    cell: Cell,
    *,
    n_malicious: int = 0,
    attack: str = "none",
    more: Cell | None = None,
) -> Trial:
    """Ten clients, some of them malicious, under the rule and with the ranker that the cell names; more recipe keys."""
    lies = {"attack": attack, "n_malicious": n_malicious} if n_malicious else {}
    size = {"n_clients": N_CLIENTS, "interactions": B, "rounds": 300 if scale.quick else 10_000}
    named = {"ranker": "linear", "attack": attack, "aggregation": "mean", "n_malicious": n_malicious, **cell}
    method = {"ranker": named["ranker"], "aggregation": named["aggregation"]}
    return make_trial(data, scale, "fpdgd", named, **{**size, **method, **lies, **(more or {})})


def at_every_share(
    data: DataChoice, scale: ReproductionSize, cell: Cell, *, attack: str, more: Cell | None = None
) -> list[Trial]:
    return [liars(data, scale, cell, n_malicious=m, attack=attack, more=more) for m in SHARES]


def name_share(n_malicious: int) -> str:
    return f"{100 * n_malicious // N_CLIENTS} %"


def values_of(outcome: Trials, data: str, user: str, cell: Cell) -> Values:
    found = {"ranker": "linear", **(NOBODY if cell.get("n_malicious") == 0 else {}), **cell}
    return outcome.find(data=data, **found).values(user, OFFLINE)


def pairs_at(
    outcome: Trials, ours: Cell, theirs: Cell, *, shares: Sequence[int] = SHARES, users: Sequence[str] = USERS
) -> list[Pair]:
    """Two trials at each share of malicious clients, on every data set and for every user."""
    check_there(outcome)
    return [
        Pair(
            f"{data} {user} {name_share(m)}",
            values_of(outcome, data, user, {"n_malicious": m, **ours}),
            values_of(outcome, data, user, {"n_malicious": m, **theirs}),
        )
        for data in outcome.data
        for user in users
        for m in shares
    ]


def over_shares(
    outcome: Trials, ours: Cell, theirs: Cell, *, shares: Sequence[int] = SHARES, users: Sequence[str] = USERS
) -> list[Pair]:
    """The means over the shares of malicious clients, on every data set and for every user."""
    check_there(outcome)
    return [
        Pair(f"{data} {user}", *(mean_over(outcome, data, user, cell, shares) for cell in (ours, theirs)))
        for data in outcome.data
        for user in users
    ]


def mean_over(outcome: Trials, data: str, user: str, cell: Cell, shares: Sequence[int]) -> Values:
    each = [values_of(outcome, data, user, {**cell, "n_malicious": m}) for m in shares]
    return {training: fmean(values[training] for values in each) for training in each[0]}


def losses(outcome: Trials, data: str, user: str, cell: Cell, shares: Sequence[int]) -> Values:
    """What an attack on plain averaging takes from the honest ranker, mean over the shares."""
    honest = values_of(outcome, data, user, {**cell, "n_malicious": 0})
    attacked = mean_over(outcome, data, user, {**cell, "attack": POISON}, shares)
    return {training: honest[training] - attacked[training] for training in honest}


def check_there(outcome: Trials) -> None:
    """Refuse to judge without a trial: what is said of every data set would hold of none."""
    if not outcome.data:
        raise NotJudged("Nothing that it is about was run.")


def tell_shares(pairs: Sequence[Pair]) -> str:
    """Every cell behind a mean over shares."""
    return f"By share: {'; '.join(f'{pair.name} {gain([pair]):+.4f}' for pair in pairs)}."
