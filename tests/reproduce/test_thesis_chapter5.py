"""Clients that lie, as in Chapter 5 of the thesis: who is malicious under which rule, and what verdicts are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hushrank.attacks.named import ATTACKS, FunctionAttack, register_attack
from hushrank.reports.reproduction import reproduction_text
from hushrank.reproduce.diverged import WHY
from hushrank.reproduce.papers import thesis_chapter5 as chapter5
from hushrank.reproduce.papers.thesis_liars import FANG, LIE, POISON, RULES, SHARES
from hushrank.reproduce.papers.thesis_skew import USERS
from hushrank.reproduce.reproduce import ReproduceOptions, prepare, reproduce
from hushrank.reproduce.reproduction import DataChoice, ReproductionSize
from hushrank.reproduce.verdicts import OFFLINE, Finished, NotJudged, Trials, Verdict
from hushrank.runs.pool import PoolOptions

MQ = DataChoice("mq2007", "mq2007-like", is_stand_in=True)
SMALL = {"data": "tiny", "rounds": 4, "folds": (1,)}
NOISE = (0.0, 0.001, -0.001, 0.0005, -0.0005)
KRUM: dict[str, Any] = {"aggregation": "krum"}
MEAN: dict[str, Any] = {"aggregation": "mean"}


def finish(levels: Mapping[str, float] | float, n_malicious: int, *, turn: int = 0, **cell: Any) -> Finished:
    """A trial whose five trainings lie around each user's level; turned, differences have a spread."""
    by_user = levels if isinstance(levels, Mapping) else dict.fromkeys(USERS, levels)
    noise = NOISE[turn:] + NOISE[:turn]
    metrics = {
        user: {OFFLINE: {"values": [{"fold": 1, "repeat": r, "value": level + noise[r]} for r in range(5)]}}
        for user, level in by_user.items()
    }
    named = {"data": "d", "ranker": "linear", "attack": "none", "n_malicious": n_malicious, **cell}
    return Finished(named, Path(), {"recipe": {"clicks": list(USERS)}, "metrics": metrics})


def at_shares(levels: Callable[[int], Mapping[str, float] | float], **cell: Any) -> list[Finished]:
    return [finish(levels(m), m, turn=m, **cell) for m in SHARES]


def networks(trials: list[Finished]) -> Trials:
    """The same with a network."""
    both = [*trials, *(Finished({**t.cell, "ranker": "mlp"}, t.directory, t.result) for t in trials)]
    return Trials(tuple(both))


def falling(by_user: Mapping[str, float]) -> list[Finished]:
    """Plain averaging: what each user loses with every malicious client more."""
    poisoned = at_shares(lambda m: {u: 0.7 - fall * m for u, fall in by_user.items()}, attack=POISON, **MEAN)
    return [finish(0.7, 0, **MEAN), *poisoned]


def test_poisoned_clicks_meet_every_rule_at_every_share_and_networks_meet_the_mean() -> None:
    trials = chapter5.poisoned_clicks(MQ, ReproductionSize())
    recipes = [trial.recipe for trial in trials]
    assert {(r.n_clients, r.interactions, r.rounds, r.repeats) for r in recipes} == {(10, 5, 10_000, 5)}
    linear = [(r.aggregation, r.n_malicious) for r in recipes if r.ranker == "linear"]
    assert linear == [("mean", 0), *((rule, m) for rule in RULES for m in SHARES)]
    assert [(r.aggregation, r.n_malicious) for r in recipes if r.ranker == "mlp"] == [("mean", m) for m in range(5)]
    assert all((r.attack == POISON) == (r.n_malicious > 0) for r in recipes)
    quick = chapter5.poisoned_clicks(MQ, ReproductionSize(quick=True))
    assert {(t.recipe.ranker, t.recipe.rounds) for t in quick} == {("linear", 300)}


def test_poisoned_models_meet_the_rule_that_they_are_made_against() -> None:
    recipes = [trial.recipe for trial in chapter5.poisoned_models(MQ, ReproductionSize())]
    met = {(r.attack, r.aggregation, r.options.get("knowledge")) for r in recipes if r.n_malicious == 3}
    assert met == {
        (POISON, "mean", None),
        (LIE, "mean", None),
        (POISON, "krum", None),
        (FANG, "krum", None),  # its default is partial
        (FANG, "krum", "full"),
    }


