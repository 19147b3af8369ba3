"""Tastes: believed only with evidence, found where they were planted, and told in sums alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plug import Plug
from remedy_settings import assert_same_bits, follow, opposed, results, with_remedy
from seeds import pick_seed

from hushrank.engine import train
from hushrank.federation.cohort import Population
from hushrank.federation.state import REMEDY, part_of
from hushrank.remedies.remedy import MeanMessage, Remedy, Turn
from hushrank.remedies.tastes import Belief, Tastes, agree, believe, find_centres
from hushrank.types import Array, NamedArrays


def test_agreement_is_along_the_taste_in_usual_lengths_and_zero_where_there_is_no_taste() -> None:
    beyond = np.array([[3, 4], [3, 4], [3, 4], [3, 4]], np.float32)
    taste = np.array([[6, 8], [-4, 3], [0, 0], [6, 8]], np.float32)
    usual = np.array([4, 4, 4, 0], np.float32)  # mean squares; 0: no round before
    np.testing.assert_allclose(agree(np, beyond, taste, usual), [5 / 2, 0, 0, 0], atol=1e-7)


def test_a_taste_is_believed_after_seventeen_rounds_that_agree() -> None:
    """n cosines of 1: their sum n is above 4 standard errors, 4 sqrt(n), from n = 17 on."""
    belief = Belief(np.zeros((1, 2), np.float32), np.zeros(1, np.float32))
    strengths = []
    for _ in range(18):
        belief = believe(np, belief, np.ones(1, np.float32), np.array([True]))
        strengths.append(float(belief.strength[0]))
    assert strengths == [0.0] * 16 + [1.0, 1.0]
    assert not belief.evidence.any()


def test_a_taste_that_nobody_has_is_not_heard_and_one_that_misleads_fades() -> None:
    belief = Belief(np.zeros((2, 2), np.float32), np.array([0.0, 1.0], np.float32))
    after = believe(np, belief, np.array([1.0, -1.0], np.float32), np.array([False, True]))
    assert not after.evidence.any()
    np.testing.assert_allclose(after.strength, [0.0, 0.9])  # a tenth of a round's agreement


@pytest.mark.randomised
def test_agreement_by_chance_opens_almost_nothing() -> None:
    generator, n = np.random.default_rng(pick_seed(1)), 1000
    belief = Belief(np.zeros((n, 2), np.float32), np.zeros(n, np.float32))
    has_opened = np.zeros(n, bool)
    for _ in range(500):
        chance = generator.uniform(-1, 1, n).astype(np.float32)
        belief = believe(np, belief, chance, np.ones(n, bool))
        has_opened |= belief.strength > 0
    assert has_opened.sum() <= 10  # of a thousand: 4 standard errors, looked at 500 times


def test_centres_are_means_beyond_everybodys_and_zero_where_nobody_is() -> None:
    """Shares 1/2, 1/4 and nobody: means 2 and 8, everybody's (1/2 * 2 + 1/4 * 8) / (3/4) = 4."""
    sums = np.array([[1, 0.5], [2, 0.25], [0.1, 0.0]], np.float32)
    np.testing.assert_allclose(find_centres(np, sums, np.float32(0.05)), [[-2], [4], [0]], atol=1e-6)


def test_what_is_sent_is_the_update_and_for_each_taste_a_pull_and_two_numbers() -> None:
    few, many = Tastes(n_tastes=3).among(100, is_noisy=False), Tastes(n_tastes=3).among(3, is_noisy=False)
    assert few == Tastes(n_tastes=3) and Tastes().among(100, is_noisy=True) == many  # their noise would hide tastes
    assert with_remedy(few).method.n_sent == 6 + 3 * (6 + 2)
    assert with_remedy(many).method.n_sent == 6
    assert many.tells is None and few.tells is not None


def pulled(remedy: Remedy, n_rounds: int, directions: Array) -> tuple[NamedArrays, NamedArrays]:
    """What server and clients remember after rounds in which each client moved in its own direction [n, p], noisily."""
    generator, (n, p) = np.random.default_rng(pick_seed(2)), directions.shape
    shared, own = remedy.first_shared(p), remedy.first_own(np.zeros(p, np.float32), n)
    for _ in range(n_rounds):
        turn = Turn(np, np.zeros(p, np.float32), shared, own, np.arange(n), np.ones(n, np.int64), 0.1)
        moved = (directions + generator.normal(0, 1, (n, p))).astype(np.float32)
        sent, own = remedy.finish(turn, moved)
        shared = remedy.absorb(shared, MeanMessage(np, sent.mean(axis=0), n, n))
    return shared, own


