"""Version 1 of the wire: every path and header, imported by both ends.

A client's update is the body of a PUT, its numbers and nothing else (`bodies.py`). Round and phase stand in the path;
version, agreement, weight and credential travel in headers. Everything else that is said is a small JSON object
(`news.py`), or a refusal with a reason (`refusals.py`).
"""

from __future__ import annotations

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8765
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"  # of a server on the same machine
WIRE_VERSION = 1  # Why: also names how a perturbation is made of a seed; another recipe for it is another version

FEDERATION, ENROL, ME, LEAVE = "/v1/federation", "/v1/enrol", "/v1/me", "/v1/leave"
ROUND, RANKER, UPDATE = "/v1/round", "/v1/ranker", "/v1/rounds/{round}/{phase}"
CANDIDATE, DECLINE, FORGOTTEN = "/v1/candidate", "/v1/decline", "/v1/forgotten/{client}"  # of forgetting
HEALTH, METRICS, OPENAPI = "/v1/health", "/v1/metrics", "/v1/openapi.json"
WIRE_HEADER, AGREEMENT_HEADER, WEIGHT_HEADER = "Hushrank-Wire", "Hushrank-Agreement", "Hushrank-Weight"
RECEIPT_HEADER = "Hushrank-Receipt"  # the newest receipt that the server gave with the news of a round
INSTANCE_HEADER = "Hushrank-Instance"  # of a long poll: which process of this client asks; new at every start
FILLED_HEADER = "Hushrank-Filled"  # of an answer that forgets: 1, its length stands in for one that is missing
BODY_TYPE = "application/octet-stream"  # of an update and of a ranker
MOST_WAIT_S = 60  # that a long poll may ask for

UPDATE_PHASE = "update"  # the phase of a round in which clients send what they learnt
PHASES = (UPDATE_PHASE,)  # of every round, in order; an update belongs to one of them


def update_path(round: int, phase: str = UPDATE_PHASE) -> str:
    """Where a client sends its update to a round, in one of its phases."""
    return UPDATE.format(round=round, phase=phase)
