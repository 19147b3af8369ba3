"""Proxies: who is below whom, who is asked, what leaves a proxy, and that nobody is lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.aggregation.mean import mean_aggregate
from hushrank.federation.group_server import (
    GroupState,
    SumVerdict,
    add_count,
    add_sum,
    ask_sums,
    begin_attempt,
    has_quorum,
)
from hushrank.federation.hierarchy import (
    Hierarchy,
    ProxyState,
    apply_clients,
    await_answer,
    choose_proxies,
    count_waiting,
    pick_clients,
    settle_step,
    share_step,
    takes_answer,
)
from hushrank.federation.proxy_sum import (
    PartialSum,
    ProxyFormat,
    choose_forwarded,
    count_sendable,
    forward_sum,
    join_sums,
    send_sum,
    sum_below_proxies,
    sum_openly,
    sum_secretly,
)
from hushrank.privacy.secure_messages import SumConfig, usual_threshold
from hushrank.privacy.secure_sum import run_secure_sum
from hushrank.streams import fold_in, seed_key
from hushrank.types import Array

KEY = seed_key(5)
N_PARAMS = 7


@dataclass(frozen=True)
class Message:
    delta: Array
    weight: float


def draw_messages(n: int, seed: int = 1) -> list[Message]:
    rng = np.random.default_rng(seed)
    return [Message(rng.normal(0, 0.01, N_PARAMS).astype(np.float32), float(rng.integers(1, 400))) for _ in range(n)]


def is_same(one: PartialSum, other: PartialSum) -> bool:
    counts = (one.weight, one.n_clients) == (other.weight, other.n_clients)
    return counts and np.array_equal(one.total, other.total)


def due_group(model: int, **counts: int) -> GroupState:
    """A group server that is to take sums of the proxies 8 and 9; counts: those of p8 and p9."""
    state = GroupState(1, model, N_PARAMS, frozenset({8, 9}))
    for name, n in counts.items():
        state = add_count(state, int(name[1:]), n, model=model)
    return ask_sums(state)


FORMAT = ProxyFormat(largest=0.1, most_weight=3072, n_clients=11)


def test_users_are_divided_among_proxies_and_one_alone_joins_the_proxy_before() -> None:
    hierarchy = Hierarchy(118_067)
    assert (hierarchy.n_proxies, hierarchy.n_groups) == (1181, 2)
    assert Hierarchy(201).n_proxies == 2 and Hierarchy(201).proxies_of(np.arange(198, 201)).tolist() == [1, 1, 1]
    assert Hierarchy(202).proxies_of(np.array([199, 200, 201])).tolist() == [1, 2, 2]
    small = Hierarchy(5)
    assert (small.n_proxies, small.n_groups, small.proxies_of(np.arange(5)).tolist()) == (1, 1, [0] * 5)
    with pytest.raises(ValueError, match="nobody to hide it among"):
        Hierarchy(5, users_per_proxy=1)


def test_a_proxy_tells_how_many_wait_and_one_alone_is_none() -> None:
    state = apply_clients(ProxyState(), [4])
    assert count_waiting(state) == (0, 0)
    state = apply_clients(apply_clients(state, [7, 4]), [4])  # applying again is harmless
    assert count_waiting(state) == (2, 0)
    with pytest.raises(ValueError, match="1 clients are to be picked, must be from 2 to 2"):
        pick_clients(state, 1, 0, key=KEY)


def test_who_missed_a_step_is_counted_apart_from_those_who_were_not_asked_yet() -> None:
    """As docs/howto/proxies.md says: one that missed its step waits for another one that did."""
    assert count_waiting(ProxyState(fresh=frozenset(range(5)), missed=frozenset([9]))) == (5, 0)
    assert count_waiting(ProxyState(fresh=frozenset([1]), missed=frozenset([9]))) == (0, 0)
    assert count_waiting(ProxyState(fresh=frozenset([1]), missed=frozenset([8, 9]))) == (0, 2)


@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 40).filter(lambda n: n != 1), min_size=1, max_size=12),
    st.integers(2, 60),
    st.integers(2, 12),
)
def test_a_step_has_as_many_as_were_wanted_and_leaves_nobody_alone(
    waiting: dict[int, int], n_asked: int, each: int
) -> None:
    chosen = choose_proxies(waiting, n_asked, clients_each=each, key=KEY)
    total, there = sum(chosen.values()), sum(waiting.values())
    assert min(n_asked, there) <= total <= there and total <= n_asked + len(chosen)
    assert all(2 <= n <= waiting[proxy] and waiting[proxy] - n != 1 for proxy, n in chosen.items())
    shares = share_step({0: there, 1: 3, 2: 0}, n_asked, clients_each=each, key=KEY)
    assert sum(shares.values()) == min(n_asked, there + 3) and 2 not in shares


def test_a_tenth_of_k_proxies_give_ten_clients_each() -> None:
    chosen = choose_proxies(dict.fromkeys(range(50), 100), 100, clients_each=10, key=KEY)
    assert len(chosen) == 10 and set(chosen.values()) == {10}
    assert set(chosen) != set(choose_proxies(dict.fromkeys(range(50), 100), 100, clients_each=10, key=seed_key(6)))
    few = choose_proxies({0: 100, 1: 100, 2: 100}, 100, clients_each=10, key=KEY)
    assert sorted(few.values()) == [32, 34, 34]  # fewer proxies than a tenth of K: each gives more
    assert choose_proxies({0: 1, 1: 1}, 10, clients_each=10, key=KEY) == {}


def test_groups_are_asked_in_proportion_to_those_who_wait() -> None:
    found = [share_step({0: 900, 1: 100}, 10, clients_each=10, key=fold_in(KEY, np.asarray(n))) for n in range(300)]
    first = sum(shares.get(0, 0) for shares in found) / 3000
    assert 0.85 < first < 0.95  # 2.9 standard deviations of 300 draws


def test_whoever_is_in_no_confirmed_sum_waits_on() -> None:
    """A late answer, a sum that is not forwarded, a proxy that vanishes before it is confirmed: nobody is lost."""
    state = pick_clients(apply_clients(ProxyState(), range(6)), 3, 0, key=KEY)
    asked = sorted(state.asked)
    after = settle_step(state, asked[:2])
    assert after.waiting == frozenset(range(6)) - set(asked[:2]) and not after.asked
    assert after.missed == {asked[2]} and apply_clients(after, [asked[2]]) == after  # behind those not asked yet
    assert not takes_answer(after, asked[2])  # it comes back late: thrown away, and its client waits
    assert settle_step(state, []).waiting == frozenset(range(6))  # the proxy vanished: nothing was confirmed
    again = pick_clients(state, 2, 0, key=seed_key(8))  # it comes back without having sent anything
    assert again.waiting == state.waiting and len(again.asked) == 2
    assert settle_step(after, asked[:2]).waiting == after.waiting  # confirmed twice: counted once


def test_a_proxy_asks_nobody_until_it_knows_what_has_become_of_its_sum() -> None:
    state = pick_clients(apply_clients(ProxyState(), range(6)), 2, 0, key=KEY)
    sent = await_answer(state, state.asked)
    assert count_waiting(sent) == (0, 0) and sent.waiting == state.waiting
    with pytest.raises(ValueError, match="a sum of this proxy has left, and nothing was heard of it"):
        pick_clients(sent, 2, 0, key=KEY)
    assert count_waiting(settle_step(sent, state.asked)) == (4, 0)
    assert count_waiting(settle_step(sent, [])) == (4, 2)
    again = apply_clients(settle_step(sent, state.asked), range(6))  # a client that does not know that it is counted
    assert again.waiting == frozenset(range(6)) - state.asked


def test_the_sums_of_proxies_are_the_mean_of_their_clients() -> None:
    messages = draw_messages(9)
    proxies = [0, 0, 0, 0, 1, 1, 2, 2, 2]
    flat = mean_aggregate([Message(m.delta.astype(np.float64), m.weight) for m in messages], n_params=N_PARAMS)
    for format, error in ((None, 1e-15), (FORMAT, 9 * FORMAT.step / 2 / sum(m.weight for m in messages))):
        joined = join_sums(sum_below_proxies(messages, proxies, [False] * 9, format).values())
        assert joined is not None and joined.n_clients == 9 and joined.weight == sum(m.weight for m in messages)
        assert np.abs(joined.total / joined.weight - flat).max() <= error + 1e-15
    assert FORMAT.step / sum(m.weight for m in messages) < 1e-14


def test_the_simulator_adds_the_words_of_the_protocol() -> None:
    messages, asked = draw_messages(11), usual_threshold(11)
    config = SumConfig(b"s" * 16, 11, 2 * N_PARAMS + 2, FORMAT.encoding.bound, asked)
    entropy = {i: bytes([i]) * 32 for i in range(11)}
    values = {i: FORMAT.write(message) for i, message in enumerate(messages)}
    found = FORMAT.read(run_secure_sum(values, config, entropy=entropy).total, n_summed=11)
    ours = sum_secretly(messages, FORMAT)
    assert ours is not None and is_same(ours, found) and ours.weight == sum(m.weight for m in messages)


def test_the_simulator_forwards_what_the_protocol_would_though_two_of_three_have_no_weight() -> None:
    """Nobody sees weights under masks: that one client's update does not pass is up to who applies."""
    format = ProxyFormat(largest=0.1, most_weight=3072, n_clients=3)
    messages = [*draw_messages(1), *[Message(np.zeros(N_PARAMS), 0.0)] * 2]
    config = SumConfig(b"s" * 16, 3, 2 * N_PARAMS + 2, format.encoding.bound, usual_threshold(3))
    values = {i: format.write(message) for i, message in enumerate(messages)}
    total = run_secure_sum(values, config, entropy={i: bytes([i]) * 32 for i in range(3)}).total
    ours = sum_below_proxies(messages, [0] * 3, [False] * 3, format)[0]
    assert ours is not None and is_same(ours, format.read(total, n_summed=3))


