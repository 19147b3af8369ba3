"""What a training guarantees, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushrank.privacy.placement import Adjacency, Placement, Scheme

if TYPE_CHECKING:
    from hushrank.privacy.accounting import Account, Training


def describe_account(
    account: Account, *, placement: str = Placement.server, n_honest: int | None = None, is_secure: bool = False
) -> str:
    """In plain words: how much, of what, against whom, over how many rounds."""
    training, epsilon = account.training, account.epsilon
    slack = "" if account.delta is None else f", except with probability {account.delta:g}"
    times = f"{math.exp(epsilon):.4g} times" if epsilon < 20 else "no useful number of times"
    return (
        "differential privacy of one client, that is of all its searches and clicks together, over all "
        f"{training.rounds} rounds{_describe_answers(training)}: epsilon {epsilon:.4g}, delta {account.delta or 0:g}. "
        "Whatever is concluded from "
        f"what is published becomes at most {times} as likely if {Adjacency(training.adjacency).words}{slack}. "
        f"{_describe_relation(training)}{_describe_sampling(training)} "
        f"{describe_observers(placement, n_honest, is_secure=is_secure)}"
    )


def _describe_answers(training: Training) -> str:
    if training.separation == 1:
        return ""
    return f", of which it answers at most one in {training.separation}, {training.answers} in all"


def _describe_relation(training: Training) -> str:
    if training.adjacency == Adjacency.zero_out:
        return "Whether the client takes part, and when it is silent, is not hidden. "
    if training.adjacency == Adjacency.add_remove and training.scheme == Scheme.fixed:
        return "In a cohort of fixed size another client takes its place, so that a sum moves by twice the clip norm. "
    if training.adjacency == Adjacency.add_remove:
        return "It holds only where each client is drawn independently, or everybody takes part in every round. "
    return ""


def _describe_sampling(training: Training) -> str:
    if training.sampling == 1:
        return "Every round counts in full, whoever knows that the client took part."
    return (
        f"Each client is in a round with probability {training.sampling:g}, independently, and this counts only "
        "against those who do not learn who was: a client's own ledger counts every round that it answers in full."
    )


def describe_observers(placement: str, n_honest: int | None = None, *, is_secure: bool = False) -> str:
    """Against whom the noise on the sum protects, and against whom not; is_secure: a secure sum hides the updates."""
    if placement == Placement.server:
        return (
            "It holds against everybody who sees the published rankers, all of them, other clients included; not "
            "against the server, which sees single updates and adds the noise."
        )
    if is_secure:
        return (
            "It holds against everybody, the server included, which sees only the sum of a round (a secure sum hides "
            f"the rest), as long as {n_honest or 'the stated number of'} clients add their noise honestly; with fewer "
            "answers a round is lost."
        )
    return (
        f"It holds against everybody who sees only sums of updates, the server included if a secure sum hides single "
        f"ones, as long as {n_honest or 'the stated number of'} clients add their noise honestly; not against whoever "
        "sees single updates."
    )
