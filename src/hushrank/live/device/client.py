"""The client of a federation: asks for the round, learns from the device's own store, answers once, and waits.

A round, from the client's side:

    ask (long poll) -> ranker -> [a pretend person searches] -> learn -> wait -> ledger -> privatise -> commit -> upload

Everything before `commit` can be done again, everything after it is sent again, byte for byte. Killed at any moment, it
resumes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from hushrank.live.device.account import AnswerAccount, check_account, count_missing, reserve_answer
from hushrank.live.device.heads import Heads
from hushrank.live.device.learning import Draft, Learning
from hushrank.live.device.membership import AgreementChangedError, explain_version, leave_federation
from hushrank.live.device.noise_key import bind_content
from hushrank.live.device.outbox import REFUSED, SENT, WAITING, Answer
from hushrank.live.device.rankers import UnusableRankerError, ask_ranker
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.device.transport import Reply, Transport, draw_pause, parse_json
from hushrank.live.wire.agreement import Agreement
from hushrank.live.wire.news import ForgetNews, LastAnswer, Outcome, RoundNews, Standing, parse_news, parse_standing
from hushrank.live.wire.protocol import (
    AGREEMENT_HEADER,
    BODY_TYPE,
    CANDIDATE,
    DECLINE,
    FILLED_HEADER,
    INSTANCE_HEADER,
    ME,
    ROUND,
    WEIGHT_HEADER,
    update_path,
)
from hushrank.live.wire.refusals import Reason, RefusedError
from hushrank.privacy.device_ledger import DeviceLedger
from hushrank.privacy.ledger import BudgetSpentError, Ledger, read_ledger
from hushrank.streams import ENTROPY, Purpose, draw_uniform, stream
from hushrank.types import Array

WAIT_S = 30  # for news of a round
LISTEN_S = 10  # between two looks into the store while a round waits for something to learn from
_EARLY = 3  # tries after which the pause is as long as after a poll that ended too early: 2 to 4 s
_LAST_CALL = 0.8  # of the time that a round is open; then fewer lists than agreed must do
# Refusals that say: it does not count, nothing is wrong.
_FREEING = (Reason.late, Reason.round, Reason.not_asked, Reason.phase, Reason.unknown)
_FATAL = (Reason.credential, Reason.version, Reason.agreement, Reason.clone)


class Ending(StrEnum):
    """Why a client stopped taking part."""

    finished = "the federation is finished"
    budget = "the privacy budget is used up"
    enough = "it answered as often as wanted"
    nothing = "there was nothing to answer"


class UnknownClientError(ValueError):
    """The server does not know this client any more."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one answer, for people."""

    round: int
    n_lists: int  # that it was learnt from
    n_bytes: int  # of its body
    state: str  # sent or refused
    reason: str | None  # refused: why
    ledger: Ledger | None  # after it
    guarantee: str  # of the answer, in words
    device: DeviceLedger | None = None  # of the whole device, in all federations, after it


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears what."""

    tell: Callable[[str], None] = lambda _: None  # sentences
    greet: Callable[[Agreement], None] = lambda _: None  # what was joined
    report: Callable[[Report], None] = lambda _: None  # what became of each answer


@dataclass(frozen=True, slots=True)
class Participant:
    """One client: its store, its way to the server, how it learns, and what it may spend."""

    store: Interactions
    transport: Transport
    learning: Learning
    account: AnswerAccount | None  # None: nothing is promised
    key: Array = ENTROPY  # of seeds and noise
    id: int = 0  # in the streams of a simulator's key
    search: Callable[[KeptRanker], None] | None = None  # what a pretend person does with a new ranker
    report: Callable[[Report], None] = lambda _: None
    keep_rounds: int = 1000  # what impressions of older rankers hold is deleted
    spread: float = 0.0  # part of a round's time within which its answer leaves at random


def take_part(member: Participant, *, rounds: int | None = None, is_once: bool = False) -> Ending:
    """Answer round after round until the end. `rounds`: at most so many answers. `is_once`: one, and only if this
    device is asked now and has something to tell."""
    compare_counts(member)
    settle_waiting(member)
    newest = member.store.outbox.newest()
    after, n_answers = newest.round if newest is not None else 0, 0
    while rounds is None or n_answers < rounds:
        began, wait_s = time.monotonic(), 1 if is_once else WAIT_S
        news = ask_round(member, after=after, wait_s=wait_s)
        if news is None and not is_once:
            rest_if_early(member, began, wait_s)
        elif news is not None:
            settle_last(member, news.last)
            if news.round is None:
                replace_forgotten(member)
                return Ending.finished
            try:
                n_answers += news.is_asked and answer_news(member, news.round, news, waits=not is_once)
            except BudgetSpentError:
                leave_federation(member.store, member.transport)
                return Ending.budget
            after = news.round
        if is_once:
            return Ending.enough if n_answers else Ending.nothing
    return Ending.enough


def answer_news(member: Participant, round: int, news: RoundNews, *, waits: bool) -> bool:
    """Whether this client's answer counts."""
    if news.forget is not None:
        return replay_round(member, round, news.forget)
    return answer_round(member, round, news.closes_in_s, waits=waits)


