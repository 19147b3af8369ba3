"""Cover queries: as long and as clear as the query, about something else, the same again for the same query."""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.privacy.cover_topics import CoverTopics, fit_topics, infer_mix, mix_entropy, read_topics
from hushrank.privacy.cover_words import MOST_DIFFERENCE, CoverWords, make_cover_words, pair_topics
from hushrank.privacy.covers import CoverSettings, cover_query, draw_covers, send_alone
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


@pytest.mark.parametrize(("n_words", "n_covers"), [(3, 1), (4, 2), (12, 10), (12, 20)])
def test_more_covers_than_there_are_other_words_are_refused(n_words: int, n_covers: int) -> None:
    words = np.zeros((2, n_words))
    words[:, 2:] = 1 / (n_words - 2)
    topics = CoverTopics(words, np.array([0.5, 0.5]), prior=0.1)
    with pytest.raises(ValueError, match=f"need at least {n_covers + 1} words, but these topics know {n_words - 2}"):
        make_cover_words(topics, key=seed_key(1), n_covers=n_covers)
    if n_words > 3:
        most = make_cover_words(topics, key=seed_key(1), n_covers=n_words - 3).words[:, 2:]
        assert all(len({word, *most[:, word - 2].tolist()}) == n_words - 2 for word in range(2, n_words))


@cache
def usual_cover_words() -> CoverWords:
    return make_cover_words(clear_topics(), key=seed_key(3), n_covers=1)


def cover_of(text: str, *, key: Array | None = None, topics: CoverTopics | None = None) -> str:
    """The first cover of a text; words that are not among `WORDS` are unknown."""
    if key is None and topics is None:
        made = usual_cover_words()
    else:
        made = make_cover_words(topics or clear_topics(), key=seed_key(3) if key is None else key, n_covers=1)
    numbers = np.array([WORDS.index(word) if word in WORDS else 1 for word in text.split()])
    sent, own = cover_query(text, numbers, made, WORDS, order_key=seed_key(1))
    assert sent.texts[own] == text and len(sent.texts) == 2
    return next(each for place, each in enumerate(sent.texts) if place != own)


QUERY = ("topic0word0", "topic0word5", "topic1word3", "anna", "topic3word1")


@given(st.permutations(range(5)), st.integers(0, 3))
def test_a_cover_is_turned_round_as_its_query_is(order: list[int], n_padding: int) -> None:
    cover = cover_of(" ".join(QUERY)).split()
    assert cover_of(" ".join(QUERY[place] for place in order)).split() == [cover[place] for place in order]
    numbers, topics = np.array([[2, 7, 17, 1, 39]]), clear_topics()
    padded = np.concatenate([numbers, np.zeros((1, n_padding), np.int64)], axis=1)
    assert infer_mix(topics, padded) == pytest.approx(infer_mix(topics, numbers))
    assert draw_covers(topics, padded, key=seed_key(3))[:, :, :5].tolist() == (
        draw_covers(topics, numbers, key=seed_key(3)).tolist()
    )


@given(st.lists(st.sampled_from(QUERY), min_size=1, max_size=5), st.sampled_from(QUERY))
def test_a_query_that_is_made_longer_has_a_cover_that_is_made_longer(words: list[str], added: str) -> None:
    """So nobody sees by common words which texts of two sets belong together."""
    before, after = cover_of(" ".join(words)).split(), cover_of(" ".join([*words, added])).split()
    assert after[:-1] == before
    is_same = [first == second for first in words for second in words]
    assert [first == second for first in before for second in before] == is_same  # repeats what the query repeats


def test_only_a_word_without_a_title_gives_way_where_another_word_has_its_cover() -> None:
    """And nothing is repeated. 60 words without a title beside each of 48: a first try is taken in 1 of 48 pairs."""
    known, unknown = {word: cover_of(word) for word in WORDS[2:]}, {f"anna{n}": cover_of(f"anna{n}") for n in range(60)}
    n_moved = 0
    for word, cover in known.items():
        for other, usual in unknown.items():
            first, second = cover_of(f"{other} {word}").split()
            assert second == cover and (first != usual) == (usual == cover) and first != second
            n_moved += first != usual
    assert n_moved == len(unknown)  # each word is the cover of one that titles have


def test_no_word_stands_for_two_nor_for_itself_nor_twice_for_the_same() -> None:
    made = make_cover_words(clear_topics(), key=seed_key(2), n_covers=3).words
    assert not made[:, :2].any()
    for cover in made:
        assert sorted(cover[2:]) == list(range(2, len(WORDS)))
    for word in range(2, len(WORDS)):
        assert len({word, *made[:, word].tolist()}) == 4