def test_a_proxy_refuses_to_forward_one_client() -> None:
    alone, silent = draw_messages(1), [Message(np.zeros(N_PARAMS), 0.0)]
    assert forward_sum(sum_openly(alone)) is None and forward_sum(sum_openly([*alone, *silent])) is None
    assert sum_secretly(alone, FORMAT) is None
    sums = sum_below_proxies([*alone, *draw_messages(2, 3)], [0, 1, 1], [False] * 3, None)
    assert sums[0] is None and sums[1] is not None and sums[1].n_clients == 2
    assert join_sums([None, None]) is None


def test_what_was_handed_over_is_added_by_the_proxy_itself() -> None:
    messages = draw_messages(4)
    is_offloaded = [True, False, False, True]
    joined = sum_below_proxies(messages, [0] * 4, is_offloaded, FORMAT)[0]
    plain = sum_openly(messages)
    assert joined is not None and plain is not None and joined.n_clients == 4
    assert np.abs(joined.total - plain.total).max() <= FORMAT.step  # two roundings
    assert sum_below_proxies(messages[:2], [0] * 2, is_offloaded[:2], FORMAT) == {
        0: None
    }  # a secure sum of one is none, and the other alone is not forwarded


def test_who_is_counted_depends_on_who_else_of_the_proxy_answered() -> None:
    proxies = np.array([0, 0, 0, 1, 1, 2, 2])
    answers = np.array([True, True, False, True, False, True, True])
    nobody = np.zeros(7, bool)
    open_sums = choose_forwarded(proxies, answers, nobody, is_secure=False)
    assert open_sums.tolist() == [True, True, False, False, False, True, True]
    secret = choose_forwarded(proxies, answers, nobody, is_secure=True)
    assert secret.tolist() == [False] * 5 + [True, True]  # two of three are not more than two thirds
    handed = np.array([False, True, True, False, False, False, False])
    assert choose_forwarded(proxies, answers | handed, handed, is_secure=True)[:3].tolist() == [False, True, True]


