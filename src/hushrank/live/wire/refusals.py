"""What a server refuses, and the reasons that it counts and tells."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a server refuses. A client decides by these, never by the text beside them."""

    bad_request = "request"  # 400: not the JSON, path or query that is described
    credential = "credential"  # 401: none, or nobody's
    token = "token"  # 403: unknown, used or expired; which of them is not said
    not_asked = "not-asked"  # 403: this client was not sampled for this round, or has left
    round = "round"  # 404: never opened
    not_found = "path"  # 404, 405: no such path or method
    phase = "phase"  # 404: not a phase of this federation's rounds
    answered = "answered"  # 409: another body of this client already counts in this round
    agreement = "agreement"  # 409: the client joined under another agreement
    clone = "clone"  # 409: a newer process of this client has taken the place of this one
    forget = "forget"  # 409: nothing can be forgotten here, or not for this client
    late = "late"  # 410: the round is over
    size = "size"  # 411, 413: no length, or too long
    media = "media"  # 415: a body of another type
    slow = "slow"  # 408: the body did not arrive in time
    shape = "shape"  # 422: not n_params numbers, or not 8 or 12 bytes
    not_finite = "not-finite"  # 422
    norm = "norm"  # 422: longer than an honest update can be
    weight = "weight"  # 422: not a weight that this federation counts with
    reward = "reward"  # 422: outside its range
    version = "version"  # 426: another version of the wire
    rate = "rate"  # 429: too many requests; Retry-After says when
    stopping = "stopping"  # 503: the server is going down; nothing was counted
    disk = "disk"  # 503: the disk is full or failing; nothing was counted
    behind = "behind"  # 503: the server's file is older than what clients have seen; its operator must decide
    unknown = "unknown"  # never sent: what a client reads where a newer server gives a reason that it does not know


STATUS: dict[Reason, int] = {
    Reason.bad_request: 400,
    Reason.credential: 401,
    Reason.token: 403,
    Reason.not_asked: 403,
    Reason.round: 404,
    Reason.not_found: 404,
    Reason.phase: 404,
    Reason.slow: 408,
    Reason.answered: 409,
    Reason.agreement: 409,
    Reason.clone: 409,
    Reason.forget: 409,
    Reason.late: 410,
    Reason.size: 413,
    Reason.media: 415,
    Reason.shape: 422,
    Reason.not_finite: 422,
    Reason.norm: 422,
    Reason.weight: 422,
    Reason.reward: 422,
    Reason.version: 426,
    Reason.rate: 429,
    Reason.stopping: 503,
    Reason.disk: 503,
    Reason.behind: 503,
    Reason.unknown: 400,
}


class RefusedError(ValueError):
    """What a server refuses, with the reason that it counts and tells."""

    def __init__(self, reason: Reason, detail: str, *, status: int | None = None, retry_after_s: int | None = None):
        super().__init__(detail)
        self.reason = reason
        self.status = STATUS[reason] if status is None else status
        self.retry_after_s = retry_after_s