def replay_round(member: Participant, round: int, asked: ForgetNews) -> bool:
    """Whether this client's answer to a round that forgets counts. What people search with stays as it is."""
    try:
        candidate = ask_ranker(member.transport, member.learning, round, path=CANDIDATE)
        replay = member.learning.replay(member.store, candidate, asked)
        if replay is None:
            member.transport.call("POST", f"{DECLINE}?round={round}", parse=lambda _: None)
    except UnusableRankerError as error:
        member.transport.tell(f"round {round} is left out: {error}")
        return False
    except RefusedError as error:
        if error.reason in _FREEING:
            return False
        raise _explain_fatal(error, member) from error
    if replay is None:
        return False
    return send_draft(member, replay.draft, n_lists=replay.n_lists, is_filled=replay.is_filled)


def replace_forgotten(member: Participant) -> None:
    """Where no round learns any more, take the ranker that came of the rounds that forgot: no later one brings it."""
    kept, newest = member.store.newest_ranker(), member.store.outbox.newest()
    if kept is not None and newest is not None and newest.round > kept.round:
        try:
            member.store.keep_ranker(ask_ranker(member.transport, member.learning))
        except UnusableRankerError as error:
            member.transport.tell(f"the last good ranker stays in use: {error}")


def answer_round(member: Participant, round: int, closes_in_s: float | None, *, waits: bool) -> bool:
    """Whether this client's answer counts. `waits`: for lists to learn from, as long as the round is open."""
    ranker = fetch_ranker(member, round)
    if ranker is None:
        return False
    if member.search is not None:
        member.search(ranker)
    if must_rest(member, round):
        member.transport.tell(f"round {round} is left out: the server asks again before the agreed rest is over.")
        return False
    draft = await_draft(member, ranker, closes_in_s if waits else 0.0, waits=waits)
    if draft is None:
        return False
    return send_draft(member, draft, n_lists=len(draft.used))


def send_draft(member: Participant, draft: Draft, *, n_lists: int, is_filled: bool = False) -> bool:
    """Pay, privatise, commit, upload; whether the server counts it."""
    heads, key = pay(member, draft), stream(member.key, Purpose.PRIVATISE, draft.round, member.id)
    answer = member.learning.seal(draft, key=bind_content(key, draft.raw))
    member.store.outbox.commit(answer, draft.used, heads, length=draft.length)
    member.store.forget_before(draft.round - member.keep_rounds)
    return upload(member, answer, n_lists=n_lists, is_filled=is_filled)


def fetch_ranker(member: Participant, round: int) -> KeptRanker | None:
    """The ranker of an open round, kept on the device with the seed of this client's trial.

    None: the round is over, or what the server sent cannot be used; then the last good ranker stays.
    """
    kept = member.store.newest_ranker()
    if kept is not None and kept.round == round:
        return kept
    try:
        found = ask_ranker(member.transport, member.learning, round)
    except UnusableRankerError as error:
        member.transport.tell(f"round {round} is left out: {error} The last good ranker stays in use.")
        return None
    except RefusedError as error:
        if error.reason is Reason.round:
            return None
        raise _explain_fatal(error, member) from error
    seed = member.learning.draw_seed(stream(member.key, Purpose.SEED, round, member.id))
    return member.store.keep_ranker(replace(found, seed=seed))


