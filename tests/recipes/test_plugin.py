"""A user's own module adds methods, and they run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushrank.aggregation.named import RULES, find_rule
from hushrank.attacks.named import ATTACKS, Target, attack_updates, find_attack
from hushrank.clicks.named import USERS
from hushrank.learners.named import LEARNERS
from hushrank.recipes.plugin import load_plugins
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.runs.result import read_rankers
from hushrank.runs.run import RunOptions, run_recipe
from hushrank.types import Gathered

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_methods.py"
SMALL = {"data": "tiny", "folds": [1], "n_clients": 10, "rounds": 6, "interactions": 3}


@pytest.fixture(autouse=True)
def registries_as_before() -> Iterator[None]:
    registries: list[dict[str, Any]] = [LEARNERS, RULES, ATTACKS, USERS]
    before = [dict(registry) for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in [name for name in sys.modules if name.startswith("hushrank_plugin_")]:
        del sys.modules[name]


def small(**changes: object) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {**SMALL, **changes})


def gain(out: Path, **changes: object) -> float:
    """Validation nDCG@10 after training less that of the first ranker."""
    run_recipe(small(**changes), RunOptions(out=out))
    curve = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    values = [row["value"] for row in curve if row["name"] == "vali/nDCG@10"]
    return float(values[-1] - values[0])


def test_the_example_adds_a_learner_a_rule_an_attack_and_a_click_model_that_run(tmp_path: Path) -> None:
    load_plugins([str(EXAMPLE)])
    load_plugins([str(EXAMPLE)])  # twice is once
    assert gain(tmp_path / "learner", learner="hinge", clicks="skimming") > 0.05
    lies: dict[str, object] = {"attack": "shout", "n_malicious": 3}
    assert gain(tmp_path / "median", aggregation="coordinate-median", **lies) > 0.05
    gain(tmp_path / "mean", **lies)
    calm, shaken = (np.linalg.norm(next(iter(read_rankers(tmp_path / name).values()))) for name in ("median", "mean"))
    assert shaken > 10 * calm  # liars shout a hundred times as loud, and three of ten are


def test_a_mean_is_ruined_by_liars_that_a_median_ignores() -> None:
    load_plugins([str(EXAMPLE)])
    updates, liars = np.ones((5, 2)), np.array([True, False, False, False, False])
    attack, median = find_attack("shout"), find_rule("coordinate-median")
    assert attack is not None and median is not None
    sent = attack_updates(attack, updates, liars, Target(np.zeros(2), 1, np.zeros(2, np.uint32)))
    assert sent[1:].tolist() == updates[1:].tolist()
    assert np.linalg.norm(sent.mean(axis=0)) > 10
    assert median(Gathered(sent, np.ones(5), np.arange(5), np.zeros(2), 1)).update.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("key", ["learner", "aggregation", "attack"])
def test_a_method_that_no_plugin_brought_is_refused_with_a_hint(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} is 'mine'; available: .*--plugin"):
        small(**{key: "mine"})


def test_a_plugin_that_fails_to_import_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module_at_all\n")
    with pytest.raises(ValueError, match=r"broken.py cannot be imported: ModuleNotFoundError: No module named"):
        load_plugins([str(broken)])
    with pytest.raises(ValueError, match=r"plugin no\.such\.module cannot be imported"):
        load_plugins(["no.such.module"])
    with pytest.raises(ValueError, match=r"gone.py cannot be imported: FileNotFoundError"):
        load_plugins([str(tmp_path / "gone.py")])


def test_a_plugin_that_exits_or_breaks_is_reported_and_can_be_mended(tmp_path: Path) -> None:
    plugin = tmp_path / "mended.py"
    plugin.write_text("1 / 0\n")
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        load_plugins([str(plugin)])
    plugin.write_text("from hushrank.learners.named import LEARNERS\nLEARNERS['mine'] = LEARNERS['pdgd']\n")
    load_plugins([str(plugin)])
    assert small(learner="mine").learner == "mine"


def test_malicious_clients_need_an_attack_and_are_a_minority() -> None:
    with pytest.raises(ValueError, match="n_malicious is 3, but there is no attack"):
        small(n_malicious=3)
    with pytest.raises(ValueError, match="attack_from is 5, but there is no attack"):
        small(attack_from=5)
    assert small(attack="sign-flip", n_malicious=4).n_malicious == 4
    for too_many in (5, 11):
        with pytest.raises(ValueError, match=f"n_malicious is {too_many} of n_clients=10, must be less than half"):
            small(attack="sign-flip", n_malicious=too_many)
    with pytest.raises(ValueError, match="n_malicious is -1, must be at least 0"):
        small(attack="sign-flip", n_malicious=-1)
