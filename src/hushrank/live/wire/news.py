"""What a server tells a client in JSON: the open round, and what became of the client's own updates.

Keys that are not known here are passed over, so that a newer server may say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from hushrank.files import Json
from hushrank.live.wire.untrusted import MOST_NUMBER


class Outcome(StrEnum):
    """What became of a round."""

    open = "open"
    closed = "closed"  # its updates are in the ranker
    abandoned = "abandoned"  # its updates were thrown away


# How each statement is described to other programs (`openapi.py`), beside the statement itself.
_MOST_S = 10**9  # Why: no round is open for thirty years
MOST_RECEIPT = 100  # characters
ROUND: Json = {"type": "integer", "minimum": 1, "maximum": MOST_NUMBER}
LAST: Json = {
    "type": ["object", "null"],
    "description": "the last round that an update of this client was accepted in, and what became of it",
    "required": ["round", "outcome"],
    "properties": {"round": ROUND, "outcome": {"enum": [str(outcome) for outcome in Outcome]}},
}
STANDING: Json = {
    "accepted_updates": {"type": "integer", "minimum": 0},
    "last": LAST,
    "received_updates": {
        "type": "integer",
        "minimum": 0,
        "description": "well-formed updates that the server has seen of this client, those that did not count included",
    },
}
NEWS: Json = {
    "round": ROUND,
    "closes_in_s": {"type": ["number", "null"], "minimum": 0},
    "is_asked": {"type": "boolean"},
    "last": LAST,
    "receipt": {
        "type": "string",
        "maxLength": MOST_RECEIPT,
        "description": "shown again when the client asks next: a server restored from an old file is recognised by it",
    },
}


FORGET: Json = {
    "type": "object",
    "description": "only of a round that forgets: its client replays what it learnt from in an earlier round",
    "required": ["step", "steps", "round", "searches"],
    "properties": {
        "step": {**ROUND, "description": "the first is 1"},
        "steps": ROUND,
        "round": {**ROUND, "description": "the earlier round that is replayed"},
        "searches": {**ROUND, "description": "of that round, at most so many are replayed"},
    },
}


class ForgettingState(StrEnum):
    """What became of a client's wish to be forgotten."""

    waiting = "waiting"
    running = "running"
    done = "done"
    failed = "failed"


FORGOTTEN: Json = {
    "state": {"enum": [str(state) for state in ForgettingState]},
    "step": {"type": "integer", "minimum": 0, "description": "how many steps are over"},
    "steps": {"type": "integer", "minimum": 0},
    "detail": {"type": ["string", "null"], "description": "why it failed"},
    "record": {"type": ["object", "null"], "description": "the signed erasure record, once it is done"},
}


@dataclass(frozen=True, slots=True)
class ForgetNews:
    """What a round that forgets asks for."""

    step: int  # of so many; the first is 1
    steps: int
    round: int  # the earlier round that is replayed
    searches: int  # at most so many of it

    def as_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of a client's wish to be forgotten: the answer of /v1/forgotten."""

    state: ForgettingState
    step: int = 0  # steps that are over
    steps: int = 0
    detail: str | None = None  # why it failed
    record: Json | None = None  # once it is done

    def as_json(self) -> Json:
        return {**asdict(self), "state": str(self.state)}


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last round that a client's update was accepted in, and what became of it."""

    round: int
    outcome: Outcome

    def as_json(self) -> Json:
        return {"round": self.round, "outcome": str(self.outcome)}


@dataclass(frozen=True, slots=True)
class Standing:
    """What the server knows of a client: the answer of /v1/me."""

    accepted_updates: int
    last: LastAnswer | None
    received_updates: int | None = None  # well-formed ones, accepted or not; None: an older server, which did not count

    def as_json(self) -> Json:
        said = {"accepted_updates": self.accepted_updates, "last": self.last and self.last.as_json()}
        return said if self.received_updates is None else {**said, "received_updates": self.received_updates}

    @property
    def seen_updates(self) -> int:
        """As many as the server says that it has seen, of those that it counts."""
        return max(self.accepted_updates, self.received_updates or 0)