def await_draft(member: Participant, ranker: KeptRanker, closes_in_s: float | None, *, waits: bool) -> Draft | None:
    """What was learnt, as soon as the store has enough to learn from, and not before a moment drawn at random; None:
    the round, or patience, ended first.

    Why at random: when an answer leaves would tell when its person had searched enough.
    """
    now = time.monotonic()
    last_call = math.inf if closes_in_s is None else now + _LAST_CALL * closes_in_s
    leaves_at = now + draw_delay(member, closes_in_s if waits else None)
    while True:
        left_s = last_call - time.monotonic()
        draft = member.learning.draft(member.store, ranker, is_last_call=left_s <= 0)
        if not waits or (draft is not None and time.monotonic() >= leaves_at):
            return draft
        if draft is not None and (left_s := math.floor(leaves_at - time.monotonic())) < 1:
            member.transport.stop.wait(leaves_at - time.monotonic())
            continue
        began, wait_s = time.monotonic(), LISTEN_S if left_s <= 0 else max(1, math.ceil(min(left_s, LISTEN_S)))
        if ask_round(member, after=ranker.round, wait_s=wait_s) is not None:
            return None
        rest_if_early(member, began, wait_s)


def must_rest(member: Participant, round: int) -> bool:
    """Whether this client has answered too short a time ago. Why it looks itself: its promise depends on it, and a
    server may ask whom it likes."""
    separation = member.learning.agreement.separation or 1
    if separation == 1:
        return False
    newest, last = member.store.outbox.newest(), ask_standing(member).last
    answered = [known.round for known in (newest, last) if known is not None]
    if (ledger := read_spending(member)) is not None:
        answered += [entry.round for entry in ledger.entries if entry.round is not None]
    return any(0 < abs(round - each) < separation for each in answered)


def draw_delay(member: Participant, closes_in_s: float | None) -> float:
    """Seconds from 0 to the member's part of the time that a round is open; 0 where no time was named."""
    longest = member.spread * max(closes_in_s or 0.0, 0.0)
    return longest * float(draw_uniform(ENTROPY, 1)[0]) if longest else 0.0


def pay(member: Participant, draft: Draft) -> Heads | None:
    """Count the answer as spent, on the disk, before it is made; where the ledgers end then. Raises where the budget
    does not cover it."""
    if member.account is None or draft.price is None:
        return None
    check_account(member.account, ask_standing(member))
    return reserve_answer(member.account, round=draft.round, spend=draft.price)


def compare_counts(member: Participant) -> None:
    """With the server's, in both directions: fewer answers here than there end it, fewer there are told."""
    if member.account is None:
        return
    standing = ask_standing(member)
    check_account(member.account, standing)
    if (n_missing := count_missing(member.store, standing)) > 0:
        member.transport.tell(
            f"{member.transport.url} has acknowledged {n_missing} answers of this client that it no longer knows of: "
            "its file was restored from an older copy. They stay spent here."
        )


def upload(member: Participant, answer: Answer, *, n_lists: int, is_filled: bool = False) -> bool:
    """Whether the server counts it. Sending the same bytes again after a lost answer changes nothing."""
    agreement = member.learning.agreement
    headers = {"Content-Type": BODY_TYPE, AGREEMENT_HEADER: agreement.digest}
    if not member.learning.exchange.protection.counts_alike:
        n_digits = len(str(agreement.interactions))  # Why: as many for every client, whatever it has to say
        headers[WEIGHT_HEADER] = f"{answer.weight:0{n_digits}.0f}"
    if is_filled:
        headers[FILLED_HEADER] = "1"
    path = update_path(answer.round)
    reason: str | None = None
    try:
        member.transport.call("PUT", path, parse=_read_accepted, body=answer.body, headers=headers)
    except RefusedError as error:
        if error.reason in _FATAL:
            raise _explain_fatal(error, member) from error
        if not _counts_already(member, answer.round, error.reason):
            reason = str(error.reason)
            member.store.outbox.refuse(answer.round, reason, frees=error.reason in _FREEING)
    if reason is None:
        member.store.outbox.confirm(answer.round)
    state, ledger = SENT if reason is None else REFUSED, read_spending(member)
    spent = None if member.account is None else member.account.read_device()
    member.report(Report(answer.round, n_lists, len(answer.body), state, reason, ledger, answer.guarantee, spent))
    return reason is None