@pytest.mark.randomised
def test_two_planted_groups_are_separated_and_believed() -> None:
    sides = np.array([1, 1, -1, 1, -1, -1] * 5, np.float32)
    remedy = Tastes(n_tastes=2)
    shared, own = pulled(remedy, 80, sides[:, None] * np.array([1, 0, 0], np.float32))
    turn = Turn(np, np.zeros(3, np.float32), shared, own, np.arange(30), np.ones(30, np.int64), 0.1)
    along = remedy.begin(turn).starts[:, 0]
    assert (np.sign(along) == sides).all()
    assert (shared["strength"] > 0).all()


@pytest.mark.randomised
@pytest.mark.parametrize("remedy", [Tastes(n_tastes=2), Tastes(n_tastes=0)], ids=repr)
def test_clients_that_are_pulled_the_same_way_get_no_taste(remedy: Tastes) -> None:
    shared, own = pulled(remedy, 80, np.tile(np.array([1, 0, 0], np.float32), (30, 1)))
    assert not {**own, **shared}["strength"].any()


def test_clients_whose_moves_are_skewed_alike_get_no_taste() -> None:
    """Most rounds move a client a little and some a lot, as clicks do; every client is drawn from the same."""
    generator, n, p = np.random.default_rng(0), 60, 3
    remedy = Tastes(n_tastes=8)
    shared, own = remedy.first_shared(p), remedy.first_own(np.zeros(p, np.float32), n)
    for _ in range(400):
        turn = Turn(np, np.zeros(p, np.float32), shared, own, np.arange(n), np.ones(n, np.int64), 0.1)
        sent, own = remedy.finish(turn, generator.exponential(0.02, (n, p)).astype(np.float32))
        shared = remedy.absorb(shared, MeanMessage(np, sent.mean(axis=0), n, n))
        assert not shared["strength"].any()


def test_the_server_remembers_nothing_of_single_clients() -> None:
    n_clients = 37  # no other size of this setting
    setting = opposed(with_remedy(Tastes(n_tastes=3), population=Population(n_clients, (1,)), n_folds=1))
    _, states, _ = follow(setting, 2)
    remembered = part_of(states[-1], REMEDY)
    assert set(remembered) == {"mean", "rounds", "sums", "centres", "evidence", "strength"}
    assert not any(n_clients in array.shape for array in remembered.values())


@pytest.mark.parametrize("engine", ["numba", "xla", "plain"])
def test_a_stopped_run_resumes_to_the_same_bits(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushrank.remedies.tastes._SURE", 0.01)
    monkeypatch.setattr("hushrank.remedies.tastes._SETTLE", 2)
    monkeypatch.setattr(train, "_CALL_SECONDS", 1e-9)
    setting = opposed(with_remedy(Tastes(n_tastes=3), n_folds=1, rounds=6))
    whole = results(setting, engine)
    kept = {"checkpoints": tmp_path, "checkpoint_seconds": 0.0, "identity": "plug"}
    with pytest.raises(RuntimeError, match="pulled the plug"):
        results(setting, engine, **kept, saved=Plug(3))
    assert_same_bits(results(setting, engine, **kept), whole)


def test_workers_and_a_tight_memory_limit_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    from hushrank.engine import fused, plan

    monkeypatch.setattr(plan, "_CELLS", {"cpu": 1})
    monkeypatch.setattr(fused, "_BLOCK", 3)
    monkeypatch.setattr(fused, "_WORTH_HANDING_OVER", 1)
    setting = opposed(with_remedy(Tastes(n_tastes=3), population=Population(10, (2, 1))))
    alone = results(setting, "numba", workers=1)
    limit = max(plan.estimate_bytes(setting, each) for each in plan.make_plans(setting, platform="cpu"))
    assert_same_bits(results(setting, "numba", workers=4), alone)
    assert_same_bits(results(setting, "numba", workers=4, memory_limit=limit), alone)
    assert_same_bits(results(replace(setting, repeats=2), "numba", workers=4)[:1], alone[:1])