def test_in_peace_rules_assume_two_unless_told_otherwise(tmp_path: Path) -> None:
    usual = prepare("thesis.figure5.4", ReproduceOptions(tmp_path))
    told = prepare("thesis.figure5.4", ReproduceOptions(tmp_path, changes={"assumed_malicious": 3}))
    assert {t.recipe.aggregation: t.recipe.assumed_malicious for t in usual.trials} == {
        "mean": None,
        "krum": 2,
        "multi-krum": 2,
        "trimmed-mean": 2,
        "median": None,
    }
    assert {t.recipe.assumed_malicious for t in told.trials} == {3}
    assert "--set assumed_malicious=N" in usual.result.note


def test_more_attackers_must_be_worse_at_every_step() -> None:
    assert chapter5.more_attackers_worse(networks(falling(dict.fromkeys(USERS, 0.05)))).holds
    flat = falling({"perfect": 0.0, "navigational": 0.05, "informational": 0.05})
    assert not chapter5.more_attackers_worse(networks(flat)).holds
    with pytest.raises(NotJudged, match=r"^Held for linear; mlp not run\. "):
        chapter5.more_attackers_worse(Trials(tuple(falling(dict.fromkeys(USERS, 0.05)))))


def test_informational_users_must_lose_most_and_perfect_ones_least() -> None:
    order = {"perfect": 0.01, "navigational": 0.03, "informational": 0.06}
    assert chapter5.informational_easiest_perfect_late(networks(falling(order))).holds
    other = chapter5.informational_easiest(networks(falling({**order, "navigational": 0.07})))
    assert not other.holds and "d linear informational over navigational 10 % -0.0100" in other.why
    early = [finish(0.7, 0, **MEAN), *at_shares(lambda _: {**order, "perfect": 0.3}, attack=POISON, **MEAN)]
    assert not chapter5.informational_easiest_perfect_late(networks(early)).holds


def with_krum(helps: Callable[[int, str], float]) -> Trials:
    plain = falling(dict.fromkeys(USERS, 0.05))
    krum = at_shares(lambda m: {u: 0.7 - 0.05 * m + helps(m, u) for u in USERS}, attack=POISON, **KRUM)
    turned = [finish_turned(trial) for trial in krum]
    return Trials((*plain, *turned))


def finish_turned(trial: Finished) -> Finished:
    for user in trial.result["metrics"].values():
        for row, noise in zip(user[OFFLINE]["values"], NOISE, strict=True):
            row["value"] += noise
    return trial


@pytest.mark.parametrize(
    ("judge", "helps"),
    [
        (chapter5.krum_helps_from_a_fifth, lambda m, _: 0.05 * (m > 1)),
        (chapter5.krum_helps_but_for_informational, lambda m, u: 0.05 * (m > 1 and (m, u) != (4, USERS[2]))),
        (chapter5.krum_helps_everywhere, lambda *_: 0.05),
        (chapter5.krum_no_help_for_informational, lambda _, u: 0.05 * (u != USERS[2])),
    ],
)
def test_where_krum_helps(judge: Callable[[Trials], Verdict], helps: Callable[[int, str], float]) -> None:
    assert judge(with_krum(helps)).holds
    assert not judge(with_krum(lambda m, u: 0.05 - helps(m, u))).holds


def test_a_family_of_rules_is_better_by_its_mean_over_shares() -> None:
    level = {"krum": 0.68, "multi-krum": 0.69, "trimmed-mean": 0.6, "median": 0.61}
    trials = [t for i, (rule, x) in enumerate(level.items()) for t in rule_at(rule, x, turn=i)]
    family = chapter5.REPRODUCTIONS[0].findings["krum-family-best"](Trials(tuple(trials)))
    assert family.holds and "krum over trimmed-mean +0.0800" in family.why
    assert not chapter5.REPRODUCTIONS[3].findings["trimmed-mean-and-median-best"](Trials(tuple(trials))).holds