def test_a_range_without_room_for_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="no room for their weights"):
        ProxyFormat(0.1, 2**30, 2**20)
    with pytest.raises(ValueError, match="7 numbers of updates are beyond 1e-06"):
        ProxyFormat(1e-6, 10, 4).write(draw_messages(1)[0])


def test_a_sum_is_confirmed_whatever_gets_lost_and_counted_once() -> None:
    """The proxy vanishes after it has sent its sum, comes back and sends it again, in its step or in a later one."""
    part, other = (sum_openly(draw_messages(3, seed)) for seed in (1, 2))
    assert part is not None and other is not None
    group, verdict = add_sum(due_group(5, p8=3), 8, part, model=5)
    assert verdict is SumVerdict.counted and group.sums == {8: part}
    assert add_sum(group, 8, part, model=5) == (group, SumVerdict.counted)  # counted once
    assert add_sum(group, 8, other, model=5) == (group, SumVerdict.another)  # another sum of the same model
    again = begin_attempt(group, [8, 9], round=1, model=5)  # the model has not moved: the sum is still to move it
    assert again.sums == group.sums and add_sum(again, 8, part, model=5) == (again, SumVerdict.counted)
    late = begin_attempt(group, [9], round=1, model=6)
    assert not late.sums and add_sum(late, 8, part, model=5) == (late, SumVerdict.counted)
    assert add_sum(late, 8, other, model=5) == (late, SumVerdict.late)  # which was never counted
    later = begin_attempt(late, [9], round=2, model=6)
    assert add_sum(later, 8, part, model=5) == (later, SumVerdict.before)
    with pytest.raises(ValueError, match="Neither goes back"):
        begin_attempt(later, [9], round=2, model=5)


