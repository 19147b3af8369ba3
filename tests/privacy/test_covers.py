"""Cover queries: as long and as clear as the query, about something else, the same again for the same query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.privacy.cover_topics import CoverTopics, fit_topics, infer_mix, mix_entropy, read_topics
from hushrank.privacy.covers import (
    MOST_DIFFERENCE,
    CoverSettings,
    choose_unlike,
    cover_query,
    draw_covers,
    send_alone,
)
from hushrank.streams import ENTROPY, KeyedEntropy, seed_key
from hushrank.types import Array, PrivateQueries

N_TOPICS, EACH = 4, 12
WORDS = ("", "?", *(f"topic{n // EACH}word{n % EACH}" for n in range(N_TOPICS * EACH)))


def clear_topics() -> CoverTopics:
    """Four topics of twelve words each that share none."""
    words = np.zeros((N_TOPICS, len(WORDS)))
    for topic in range(N_TOPICS):
        words[topic, 2 + topic * EACH : 2 + (topic + 1) * EACH] = 1 / EACH
    return CoverTopics(words, np.full(N_TOPICS, 1 / N_TOPICS), prior=0.1)


def topic_of(numbers: Array) -> set[int]:
    return {(int(number) - 2) // EACH for number in numbers if number > 1}


def test_the_mix_of_a_query_of_one_topic_is_worked_by_hand() -> None:
    """Both words can only be of topic 0: (.1 + 2) / (2 + 4 x .1), and .1 / 2.4 for the others."""
    (mix,) = infer_mix(clear_topics(), np.array([[2, 3, 0]]))
    assert mix == pytest.approx([2.1 / 2.4, 0.1 / 2.4, 0.1 / 2.4, 0.1 / 2.4])
    expected = -(0.875 * np.log(0.875) + 3 / 24 * np.log(1 / 24))
    assert mix_entropy(mix) == pytest.approx(expected)


def test_a_query_without_a_known_word_may_be_about_anything() -> None:
    (mix,) = infer_mix(clear_topics(), np.array([[1, 1, 0]]))
    assert mix == pytest.approx([0.25] * 4) and mix_entropy(mix) == pytest.approx(np.log(4))


@given(st.permutations(range(5)), st.integers(0, 3))
def test_order_and_padding_of_a_query_change_neither_mix_nor_covers(order: list[int], n_padding: int) -> None:
    query = np.array([2, 3, 15, 20, 1])
    other = np.concatenate([query[order], np.zeros(n_padding, np.int64)])
    topics = clear_topics()
    assert infer_mix(topics, other[None])[0] == pytest.approx(infer_mix(topics, query[None])[0])
    texts = [" ".join(f"w{n}" for n in numbers if n) for numbers in (query, other)]
    sent = [
        cover_query(text, numbers, topics, WORDS, key=seed_key(3))[0].texts
        for text, numbers in zip(texts, (query, other), strict=True)
    ]
    assert set(sent[0]) - {texts[0]} == set(sent[1]) - {texts[1]}


def test_covers_have_as_many_words_of_one_topic_that_the_query_is_not_about() -> None:
    queries = np.array([[2, 3, 0], [14, 0, 0], [26, 27, 28], [40, 1, 0]] * 25)
    queries = queries + np.where(queries > 1, np.repeat(np.arange(25), 4)[:, None] % 6, 0)
    covers = draw_covers(clear_topics(), queries, key=seed_key(3), n_covers=2)
    assert covers.shape == (100, 2, 3)
    for query, each in zip(queries, covers, strict=True):
        for cover in each:
            assert np.count_nonzero(cover) == np.count_nonzero(query)
            assert len(topic_of(cover)) == 1 and not topic_of(cover) & topic_of(query)
            assert len(set(cover[cover > 0])) == np.count_nonzero(cover)  # no word twice


def test_covers_are_as_clear_as_their_queries_where_ten_tries_find_one() -> None:
    """The last two words of every topic belong to all: queries of these are vague, and so must their covers be."""
    words = clear_topics().words.copy()
    for place in (EACH - 2, EACH - 1):
        words[:, 2 + place :: EACH] = 1 / EACH / N_TOPICS
    topics = CoverTopics(words / words.sum(axis=1, keepdims=True), np.full(4, 0.25), prior=0.1)
    queries = np.array([[n, 0] for n in range(2, len(WORDS))])
    covers = draw_covers(topics, queries, key=seed_key(5), n_covers=20)
    ours = mix_entropy(infer_mix(topics, covers.reshape(-1, 2))).reshape(-1, 20)
    theirs = mix_entropy(infer_mix(topics, queries))
    fits, is_vague = np.abs(ours - theirs[:, None]) <= MOST_DIFFERENCE, theirs > 1.2
    assert np.count_nonzero(is_vague) == 2 * N_TOPICS and fits[~is_vague].all()
    expected = 1 - (1 - 7 / 48) ** 10  # ten tries; 8 words are vague, of weight 1/48 each, and one is the query's
    assert abs(fits[is_vague].mean() - expected) < 4 * (expected * (1 - expected) / 160) ** 0.5


def test_an_unlike_topic_is_of_the_half_with_the_smallest_shares_in_proportion_to_the_corpus() -> None:
    mix, shares = np.array([[0.6, 0.3, 0.07, 0.03]]), np.array([0.1, 0.1, 0.2, 0.6])
    draws = (np.arange(1000) + 0.5) / 1000
    found = choose_unlike(shares, np.repeat(mix, 1000, axis=0), draws)
    assert np.bincount(found, minlength=4).tolist() == [0, 0, 250, 750]  # 0.2 to 0.6


def test_who_asks_again_has_the_same_covers_and_a_secret_of_another_device_others() -> None:
    secret, other = (KeyedEntropy(secret=bytes([n]) * 32) for n in (1, 2))

    def covers(text: str, numbers: list[int], key: object) -> set[str]:
        sent, own = cover_query(text, np.array(numbers), clear_topics(), WORDS, key=key)  # type: ignore[arg-type]
        assert sent.texts[own] == text
        return set(sent.texts) - {text}

    assert covers("topic0word0 topic0word1", [2, 3], secret) == covers("topic0word0 topic0word1", [2, 3], secret)
    assert covers("topic0word0 topic0word1", [2, 3], secret) != covers("topic0word0 topic0word1", [2, 3], other)
    assert covers("anna of bern", [1, 1, 1], secret) != covers("berta of ulm", [1, 1, 1], secret)  # unknown words


def test_a_query_stands_anywhere_among_its_covers_and_pauses_are_drawn() -> None:
    settings = CoverSettings(n_covers=2, longest_pause_s=0.5)
    draws = [
        cover_query("a b", np.array([2, 3]), clear_topics(), WORDS, key=seed_key(1), settings=settings, order_key=key)
        for key in [*map(seed_key, range(300)), ENTROPY]
    ]
    places = np.bincount([own for _, own in draws], minlength=3)
    assert (np.abs(places - 100) < 4 * np.sqrt(300 * 2 / 9)).all()  # four standard deviations of a fair choice
    assert all(sent.pauses_s[0] == 0 and 0 < min(sent.pauses_s[1:]) <= max(sent.pauses_s) < 0.5 for sent, _ in draws)
    assert all(isinstance(sent, PrivateQueries) and "no guarantee" in sent.guarantee for sent, _ in draws)
    assert send_alone("a b")[0].texts == ("a b",)


def test_lda_finds_planted_topics_and_its_arrays_travel() -> None:
    rng = np.random.default_rng(2)
    planted = rng.integers(0, 3, 300)
    titles = np.zeros((300, 50), np.int32)
    titles[:, :8] = [rng.choice(np.arange(2 + 10 * t, 12 + 10 * t), 8, replace=False) for t in planted]
    topics = read_topics(fit_topics(titles, 32, key=seed_key(1), n_topics=3).as_arrays())
    found = np.argmax(infer_mix(topics, titles[:, :8]), axis=1)
    assert len(set(zip(planted, found, strict=True))) == 3  # one found topic for each planted one
    assert not topics.words[:, :2].any() and topics.words.sum(axis=1) == pytest.approx(np.ones(3))


def test_what_are_no_topics_or_settings_is_refused() -> None:
    good = dict(clear_topics().as_arrays())
    with pytest.raises(ValueError, match="lack words"):
        read_topics({name: part for name, part in good.items() if name != "words"})
    with pytest.raises(ValueError, match="must have one number for each of at least 2 topics"):
        read_topics({**good, "shares": np.ones(3) / 3})
    with pytest.raises(ValueError, match="finite, not negative, with sum 1"):
        read_topics({**good, "words": np.full_like(good["words"], np.nan)})
    with pytest.raises(ValueError, match="padding and unknown words have probability 0"):
        read_topics({**good, "words": np.ones_like(good["words"])})
    with pytest.raises(ValueError, match="n_covers is 0, must be from 1 to 20"):
        CoverSettings(n_covers=0)
    with pytest.raises(ValueError, match="no known word"):
        fit_topics(np.ones((3, 50), np.int32), 10, key=seed_key(1))
