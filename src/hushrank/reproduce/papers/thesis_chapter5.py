"""Clients that lie [thesis, Chapter 5]: Figures 5.2 to 5.11.

"Overall" and "does more harm" in the text are about all shares of malicious clients together: such claims are tested on
means over the shares, training by training, and the reason lists every share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hushrank.reproduce.papers.thesis_liars import (
    ASSUMED,
    FANG,
    LIE,
    POISON,
    RULES,
    SHARES,
    at_every_share,
    check_there,
    liars,
    losses,
    name_share,
    over_shares,
    pairs_at,
    tell_shares,
    values_of,
)
from hushrank.reproduce.papers.thesis_skew import LITTLE, RANKERS, USERS, for_all, rankers_of
from hushrank.reproduce.reproduction import DataChoice, Reproduction, ReproductionSize, Trial
from hushrank.reproduce.verdicts import (
    Cell,
    Pair,
    Trials,
    Verdict,
    all_at_least,
    all_better,
    both,
    none_better,
)

_TOLD = ("krum", "multi-krum", "trimmed-mean")  # rules that are told how many clients lie
_KRUMS, _OTHERS = ("krum", "multi-krum"), ("trimmed-mean", "median")
_AVERAGED = {"aggregation": "mean", "attack": POISON}
_QUICK = (
    "The quick version has the linear ranker and 300 rounds instead of 10,000: it shows that everything runs and which "
    "way large gaps point, but nothing about networks, the end of training or differences near .005."
)


# Poisoned clicks: Figures 5.2, 5.5, 5.6, 5.7
def poisoned_clicks(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Every rule of the thesis with the linear ranker; networks [thesis, Section 5.5.1] under plain averaging."""
    trials = []
    for ranker in rankers_of(scale):
        trials.append(liars(data, scale, {"ranker": ranker}))
        for rule in RULES if ranker == "linear" else RULES[:1]:
            trials += at_every_share(data, scale, {"ranker": ranker, "aggregation": rule}, attack=POISON)
    return trials


def more_attackers_worse(outcome: Trials) -> Verdict:
    """Each share of malicious clients below the one before it, from nobody on."""
    check_there(outcome)
    pairs = [
        Pair(
            f"{data} {ranker} {user} {name_share(m)} over {name_share(m + 1)}",
            *(poisoned_values(outcome, data, user, ranker, n) for n in (m, m + 1)),
        )
        for ranker in outcome.present("ranker", RANKERS)
        for data in outcome.data
        for user in USERS
        for m in (0, *SHARES[:-1])
    ]
    return for_all(outcome, all_better(pairs), {"attack": POISON}, ranker=RANKERS)


def poisoned_values(
    outcome: Trials, data: str, user: str, ranker: str, n_malicious: int
) -> Mapping[tuple[int, int], float]:
    attack = {"attack": POISON} if n_malicious else {}
    cell = {"ranker": ranker, "aggregation": "mean", "n_malicious": n_malicious, **attack}
    return values_of(outcome, data, user, cell)


def informational_easiest(outcome: Trials) -> Verdict:
    """The losses against the honest ranker, by user: informational above navigational above perfect."""
    pairs = losses_of_users(outcome, SHARES)
    told = [pair for m in SHARES for pair in losses_of_users(outcome, (m,))]
    found = all_better(pairs)
    verdict = Verdict(found.holds, found.p, f"Losses, mean over shares. {found.why} {tell_shares(told)}")
    return for_all(outcome, verdict, {"attack": POISON}, ranker=RANKERS)


def losses_of_users(outcome: Trials, shares: Sequence[int]) -> list[Pair]:
    check_there(outcome)
    perfect, navigational, informational = USERS
    more_and_less = ((informational, navigational), (navigational, perfect))
    where = f" {name_share(shares[0])}" if len(shares) == 1 else ""
    return [
        Pair(
            f"{data} {ranker} {more} over {less}{where}",
            *(losses(outcome, data, user, {"ranker": ranker, "aggregation": "mean"}, shares) for user in (more, less)),
        )
        for ranker in outcome.present("ranker", RANKERS)
        for data in outcome.data
        for more, less in more_and_less
    ]


