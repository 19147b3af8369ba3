"""How the rounds stand now, as numbers for the operator's metrics and as a line for a person who watches."""

from __future__ import annotations

from hushrank.live.server.forgetting import LiveForgetting
from hushrank.live.server.rounds import Rounds, RoundState


def read_gauges(rounds: Rounds, replay: LiveForgetting | None = None, *, now: float) -> dict[str, float]:
    """What goes up and down. replay: a forgetting that runs."""
    return {
        "round": rounds.number,
        "rounds_closed": rounds.n_closed,
        "clients_enrolled": len(rounds.members),
        "clients_awake": len(rounds.candidates(now)),
        "clients_asked": len(rounds.asked),
        "clients_answered": len(rounds.answered),
        "clients_not_waited_for": len(rounds.members) - len(rounds.history.without_silent(rounds.members)),
        "round_deadline_seconds": rounds.closes_at - rounds.opened_at,
        "forgetting": rounds.is_paused,
        "forgetting_step": 0 if replay is None else replay.step,
        "forgetting_steps": 0 if replay is None else len(replay.rounds),
    }


def describe_rounds(rounds: Rounds, *, seconds: float, n_refused: int) -> str:
    """The open round, `seconds` after it opened."""
    if rounds.state is RoundState.finished:
        return f"finished after {rounds.n_closed} rounds"
    if not rounds.is_open:
        needed = max(rounds.rules.quorum, 1) if rounds.is_paused else rounds.rules.fewest
        return f"{rounds.state}: {len(rounds.members)} clients, a round needs {needed} that are awake"
    kind = " (forgets)" if rounds.is_replay else ""
    answers = f"{len(rounds.answered)}/{len(rounds.asked)} answers"
    return f"round {rounds.number}{kind}: {answers}, {seconds:.0f} s, {n_refused} refused"
