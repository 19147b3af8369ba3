"""The mean until there is evidence: what counts as evidence, who is left out and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeds import pick_seed

from hushrank.aggregation.copies import find_copies, find_voices
from hushrank.aggregation.mean import mean_gathered
from hushrank.aggregation.watchful import Watchful, choose_suspects, find_directions
from hushrank.types import Array, Combined, Gathered

N, P = 10, 8
WAY = np.linspace(0.1, 0.5, P)  # what everybody learns, beside noise of 1


def play(
    n_rounds: int,
    lie: Callable[[Array], Array] = np.array,
    *,
    n: int = N,
    liars: int = 3,
    wakes: range = range(1, 10**6),
    way: Array = WAY,
) -> list[Combined]:
    """Rounds of n clients who learn the same way with noise; the liars send lie(what they learnt) from `wakes` on."""
    draws, seen = np.random.default_rng(pick_seed(3)), list[Combined]()
    gathered = Gathered(np.zeros((n, P)), np.full(n, 5.0), np.arange(n), np.zeros(P), 0)
    for round in range(1, n_rounds + 1):
        updates = way + draws.standard_normal((n, P))
        if round in wakes:
            updates[:liars] = lie(updates[:liars])
        memory = seen[-1].memory if seen else {}
        seen.append(Watchful()(replace(gathered, updates=updates, round=round, memory=memory)))
    return seen


def left_out(combined: Combined) -> list[int]:
    assert combined.trust is not None
    return np.flatnonzero(combined.trust < 1).tolist()


def test_while_nobody_is_doubted_it_is_the_weighted_mean_bit_by_bit() -> None:
    draws, memory = np.random.default_rng(pick_seed(5)), dict[str, Array]()
    for round in range(1, 301):  # a way that every update follows, so that there is no opposition
        updates, weights = (9 * WAY + draws.standard_normal((N, P))).astype(np.float32), draws.uniform(1, 9, N)
        found = Watchful()(Gathered(updates, weights, np.arange(N), np.zeros(P), round, memory))
        assert found.update.tolist() == mean_gathered(updates, weights).tolist() and found.evidence["alike"] == 0
        memory = dict(found.memory)


def test_with_noisy_updates_doubt_shortens_few_and_leaves_nobody_out() -> None:
    seen, draws = play(1000, liars=0), np.random.default_rng(pick_seed(3))
    means = np.array([(WAY + draws.standard_normal((N, P))).mean(axis=0) for _ in seen])
    found = np.array([each.update for each in seen])
    assert all(left_out(each) == [] for each in seen)
    np.testing.assert_allclose(found.sum(axis=0) @ WAY, means.sum(axis=0) @ WAY, rtol=0.03)  # what is learnt in all
    assert np.mean(np.linalg.norm(found - means, axis=1) > 1e-9) < 0.5


NOISE = np.random.default_rng(4)  # however it falls, it is loud
LIES: dict[str, Callable[[Array], Array]] = {
    "opposite": lambda updates: -updates,
    "equal": lambda updates: np.repeat(-updates[:1], len(updates), axis=0),
    "loud": lambda updates: 9 * updates,
    "noise": lambda updates: 9 * NOISE.standard_normal(updates.shape),
}


@pytest.mark.parametrize("lie", LIES)
def test_liars_and_nobody_else_are_left_out(lie: str) -> None:
    last = play(400, LIES[lie])[-1]
    assert left_out(last) == [0, 1, 2]
    assert last.evidence["left_out"] == 3


def test_nobody_has_to_say_how_many_lie() -> None:
    for liars in (1, 2, 4):
        assert left_out(play(400, LIES["opposite"], liars=liars)[-1]) == list(range(liars))


def test_sleepers_are_caught_after_they_wake_and_forgiven_after_they_stop() -> None:
    seen = play(1500, LIES["opposite"], wakes=range(300, 700))
    assert left_out(seen[298]) == [] and left_out(seen[698]) == [0, 1, 2] and left_out(seen[-1]) == []


def test_a_single_shout_is_cut_to_five_times_the_median_length() -> None:
    found = play(100, lambda updates: 1e9 * updates, liars=1, wakes=range(100, 101))[-1]
    assert left_out(found) == [] and np.linalg.norm(found.update) < 5


def test_clients_who_agree_on_nothing_are_not_expelled() -> None:
    ways = np.repeat(np.eye(P)[:5] - np.eye(P)[1:6], 2, axis=0)  # five pairs, each with a way of its own; no majority
    assert all(left_out(found) == [] for found in play(600, way=ways))


def test_two_halves_that_pull_apart_are_no_attack() -> None:
    ways = np.where(np.arange(N)[:, None] < N // 2, WAY, -WAY)
    assert all(left_out(found) == [] for found in play(600, way=ways))


def test_four_clients_are_too_few_to_judge_one() -> None:
    assert left_out(play(400, LIES["opposite"], n=4, liars=1)[-1]) == []


def test_where_no_majority_would_be_left_nobody_is_left_out() -> None:
    suspicion, nobody, here = np.array([3.0, 2.0, 9.0, 1.0, 0.0]), np.zeros(5, np.bool_), np.arange(5)
    assert choose_suspects(suspicion, nobody, here).tolist() == [False] * 5  # four of five
    calm = np.where(here < 2, suspicion, 0.0)
    assert choose_suspects(calm, nobody, here).tolist() == [True, True, False, False, False]  # two of five


def test_who_was_out_stays_out_until_half_of_the_evidence_is_gone() -> None:
    suspicion, was_out = np.array([0.6, 0.6, 0.4, 0.0, 0.0]), np.array([True, False, True, False, False])
    assert choose_suspects(suspicion, was_out, np.arange(5)).tolist() == [True, False, False, False, False]


@pytest.mark.parametrize(("were_out", "evidence"), [(True, 2.0), (True, 0.0), (False, 2.0)])
def test_clients_who_are_not_asked_count_as_those_who_are(were_out: bool, evidence: float) -> None:
    """20 known, eight of whom are asked and suspected; nine others are out, or would be."""
    here, others = np.arange(9, 17), np.arange(20) < 9
    suspicion, was_out = np.where(others, evidence, 0.0), others & were_out
    suspicion[here] = 2.0
    assert not choose_suspects(suspicion, was_out, here).any()  # 17 of 20
    suspicion[here[1:]] = 0.0
    assert not choose_suspects(suspicion, was_out, here).any()  # half
    others[8] = suspicion[8] = was_out[8] = 0
    assert np.flatnonzero(choose_suspects(suspicion, was_out, here))[-1] == 9  # nine of 20


@given(st.lists(st.tuples(st.floats(0, 2), st.booleans(), st.booleans()), min_size=5, max_size=12))
def test_a_majority_is_never_left_out_whoever_is_asked(clients: list[tuple[float, bool, bool]]) -> None:
    suspicion, was_out, is_asked = (np.array(values) for values in zip(*clients, strict=True))
    here = np.flatnonzero(is_asked)
    is_out = choose_suspects(suspicion, was_out, here)
    assert 2 * np.count_nonzero(is_out) < len(clients)
    if is_out.any():
        assert is_out[~is_asked].tolist() == was_out[~is_asked].tolist()


def test_a_round_in_which_the_absent_and_the_present_would_be_too_many_still_moves_the_ranker() -> None:
    memory, ids = dict(play(6, n=20, liars=0)[-1].memory), np.arange(9, 17)
    memory |= {"is_out": np.arange(20) < 9, "loudness": np.where(np.arange(20) < 17, 10.0, 0.0)}
    updates = WAY + np.random.default_rng(pick_seed(11)).standard_normal((8, P))
    found = Watchful()(Gathered(updates, np.ones(8), ids, np.zeros(P), 7, memory))
    assert not found.memory["is_out"].any() and left_out(found) == [] and found.evidence["left_out"] == 0
    assert found.update.any()


def rounds_of(ids: list[int], found: Combined, draws: np.random.Generator, round: int) -> Combined:
    """One more round, of some clients; those below 3 oppose."""
    updates = np.where(np.array(ids)[:, None] < 3, -1, 1) * WAY + draws.standard_normal((len(ids), P))
    return Watchful()(Gathered(updates, np.ones(len(ids)), np.array(ids), np.zeros(P), round, found.memory))


def test_rounds_in_which_only_caught_clients_answer_move_nothing_and_pardon_nobody() -> None:
    draws, found = np.random.default_rng(pick_seed(6)), play(400, LIES["opposite"])[-1]
    for ids in ([0, 1], [2], [0, 1, 2]):
        found = rounds_of(ids, found, draws, 401)
        assert not found.update.any() and left_out(found) == list(range(len(ids)))
    assert all(np.isfinite(array).all() for array in found.memory.values())
    assert left_out(rounds_of(list(range(10)), found, draws, 402)) == [0, 1, 2]


def test_the_first_agreements_may_all_be_zero() -> None:
    memory, apart = dict[str, Array](), np.eye(P)[:6]  # nobody has a parameter in common with anybody
    for round in range(1, 20):
        found = Watchful()(Gathered(apart, np.ones(6), np.arange(6), np.zeros(P), round, memory))
        memory = dict(found.memory)
    assert all(np.isfinite(array).all() for array in memory.values()) and np.isfinite(found.evidence["opposition"])


CYCLES = {"and nothing": (-4.5, 1e-3), "half": (-9.5, 4.8, 1.0), "all": (-9.5, 9.5), "late": (-9.5, *[1.0] * 5)}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("paid", CYCLES)
def test_liars_who_pay_for_lies_hold_up_a_little_of_what_is_learnt(paid: str, *, together: bool) -> None:
    """In lengths of their honest updates; together: along the way itself, rather than what each learnt."""
    draws, usual = np.random.default_rng(pick_seed(7)), np.sqrt(P)

    def lie(updates: Array, round: int) -> Array:
        own = usual * WAY / np.linalg.norm(WAY) + 0.3 * draws.standard_normal((3, P)) if together else updates[:3]
        return np.concatenate([CYCLES[paid][round % len(CYCLES[paid])] * own, updates[3:]])

    lied, honest = play_frames(lie, n_rounds=600), play_frames(lambda updates, _: updates, n_rounds=600)
    learnt, usual_learnt = (sum(found.update @ WAY for _, found in seen) for seen in (lied, honest))
    assert learnt > 0.6 * usual_learnt
    assert all(set(left_out(found)) <= {0, 1, 2} for _, found in lied)


def test_updates_that_are_alike_by_chance_are_no_conspiracy() -> None:
    draws, memory = np.random.default_rng(pick_seed(8)), dict[str, Array]()
    for round in range(1, 101):  # two parameters: most of 100 directions have a near neighbour
        updates = 0.5 + draws.standard_normal((100, 2))
        found = Watchful()(Gathered(updates, np.ones(100), np.arange(100), np.zeros(2), round, memory))
        memory = dict(found.memory)
        assert left_out(found) == []


def play_frames(frame: Callable[[Array, int], Array], *, n_rounds: int = 400) -> list[tuple[Array, Combined]]:
    """Rounds of ten clients as they arrive, frame(what they learnt, round), and what comes of them."""
    draws, memory, seen = np.random.default_rng(pick_seed(9)), dict[str, Array](), list[tuple[Array, Combined]]()
    for round in range(1, n_rounds + 1):
        updates = frame(WAY + draws.standard_normal((N, P)), round)
        seen.append((updates, Watchful()(Gathered(updates, np.ones(N), np.arange(N), np.zeros(P), round, memory))))
        memory = dict(seen[-1][1].memory)
    return seen


def copy_others(updates: Array, liars: int) -> Array:
    """The first clients send what as many others learnt."""
    return np.concatenate([updates[liars : 2 * liars], updates[liars:]])


@pytest.mark.parametrize("every", [1, 2, 5, 8])
@pytest.mark.parametrize("liars", [1, 2, 3, 4])
def test_whoever_is_copied_is_never_left_out(liars: int, every: int) -> None:
    seen = play_frames(lambda updates, r: copy_others(updates, liars) if r <= 10 or r % every == 0 else updates)
    assert all(left_out(found) == [] for _, found in seen)


def test_whoever_copies_one_after_another_loses_its_own_vote_and_nobody_elses() -> None:
    seen = play_frames(lambda updates, r: np.concatenate([updates[[1 + (r // 10) % 9]], updates[1:]]))
    assert all(left_out(found) == [] and found.evidence["alike"] == 1 for _, found in seen[10:])


@pytest.mark.parametrize("length", [1e-9, 4.5])
def test_several_liars_who_copy_one_client_do_not_dilute_it(length: float) -> None:
    def dilute(updates: Array, _round: int) -> Array:
        return np.concatenate([np.repeat(length * updates[3:4], 3, axis=0), updates[3:]])

    for updates, found in play_frames(dilute, n_rounds=60)[10:]:
        assert left_out(found) == [] and found.evidence["alike"] == 3
        vote, own = 7 * found.update - updates[4:].sum(axis=0), np.linalg.norm(updates[3])
        median = np.median(np.linalg.norm(updates, axis=1))
        np.testing.assert_allclose(vote / np.linalg.norm(vote), updates[3] / own, atol=1e-6)
        assert np.linalg.norm(vote) > 0.999 * min(own, median)  # its own, cut to the median length as in doubt


def test_liars_who_frame_others_and_push_between_are_left_out_alone() -> None:
    def switch_off(updates: Array, round: int) -> Array:
        if round <= 8 or round % 8 == 0:
            return copy_others(updates, 3)
        return np.concatenate([np.repeat(-4 * updates[3:].mean(axis=0, keepdims=True), 3, axis=0), updates[3:]])

    seen = [left_out(found) for _, found in play_frames(switch_off)]
    assert all(set(out) <= {0, 1, 2} for out in seen) and all(out == [0, 1, 2] for out in seen[200:])


def test_equal_lies_have_one_vote_until_they_are_left_out() -> None:
    seen = play(400, LIES["equal"], liars=4)
    n_alike = [found.evidence["alike"] for found in seen]
    assert n_alike[4:8] == [0, 3, 3, 3] and left_out(seen[7]) == []  # .9 a round: the sixth copy is enough
    assert left_out(seen[-1]) == [0, 1, 2, 3] and n_alike[-1] == 0


def test_of_several_copies_the_one_that_moves_the_mean_most_speaks() -> None:
    updates, all_alike = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]), np.arange(5) != 4
    everybody, ones = np.ones(5, np.bool_), np.ones(5)
    assert find_voices(updates, ones, all_alike, everybody).tolist() == [1, 1, 2, 1, 4]  # 2.002 is longest
    assert find_voices(updates, np.array([3.0, 1, 1, 1, 1]), all_alike, everybody).tolist() == [0, 0, 2, 0, 4]
    assert find_voices(updates, ones, all_alike, np.arange(5) == 0).tolist() == [3, 1, 2, 3, 4]  # nobody else may copy
    assert find_voices(updates, ones, all_alike, ~everybody).tolist() == list(range(5))


@given(st.integers(0, 2**32 - 1))
def test_whoever_does_not_speak_has_a_voice_that_is_near_and_no_weaker(seed: int) -> None:
    draws = np.random.default_rng(seed)
    updates, weights = 1 + draws.standard_normal((12, 3)), draws.uniform(1, 5, 12)
    may_copy = draws.random(12) < 0.7
    voices = find_voices(updates, weights, np.ones(12, np.bool_), may_copy)
    spoken, strength = updates[voices], weights * np.linalg.norm(updates, axis=1)
    cosines = np.einsum("ip,ip->i", updates, spoken) / np.linalg.norm(updates, axis=1) / np.linalg.norm(spoken, axis=1)
    assert (cosines > 0.95).all() and (strength[voices] >= strength).all()
    assert (voices[voices] == voices).all() and (voices == np.arange(12))[~may_copy].all()


def test_clients_who_are_long_gone_are_forgotten() -> None:
    draws, found = np.random.default_rng(pick_seed(2)), play(10)[-1]
    assert len(found.memory["ids"]) == 10
    assert rounds_of([20, 21, 22], found, draws, 2010).memory["ids"].tolist() == [20, 21, 22]
    assert len(rounds_of([20, 21, 22], found, draws, 2009).memory["ids"]) == 13


def test_clients_come_and_go_and_are_known_again_by_their_numbers() -> None:
    draws, rule, memory = np.random.default_rng(pick_seed(9)), Watchful(), dict[str, Array]()
    for round in range(1, 1201):
        ids = np.sort(draws.choice(40, 12, replace=False)) * 1000  # a cohort of 12 of 40; seven of them lie
        updates = np.where(ids[:, None] < 7000, -1, 1) * WAY + draws.standard_normal((12, P))
        found = rule(Gathered(updates, np.ones(12), ids, np.zeros(P), round, memory))
        memory = dict(found.memory)
    out = memory["ids"][memory["is_out"]]
    assert set(out.tolist()) == {0, 1000, 2000, 3000, 4000, 5000, 6000}


def test_zero_updates_are_neither_copies_nor_evidence() -> None:
    updates = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.01]])
    assert find_copies(updates, np.ones(4, np.bool_)).tolist() == [False, False, True, True]
    assert find_copies(updates, np.arange(4) < 3).tolist() == [False, False, False, True]  # nobody is framed
    assert all(left_out(found) == [] for found in play(200, np.zeros_like))
    nothing = find_directions(np.zeros((3, 2)))
    assert not nothing.x.any() and not nothing.is_there.any()


def test_permuting_the_clients_of_a_round_changes_nothing() -> None:
    draws = np.random.default_rng(pick_seed(1))
    updates, order = WAY + draws.standard_normal((N, P)), draws.permutation(N)
    one = Watchful()(Gathered(updates, np.ones(N), np.arange(N), np.zeros(P), 1))
    other = Watchful()(Gathered(updates[order], np.ones(N), np.arange(N)[order], np.zeros(P), 1))
    np.testing.assert_allclose(one.update, other.update, atol=1e-12)
    np.testing.assert_allclose(one.memory["sums"], other.memory["sums"])


def test_in_a_round_in_which_few_learn_anything_liars_do_not_say_how_long_an_update_is() -> None:
    """Half of the clients or more send nothing, and the liars shout: the length that is usual lately is the measure."""
    seen, draws = play(50, liars=0), np.random.default_rng(pick_seed(12))
    usual = seen[-1].memory["length"]
    updates = WAY + draws.standard_normal((N, P))
    updates[:3] *= 1e6
    updates[5:] = 0
    found = Watchful()(Gathered(updates, np.ones(N), np.arange(N), np.zeros(P), 51, dict(seen[-1].memory)))
    assert np.linalg.norm(found.update) < 5 * usual  # three of ten shout, each five lengths at most
    np.testing.assert_allclose(found.memory["length"], usual)
    assert (found.memory["loudness"][:3] == 1).all()