def test_a_client_whose_confirmation_was_lost_is_not_asked_again_in_the_round() -> None:
    """The group server counts the sum, the proxy does not hear of it, and the server moves the model."""
    state = pick_clients(apply_clients(ProxyState(), range(4)), 2, 0, key=KEY)
    kept, part = send_sum(None, sum_openly(draw_messages(2)), state.asked, model=5)
    assert kept is not None and part is not None
    group, _ = add_sum(due_group(5, p8=2), 8, part, model=5)
    proxy = await_answer(state, kept.clients)  # and hears nothing
    group = begin_attempt(group, [9], round=1, model=6)
    group, verdict = add_sum(group, 8, kept.part, model=kept.model)
    assert verdict is SumVerdict.counted and not group.sums
    assert settle_step(proxy, kept.clients).waiting == frozenset(range(4)) - kept.clients


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        (PartialSum(np.full(N_PARAMS, np.nan), 3.0, 2), SumVerdict.no_number),
        (PartialSum(np.full(N_PARAMS, np.inf), 3.0, 2), SumVerdict.no_number),
        *((PartialSum(np.ones(N_PARAMS), weight, 2), SumVerdict.no_number) for weight in (np.nan, np.inf, 0.0, -3.0)),
        (PartialSum(np.ones(N_PARAMS + 1), 3.0, 2), SumVerdict.length),
        (PartialSum(np.ones(1), 3.0, 2), SumVerdict.length),
        (PartialSum(np.ones(N_PARAMS), 3.0, 3), SumVerdict.uncounted),
        (PartialSum(np.ones(N_PARAMS), 3.0, 1), SumVerdict.few),
    ],
)
def test_a_sum_that_cannot_be_right_is_refused_and_the_step_goes_on(part: PartialSum, verdict: SumVerdict) -> None:
    group = due_group(5, p8=2, p9=2)
    assert add_sum(group, 8, part, model=5) == (group, verdict)
    fine = sum_openly(draw_messages(2))
    assert fine is not None and add_sum(group, 9, fine, model=5)[1] is SumVerdict.counted


def test_only_proxies_that_were_asked_and_counted_somebody_are_heard() -> None:
    fine = sum_openly(draw_messages(2))
    assert fine is not None
    group = due_group(5, p8=0, p7=2)  # 7 was not asked
    assert group.counts == {8: 0}
    for proxy in (7, 8, 9):
        assert add_sum(group, proxy, fine, model=5) == (group, SumVerdict.uncounted)


