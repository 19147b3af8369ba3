"""Effective and privacy-preserving federated online learning to rank [fpdgd]: Figures 2 and 4 to 6, without noise.

Protocol: 1,000 clients; MQ2007 four interactions a round and 1,000 updates, MSLR-WEB10K two and 200.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from hushrank.experiments.outcome import (
    OFFLINE,
    ONLINE,
    Outcome,
    Pair,
    Verdict,
    all_better,
    all_equal,
    both,
    for_every_user,
)
from hushrank.experiments.reproduction import DataChoice, Reproduction, Scale, Trial, make_trial

_LITTLE = 0.01  # nDCG@10 that counts as "little" or "similar"; Why: half of the spread between folds
_EARLY = 0.1  # share of the interactions that counts as "early"
_WITHOUT_NOISE = "the curves with noise (privacy=paper)"


def protocol(data: DataChoice, scale: Scale) -> tuple[int, int]:
    """(interactions per client and round, updates)"""
    b, updates = (2, 200) if data.is_large else (4, 1000)
    return (b, updates // 10) if scale.quick else (b, updates)


def federation_and_controls(data: DataChoice, scale: Scale) -> list[Trial]:
    """FPDGD, and central PDGD at as many updates, at as many interactions, and in batches of a round."""
    b, updates = protocol(data, scale)
    round_size = 1000 * b
    return [
        make_trial(data, scale, "fpdgd", {"privacy": "none"}, interactions=b, rounds=updates),
        make_trial(data, scale, "pdgd", {"control": "equal updates"}, interactions=1, rounds=updates),
        make_trial(data, scale, "pdgd", {"control": "equal interactions"}, interactions=round_size, rounds=updates),
        make_trial(
            data,
            scale,
            "pdgd",
            {"control": "batches", "batch": round_size},
            interactions=round_size,
            rounds=updates,
            batch=round_size,
        ),
    ]


def federation_beats_control(outcome: Outcome, control: str) -> list[Pair]:
    def pair(data: str, user: str) -> list[Pair]:
        federated = outcome.find(data=data, method="fpdgd").values(user)
        return [Pair(f"{data} {user}", federated, outcome.find(data=data, control=control).values(user))]

    return for_every_user(outcome, pair)


def pdgd_below_at_equal_updates(outcome: Outcome) -> Verdict:
    return all_better(federation_beats_control(outcome, "equal updates"))


def pdgd_above_at_equal_interactions(outcome: Outcome) -> Verdict:
    return all_better(
        [Pair(pair.name, pair.theirs, pair.ours) for pair in federation_beats_control(outcome, "equal interactions")]
    )


def numbers_of_clients(data: DataChoice, scale: Scale) -> list[Trial]:
    b, updates = protocol(data, scale)
    return [
        make_trial(data, scale, "fpdgd", {"n_clients": n}, n_clients=n, interactions=b, rounds=updates)
        for n in (10, 100, 1000)
    ]


def steps(outcome: Outcome, key: str, values: tuple[int, ...], *, metric: str = OFFLINE) -> list[Pair]:
    """Each value of the key against the one before it."""

    def pairs(data: str, user: str) -> list[Pair]:
        found = [outcome.find(data=data, **{key: value}).values(user, metric) for value in values]
        names = [f"{data} {user} {b} over {a}" for a, b in pairwise(values)]
        return [Pair(name, b, a) for name, (a, b) in zip(names, pairwise(found), strict=True)]

    return for_every_user(outcome, pairs)


def more_clients_better(outcome: Outcome) -> Verdict:
    """Higher on average from ten to a thousand, and each step small: equal within twice what counts as little."""
    ends = steps(outcome, "n_clients", (10, 1000))
    gain = fmean(ours - theirs for pair in ends for ours, theirs in zip(*pair.aligned(), strict=True))
    grows = Verdict(gain > 0, None, f"From 10 to 1,000 clients {gain:+.4f} on average.")
    return both(grows, all_equal(steps(outcome, "n_clients", (10, 100, 1000)), margin=2 * _LITTLE))


def further_clients_add_little(outcome: Outcome) -> Verdict:
    return all_equal(steps(outcome, "n_clients", (100, 1000)), margin=_LITTLE)


_BATCHES = (2, 4, 8)


def batches_at_equal_updates(data: DataChoice, scale: Scale) -> list[Trial]:
    updates = protocol(data, scale)[1]
    return [make_trial(data, scale, "fpdgd", {"interactions": b}, interactions=b, rounds=updates) for b in _BATCHES]


def batches_at_equal_budget(data: DataChoice, scale: Scale) -> list[Trial]:
    """As many interactions as the smallest batch has in the protocol's updates."""
    budget = 2 * protocol(data, scale)[1]
    return [
        make_trial(
            data,
            scale,
            "fpdgd",
            {"interactions": b},
            interactions=b,
            rounds=budget // b,
            eval_every=max(1, budget // (10 * b)),
        )
        for b in _BATCHES
    ]


def largest_over_smallest(outcome: Outcome, *, share: float, user: str | None = None) -> list[Pair]:
    """B = 8 against B = 2 after a share of each training."""

    def pair(data: str, who: str) -> list[Pair]:
        large, small = (outcome.find(data=data, interactions=b) for b in (_BATCHES[-1], _BATCHES[0]))
        name = f"{data} {who} after {share:.0%}"
        after = [t.values_after(who, int(share * t.n_interactions)) for t in (large, small)]
        return [Pair(name, *after)] if user in (None, who) else []

    return for_every_user(outcome, pair)


def larger_batch_better(outcome: Outcome) -> Verdict:
    return all_better(largest_over_smallest(outcome, share=1.0))


def batches_meet_for_perfect(outcome: Outcome) -> Verdict:
    early = all_better(largest_over_smallest(outcome, share=_EARLY, user="perfect"))
    return both(early, all_equal(largest_over_smallest(outcome, share=1.0, user="perfect"), margin=_LITTLE))


def batches_differ_less_for_informational(outcome: Outcome) -> Verdict:
    """Early on the gain of a larger batch is smaller for informational users than for perfect ones, and is there."""
    perfect, informational = (
        largest_over_smallest(outcome, share=_EARLY, user=user) for user in ("perfect", "informational")
    )
    gains = [
        Pair(f"{p.name} less informational", _differences(p), _differences(i))
        for p, i in zip(perfect, informational, strict=True)
    ]
    return both(all_better(gains), all_better(informational))


def _differences(pair: Pair) -> dict[tuple[int, int], float]:
    return {cell: pair.ours[cell] - pair.theirs[cell] for cell in pair.ours}


def batch_matters_little(outcome: Outcome) -> Verdict:
    return all_equal(steps(outcome, "interactions", _BATCHES), margin=_LITTLE)


def small_batch_better_early(outcome: Outcome) -> Verdict:
    """After as many interactions, not after the same share of the updates: both have the same budget."""
    return all_better([Pair(p.name, p.theirs, p.ours) for p in largest_over_smallest(outcome, share=_EARLY)])


def small_batch_better_online(outcome: Outcome) -> Verdict:
    """The mean quality of the lists shown; the discounted sum counts rounds, of which a small batch has more."""

    def pair(data: str, user: str) -> list[Pair]:
        small, large = (outcome.find(data=data, interactions=b) for b in (_BATCHES[0], _BATCHES[-1]))
        return [Pair(f"{data} {user}", small.mean_along(user, ONLINE), large.mean_along(user, ONLINE))]

    return all_better(for_every_user(outcome, pair))


REPRODUCTIONS = (
    Reproduction(
        "fpdgd.figure2",
        federation_and_controls,
        {
            "pdgd-below-at-equal-updates": pdgd_below_at_equal_updates,
            "pdgd-above-at-equal-interactions": pdgd_above_at_equal_interactions,
        },
        left_out="the curves with noise (privacy=paper) and of FOLtR-ES",
    ),
    Reproduction(
        "fpdgd.figure4",
        numbers_of_clients,
        {
            "more-clients-better-without-noise": more_clients_better,
            "further-clients-add-little": further_clients_add_little,
        },
        left_out=_WITHOUT_NOISE,
    ),
    Reproduction(
        "fpdgd.figure5",
        batches_at_equal_updates,
        {
            "larger-batch-better": larger_batch_better,
            "batches-meet-for-perfect": batches_meet_for_perfect,
            "batches-differ-less-for-informational": batches_differ_less_for_informational,
        },
        left_out=_WITHOUT_NOISE,
    ),
    Reproduction(
        "fpdgd.figure6",
        batches_at_equal_budget,
        {
            "batch-matters-little-at-equal-budget": batch_matters_little,
            "small-batch-better-early": small_batch_better_early,
            "small-batch-slightly-better-online": small_batch_better_online,
        },
        left_out=_WITHOUT_NOISE,
    ),
)
