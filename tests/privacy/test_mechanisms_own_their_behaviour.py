"""Nobody asks which mechanism it has: the source says so, and a mechanism made here runs everywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tiny_settings import tiny_setting

import hushrank
from hushrank.aggregation.compatibility import Privacy
from hushrank.engine.setting import why_not_fast
from hushrank.engine.simulate import Options, name_engine, simulate
from hushrank.federation.exchange import UpdateExchange
from hushrank.keys import Settings
from hushrank.live.device.named import make_learning
from hushrank.live.server.config import ServerConfig, rules_of
from hushrank.live.server.limits import check_weight, limits_of
from hushrank.live.server.new_ranker import Body, combine_bodies
from hushrank.live.wire.agreement import as_json, make_agreement, parse_agreement
from hushrank.live.wire.refusals import RefusedError
from hushrank.live.wire.terms import guarantee_of, price_of
from hushrank.privacy.named import MODES, Mode, make_protection
from hushrank.privacy.protection import Exposure, NormBound, UpdateProtection
from hushrank.recipes.disclosure import who_learns
from hushrank.recipes.guarantee import explain_guarantee
from hushrank.recipes.recipe import NAMED
from hushrank.recipes.resolve import resolve_method
from hushrank.streams import seed_key
from hushrank.types import Array, DenseUpdate, PrivateUpdate

SOURCE = Path(hushrank.__file__).parent
FILES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
ROOTS = {"Protection", "Exchange", "Summation", "DenseUpdate", "SeedReward"}  # of the axes, and what is sent raw
NOUNS = {"protection", "exchange", "evolution", "summation", "secure_sum"}  # what such an object is called (the last
# is also a key of recipes, true or false)
OWNERS = ("privacy/", "federation/exchange.py", "federation/evolution.py", "federation/summation.py")


def name_of(node: ast.AST) -> str:
    """The last part of a name: `protection` of method.protection."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def kinds(trees: dict[str, ast.Module]) -> set[str]:
    """Every class of the axes, by inheritance."""
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = set(ROOTS)
    while more := {c.name for c in classes if found & {name_of(b) for b in c.bases}} - found:
        found |= more
    return found