def test_covers_belong_to_a_version_of_the_topics_which_travels_with_them() -> None:
    topics = clear_topics()
    refitted = CoverTopics(topics.words, np.array([0.25, 0.25, 0.26, 0.24]), topics.prior)
    assert read_topics(read_topics(topics.as_arrays()).as_arrays()).version == topics.version != refitted.version
    queries = [f"topic{n // EACH}word{n % EACH}" for n in range(40)]
    n_same = sum(cover_of(query) == cover_of(query, topics=refitted) for query in queries)
    assert n_same < 12  # none is kept but by chance: of 40, each one of 36 words at best


def test_covers_have_as_many_words_of_one_topic_that_the_query_is_not_about() -> None:
    queries = np.array([[2, 3, 0], [14, 0, 0], [26, 27, 28], [40, 1, 0]] * 25)
    queries = queries + np.where(queries > 1, np.repeat(np.arange(25), 4)[:, None] % 6, 0)
    covers = draw_covers(clear_topics(), queries, key=seed_key(3), n_covers=2)
    assert covers.shape == (100, 2, 3)
    for query, each in zip(queries, covers, strict=True):
        for cover in each:
            assert np.count_nonzero(cover) == np.count_nonzero(query)
            of_known = cover[query > 1]
            assert len(topic_of(of_known)) == 1 and not topic_of(of_known) & topic_of(query)
            assert len(set(of_known)) == len(of_known)  # no word twice


def test_words_are_as_clear_as_those_that_stand_for_them_where_ten_tries_find_one() -> None:
    """The last two words of every topic belong to all: they are vague, and so must be what stands for them."""
    words = clear_topics().words.copy()
    for place in (EACH - 2, EACH - 1):
        words[:, 2 + place :: EACH] = 1 / EACH / N_TOPICS
    topics = CoverTopics(words / words.sum(axis=1, keepdims=True), np.full(4, 0.25), prior=0.1)
    queries = np.arange(2, len(WORDS))[:, None]
    made = np.concatenate([draw_covers(topics, queries, key=seed_key(n)) for n in range(50)], axis=1)
    ours = mix_entropy(infer_mix(topics, made.reshape(-1, 1))).reshape(-1, 50)
    theirs = mix_entropy(infer_mix(topics, queries))
    fits, is_vague = np.abs(ours - theirs[:, None]) <= MOST_DIFFERENCE, theirs > 1.2
    by_chance = is_vague.mean()
    assert np.count_nonzero(is_vague) == 2 * N_TOPICS
    assert fits[~is_vague].mean() > 0.9 and fits[is_vague].mean() > 3 * by_chance


def test_an_unlike_topic_is_of_the_half_with_the_smallest_shares_in_proportion_to_the_corpus() -> None:
    """Topic 3 has the most words and chooses first: 0 and 1 are the half, with shares of 1 to 3."""
    topics = CoverTopics(clear_topics().words, np.array([0.1, 0.3, 0.2, 0.4]), prior=0.1)
    mixes = infer_mix(topics, np.arange(len(WORDS))[:, None])
    draws = (np.arange(1000) + 0.5) / 1000
    found = np.array([pair_topics(topics, mixes, np.full(4, draw)) for draw in draws])
    assert all(len(set(each)) == 4 for each in found.tolist()) and (found != np.arange(4)).all()  # one for each
    assert np.bincount(found[:, 3], minlength=4).tolist() == [250, 750, 0, 0]


def test_who_asks_again_has_the_same_covers_and_a_secret_of_another_account_others() -> None:
    secret, again, other = (cast("Array", KeyedEntropy(secret=bytes([n]) * 32)) for n in (1, 1, 2))
    text = "topic0word0 topic0word1"
    assert cover_of(text, key=secret) == cover_of(text, key=again) != cover_of(text, key=other)
    assert cover_of("anna of bern", key=secret) != cover_of("berta of ulm", key=secret)  # words that no title has


def test_a_query_stands_anywhere_among_its_covers_and_pauses_are_drawn() -> None:
    made = make_cover_words(clear_topics(), key=seed_key(1), n_covers=2)
    draws = [
        cover_query("a b", np.array([2, 3]), made, WORDS, longest_pause_s=0.5, order_key=key)
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
        read_topics({**good, "words": np.full_like(good["words"], 1 / len(WORDS))})
    with pytest.raises(ValueError, match="n_covers is 0, must be from 1 to 20"):
        CoverSettings(n_covers=0)
    with pytest.raises(ValueError, match="no known word"):
        fit_topics(np.ones((3, 50), np.int32), 10, key=seed_key(1))
