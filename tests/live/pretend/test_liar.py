"""Pretend clients that lie: what they send is refused by nobody, and as long as they may be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_settings import N_FEATURES, tiny_dataset
from typer.testing import CliRunner

from hushrank.attacks.named import ATTACKS, FunctionAttack
from hushrank.cli.client import app
from hushrank.clicks.named import named_user
from hushrank.live.device.learning import Learning
from hushrank.live.device.named import make_learning
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.pretend.liar import Lie, find_lie, lie_with
from hushrank.live.pretend.person import Person, search_enough
from hushrank.live.server.limits import limits_of
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.terms import key_of
from hushrank.types import Array, AttackView, Knowledge

NEVER_ALONE = {"framing", "promote", "tailored", "false-rewards"}  # framing copies others; false-rewards sends seeds
RANKER = KeptRanker(1, np.linspace(-1, 1, N_FEATURES, dtype=np.float32), None)


def learn_as(lie: Lie | None, **agreed: Any) -> Learning:
    learning = make_learning(make_agreement("tiny", n_features=N_FEATURES, seed=5, **agreed))
    return learning if lie is None else lie_with(learning, lie, key=key_of(learning.agreement), id=7)


def send(learning: Learning, path: Path, *, round: int = 1) -> Array:
    """[n_params] what the client of the same searches sends in the same round; a server takes it."""
    ranker = replace(RANKER, round=round)
    person = Person(7, tiny_dataset().folds[0].train, named_user("perfect", n_grades=3), key_of(learning.agreement))
    with Interactions(path) as store:
        search_enough(person, learning, store, ranker)
        draft = learning.draft(store, ranker, is_last_call=False)
        assert draft is not None
        body = learning.seal(draft, key=person.key).body
    limits_of(learning.agreement, max_norm=100.0).check(body)
    return np.frombuffer(body, "<f4")


@pytest.mark.parametrize("privacy", [{"update_norm": 0.5}, {"privacy": "sound", "noise_multiplier": 1, "n_clients": 5}])
def test_a_lie_at_the_bound_is_as_long_as_the_server_takes(privacy: dict[str, Any], tmp_path: Path) -> None:
    honest = send(learn_as(None, **privacy), tmp_path / "honest.sqlite")
    lie = send(learn_as(find_lie("sign-flip", {}, at_bound=True), **privacy), tmp_path / "lie.sqlite")
    agreed = learn_as(None, **privacy).agreement
    bound = agreed.update_norm or agreed.clip_norm or 0.0
    assert 0 < np.linalg.norm(honest) <= bound and np.linalg.norm(lie) == pytest.approx(bound, rel=1e-4)
    assert honest @ lie == pytest.approx(-np.linalg.norm(honest) * np.linalg.norm(lie), rel=1e-3)  # straight against it


def test_what_was_learnt_can_be_made_as_long_without_an_attack(tmp_path: Path) -> None:
    honest = send(learn_as(None, update_norm=0.5), tmp_path / "honest.sqlite")
    longer = send(learn_as(find_lie(None, {}, at_bound=True), update_norm=0.5), tmp_path / "longer.sqlite")
    assert longer == pytest.approx(0.5 * honest / np.linalg.norm(honest), rel=1e-4)


def test_a_steady_liar_points_where_all_its_updates_did_together(tmp_path: Path) -> None:
    """Two rounds, each with searches of its own: -5 u / |u|, then -5 (u + v) / |u + v|."""
    agreed = {"update_norm": 5.0}
    u, v = (send(learn_as(None, **agreed), tmp_path / f"{i}.sqlite", round=i).astype(float) for i in (1, 2))
    steady = learn_as(find_lie("sign-flip", {}, at_bound=True, is_steady=True), **agreed)
    first, second = (send(steady, tmp_path / f"steady-{i}.sqlite", round=i) for i in (1, 2))
    assert first == pytest.approx(-5 * u / np.linalg.norm(u), rel=1e-4)
    assert second == pytest.approx(-5 * (u + v) / np.linalg.norm(u + v), rel=1e-3, abs=1e-6)


def test_poisoned_clicks_are_another_person_and_no_other_client() -> None:
    lie = find_lie("poisoned-clicks", {})
    assert lie.poison == "poison" and not lie.forges
    assert find_lie("poisoned-clicks", {"poison": "navigational"}, at_bound=True).forges


def test_a_liar_alone_sees_the_ranker_and_what_it_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views = list[AttackView]()

    def attack(view: AttackView, *, key: Array) -> Array:
        del key
        views.append(view)
        return np.full((1, N_FEATURES), 0.01)

    monkeypatch.setitem(ATTACKS, "blind", FunctionAttack(attack, Knowledge.nothing))
    monkeypatch.setitem(ATTACKS, "seeing", FunctionAttack(attack, Knowledge.own))
    honest = send(learn_as(None), tmp_path / "honest.sqlite")
    for name in ("blind", "seeing"):
        assert (
            send(learn_as(find_lie(name, {})), tmp_path / f"{name}.sqlite").tolist() == [np.float32(0.01)] * N_FEATURES
        )
    blind, seeing = views
    assert blind.own is None and seeing.own is not None and seeing.own.tolist() == [honest.tolist()]
    assert blind.others is seeing.others is None and blind.params is RANKER.params


def test_what_one_client_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no attack is called 'sign-flop'; did you mean 'sign-flip'"):
        find_lie("sign-flop", {})
    with pytest.raises(ValueError, match="scaled has no setting 'factor'"):
        find_lie("scaled", {"factor": 3})
    with pytest.raises(ValueError, match="attack=at-bound is made from what all others send"):
        find_lie("at-bound", {"knowledge": "full"})
    with pytest.raises(ValueError, match="attack=framing is made from what all others send"):
        find_lie("framing", {})
    monkeypatch.setitem(ATTACKS, "all", FunctionAttack(np.zeros, Knowledge.everybody))
    with pytest.raises(ValueError, match="attack=all is made from what all others send"):
        find_lie("all", {})
    with pytest.raises(ValueError, match="attack=sign-flip replaces updates, but recipe foltr-es sends a seed"):
        learn_as(find_lie("sign-flip", {}), method="foltr-es")
    with pytest.raises(ValueError, match="--at-bound needs a federation that has agreed on the L2 norm"):
        learn_as(find_lie("sign-flip", {}, at_bound=True))


@pytest.mark.parametrize(
    "words", [["--attack", "sign-flip"], ["--at-bound"], ["--steady"], ["--simulate", "tiny", "--set", "a=1"]]
)
def test_only_pretend_people_lie(words: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "--home", str(tmp_path / "h"), *words])
    assert isinstance(done.exception, ValueError) and "--attack" in str(done.exception)
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize("name", ["promote", "tailored"])
def test_what_needs_all_queries_or_the_servers_rule_is_refused_before_the_first_round(name: str) -> None:
    with pytest.raises(ValueError, match=f"attack={name} is made from all training queries or from the server's rule"):
        find_lie(name, {})


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in NEVER_ALONE])
def test_whatever_is_not_refused_can_be_made_alone(name: str) -> None:
    attack = find_lie(name, {}).attack
    if attack is not None:  # poisoned clicks change no update
        view = AttackView(np.ones(3), 1, n_clients=5, n_malicious=1, own=np.array([[1.0, -2.0, 3.0]]), others=None)
        assert np.isfinite(attack(view, key=np.zeros(2, np.uint32))).all()
