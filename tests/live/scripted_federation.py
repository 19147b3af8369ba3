"""A federation that a test can bend: one open round that every client is asked for, on a scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from scripted_server import Request, Response, saying

from hushrank.live.wire.agreement import Agreement, as_json
from hushrank.live.wire.refusals import STATUS, Reason
from hushrank.live.wire.terms import ranker_of
from hushrank.rankers.named import pack_ranker
from hushrank.types import Array

ACCEPTED = saying({"accepted": True})


def no(reason: Reason) -> Response:
    return saying({"reason": str(reason), "detail": "no"}, STATUS[reason])


class ScriptedFederation:
    """Ends after three rounds, each closed by its first answer; every attribute may be changed meanwhile."""

    def __init__(self, agreement: Agreement, params: Array | None = None) -> None:
        self.agreement = agreement
        self.params = np.array([0.1, -0.1], np.float32) if params is None else params
        self.round, self.is_asked, self.is_finished = 1, True, False
        self.closes_in_s: float | None = 100.0
        self.last: dict[str, Any] | None = None
        self.accepted_updates = 0
        self.tokens: dict[str, str] = {}  # {token: the credential that used it}
        self.on_update: Callable[[Request], Response] = self.accept
        self.on_poll: Callable[[int], Response] = self.tell_round
        self.uploads, self.waits = list[Request](), list[float]()  # waits: seconds that long polls asked for

    def accept(self, request: Request) -> Response:
        """Count it, and open the next round."""
        round = int(request.path.split("/")[3])
        self.last, self.accepted_updates = {"round": round, "outcome": "closed"}, self.accepted_updates + 1
        self.round, self.is_finished = round + 1, round >= 3
        return ACCEPTED

    def tell_round(self, after: int) -> Response:
        if self.is_finished:
            return saying({"finished": True, "last": self.last})
        if after >= self.round:
            return Response(204)
        news = {"round": self.round, "closes_in_s": self.closes_in_s, "is_asked": self.is_asked, "last": self.last}
        return saying(news)

    def __call__(self, request: Request) -> Response:
        parts = urlsplit(request.path)
        asked = {key: value[0] for key, value in parse_qs(parts.query).items()}
        if parts.path == "/v1/federation":
            return saying({"agreement": as_json(self.agreement), "digest": self.agreement.digest, "wire": 1})
        if parts.path == "/v1/enrol":
            token, credential = json.loads(request.body)["token"], request.headers["Authorization"]
            is_known = self.tokens.setdefault(token, credential) == credential
            return saying({"accepted_updates": 0}) if is_known else no(Reason.token)
        if parts.path == "/v1/me":
            return saying({"accepted_updates": self.accepted_updates, "last": self.last})
        if parts.path == "/v1/ranker":
            if asked.get("round", str(self.round)) != str(self.round):
                return no(Reason.round)
            origin = {"agreement": self.agreement.digest, "round": self.round}
            return Response(body=pack_ranker(ranker_of(self.agreement), self.params, origin=origin))
        if parts.path == "/v1/round":
            self.waits.append(float(asked["wait"]))
            return self.on_poll(int(asked["after"]))
        if parts.path == "/v1/leave":
            return saying({})
        self.uploads.append(request)
        return self.on_update(request)