@dataclass(frozen=True, slots=True)
class RoundNews:
    """The answer of a long poll. round None: the federation is finished."""

    round: int | None
    closes_in_s: float | None  # None: the round waits for everybody who was asked
    is_asked: bool  # whether this client's update is wanted
    last: LastAnswer | None
    receipt: str | None = None  # that this round was told; the client keeps the newest one
    forget: ForgetNews | None = None  # None: the round learns

    def as_json(self) -> Json:
        last = self.last and self.last.as_json()
        if self.round is None:
            return {"finished": True, "last": last}
        said = {"round": self.round, "closes_in_s": self.closes_in_s, "is_asked": self.is_asked, "last": last}
        receipt = {} if self.receipt is None else {"receipt": self.receipt}
        return {**said, **receipt, **({} if self.forget is None else {"forget": self.forget.as_json()})}


def parse_standing(values: object) -> Standing:
    """From JSON that anybody may have written."""
    known = _as_mapping(values)
    received = None if known.get("received_updates") is None else _whole(known, "received_updates", 0)
    return Standing(_whole(known, "accepted_updates", 0), _parse_last(known), received)


def parse_news(values: object) -> RoundNews:
    """From JSON that anybody may have written."""
    known = _as_mapping(values)
    if known.get("finished") is True:
        return RoundNews(None, None, False, _parse_last(known))
    closes, is_asked = known.get("closes_in_s"), known.get("is_asked")
    is_number = isinstance(closes, int | float) and not isinstance(closes, bool) and -_MOST_S <= closes <= _MOST_S
    if not (closes is None or is_number) or not isinstance(is_asked, bool):
        raise ValueError("the server's news of a round lack closes_in_s or is_asked.")
    closes_in_s = None if closes is None else float(closes)
    told = (_parse_last(known), _parse_receipt(known), _parse_forget(known))
    return RoundNews(_whole(known, "round", 1), closes_in_s, is_asked, *told)


def parse_forgotten(values: object) -> Forgotten:
    """From JSON that anybody may have written."""
    known = _as_mapping(values)
    if known.get("state") not in tuple(ForgettingState):
        raise ValueError("the server does not say whether the client is forgotten.")
    detail, record = known.get("detail"), known.get("record")
    steps = _whole(known, "step", 0), _whole(known, "steps", 0)
    return Forgotten(
        ForgettingState(known["state"]),
        *steps,
        detail if isinstance(detail, str) else None,
        record if isinstance(record, dict) else None,
    )


def _parse_forget(known: Mapping[str, Any]) -> ForgetNews | None:
    if known.get("forget") is None:
        return None
    asked = _as_mapping(known["forget"])
    return ForgetNews(*(_whole(asked, name, 1) for name in ("step", "steps", "round", "searches")))


def _parse_receipt(known: Mapping[str, Any]) -> str | None:
    """One that can stand in a URL as it is; None: the server gives none."""
    receipt = known.get("receipt")
    if not isinstance(receipt, str) or len(receipt) > MOST_RECEIPT:
        return None
    return receipt if receipt.isascii() and receipt.replace("-", "").isalnum() else None


def _parse_last(known: Mapping[str, Any]) -> LastAnswer | None:
    if known.get("last") is None:
        return None
    last = _as_mapping(known["last"])
    if not isinstance(last.get("outcome"), str):
        raise ValueError("the server does not say what became of the last round: open, closed or abandoned.")
    if last["outcome"] not in tuple(Outcome):  # of a newer server: nothing that this client could act on
        return None
    return LastAnswer(_whole(last, "round", 1), Outcome(last["outcome"]))


def _as_mapping(values: object) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise ValueError("the server's answer is no JSON object: it may be another program, or another version.")
    return values


def _whole(known: Mapping[str, Any], key: str, least: int) -> int:
    value = known.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST_NUMBER:
        raise ValueError(f"the server's answer lacks {key}, a whole number from {least} on.")
    return value
