"""Many pretend people in one process: a thread for each, one data set for all, and what they see, round by round.

Why threads: most of a client's time is waiting, for the server and for the disk, and a process each would take 40 MB.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from hushrank.live.device.account import open_account
from hushrank.live.device.client import Ending, Listeners, Participant, UnknownClientError, take_part
from hushrank.live.device.learning import Learning
from hushrank.live.device.membership import hold_home, join_federation, list_missing, remember_trust, remove_new
from hushrank.live.device.named import make_learning
from hushrank.live.device.noise_key import find_home_key
from hushrank.live.device.rankers import ask_ranker
from hushrank.live.device.service import open_transport, rebuild_ledger
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.device.transport import Stop, StoppedError, Transport
from hushrank.live.pretend.liar import Lie, lie_with
from hushrank.live.pretend.person import Person, search_enough
from hushrank.live.wire.agreement import Agreement
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.streams import seed_key, stream
from hushrank.types import Array, Fold, QuerySet, User

KEEP_ROUNDS = 100  # Why: fifty people fill 1.6 MB of disk in each round
_REPEAT = 0  # Why: pretend people draw what the simulator's first repeat draws


@dataclass(frozen=True, slots=True)
class Pretence:
    """What all pretend people have in common."""

    url: str | None  # None: where each joined before, else a server on this machine
    home: Path  # each has a directory of its own below it
    fold: Fold
    user: User  # how they click
    seed: int | None = None  # of what they search and click; None: the federation's
    tokens: Sequence[str] = ()  # token i is person i's
    epsilon: float | None = None  # the most privacy that each spends; None: what the agreed rounds cost
    ca: Path | None = None
    rounds: int | None = None  # answers of each; None: until the federation is finished
    rebuilds_ledger: bool = False  # in the place of those that were lost, before anything is answered
    lie: Lie = Lie()  # noqa: RUF009 - frozen: what all of them send instead of what they learnt; they are honest


@dataclass(frozen=True, slots=True)
class RoundSeen:
    """One round as the people of this process saw it."""

    round: int
    n_people: int  # who searched in it
    online: float  # mean nDCG@k of the lists that they saw: over a person's lists, then over people
    offline: float  # nDCG@10 of the round's new ranker on the test queries


class Scoreboard:
    """Gathers what people see; tells a round when the ranker that came of it is known."""

    def __init__(self, test: QuerySet, show: Callable[[RoundSeen], None]) -> None:
        self._test, self._show = test, show
        self._lock = threading.Lock()
        self._seen: dict[int, list[float]] = {}
        self._newest = 0

    def saw_lists(self, round: int, quality: float) -> None:
        with self._lock:
            self._seen.setdefault(round, []).append(quality)

    def saw_ranker(self, learning: Learning, ranker: KeptRanker) -> None:
        with self._lock:
            if ranker.round <= self._newest:
                return
            self._newest = ranker.round
            over = [round for round in sorted(self._seen) if round < ranker.round]
            if over:
                scores = learning.ranker.score(ranker.params, self._test.features)
                offline = mean_ndcg(self._test, scores).value
            for round in over:
                seen = self._seen.pop(round)
                self._show(RoundSeen(round, len(seen), fmean(seen), offline))


def pretend(
    pretence: Pretence,
    ids: Sequence[int],
    *,
    stop: Stop,
    show: Callable[[RoundSeen], None],
    greet: Callable[[Agreement], None],
    tell: Callable[[str], None],
) -> list[Ending]:
    """Let these people take part, each until its end; the first error stops all of them.

    Who has left, as somebody whom the operator forgets, stays away; the others go on without them.
    """
    board = Scoreboard(pretence.fold.test, show)
    endings, errors, gone = list[Ending](), list[Exception](), list[Exception]()
    new = list_missing(pretence.home)
    pretence.home.mkdir(mode=0o700, parents=True, exist_ok=True)

    def live(id: int) -> None:
        listeners = Listeners(tell, greet) if id == ids[0] else Listeners()  # Why: what all have to say is said once
        try:
            endings.append(live_one(pretence, id, board, listeners, stop=stop))
        except UnknownClientError as error:
            gone.append(error)
            tell(f"person {id} has left: the server does not know it any more")
        except Exception as error:  # Why: whatever it is, it is told once, by the thread that began it all
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=live, args=(id,), name=f"person {id}") for id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(1.0)
    told = [error for error in errors if not isinstance(error, StoppedError)]
    if told or errors or not endings:
        remove_new(new)
        raise (told or errors or gone)[0]
    return endings


def live_one(pretence: Pretence, id: int, board: Scoreboard, listeners: Listeners, *, stop: Stop) -> Ending:
    """One person's client, from joining to its end."""
    home = pretence.home / str(id)
    with (
        hold_home(home, is_durable=False) as store,
        open_transport(store, pretence.url, pretence.ca, stop=stop, tell=listeners.tell) as transport,
    ):
        token = pretence.tokens[id] if id < len(pretence.tokens) else None
        if token is None and store.membership() is None:
            raise ValueError(
                f"there are {len(pretence.tokens)} tokens, but person {id} needs number {id + 1}. Make more with "
                "hushrank server token --count N, and name the file with --tokens."
            )
        agreement = join_federation(store, transport, token=token)
        if pretence.ca is not None:
            remember_trust(home, pretence.ca)
        if pretence.rebuilds_ledger:
            listeners.tell(rebuild_ledger(store, transport, agreement, epsilon=pretence.epsilon))
        listeners.greet(agreement)
        member = make_member(pretence, agreement, store, transport, board, id)
        ending = take_part(member, rounds=pretence.rounds)
        if ending is not Ending.budget:  # Why: who has left is told nothing any more
            board.saw_ranker(member.learning, ask_ranker(transport, member.learning))
        return ending


def make_member(
    pretence: Pretence, agreement: Agreement, store: Interactions, transport: Transport, board: Scoreboard, id: int
) -> Participant:
    learning = make_learning(agreement)
    check_features(pretence.fold, agreement)
    person = Person(id, pretence.fold.train, pretence.user, key_of_people(pretence, agreement))
    if pretence.lie.forges:
        learning = lie_with(learning, pretence.lie, key=person.key, id=id)
    membership = store.membership()
    assert membership is not None
    home_key = find_home_key(store.identity().secret, agreement, membership.credential)

    def search(ranker: KeptRanker) -> None:
        board.saw_ranker(learning, ranker)
        seen = search_enough(person, learning, store, ranker)
        if seen:
            board.saw_lists(ranker.round, fmean(seen))

    return Participant(
        store,
        transport,
        learning,
        open_account(store, agreement, membership.credential, epsilon=pretence.epsilon),
        key=person.key if agreement.is_seeded else home_key,
        id=id,
        search=search,
        keep_rounds=KEEP_ROUNDS,
    )


def key_of_people(pretence: Pretence, agreement: Agreement) -> Array:
    """[2] of all that people search and click: the simulator's key of this fold."""
    if agreement.seed is not None and pretence.seed not in (None, agreement.seed):
        raise ValueError(f"seed is {pretence.seed}, but this federation's is {agreement.seed}: leave --seed out.")
    seed = agreement.seed if agreement.seed is not None else (pretence.seed or 0)
    return stream(seed_key(seed), _REPEAT, pretence.fold.number)


def check_features(fold: Fold, agreement: Agreement) -> None:
    if fold.train.n_features != agreement.n_features:
        raise ValueError(
            f"the data have {fold.train.n_features} features, the federation's rankers take {agreement.n_features}: "
            f"choose other data, or make the server with --features {fold.train.n_features}."
        )