def test_updates_that_are_no_numbers_or_of_another_length_are_left_out_of_a_sum() -> None:
    fine, ones = draw_messages(3), np.ones(N_PARAMS, np.float32)
    bad = [Message(np.full(N_PARAMS, value), 2.0) for value in (np.nan, np.inf, 1e308)]
    bad += [Message(ones, weight) for weight in (np.nan, np.inf, -1.0)]
    bad += [Message(np.ones(1), 2.0), Message(np.ones(N_PARAMS + 1), 2.0)]
    mixed, plain = (sum_openly(some, n_params=N_PARAMS) for some in ([*bad, *fine, *bad], fine))
    assert mixed is not None and plain is not None and is_same(mixed, plain)
    assert sum_openly(bad, n_params=N_PARAMS) is None
    huge = sum_openly([Message(ones * np.float64(1e308), 1.0)] * 2)  # each is a number, and their sum is none
    assert forward_sum(huge) is None
    for weight in (np.nan, np.inf, -3.0):
        with pytest.raises(ValueError, match="must be a number from 0 on"):
            FORMAT.write(Message(ones * 0, weight))


def test_no_two_sums_of_a_proxy_differ_by_one_client() -> None:
    """The attack: one sum of clients 0, 1, 2 and, in another attempt, of 0 and 1, whose difference is the update of 2.

    The group server asks too early, again in the next attempt, and again in a step that begins with the same model.
    """
    messages = draw_messages(3)
    all_three, two = (sum_openly(some) for some in (messages, messages[:2]))
    kept, first = send_sum(None, all_three, range(3), model=5)
    assert first is all_three and kept is not None and kept.clients == {0, 1, 2}
    for _ in range(2):
        kept, again = send_sum(kept, two, range(2), model=5)
        assert again is first  # whoever answered since
    assert send_sum(kept, two, range(2), model=4) == (kept, None)  # nor of a model before
    moved, later = send_sum(kept, two, range(2), model=6)
    assert later is two and moved is not None and moved.clients == {0, 1}  # updates of another model
    assert send_sum(None, sum_openly(messages[:1]), [0], model=5) == (None, None)  # one alone: nothing has left
    assert [count_sendable(kept, 2, model=model) for model in (4, 5, 6)] == [0, 3, 2]  # as many as it would send
    assert [count_sendable(None, n, model=5) for n in (1, 2)] == [0, 2]


def test_sums_are_taken_only_after_a_quorum_and_a_lost_step_loses_nobody() -> None:
    """Two of the six asked can be counted: no quorum. Their proxy's sum is not confirmed, and they wait."""
    state = pick_clients(apply_clients(ProxyState(), range(4)), 3, 0, key=KEY)
    part = sum_openly(draw_messages(2))
    assert part is not None
    first = GroupState(1, 5, N_PARAMS, frozenset({8, 9}))
    group = add_count(add_count(first, 8, 2, model=5), 9, 0, model=5)
    assert sum(group.counts.values()) == 2 and not has_quorum(2, 6) and has_quorum(3, 6) and not has_quorum(1, 2)
    after, verdict = add_sum(group, 8, part, model=5)  # it sends all the same
    done = sorted(state.asked)[:2] if verdict is SumVerdict.counted else []
    assert verdict is SumVerdict.early and not after.sums and settle_step(state, done).waiting == frozenset(range(4))
    enough = ask_sums(add_count(begin_attempt(group, [8, 9], round=1, model=5), 8, 3, model=5))  # the next attempt
    assert enough.counts == {8: 3} and add_count(enough, 8, 2, model=5) == enough  # what the quorum was found with
    assert add_count(enough, 9, 2, model=4) == enough and add_sum(enough, 8, part, model=5)[1] is SumVerdict.counted
    with pytest.raises(ValueError, match="a count of 1 came"):
        add_count(group, 9, 1, model=5)


@given(st.integers(1, 100_000), st.integers(2, 1100), st.floats(1e-4, 10.0))
def test_extreme_updates_are_added_within_half_a_step_each(most_weight: int, n_clients: int, largest: float) -> None:
    format = ProxyFormat(largest, most_weight, n_clients)
    edge = np.array([largest, -largest, 0.0, -largest / 3])
    message = Message(edge, float(most_weight))
    words = np.stack([format.write(message)] * n_clients).sum(axis=0, dtype=np.uint32)
    found = format.decode(words, n_summed=n_clients)
    assert found.weight == n_clients * most_weight
    assert np.abs(found.total - n_clients * most_weight * edge).max() <= n_clients * format.step * 0.5001