def informational_easiest_perfect_late(outcome: Trials) -> Verdict:
    """And the perfect user's loss at the largest share above that at the smallest."""
    check_there(outcome)
    late = [
        Pair(
            f"{data} {ranker} perfect, {name_share(SHARES[-1])} over {name_share(SHARES[0])}",
            *(
                losses(outcome, data, "perfect", {"ranker": ranker, "aggregation": "mean"}, (m,))
                for m in (SHARES[-1], SHARES[0])
            ),
        )
        for ranker in outcome.present("ranker", RANKERS)
        for data in outcome.data
    ]
    return both(informational_easiest(outcome), all_better(late))


def krum_over_mean(outcome: Trials, shares: Sequence[int], users: Sequence[str] = USERS) -> list[Pair]:
    return pairs_at(outcome, {"aggregation": "krum", "attack": POISON}, _AVERAGED, shares=shares, users=users)


def krum_helps_from_a_fifth(outcome: Trials) -> Verdict:
    return both(all_better(krum_over_mean(outcome, SHARES[1:])), none_better(krum_over_mean(outcome, SHARES[:1])))


def krum_helps_but_for_informational(outcome: Trials) -> Verdict:
    """From 20 % on, but for informational users at 40 %, and not at 10 %."""
    helps = [*krum_over_mean(outcome, SHARES[1:], USERS[:2]), *krum_over_mean(outcome, SHARES[1:3], USERS[2:])]
    not_there = [*krum_over_mean(outcome, SHARES[:1]), *krum_over_mean(outcome, SHARES[3:], USERS[2:])]
    return both(all_better(helps), none_better(not_there))


def krum_helps_everywhere(outcome: Trials) -> Verdict:
    return all_better(krum_over_mean(outcome, SHARES))


def krum_no_help_for_informational(outcome: Trials) -> Verdict:
    return none_better(krum_over_mean(outcome, SHARES, USERS[2:]))


def rules_above(outcome: Trials, better: Sequence[str], worse: Sequence[str]) -> Verdict:
    """Each of the better rules above each of the worse, for every user, mean over shares."""
    pairs = [
        Pair(f"{pair.name} {ours} over {theirs}", pair.ours, pair.theirs)
        for ours in better
        for theirs in worse
        for pair in over_shares(outcome, *({"aggregation": rule, "attack": POISON} for rule in (ours, theirs)))
    ]
    found = all_better(pairs)
    return Verdict(found.holds, found.p, f"Means over shares. {found.why}")