def rule_at(rule: str, level: float, *, turn: int) -> list[Finished]:
    return [finish(level, m, turn=turn, attack=POISON, aggregation=rule) for m in SHARES]


def with_lie(lie: Callable[[int, str], float]) -> Trials:
    made = at_shares(lambda m: {user: lie(m, user) for user in USERS}, attack=LIE, **MEAN)
    return Trials((*falling(dict.fromkeys(USERS, 0.05)), *map(finish_turned, made)))


def test_lie_is_weaker_where_it_is_nowhere_stronger() -> None:
    def strong_once(m: int, user: str) -> float:
        return 0.4 if (m, user) == (4, "perfect") else 0.7

    assert chapter5.lie_weaker(with_lie(lambda *_: 0.7)).holds
    assert not chapter5.lie_weaker(with_lie(strong_once)).holds
    assert chapter5.lie_weaker_with_one_exception(with_lie(strong_once)).holds
    assert not chapter5.lie_weaker_with_one_exception(with_lie(lambda *_: 0.7)).holds


def with_fang(full: Callable[[int], float]) -> Trials:
    partial = at_shares(lambda _: 0.6, attack=FANG, knowledge="partial", **KRUM)
    known = map(finish_turned, at_shares(full, attack=FANG, knowledge="full", **KRUM))
    return Trials((*partial, *known, *map(finish_turned, at_shares(lambda _: 0.65, attack=POISON, **KRUM))))


def test_full_knowledge_helps_few_attackers_and_hardly_many() -> None:
    assert chapter5.full_knowledge_helps_few(with_fang(lambda m: 0.5 if m < 3 else 0.6)).holds
    assert not chapter5.full_knowledge_helps_few(with_fang(lambda _: 0.5)).holds
    assert not chapter5.full_knowledge_helps_few(with_fang(lambda _: 0.6)).holds


def test_fang_beats_poisoned_clicks_under_krum() -> None:
    found = chapter5.fang_defeats_krum(with_fang(lambda _: 0.5))
    assert found.holds and "By share: d perfect 10 % +0.15" in found.why
    assert not chapter5.fang_defeats_krum(with_fang(lambda _: 0.7)).holds


@pytest.mark.parametrize("name", ["thesis.figure5.2", "thesis.figure5.4", "thesis.figure5.9"])
def test_a_figure_of_each_kind_is_run_and_judged(name: str, tmp_path: Path) -> None:
    """Four rounds: the machinery, not the claims."""
    small = ReproduceOptions(tmp_path, scale=ReproductionSize(quick=True), changes=SMALL)
    found = reproduce(prepare(name, small), small, PoolOptions(1, in_process=True))
    assert all(isinstance(f["holds"], bool) or f["why"].startswith("Held for linear") for f in found["findings"])
    assert "nothing about networks" in reproduction_text(found)
    assert all(row["ours"] > 0 for row in found["rows"])


@pytest.fixture
def _exploding_poison() -> Any:
    """`poisoned-clicks` replaced by an attack that makes every number too large."""
    usual = ATTACKS.pop(POISON)
    register_attack(POISON, FunctionAttack(lambda view, *, key: 0 * view.own + 3e38 + 0 * key[0]))
    yield
    ATTACKS[POISON] = usual


@pytest.mark.usefixtures("_exploding_poison")
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_a_training_that_attackers_made_diverge_is_the_worst_result(tmp_path: Path) -> None:
    small = ReproduceOptions(tmp_path, scale=ReproductionSize(quick=True), changes=SMALL, only={"aggregation": "mean"})
    found = reproduce(prepare("thesis.figure5.2", small), small, PoolOptions(1, in_process=True))
    ours = {(row["n_malicious"], row["clicks"]): (row["ours"], row["why"]) for row in found["rows"]}
    assert all(ours[m, user] == (0.0, WHY) for m in SHARES for user in USERS)
    assert ours[0, "perfect"][0] > 0.3 and ours[0, "perfect"][1] == ""
    assert len(found["runs"]) == 1 and "training diverged: counts as 0" in reproduction_text(found)
    assert (tmp_path / "index.html").is_file()
