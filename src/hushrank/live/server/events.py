"""What a server says while it runs: one line per event, for people or as JSON. Nothing is about one client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, TextIO

from hushrank.live.server.lengths import RoundLengths

Tell = Callable[..., None]  # tell("round-closed", round=3, answers=20, ...): never anything about one client


def tell_programs(stream: TextIO) -> Tell:
    """One JSON object per event."""

    def tell(event: str, **facts: Any) -> None:
        print(json.dumps({"time": round(time.time(), 3), "event": event, **facts}), file=stream, flush=True)

    return tell


def tell_people(write: Callable[[str], None]) -> Tell:
    """A line for each event that a person wants to know of."""

    def tell(event: str, **facts: Any) -> None:
        if event in _LINES:
            write(_LINES[event](facts))

    return tell


def describe_round(facts: dict[str, Any]) -> str:
    """How a round ended, or how far it is: number, answers, seconds, refusals."""
    refused = sum(facts["refused"].values())
    reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(facts["refused"].items()))
    lengths = f"; {RoundLengths(**facts['lengths']).describe()}" if "lengths" in facts else ""
    answers = f"{facts['answers']}/{facts['asked']} answers in {facts['seconds']:.2f} s"
    return f"round {facts['round']}: {answers}" + (f", {refused} refused ({reasons})" if refused else "") + lengths


def describe_status(status: dict[str, Any]) -> str:
    """What `status.read_status` gives, for people."""
    agreed = status["agreement"]
    of = f" of {agreed['rounds']}" if agreed["rounds"] else ""
    answers = f", {status['answers']}/{status['asked']} answers" if status["asked"] is not None else ""
    refused = ", ".join(f"{n} {reason}" for reason, n in status["refused"].items()) or "none"
    spent, total = status["epsilon_spent"], status["epsilon_total"]
    lines = [
        f"federation  {status['name']}: {agreed['method']}, {agreed['ranker']} ranker",
        f"round       {status['round']}, {status['state']}{answers}; {status['rounds_closed']}{of} closed, "
        f"{status['rounds_abandoned']} abandoned",
        f"clients     {status['clients']}, {status['clients_left']} have left",
        f"accepted    {status['updates_accepted']} updates",
        f"refused     {refused}",
        f"privacy     {status['guarantee']}",
    ]
    if status["lengths"] is not None:
        lines.append(f"newest      {RoundLengths(**status['lengths']).describe()}")
    if status["missing"] is not None:
        lines.append(f"missing     rounds up to {status['missing']}, which clients have seen: hushrank server recover")
    if total is not None:
        said = f"delta {status['delta']:g}" if status["delta"] else "pure"
        lines.append(
            f"spent       epsilon {spent or 0:.4g} of {total:.4g} ({status['adjacency']}, {said}), by a client that "
            f"always answered, against {status['against']}"
        )
    return "\n".join(lines)


_LINES: dict[str, Callable[[dict[str, Any]], str]] = {
    "listening": lambda facts: f"listening on {facts['url']} (Ctrl-C stops)",
    "federation": lambda facts: (
        f"federation {facts['name']!r}: {facts['method']}, {facts['clients']} clients, round {facts['round']}"
        + (f" of {facts['rounds']}" if facts["rounds"] else "")
        + f"\nprivacy: {facts['guarantee']}"
    ),
    "round-closed": describe_round,
    "round-abandoned": lambda facts: f"{describe_round(facts)}: too few, abandoned",
    "held-back": lambda facts: (
        f"round {facts['round']} was held back: its step of {facts['step']:.3g} is far longer than usual. Its clients "
        "may answer again; hold_back = false in server.toml lets such steps pass"
    ),
    "finished": lambda facts: f"finished after {facts['rounds']} rounds; the ranker stays: hushrank server export",
    "limit-reached": lambda facts: (
        f"connections ended at the limit {facts['limit']!r}: {facts['times']} since this was last said"
    ),
    "disk-trouble": lambda _: "the disk is full or failing: nothing is accepted until it can be written to again",
    "file-lost": lambda facts: str(facts["detail"]),
    "disk-works": lambda _: "the disk works again",
    "behind": lambda facts: (
        f"a client has seen round {facts['seen']}, the newest here is {facts['round']}: this file was restored from an "
        "older copy. No round opens until you decide: hushrank server recover"
    ),
    "decided": lambda facts: f"the missing rounds are given up; the next one is {facts['round']}",
    "stopping": lambda _: "stopping: writing what waits",
    "stopped": lambda facts: f"stopped; {facts['accepted']} updates accepted since the start",
}