def questions(tree: ast.AST, classes: set[str]) -> Iterator[int]:
    """Lines that ask which one it is: isinstance, match, `is None`, or whether there is one at all."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in {"isinstance", "issubclass"}:
            if classes & {name_of(part) for argument in node.args[1:] for part in ast.walk(argument)}:
                yield node.lineno
        elif isinstance(node, ast.MatchClass) and name_of(node.cls) in classes:
            yield node.cls.lineno
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            if name_of(node.left) in NOUNS:
                yield node.lineno
        elif isinstance(node, ast.If | ast.IfExp) and name_of(node.test) in NOUNS - {"secure_sum"}:
            yield node.test.lineno


def test_the_reader_finds_every_way_of_asking() -> None:
    asked = (
        "isinstance(x, PaperNoise)",
        "isinstance(x, privacy.PaperNoise | int)",
        "method.protection is None",
        "evolution is not None",
        "1 if method.evolution else 2",
        "match x:\n    case PaperNoise(): pass",
    )
    assert all(list(questions(ast.parse(text), {"PaperNoise"})) for text in asked)
    fine = "x: PaperNoise = PaperNoise(1)\nisinstance(x, int)\nx is None\nrecipe.protection.counts_alike"
    assert not list(questions(ast.parse(fine), {"PaperNoise"}))


def test_no_room_asks_which_mechanism_or_message_it_has() -> None:
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
    classes = kinds(trees)
    assert {"OpenUpdates", "PaperNoise", "SoundGaussian", "Evolution", "UpdateExchange", "MaskedSum"} <= classes
    asking = {
        name: lines
        for name, tree in trees.items()
        if not name.startswith(OWNERS) and (lines := sorted(questions(tree, classes)))
    }
    assert not asking, f"these ask: {asking}"


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_a_mechanism_of_its_name(mode: str) -> None:
    settings = {"privacy": mode, "epsilon": 1.2, "noise_multiplier": 1.0, "n_clients": 3}
    assert make_protection(settings, Exposure(n_params=6, cohort=3)).mode == mode
    assert MODES[mode].kind(settings) in tuple(Privacy)


def test_no_room_names_a_mode_to_tell_mechanisms_apart() -> None:
    """`== "sound"` elsewhere would be a question, too."""
    asking = {
        name: node.lineno
        for name, path in FILES.items()
        if not name.startswith(("privacy/", "reproduce/"))  # the papers' own cells are compared by name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(name_of(part) == "privacy" for part in (node.left, *node.comparators))
        and any(isinstance(part, ast.Constant) for part in (node.left, *node.comparators))
    }
    assert not asking, f"these ask: {asking}"


@dataclass(frozen=True, slots=True)
class Signs(UpdateProtection):
    """Only the sign of each number leaves, as plus or minus one step; everybody counts alike."""

    mode: ClassVar[str] = "signs"
    step: float = 0.01

    @property
    def counts_alike(self) -> bool:
        return True

    def privatise(self, update: DenseUpdate, *, key: Array) -> PrivateUpdate:
        del key
        return PrivateUpdate(self.step * np.sign(update.delta), 1.0, "the signs of what was learnt")

    def bound_norm(self, n_params: int) -> NormBound:
        return NormBound(1, self.step * n_params)

    def fewest_awake(self, cohort: int | None) -> int:
        return 2 if cohort is None else cohort

    def describe_message(self, exposure: Exposure) -> str:
        return f"no guarantee: {exposure.n_params} signs of what the client learnt leave the device"


def settle_signs(settings: Settings) -> dict[str, Any]:
    """Eight searches behind each sign, unless given."""
    return {"interactions": 8, **settings}


@pytest.fixture
def new_mode(monkeypatch: pytest.MonkeyPatch) -> Signs:
    """As if the registry had it."""
    mode = Mode("signs only", lambda _: "none", lambda _, __: Signs(), settle=settle_signs, is_accounted=False)
    monkeypatch.setitem(MODES, "signs", mode)
    return Signs()


def test_a_new_mechanism_runs_in_the_plain_round_and_says_why() -> None:
    setting = tiny_setting(users=("perfect",), n_folds=1, rounds=1)
    setting = replace(setting, method=replace(setting.method, exchange=UpdateExchange(Signs())))
    assert why_not_fast(setting) == "privacy=signs" and name_engine(setting, Options(), "cpu") == "plain"
    moved = simulate(setting, Options(engine="plain"))[0][0].params
    assert 0 < np.abs(moved).max() <= 0.01 + 1e-9  # a mean of signs


@pytest.mark.usefixtures("new_mode")
def test_a_new_mechanism_bounds_what_a_server_takes() -> None:
    agreement = make_agreement("library", n_features=6, privacy="signs", rounds=None)
    assert agreement.interactions == 8 and agreement.rounds is None and parse_agreement(as_json(agreement)) == agreement
    limits, learning = limits_of(agreement, max_norm=100.0), make_learning(agreement)
    update = DenseUpdate(np.array([3.0, -2, 1, 0, 5, -1]), 4)
    honest = limits.encode(learning.exchange.privatise(update, key=seed_key(1)))
    limits.check(honest)
    with pytest.raises(RefusedError, match=r"L1 norm is above 0\.06"):
        limits.check(np.full(6, 0.02, "<f4").tobytes())
    assert check_weight(limits, None) == 1 and price_of(agreement) is None
    assert rules_of(agreement, ServerConfig()).min_clients == 2
    assert guarantee_of(agreement).startswith("no guarantee: 6 signs")
    np.testing.assert_allclose(combine_bodies(agreement, [Body(1, honest)] * 2, round=1)[0][:3], [0.01, -0.01, 0.01])


def test_a_new_mechanism_speaks_for_itself_in_the_box(new_mode: Signs) -> None:
    recipe = replace(NAMED["fpdgd"], privacy="signs")
    method = resolve_method(recipe, n_features=46)
    assert method.protection == new_mode and method.counts_alike
    box = who_learns(recipe, method)
    assert box.promise == "No guarantee: 46 signs of what the client learnt leave the device."
    assert [who for who, _ in box.lines] == ["a client", "guarantee", "this run"]
    explained: dict[str, Any] | None = explain_guarantee(recipe, method)
    assert explained is not None and explained["mode"] == "signs" and explained["epsilon"] is None
