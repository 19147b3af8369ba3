"""What a server says while it runs: one line per event, for people or as JSON. Nothing is about one client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from hushrank.files import Json
from hushrank.live.server.erasures import describe_awaited, describe_forgetting
from hushrank.live.server.evidence import Trust
from hushrank.live.server.lengths import RoundLengths
from hushrank.live.server.past import WHY_BEHIND

_MOST_SHOWN = 10  # distrusted clients
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


def describe_round(facts: Json) -> str:
    """How a round ended, or how far it is: number, answers, seconds, refusals."""
    refused = sum(facts["refused"].values())
    reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(facts["refused"].items()))
    lengths = f"; {RoundLengths(**facts['lengths']).describe()}" if "lengths" in facts else ""
    distrusted = f"; {facts['distrusted']} distrusted" if "distrusted" in facts else ""
    answers = f"{facts['answers']}/{facts['asked']} answers in {facts['seconds']:.2f} s"
    refusals = f", {refused} refused ({reasons})" if refused else ""
    return f"round {facts['round']}: {answers}{refusals}{lengths}{distrusted}"


def describe_abandoned(facts: Json) -> str:
    return f"{describe_round(facts)}: " + (
        f"abandoned, {facts['failure']}" if "failure" in facts else "too few, abandoned"
    )


def describe_status(status: Json) -> str:
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
    if status.get("forgetting") is not None:
        lines.append(f"forgetting  {describe_forgetting(status['forgetting'])}")
    if status.get("call_back") is not None:
        lines.append(f"waits for   {describe_awaited(status['call_back'])}")
    lines += describe_evidence(status)
    if status["missing"] is not None:
        lines.append(f"missing     rounds up to {status['missing']}, which clients have seen: hushrank server recover")
    if total is not None:
        said = f"delta {status['delta']:g}" if status["delta"] else "pure"
        lines.append(
            f"spent       epsilon {spent or 0:.4g} of {total:.4g} ({status['adjacency']}, {said}), by a client that "
            f"always answered, against {status['against']}"
        )
    return "\n".join(lines)


def describe_evidence(status: Json) -> list[str]:
    """What the aggregation rule says, and whom it distrusts."""
    rule = status["agreement"].get("aggregation")
    if rule is None:
        return []
    found = dict(status["evidence"] or {})
    of = f", round {found.pop('round')}: " if found else ""
    lines = [f"rule        {rule}{of}" + ", ".join(f"{name} {value:.3g}" for name, value in found.items())]
    distrusted = [describe_distrusted(each) for each in status["distrusted"]]
    lines += [f"distrusted  {words}" for words in distrusted[:_MOST_SHOWN]]
    if len(distrusted) > _MOST_SHOWN:
        lines.append(f"distrusted  and {len(distrusted) - _MOST_SHOWN} more: hushrank server clients")
    return lines


def describe_distrusted(row: Json) -> str:
    trust = Trust(**{name: row[name] for name in Trust._fields})
    return trust.describe(row["pseudonym"])


def describe_clients(clients: Sequence[Json]) -> str:
    """What `status.read_clients` gives, as a table."""
    lines = ["client  pseudonym         accepted  refused  last round  trust  distrusted since"]
    for each in clients:
        last = "-" if each["last_round"] is None else each["last_round"]
        trust = "-" if each["trust"] is None else f"{each['trust']:.2f}"
        since = "-" if each["distrusted_since"] is None else f"round {each['distrusted_since']}"
        left = ", has left" if each["has_left"] else ""
        lines.append(
            f"{each['client']:>6}  {each['pseudonym']}  "
            f"{each['accepted']:>8}  {each['refused']:>7}  {last:>10}  {trust:>5}  {since}{left}"
        )
    return "\n".join(lines)


_LINES: dict[str, Callable[[Json], str]] = {
    "listening": lambda facts: f"listening on {facts['url']} (Ctrl-C stops)",
    "federation": lambda facts: (
        f"federation {facts['name']!r}: {facts['method']}, {facts['clients']} clients, round {facts['round']}"
        + (f" of {facts['rounds']}" if facts["rounds"] else "")
        + f"\nprivacy: {facts['guarantee']}"
    ),
    "round-closed": describe_round,
    "round-abandoned": describe_abandoned,
    "held-back": lambda facts: (
        f"round {facts['round']} was held back: its step of {facts['step']:.3g} is far longer than usual. Its clients "
        "may answer again; hold_back = false in server.toml lets such steps pass"
    ),
    "forget": lambda facts: (
        f"clients to be forgotten: {facts['clients']}; no round learns until that is done"
        + (f"; {facts['ended']} clients have ended and must be started again: see status" if "ended" in facts else "")
    ),
    "forgotten": lambda facts: (
        f"clients that are forgotten: {facts['clients']}; the new ranker is in use"
        if facts["failure"] is None
        else f"forgetting failed: {facts['failure']}"
    ),
    "finished": lambda facts: f"finished after {facts['rounds']} rounds; the ranker stays: hushrank server export",
    "limit-reached": lambda facts: (
        f"connections ended at the limit {facts['limit']!r}: {facts['times']} since this was last said"
    ),
    "disk-trouble": lambda _: "the disk is full or failing: nothing is accepted until it can be written to again",
    "file-lost": lambda facts: str(facts["detail"]),
    "disk-works": lambda _: "the disk works again",
    "behind": lambda facts: (
        f"a client has seen round {facts['seen']}, which this file, whose newest is {facts['round']}, lacks: "
        f"{WHY_BEHIND}. No round opens until you decide: hushrank server recover"
    ),
    "decided": lambda facts: f"the missing rounds are given up; the next one is {facts['round']}",
    "stopping": lambda _: "stopping: writing what waits",
    "stopped": lambda facts: f"stopped; {facts['accepted']} updates accepted since the start",
}
