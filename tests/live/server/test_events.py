"""What a server says and counts: readable, and nothing about one client."""

from __future__ import annotations

import io
import json
from typing import Any

from hushrank.live.server.counters import Counters, Histogram, as_text
from hushrank.live.server.events import describe_round, describe_status, tell_people, tell_programs
from hushrank.live.server.rounds import RoundState

ROUND: dict[str, Any] = {"round": 3, "answers": 19, "asked": 20, "seconds": 1.234, "refused": {"norm": 2, "late": 1}}


def test_events_for_programs_are_one_json_object_each() -> None:
    stream = io.StringIO()
    tell_programs(stream)("round-closed", **ROUND)
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert said.pop("time") > 0 and said == {"event": "round-closed", **ROUND}


def test_events_for_people_are_lines_and_small_ones_are_left_out() -> None:
    lines: list[str] = []
    tell = tell_people(lines.append)
    tell("round-closed", **ROUND)
    tell("round-abandoned", **ROUND)
    tell("enrolled", clients=3)
    assert lines[0] == "round 3: 19/20 answers in 1.23 s, 3 refused (1 late, 2 norm)"
    assert lines[1].endswith("too few, abandoned") and len(lines) == 2
    assert describe_round({**ROUND, "refused": {}}) == "round 3: 19/20 answers in 1.23 s"


def test_a_status_says_what_was_spent() -> None:
    status: dict[str, Any] = {
        "agreement": {"rounds": 9, "method": "fpdgd", "ranker": "linear"},
        "name": "library",
        "round": 3,
        "state": "open",
        "answers": 1,
        "asked": 2,
        "rounds_closed": 2,
        "rounds_abandoned": 0,
        "clients": 2,
        "clients_left": 1,
        "updates_accepted": 5,
        "refused": {"norm": 4},
        "missing": 12,
        "lengths": {"median": 0.37, "longest": 1.0, "least_cosine": -0.93, "step": 0.21},
        "epsilon_spent": 1.5,
        "epsilon_total": 8.0,
        "delta": 1e-5,
        "adjacency": "zero-out",
        "against": "readers of rankers, not the server",
        "guarantee": "words",
    }
    text = describe_status(status)
    assert "3, open, 1/2 answers; 2 of 9 closed" in text and "4 norm" in text
    assert "epsilon 1.5 of 8 (zero-out, delta 1e-05), by a client that always answered" in text
    assert "against readers of rankers, not the server" in text
    assert "rounds up to 12, which clients have seen" in text
    assert "updates 0.37 long (median), longest 1, least cosine to the step -0.93, step 0.21" in text
    nothing = describe_status({**status, "missing": None, "lengths": None})
    assert "missing" not in nothing and "longest" not in nothing


def test_a_histogram_counts_what_took_at_most_so_long() -> None:
    histogram = Histogram()
    for seconds in (0.001, 0.002, 99.0):
        histogram.add(seconds)
    lines = list(histogram.lines("x"))
    assert lines[0] == 'x_bucket{le="0.001"} 1' and lines[1] == 'x_bucket{le="0.0025"} 2'
    assert lines[-3:] == ['x_bucket{le="+Inf"} 3', "x_sum 99.003000", "x_count 3"]


def test_metrics_are_prometheus_text() -> None:
    counters = Counters()
    counters.refused["norm"] += 2
    counters.requests["/v1/me", 200] += 1
    text = as_text(counters, {"round": 3}, RoundState.open)
    assert 'hushrank_refused_total{reason="norm"} 2' in text
    assert 'hushrank_requests_total{path="/v1/me",status="200"} 1' in text
    assert "hushrank_round 3" in text and 'hushrank_phase{phase="open"} 1' in text
    assert all(line.startswith("#") or len(line.rsplit(" ", 1)) == 2 for line in text.splitlines())
