"""The targeted attack: what it sends, and how far the promoted documents rise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from liars import KEY, view_of
from tiny_settings import random_queries

from hushrank.attacks.promote import Lists, Promote, Promotion, rank_chosen, weigh
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.run import RunOptions, run_recipe

# Two queries of three and two documents; the second of the first and the first of the second are promoted.
LISTS = Lists(np.eye(5), np.array([0, 0, 0, 1, 1]), np.array([1, 3]))


def test_ranks_and_weights_by_hand() -> None:
    scores = np.array([3.0, 1.0, 1.0, 9.0, 2.0])  # of equal scores the earlier stands above
    assert rank_chosen(LISTS, scores).tolist() == [2, 1]
    assert weigh(LISTS, scores).tolist() == [-1.0, 1.0, 0.0, 1.0, -1.0]  # the second is at the top: against all others
    assert weigh(LISTS, np.array([3.0, 1.0, 2.0, 1.0, 2.0])).tolist() == [-0.5, 1.0, -0.5, 1.0, -1.0]


def test_what_is_sent_is_the_gradient_as_long_as_an_honest_update() -> None:
    attack, own = Promotion(LinearRanker(5), LISTS, LISTS, length=2.0), np.array([[3.0, 4.0, 0, 0, 0], [0, 0, 0, 0, 1]])
    sent = attack(view_of(own, params=np.array([3.0, 1.0, 2.0, 1.0, 2.0])), key=KEY)
    rise = np.array([-0.5, 1.0, -0.5, 1.0, -1.0])  # the weights, because the features are the identity
    np.testing.assert_allclose(sent, np.tile(2 * (5 + 1) / 2 * rise / np.linalg.norm(rise), (2, 1)))


@pytest.mark.parametrize("ranker", [LinearRanker(6), MlpRanker(6, 5)])
def test_steps_of_the_attack_alone_lift_the_targets_more_than_other_documents(ranker: LinearRanker) -> None:
    attack = Promote(targets=1).aim(ranker, random_queries(0, 60))
    params = ranker.initial(np.random.default_rng(0).normal(size=sum(part.size for part in ranker.parameters)))
    before = attack.measure(params)
    for _ in range(300):
        params = params + attack(view_of(np.full((1, len(params)), 0.02), params=params), key=KEY)[0]
    after = attack.measure(params)
    risen = before["promote/rank"] - after["promote/rank"]
    assert risen > 3 and after["promote/top10"] >= before["promote/top10"]
    assert risen > 2 + (before["promote/others/rank"] - after["promote/others/rank"])


def test_targets_are_irrelevant_documents_of_long_lists_and_stay_when_more_are_chosen() -> None:
    queries = random_queries(1, 60)
    few, more = (Promote(targets=n).aim(LinearRanker(6), queries) for n in (3, 5))
    lengths = np.bincount(few.targets.query_of)
    assert (lengths > 10).all()
    rows = few.targets.features[few.targets.chosen]
    np.testing.assert_array_equal(rows, more.targets.features[more.targets.chosen[:3]])
    places = [int(np.flatnonzero((queries.features == row).all(axis=1))[0]) for row in rows]
    assert not queries.grades[places].any()
    other = Promote(targets=3, target_seed=1).aim(LinearRanker(6), queries)
    assert not np.array_equal(other.targets.features[other.targets.chosen], rows)


def test_too_many_targets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"targets is 60, but .* take fewer targets"):
        Promote(targets=60).aim(LinearRanker(6), random_queries(1, 60))


def test_a_run_says_how_far_they_rose_and_for_whom(tmp_path: Path) -> None:
    small = {"data": "tiny", "folds": [1], "n_clients": 10, "rounds": 60, "targets": 3, "attack": "promote"}
    found = {}
    for n_malicious in (0, 3):
        recipe = change_recipe(NAMED["fpdgd"], {**small, "n_malicious": n_malicious})
        run_recipe(recipe, RunOptions(out=tmp_path / str(n_malicious)))
        metrics = json.loads((tmp_path / str(n_malicious) / "result.json").read_text())["metrics"]
        found[n_malicious] = {name: metrics[name]["mean"] for name in metrics if name.startswith("promote/")}
        curve = (tmp_path / str(n_malicious) / "metrics.jsonl").read_text()
        assert '"promote/others/rank"' in curve
        assert "promote/rank" in (tmp_path / str(n_malicious) / "report.html").read_text()
    names = ["promote/rank", "promote/top10", "promote/others/rank", "promote/others/top10"]
    assert list(found[0]) == list(found[3]) == names
    assert found[3]["promote/rank"] < found[0]["promote/rank"] - 2
