"""What an engine sees of users, and how far that is from what they did."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_users import TinyUsers, tiny_people

from hushrank.personal.log import Search, make_log, slice_log
from hushrank.personal.queries.light import average_precisions, fit_light, make_pairs, starting_weights
from hushrank.personal.queries.observed import (
    SMOOTHINGS,
    WAYS,
    UserWords,
    count_user,
    divide_users,
    measure_divergence,
    measure_users,
    observe,
    smooth,
)
from hushrank.personal.queries.polluted import join_logs, mix_covers
from hushrank.streams import seed_key

CORPUS = np.array([0.0, 0, 1, 1, 1, 1])


def words(*numbers: int) -> np.ndarray:
    return np.bincount(numbers, minlength=6).astype(float)


ANN = UserWords(queries=words(2), clicked=words(2, 3), covers=words(5))
BOB = UserWords(queries=words(4), clicked=words(4, 4), covers=words(3))


def test_what_is_seen_in_each_way_of_searching_is_written_down() -> None:
    seen = {way: each[0].astype(int).tolist() for way, each in observe([ANN, BOB], np.zeros(2, int)).items()}
    assert seen == {
        "central": [0, 0, 2, 1, 0, 0],
        "group-user": [0, 0, 2, 1, 3, 0],  # what Bob clicked on is under the same id
        "cover-query": [0, 0, 2, 1, 0, 1],
        "fedps-flat": [0, 0, 1, 0, 0, 1],  # no clicks
        "fedps-proxy": [0, 0, 1, 0, 1, 0],  # the group's queries, no covers, no clicks
        "no-clicks": [0, 0, 1, 0, 0, 0],
    }


def test_users_of_other_groups_are_not_seen_together() -> None:
    apart = observe([ANN, BOB], np.array([0, 1]))
    assert apart["group-user"][0].tolist() == ANN.true.tolist()
    assert apart["fedps-proxy"][1].tolist() == BOB.queries.tolist()


def test_the_divergence_is_worked_by_hand_in_both_smoothings() -> None:
    """Jelinek-Mercer: .9 x (2/3, 1/3, 0, 0) + .1 x 1/4 against .9 x (1/2, 0, 0, 1/2) + .025."""
    true, seen = np.array([0.625, 0.325, 0.025, 0.025]), np.array([0.475, 0.025, 0.025, 0.475])
    expected = np.sum(true * np.log(true / seen))
    found = measure_divergence(ANN.true, ANN.queries + ANN.covers, CORPUS, smoothing="jelinek-mercer")
    assert found == pytest.approx(expected)
    tiny = 1e-6
    true, seen = (np.array(row) + tiny for row in ([2 / 3, 1 / 3, 0, 0], [0.5, 0, 0, 0.5]))
    expected = np.sum(true * np.log(true / seen)) / (1 + 4 * tiny)
    found = measure_divergence(ANN.true, ANN.queries + ANN.covers, CORPUS, smoothing="epsilon")
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_nothing_is_hidden_centrally_and_a_group_of_one_hides_nothing(smoothing: str) -> None:
    found = measure_users([ANN, BOB], np.array([0, 1]), CORPUS, smoothing=smoothing)
    assert found["central"].tolist() == found["group-user"].tolist() == [0, 0]
    assert set(found) == set(WAYS) and all((values >= 0).all() for values in found.values())


def test_one_cover_of_equal_mass_hides_at_most_log_two() -> None:
    """Where nothing but queries is there: half of what is seen is true."""
    only = UserWords(words(2, 3), words(), words(4, 5))
    for smoothing in SMOOTHINGS:
        assert 0 < measure_divergence(only.true, only.true + only.covers, CORPUS, smoothing=smoothing) < np.log(2)


def test_who_never_searched_is_seen_as_the_corpus_and_a_wrong_smoothing_is_refused() -> None:
    assert smooth(words(), CORPUS, smoothing="jelinek-mercer")[2:] == pytest.approx([0.25] * 4)
    assert smooth(words(), CORPUS, smoothing="epsilon")[2:] == pytest.approx([0.25] * 4)
    with pytest.raises(ValueError, match="smoothing is 'none', must be one of jelinek-mercer, epsilon"):
        smooth(words(2), CORPUS, smoothing="none")


def test_groups_are_drawn_even_and_no_larger_than_asked() -> None:
    groups = divide_users(250, seed_key(1))
    assert sorted(np.bincount(groups).tolist()) == [83, 83, 84]
    assert (divide_users(250, seed_key(2)) != groups).any()
    assert np.bincount(divide_users(100, seed_key(1))).tolist() == [100]


def test_words_are_counted_in_queries_clicked_titles_and_covers() -> None:
    users = TinyUsers()
    log = make_log([Search(0, (2, 3), (0, 1), (1,)), Search(9, (2, 1), (2, 3))])
    counted = count_user(users.collection, log, np.array([[[5, 0]], [[5, 6]]]))
    assert counted.queries[:4].tolist() == [0, 0, 2, 1]  # an unknown word counts nowhere
    assert counted.clicked.nonzero()[0].tolist() == sorted(users.collection.titles[1][:3].tolist())
    assert counted.covers[[5, 6]].tolist() == [2, 1]


def test_logs_under_one_id_are_in_the_order_of_time_with_everybodys_lists_and_clicks() -> None:
    first = make_log([Search(0, (2,), (4, 5), (5,)), Search(9000, (3,), (6,))], np.array([0, 1]))
    second = make_log([Search(60, (7,), (8, 9, 10), (9,))])
    joined, owners = join_logs([first, second])
    assert joined.queries[:, 0].tolist() == [2, 7, 3] and owners.tolist() == [0, 1, 0]
    assert joined.documents.tolist() == [4, 5, 8, 9, 10, 6] and joined.starts.tolist() == [0, 2, 5, 6]
    assert joined.documents[joined.is_clicked].tolist() == [5, 9] and joined.sessions.tolist() == [0, 0, 1]


def test_covers_in_a_log_have_lists_no_clicks_and_leave_the_users_own_searches_alone() -> None:
    people = tiny_people()
    log = slice_log(people.population.log_of(1), 0, 6)
    covers = np.roll(log.queries, 1, axis=0)[:, None]
    mixed, is_own = mix_covers(log, covers, people.source.index)
    assert is_own.tolist() == [True, False] * 6 and mixed.n_searches == 12
    assert mixed.queries[is_own].tolist() == log.queries.tolist()
    assert mixed.queries[~is_own].tolist() == covers[:, 0].tolist()
    owners = mixed.owners()
    assert mixed.documents[is_own[owners]].tolist() == log.documents.tolist()
    assert mixed.is_clicked[is_own[owners]].tolist() == log.is_clicked.tolist()
    assert not mixed.is_clicked[~is_own[owners]].any() and (~is_own[owners]).any()


def test_the_light_ranker_finds_the_same_weights_from_parts_as_from_all_logs_together() -> None:
    people = tiny_people()
    parts = []
    for user in range(5):
        record = people.record_of(user)
        parts.append(make_pairs(record.log, record.features, np.arange(21)))
    whole = type(parts[0])(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    assert fit_light(parts) == pytest.approx(fit_light([whole]), abs=1e-9)
    assert len(whole.weights) == 5 * 21 * 3  # one clicked and three others in each list


def test_a_fitted_light_ranker_beats_the_order_it_was_shown() -> None:
    """Clicks go to the documents clicked before: a weight on past clicks finds them, the general order does not."""
    people = tiny_people(TinyUsers(twins=True))
    record = people.record_of(1)
    weights = fit_light([make_pairs(record.log, record.features, np.arange(21))])
    ours = average_precisions(record.log, record.features @ weights, range(21)).mean()
    assert ours > average_precisions(record.log, np.zeros(len(record.features)), range(21)).mean() + 0.1
    assert starting_weights().shape == (record.features.shape[1],)