# Poisoned models: Figures 5.3, 5.8, 5.9, 5.10
def poisoned_models(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """LIE beside poisoned clicks under plain averaging; Fang's attack, with both knowledges, beside them under Krum."""
    plain, krum = {"aggregation": "mean"}, {"aggregation": "krum"}
    return [
        liars(data, scale, plain),
        *at_every_share(data, scale, plain, attack=POISON),
        *at_every_share(data, scale, plain, attack=LIE),
        *at_every_share(data, scale, krum, attack=POISON),
        *(
            trial
            for knowledge in ("partial", "full")
            for trial in at_every_share(
                data, scale, {**krum, "knowledge": knowledge}, attack=FANG, more={"knowledge": knowledge}
            )
        ),
    ]


def lie_weaker(outcome: Trials) -> Verdict:
    """A better ranker than under poisoned clicks, mean over shares, and in no cell a worse one."""
    return judge_lie(outcome, dict.fromkeys(USERS, SHARES))


def lie_weaker_with_one_exception(outcome: Trials) -> Verdict:
    """But for perfect users at 40 %, where the ranker is worse."""
    usual = judge_lie(outcome, {user: SHARES[:3] if user == "perfect" else SHARES for user in USERS})
    exception = pairs_at(outcome, _AVERAGED, _lie(), shares=SHARES[3:], users=("perfect",))
    return both(usual, all_better(exception))


def judge_lie(outcome: Trials, shares_of: Mapping[str, Sequence[int]]) -> Verdict:
    means, cells = list[Pair](), list[Pair]()
    for user, shares in shares_of.items():
        means += over_shares(outcome, _lie(), _AVERAGED, shares=shares, users=(user,))
        cells += pairs_at(outcome, _AVERAGED, _lie(), shares=shares, users=(user,))
    found, nowhere = all_better(means), none_better(cells)
    told = Verdict(found.holds, found.p, f"LIE over poisoned clicks, mean over shares. {found.why}")
    return both(told, replace(nowhere, why=f"Poisoned clicks over LIE. {nowhere.why}"))


def _lie() -> Cell:
    return {"aggregation": "mean", "attack": LIE}


def _fang(knowledge: str) -> Cell:
    return {"aggregation": "krum", "attack": FANG, "knowledge": knowledge}


def full_knowledge_helps_few(outcome: Trials) -> Verdict:
    """At 10 and 20 % a worse ranker than with partial knowledge; at 30 and 40 % worse by less than the margin."""
    few = all_better(pairs_at(outcome, _fang("partial"), _fang("full"), shares=SHARES[:2]))
    many = all_at_least(pairs_at(outcome, _fang("full"), _fang("partial"), shares=SHARES[2:]), margin=LITTLE)
    return both(
        Verdict(few.holds, few.p, f"Partial over full, 10 and 20 %. {few.why}"),
        Verdict(many.holds, many.p, f"Full over partial, 30 and 40 %. {many.why}"),
    )


def fang_defeats_krum(outcome: Trials) -> Verdict:
    """Under Krum, the ranker under poisoned clicks above that under Fang's attack, mean over shares."""
    cells = {"aggregation": "krum", "attack": POISON}, _fang("full")
    found = all_better(over_shares(outcome, *cells))
    return Verdict(found.holds, found.p, f"Means over shares. {found.why} {tell_shares(pairs_at(outcome, *cells))}")


# Peace: Figures 5.4, 5.11
def in_peace(data: DataChoice, scale: ReproductionSize) -> list[Trial]:
    """Every rule with nobody malicious; those that reckon with some reckon with two, or as many as --set says."""
    assumed: dict[str, dict[str, object]] = {rule: {"assumed_malicious": ASSUMED} for rule in _TOLD}
    return [liars(data, scale, {"aggregation": rule}, more=assumed.get(rule)) for rule in RULES]


def costs_quality(outcome: Trials, *, rule: str) -> Verdict:
    plain, robust = ({"aggregation": name} for name in ("mean", rule))
    return all_better(pairs_at(outcome, plain, robust, shares=(0,)))


_POISONED: dict[str, Callable[[Trials], Verdict]] = {
    "more-attackers-worse": more_attackers_worse,
    "informational-easiest-to-poison": informational_easiest,
}
_KRUMS_BEST: dict[str, Callable[[Trials], Verdict]] = {
    "krum-family-best": partial(rules_above, better=_KRUMS, worse=_OTHERS)
}
_MODELS: dict[str, Callable[[Trials], Verdict]] = {
    "full-knowledge-helps-few-attackers": full_knowledge_helps_few,
    "fang-defeats-krum": fang_defeats_krum,
}
_LIE_WEAKER = {"lie-weaker-than-poisoned-clicks": lie_weaker, **_MODELS}
_PEACE: dict[str, Callable[[Trials], Verdict]] = {
    f"{rule}-costs-quality": partial(costs_quality, rule=rule) for rule in ("krum", "median")
}
_FINDINGS: dict[str, tuple[Callable[..., list[Trial]], Mapping[str, Callable[[Trials], Verdict]]]] = {
    "5.2": (
        poisoned_clicks,
        {
            **_POISONED,
            "informational-easiest-to-poison": informational_easiest_perfect_late,
            "krum-helps-from-a-fifth": krum_helps_but_for_informational,
            **_KRUMS_BEST,
        },
    ),
    "5.3": (poisoned_models, _LIE_WEAKER),
    "5.4": (in_peace, _PEACE),
    "5.5": (
        poisoned_clicks,
        {
            **_POISONED,
            "krum-no-help-for-informational": krum_no_help_for_informational,
            "trimmed-mean-and-median-best": partial(rules_above, better=_OTHERS, worse=_KRUMS),
        },
    ),
    "5.6": (poisoned_clicks, {**_POISONED, "krum-helps-from-a-fifth": krum_helps_from_a_fifth, **_KRUMS_BEST}),
    "5.7": (poisoned_clicks, {**_POISONED, "krum-helps-from-a-tenth": krum_helps_everywhere, **_KRUMS_BEST}),
    "5.8": (poisoned_models, _LIE_WEAKER),
    "5.9": (poisoned_models, {"lie-weaker-with-one-exception": lie_weaker_with_one_exception, **_MODELS}),
    "5.10": (poisoned_models, _LIE_WEAKER),
    "5.11": (in_peace, _PEACE),
}
REPRODUCTIONS = tuple(
    Reproduction(f"thesis.figure{number}", trials, findings, quick_limits=_QUICK)
    for number, (trials, findings) in _FINDINGS.items()
)