def _read_accepted(reply: Reply) -> None:
    said = parse_json(lambda values: values)(reply)
    if not isinstance(said, dict) or said.get("accepted") is not True:
        raise ValueError("an answer that does not say whether the update was accepted")


def _counts_already(member: Participant, round: int, reason: Reason) -> bool:
    """Whether what is now too late had arrived before: the acknowledgement was lost, the round has closed since."""
    last = ask_standing(member).last if reason is Reason.late else None
    return last is not None and last.round == round and last.outcome is not Outcome.abandoned


def settle_waiting(member: Participant) -> None:
    """What was committed and perhaps not sent: send it again, or learn that it came too late."""
    used = member.store.count_used()
    for answer in member.store.outbox.answers(WAITING):
        upload(member, answer, n_lists=used.get(answer.round, 0))


def settle_last(member: Participant, last: LastAnswer | None) -> None:
    """A round that was abandoned counts for nobody: its impressions are free again. What it cost stays spent."""
    if last is None or last.outcome is not Outcome.abandoned:
        return
    answer = member.store.outbox.find(last.round)
    if answer is not None and answer.state != REFUSED:
        n_lists = member.store.count_used().get(last.round, 0)
        member.store.outbox.refuse(last.round, str(Outcome.abandoned), frees=True)
        told = (REFUSED, str(Outcome.abandoned), read_spending(member), answer.guarantee)
        member.report(Report(last.round, n_lists, len(answer.body), *told))


def read_spending(member: Participant) -> Ledger | None:
    return None if member.account is None else read_ledger(member.account.path)


def ask_round(member: Participant, *, after: int, wait_s: int) -> RoundNews | None:
    """News of a round after this one; None: there were none for as long as the server was asked to wait."""

    def parse(reply: Reply) -> RoundNews | None:
        return None if reply.status == 204 else parse_json(parse_news)(reply)

    path, headers = f"{ROUND}?after={after}&wait={wait_s}", {INSTANCE_HEADER: member.transport.instance}
    try:
        news = member.transport.call("GET", path, parse=parse, headers=headers, wait_s=wait_s)
    except RefusedError as error:
        raise _explain_fatal(error, member) from error
    if news is not None and news.receipt is not None and news.receipt != member.transport.receipt:
        member.store.keep_receipt(news.receipt)
        member.transport.receipt = news.receipt
    return news


def rest_if_early(member: Participant, began: float, wait_s: float) -> None:
    """Pause after a poll that brought nothing long before its time. Why: a server that does not wait would be asked
    again and again without a rest."""
    if time.monotonic() - began < wait_s / 2:
        member.transport.stop.wait(draw_pause(_EARLY))


def ask_standing(member: Participant) -> Standing:
    try:
        return member.transport.call("GET", ME, parse=parse_json(parse_standing))
    except RefusedError as error:
        raise _explain_fatal(error, member) from error


def _explain_fatal(error: RefusedError, member: Participant) -> Exception:
    home = member.store.path.parent
    if error.reason is Reason.agreement:
        return AgreementChangedError(
            "the federation's agreement has changed since this client joined; nothing was counted. Start the client "
            "again to see how."
        )
    if error.reason is Reason.credential:
        return UnknownClientError(
            f"{member.transport.url} does not know this client any more: it has left, or the server was made anew. "
            "Another --home may join again; what this device has spent stays spent there."
        )
    if error.reason is Reason.clone:
        return ValueError(
            f"another copy of {home} takes part as this very client, perhaps on another machine. One of the two must "
            "go: stop one and delete its home."
        )
    return explain_version(error, member.transport.url) or error
