"""No message of a client of personalised search holds a vector, a query, a click, a time or a feature of its log.

Everything that `visit_clients` yields is searched: the bytes as they cross the wire, what is said about them, and every
stretch of the update for a row of private numbers at any scale, as clipping leaves it. What merely follows from private
searches does leave: `test_words_in_updates.py` measures how much that betrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from secret_search import Secret, row_secret, search_bytes, search_text, text_secret
from tiny_users import DIM, TinyUsers, tiny_personal, tiny_task

from hushrank.engine import personal_task
from hushrank.engine.personal_setting import PersonalSetting
from hushrank.engine.personal_store import ROWS, PersonalStore
from hushrank.federation.exchange import UpdateExchange
from hushrank.live.wire.bodies import encode_update
from hushrank.personal import training_fast
from hushrank.personal.features import N_FEATURES
from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.log import Collection, Search, SearchLog, make_log
from hushrank.personal.models.named_fast import named_model
from hushrank.personal.models.parameters import OWN_WORDS, WordSharing, find_frequent
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.types import Array, PrivateUpdate

QUERY = (3, 11, 5, 7, 2, 9, 4, 8, 6, 10)  # the words of one search of user 0, in no other log
PLACE = 8  # of this search, which is one of training
CLIPPED = UpdateExchange(SoundGaussian(clip_norm=0.05, noise_multiplier=1.0))  # the server adds the noise
SMALL: dict[str, dict[str, float]] = {
    "knrm": {},
    "hrnn": {"hidden": 3},
    "htps": {"heads": 1, "head_size": 2, "inner": 3},
}


@dataclass(frozen=True)
class PlantedUsers(TinyUsers):
    """User 0 has the planted query; every word is one that stands nowhere else."""

    n_query_words: int = len(QUERY)

    @property
    def collection(self) -> Collection:
        plain = TinyUsers.collection.func(self)  # type: ignore[attr-defined] # of a cached property
        return replace(plain, words=("", "?", *(f"nachtkerze-{n}" for n in range(2, plain.n_words))))

    def log_of(self, user: int) -> SearchLog:
        log = TinyUsers.log_of(self, user)
        searches = [
            Search(
                int(log.times[i]),
                QUERY if (user, i) == (0, PLACE) else tuple(log.queries[i][log.queries[i] > 0].tolist()),
                tuple(log.documents[log.rows(i)].tolist()),
                tuple(log.documents[log.rows(i)][log.is_clicked[log.rows(i)]].tolist()),
            )
            for i in range(log.n_searches)
        ]
        return make_log(searches, log.sessions)


def planted_setting(model: str = "peps", words: str = "frozen", **changes: Any) -> PersonalSetting:
    users = PlantedUsers()
    frequent = find_frequent(users.collection.document_frequency, most=6) if words == "frequent" else ()
    setting = tiny_personal(users, cohort=5, sharing=WordSharing(words, frequent), **changes)
    if model == "peps":
        return setting
    return replace(setting, model=named_model(model, n_features=N_FEATURES, dim=DIM, **SMALL[model]))


@dataclass(frozen=True)
class Visits:
    """What all clients sent in two rounds, and what must not be in it."""

    messages: list[PrivateUpdate]
    vectors: dict[str, Array]  # rows of private numbers, looked for at any scale
    secrets: list[Secret]  # looked for in every form


def visit_twice(setting: PersonalSetting) -> Visits:
    """With planted personal vectors, those of the clients before and after each round among the secrets."""
    task, draw = tiny_task(setting), np.random.default_rng(5)
    people, params = setting.people, task.start()["params"]
    counts = {f"{ROWS}{user}": len(people.record_of(user).own_words) for user in range(5)}
    planted = {name: draw.uniform(0.1, 1, (n, DIM)).astype(np.float32) for name, n in counts.items()}
    store = PersonalStore(planted if task.arrays.has_personal else {})
    vectors, messages = dict[str, Array](), list[PrivateUpdate]()
    for number in (1, 2, 3):
        tables = {name: rows for name, rows in store.state().items() if name in planted}
        vectors |= {
            f"{name}/{row} before {number}": rows[row] for name, rows in tables.items() for row in range(len(rows))
        }
        if number < 3:
            known = store if task.arrays.has_personal else None
            messages += task.visit_clients(params, known, task.schedule.step_at(number))
    record = people.record_of(0)
    log, features = record.log, record.features[record.log.rows(PLACE)]
    vectors |= {f"features {row}": each for row, each in enumerate(features) if np.count_nonzero(each) > 3}
    vectors |= {"the query": np.array(QUERY), "the documents": log.documents[:12], "the times": log.times[1:9]}
    secrets = [row_secret(name, vectors[name].tolist()) for name in ("the query", "the documents", "the times")]
    secrets.append(row_secret("the clicks", log.is_clicked[:16].tolist()))
    secrets += [text_secret(people.population.collection.words[word]) for word in QUERY]
    return Visits(messages, vectors, secrets)


def find_secrets(visits: Visits) -> set[str]:
    found = set[str]()
    for message in visits.messages:
        leaks = search_bytes(encode_update(message), visits.secrets, where="the body")
        with np.printoptions(threshold=np.inf):  # type: ignore[arg-type] # all numbers of an array
            said = f"{message!r} {message.guarantee}"
        leaks += search_text(said, visits.secrets, where="what is said about it")
        found |= {leak.secret for leak in leaks}
        found |= {name for name, vector in visits.vectors.items() if holds_multiple(message.delta, vector)}
    return found


def holds_multiple(content: Array, row: Array) -> bool:
    """Whether a stretch of the content is the row times any number. By chance: once in 10^9 for four numbers."""
    if content.size < len(row):
        return False
    windows = np.lib.stride_tricks.sliding_window_view(content.astype(np.float64).ravel(), len(row))
    products = np.abs(windows @ row.astype(np.float64))
    lengths = np.linalg.norm(windows, axis=1) * np.linalg.norm(row.astype(np.float64))
    return bool(((products >= (1 - 1e-9) * lengths) & (lengths > 0)).any())


@pytest.mark.parametrize(
    ("model", "words", "exchange"),
    [
        ("peps", "frozen", UpdateExchange()),
        ("peps", "all", UpdateExchange()),
        ("peps", "frequent", UpdateExchange()),
        ("peps", "all", CLIPPED),
        ("knrm", "frozen", UpdateExchange()),
        pytest.param("hrnn", "frozen", UpdateExchange(), marks=pytest.mark.slow),
        pytest.param("htps", "frozen", UpdateExchange(), marks=pytest.mark.slow),
    ],
)
def test_messages_of_clients_hold_nothing_of_their_logs(model: str, words: str, exchange: UpdateExchange) -> None:
    visits = visit_twice(planted_setting(model, words, exchange=exchange))
    assert len(visits.messages) == 10 and all(np.abs(message.delta).max() > 0 for message in visits.messages)
    assert find_secrets(visits) == set()


def test_the_secrets_are_where_they_belong() -> None:
    """Otherwise the other tests would look for what is not there."""
    setting = planted_setting()
    visits, log = visit_twice(setting), setting.people.record_of(0).log
    memory = b"".join(part.tobytes() for part in (log.queries[PLACE], log.documents, log.times, log.is_clicked))
    words = " ".join(setting.people.population.collection.words)
    leaks = search_bytes(memory, visits.secrets, where="log") + search_text(words, visits.secrets, where="words")
    assert {leak.secret for leak in leaks} == {secret.name for secret in visits.secrets}
    tables = [name for name in visits.vectors if name.startswith(ROWS)]
    assert len(tables) > 3 * 5 * 5 and len({visits.vectors[name].tobytes() for name in tables}) > 2 * 5 * 5
    assert sum(name.startswith("features") for name in visits.vectors) == 4


class Seen(NamedTuple):
    """What the learner of a client has in hand."""

    before: Array  # [n_own, dim] personal vectors
    after: Array
    inputs: PersonalInputs

    @property
    def longest(self) -> int:
        return int(np.argmax(np.count_nonzero(self.inputs.query_words, axis=1)))


LEAKS: dict[str, Callable[[Seen], Array]] = {
    f"{ROWS}0/1 before 1": lambda seen: seen.before[1],
    f"{ROWS}0/1 before 3": lambda seen: seen.after[1],
    "the query": lambda seen: seen.inputs.query_words[seen.longest][: len(QUERY)],
    "features 0": lambda seen: seen.inputs.features[seen.longest][0],
}


@pytest.mark.parametrize("secret", LEAKS)
@pytest.mark.parametrize(("scale", "exchange"), [(1.0, UpdateExchange()), (-0.003, UpdateExchange()), (1.0, CLIPPED)])
def test_a_learner_that_leaks_is_caught(
    secret: str, scale: float, exchange: UpdateExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes one row of private numbers of each client into the client's update."""
    train = training_fast.train_clients

    def leak(model: Any, sent: Any, kept: Any, personal: Any, inputs: Any, keys: Any, **options: Any) -> Any:
        trained = train(model, sent, kept, personal, inputs, keys, **options)
        deltas = np.array(trained.deltas)
        for client in range(5):
            inputs_of = jax.tree.map(itemgetter(client), inputs)
            before, after = (np.asarray(tables[OWN_WORDS][client]) for tables in (personal, trained.personal))
            piece = LEAKS[secret](Seen(before, after, inputs_of))
            deltas[client, 3 : 3 + len(piece)] = scale * piece
        return trained._replace(deltas=deltas)

    monkeypatch.setattr(personal_task, "train_clients", leak)
    assert secret in find_secrets(visit_twice(planted_setting(exchange=exchange)))


def test_a_mechanism_that_leaks_is_caught() -> None:
    """It names what it protects, in the words that go with the message."""

    class Talkative(UpdateExchange):
        def privatise(self, raw: Any, *, key: Array) -> PrivateUpdate:
            return replace(super().privatise(raw, key=key), guarantee="of NACHTKERZE-7 nothing is told")

    assert find_secrets(visit_twice(planted_setting(exchange=Talkative()))) == {"nachtkerze-7"}


def test_a_client_that_sends_its_clicks_is_caught() -> None:
    """As marks of a float each, which stand for no row of numbers that are looked for at any scale."""
    clicks = PlantedUsers().log_of(0).is_clicked[:16]

    class Telling(UpdateExchange):
        def privatise(self, raw: Any, *, key: Array) -> PrivateUpdate:
            delta = np.array(raw.delta)
            delta[5:21] = clicks
            return super().privatise(replace(raw, delta=delta), key=key)

    assert find_secrets(visit_twice(planted_setting(exchange=Telling()))) == {"the clicks"}
