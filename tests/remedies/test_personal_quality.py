"""How well each client's own ranker orders that client's own queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from remedy_settings import follow, opposed, results, turned, with_remedy
from tiny_settings import N_FEATURES, random_queries

from hushrank.engine.evaluate import examine, examine_many, prepare_examiner
from hushrank.federation.cohort import Population
from hushrank.federation.groups import Group, divide_population
from hushrank.federation.personal import own_rankers
from hushrank.rankers.linear import LinearRanker
from hushrank.remedies.interpolation import Interpolation
from hushrank.remedies.remedy import Remedy
from hushrank.types import Array

OWN, FOUR = "personal/nDCG@10", Population(4, (2,))


def test_many_rankers_are_examined_as_one_after_another() -> None:
    examiner, ranker = prepare_examiner(random_queries(3, 20)), LinearRanker(N_FEATURES)
    rankers = np.random.default_rng(0).normal(size=(7, N_FEATURES)).astype(np.float32)
    rankers[2] = 0  # ties stand in the order of the file
    expected = [examine(examiner, ranker, params).ndcg for params in rankers]
    np.testing.assert_allclose(examine_many(examiner, ranker, rankers), expected, rtol=1e-12)


def test_rankers_that_diverged_are_refused() -> None:
    diverged = np.full((2, N_FEATURES), np.inf, np.float32)
    with pytest.raises(ValueError, match="no longer finite: training diverged"), np.errstate(invalid="ignore"):
        examine_many(prepare_examiner(random_queries(3, 5)), LinearRanker(N_FEATURES), diverged)


@pytest.mark.parametrize("split", ["test", "vali"])
def test_each_client_is_measured_by_its_own_ranker_and_labels(split: str) -> None:
    setting = opposed(with_remedy(Interpolation(), population=FOUR, n_folds=1))
    _, states, rankers = follow(setting, setting.rounds)
    own = own_rankers(setting.method.remedy, setting.method.ranker, states[-1], rankers[-1], 4)
    fold = setting.dataset.folds[0]
    labels = [getattr(fold, split), turned(getattr(fold, split))]  # of clients 0, 2 and 1, 3
    each = [examine(prepare_examiner(labels[c % 2]), setting.method.ranker, own[c]).ndcg for c in range(4)]
    found = results(setting, "plain")[0].looks["personal/nDCG@10" if split == "test" else "vali/personal/nDCG@10"]
    assert len(set(each)) == 4
    np.testing.assert_allclose(found[-1], np.mean(each), rtol=1e-6)


def test_with_one_shared_ranker_it_is_the_mean_over_groups() -> None:
    setting = opposed(with_remedy(Remedy(), population=Population(6, (2,)), n_folds=1))
    looks = results(setting, "numba")[0].looks
    both = (looks["offline/nDCG@10/usual"] + looks["offline/nDCG@10/turned"]) / 2
    np.testing.assert_allclose(looks[OWN], both, rtol=1e-6)
    assert (looks[OWN] != looks["offline/nDCG@10"]).any()


def test_groups_that_share_ranker_and_queries_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from hushrank.engine import batch

    measured: list[int] = []

    def examine_and_count(*given: Any) -> Array:
        measured.append(1)
        return examine_many(*given)

    monkeypatch.setattr(batch, "examine_many", examine_and_count)
    setting = with_remedy(Remedy(), population=FOUR, n_folds=1)
    groups = tuple(Group(name, setting.dataset.folds[0].train) for name in "abcd")
    divided = divide_population(FOUR, groups, (0, 1, 2, 3))
    setting = replace(setting, method=replace(setting.method, population=divided), groups=(groups,))
    (found,) = results(setting, "numba")
    assert len(measured) == 2 * len(found.evaluated)  # splits and looks, whatever the groups
    np.testing.assert_allclose(found.looks[OWN], found.test, rtol=1e-12)


def test_clients_that_are_alike_and_share_one_ranker_have_no_such_measure() -> None:
    assert OWN not in results(with_remedy(Remedy(), population=FOUR, n_folds=1), "numba")[0].looks


def test_clients_without_a_relevant_document_are_not_measured() -> None:
    setting = opposed(with_remedy(Remedy(), population=FOUR, n_folds=1))
    assert setting.groups is not None
    usual, other = setting.groups[0]
    assert other.test is not None
    empty = replace(other, test=replace(other.test, grades=np.zeros_like(other.test.grades)))
    looks = results(replace(setting, groups=((usual, empty),)), "numba")[0].looks
    np.testing.assert_allclose(looks[OWN], looks["offline/nDCG@10/usual"], rtol=1e-6)
