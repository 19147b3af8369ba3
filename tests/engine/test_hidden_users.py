"""Users who hide in the logs of one place: what is pooled, what is covered, and that each is measured alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tiny_users import DIM, PERIODS, TinyUsers, tiny_people, tiny_personal, tiny_task

from hushrank.engine.personal_central import OWN
from hushrank.engine.personal_people import People, Span
from hushrank.engine.personal_setting import PersonalSetting
from hushrank.personal.features import N_FEATURES, make_features
from hushrank.personal.inputs import N_LONG, N_SHORT, N_WINDOW, NO_SESSION, PersonalInputs
from hushrank.personal.log import Search, SearchLog, make_log, slice_log
from hushrank.personal.models.hrnn_fast import Hrnn
from hushrank.personal.queries.ids import NOBODY, CoveredIds, OwnIds, SearchIds, SharedIds
from hushrank.types import Array

TEST = Span(PERIODS.test, np.inf)
TWO_GROUPS = np.array([0, 1, 0, 1, 0])  # of five users


def repeat_word(user: int, queries: Array) -> Array:
    """Covers by hand: word 11 twice, which no tiny user asks for."""
    del user
    return np.asarray(np.where(queries > 0, 11, 0)[:, None])


class TwoWords(TinyUsers):
    """Everybody searches for words 2 and 3."""

    def log_of(self, user: int) -> SearchLog:
        log = super().log_of(user)
        return replace(log, queries=np.where(log.queries > 0, np.arange(2, 22), 0).astype(np.int32))


def hide(population: TinyUsers, how: str) -> SearchIds:
    if how == "group-user":
        return SharedIds(population, TWO_GROUPS)
    return CoveredIds(population, tiny_people(population).source.index, repeat_word, 1)


def hidden_people(how: str, population: TinyUsers | None = None) -> People:
    population = population or TinyUsers()
    return replace(tiny_people(population), hidden=hide(population, how))


def hidden_setting(how: str, population: TinyUsers | None = None) -> PersonalSetting:
    setting = tiny_personal(topology="central", hidden_by=how)
    return replace(setting, people=hidden_people(how, population))


def test_under_a_shared_id_history_features_and_words_are_those_of_the_group() -> None:
    people, alone = hidden_people("group-user"), tiny_people()
    record, logs = people.record_of(2), [alone.population.log_of(user) for user in (0, 2, 4)]
    assert record is people.record_of(0) is people.record_of(4) and record is not people.record_of(1)
    assert record.log.n_searches == 3 * 21 and (np.diff(record.log.times) >= 0).all()
    searched = {int(word) for log in logs for word in log.queries[log.times < PERIODS.validation].ravel()} - {0}
    assert set(record.own_words.tolist()) == searched
    np.testing.assert_array_equal(record.features, make_features(people.source, record.log))
    inputs = people.inputs_of(2, TEST)
    before = [log.queries[log.times < PERIODS.test] for log in logs]
    rows = inputs.history.query_words[: inputs.n_before[0]]
    found = {tuple(row) for row in rows[inputs.history.sessions[: inputs.n_before[0]] != NO_SESSION].tolist()}
    assert all(found & {tuple(row) for row in part.tolist()} for part in before)  # of all three


def test_covers_are_in_the_history_and_among_the_words_of_an_id_and_have_no_click() -> None:
    people = hidden_people("cover-query", TwoWords())
    log, owners = people.log_of(1)
    assert owners.tolist() == [1, NOBODY] * 21
    assert log.queries[:, :2].tolist() == [[2, 3], [11, 11]] * 21
    inputs = people.inputs_of(1, TEST)
    is_item = inputs.history.sessions != NO_SESSION
    is_cover = (inputs.history.query_words[is_item] == 11).any(axis=1)
    assert np.count_nonzero(is_cover) == np.count_nonzero(~is_cover) > 0
    assert np.array_equal(inputs.history.clicked_words[is_item].any(axis=1), ~is_cover)
    assert people.record_of(1).own_words.tolist() == [2, 3, 11]
    assert np.array_equal(people.record_of(1).features, make_features(people.source, log))


@pytest.mark.parametrize("how", ["group-user", "cover-query"])
def test_each_user_is_trained_and_measured_on_their_own_searches_alone(how: str) -> None:
    people, alone = hidden_people(how), tiny_people()
    for span in (Span(PERIODS.train, PERIODS.validation), TEST):
        for user in range(5):
            ours, theirs = people.inputs_of(user, span), alone.inputs_of(user, span)
            for name in ("query_words", "document_words", "is_document", "is_clicked"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    task = tiny_task(hidden_setting(how))
    found, seen = task.examine(task.start()), list[int]()

    def perfect(users: Sequence[int], inputs: PersonalInputs) -> Array:
        """Right for user 3 alone."""
        seen.extend(users)
        is_three = np.array([*users, *[0] * (len(inputs.is_query) - len(users))]) == 3
        return np.asarray(np.where(inputs.is_clicked, 1.0, 0.0) * np.where(is_three, 1, -1)[:, None, None])

    measured = task.examination.measure(perfect, {"offline": TEST}, trained=PERIODS.validation)["users/offline/MAP"]
    assert sorted(set(seen)) == list(range(5)) and found["users/offline/MAP"].shape == (5,)
    assert measured[3] == 1 and (np.delete(measured, 3) == 0.25).all()  # the last of four


class OneActive(TinyUsers):
    """Only user 2, who has id 0, searches once training has begun."""

    def log_of(self, user: int) -> SearchLog:
        log = super().log_of(user)
        return log if user == 2 else slice_log(log, 0, 6)


def test_an_id_has_one_table_of_personal_vectors_whoever_of_its_users_it_learns_from() -> None:
    task = tiny_task(hidden_setting("group-user", OneActive()))
    start = task.start()
    after, _ = task.advance(start, 1, 1)
    moved = np.abs(after[OWN] - start[OWN]).max(axis=(1, 2))
    assert len(moved) == 2 and moved[0] > 0 and moved[1] == 0
    assert task.arrays.n_own == max(len(task.setting.people.record_of(user).own_words) for user in (0, 1))
    broken = {**after, OWN: np.stack([after[OWN][0], np.full_like(after[OWN][1], np.nan)])}
    looks = [task.examine(state)["users/offline/MAP"][2] for state in (after, broken)]
    assert looks[0] == looks[1] > 0  # user 2 reads no table but that of id 0


def test_hidden_as_oneself_trains_to_what_is_trained_without_hiding() -> None:
    """Ids of one's own: rows of history apart and tables found by ids change nothing but the last digits."""
    model = Hrnn(n_features=N_FEATURES, dim=DIM, hidden=3)  # which reads histories
    setting = replace(tiny_personal(topology="central"), model=model)
    people = replace(tiny_people(), hidden=OwnIds(TinyUsers()))
    plain, apart = (tiny_task(each) for each in (setting, replace(setting, people=people)))
    one, other = (task.advance(task.start(), 1, 2)[0] for task in (plain, apart))
    moved = np.abs(one["params"] - plain.start()["params"]).max()
    assert moved > 0.005 and np.allclose(one["params"], other["params"], atol=1e-4 * moved)
    looks = [task.examine(state)["users/offline/MAP"] for task, state in ((plain, one), (apart, other))]
    assert np.allclose(*looks)


class LongSession(TinyUsers):
    """Users who share an id and never pause: 300 searches in a row, of which every fifth is user 0's."""

    def log_of(self, user: int) -> SearchLog:
        first = PERIODS.test - 60 * 600
        return make_log([Search(first + 60 * (5 * n + user), (2, 3), (0, 1, 2, 3), (n % 4,)) for n in range(140)])


def test_however_much_others_search_in_between_a_search_has_its_last_rows() -> None:
    people = replace(tiny_people(LongSession()), hidden=SharedIds(LongSession(), np.zeros(5, int)))
    inputs = people.inputs_of(0, TEST)
    assert len(inputs.history.sessions) == N_WINDOW * len(inputs.is_query)
    assert np.array_equal(inputs.n_before - inputs.n_long, np.full(len(inputs.is_query), N_SHORT))
    short = inputs.history.clicked_words.reshape(-1, N_WINDOW, 50)[:, N_LONG:]
    log, searches = people.log_of(0).log, people.searches_in(0, TEST)
    for row, search in zip(short, searches, strict=True):
        titles = people.population.collection.titles[log.documents[log.is_clicked]]  # one click each
        np.testing.assert_array_equal(row, titles[search - N_SHORT : search])
