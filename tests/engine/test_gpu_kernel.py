"""The GPU's kernel, interpreted on a processor, equals the plain round; without it XLA does the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from remedy_settings import change_method, opposed, with_remedy
from tiny_settings import N_FEATURES, run_plainly, tiny_dataset, tiny_setting

from hushrank.engine import gpu_kernel, gpu_lists, kernel_fallback
from hushrank.engine.inputs import PARAMS, initial_state
from hushrank.engine.kernel_fallback import compile_with_fallback, why_no_kernel
from hushrank.engine.plan import Plan, make_plans
from hushrank.engine.program import compile_rounds
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import Population
from hushrank.federation.exchange import UpdateExchange
from hushrank.privacy.laplace import PaperNoise
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.mlp import MlpRanker
from hushrank.remedies.control_variates import ControlVariates
from hushrank.remedies.personal_layers import FedPer
from hushrank.remedies.prox import FedProx
from hushrank.runs.review import review_kernel
from hushrank.types import Dataset, QuerySet

FEW: dict[str, Any] = {"users": ("informational",), "n_folds": 1, "rounds": 2}


def few(setting: Setting, **changes: Any) -> Setting:
    """With a short page. Why: the kernel spells its positions out, and compiling them is what the tests wait for."""
    return change_method(setting, k=3, **changes)


def wide(n_features: int) -> Dataset:
    """The tiny data set with more features, each a little different from another."""

    def widen(queries: QuerySet) -> QuerySet:
        shifts = np.arange(n_features, dtype=np.float32) / n_features
        return replace(queries, features=queries.features[:, np.arange(n_features) % N_FEATURES] * (0.5 + shifts))

    data = tiny_dataset(1)
    folds = [replace(f, train=widen(f.train), vali=widen(f.vali), test=widen(f.test)) for f in data.folds]
    return replace(data, folds=tuple(folds))


def clipped() -> Setting:
    noise = PaperNoise(1e9, 0.04, 10)  # next to none, so that only the clipping is seen
    return few(tiny_setting(population=Population(10, (2,)), **FEW), exchange=UpdateExchange(noise))


def long_page() -> Setting:
    setting = replace(tiny_setting(**{**FEW, "rounds": 1}), dataset=wide(20))
    return change_method(setting, ranker=LinearRanker(20), k=17)


SETTINGS: dict[str, Callable[[], Setting]] = {
    "sampled clients that drop out, three people, two folds": lambda: tiny_setting(rounds=2),
    "network of ReLU": lambda: few(tiny_setting(ranker="mlp", **FEW), ranker=MlpRanker(N_FEATURES, 5, "relu")),
    "network whose layers clients keep": lambda: few(with_remedy(FedPer(), ranker="mlp", **FEW)),
    "central": lambda: few(tiny_setting(population=Population(1, (12,)), batch=4, **FEW)),
    "two groups, pulled to the round's ranker": lambda: few(opposed(with_remedy(FedProx(mu=0.3), **FEW))),
    "shifted gradients": lambda: few(with_remedy(ControlVariates(), **FEW)),
    "clipped weights": clipped,
    "a page of 17, features in two parts": long_page,
}


HELD = {"two groups, pulled to the round's ranker", "network of ReLU"}  # whose lists are held as a whole, of four tiles


def kernel_plan(setting: Setting, kind: str) -> Plan:
    """As for a GPU."""
    plan = make_plans(setting, platform="gpu")[0]
    assert plan.shape.kernel == "compiled"
    return replace(plan, shape=replace(plan.shape, kernel=kind))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_kernel_gives_the_plain_rounds_rankers_and_lists(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_kernel, "choose_tiles", lambda *_: (8, 1, name != "central", 4 * (name in HELD)))
    compare_with_plain(SETTINGS[name]())


@pytest.mark.parametrize("ranker", ["linear", "mlp"])
def test_so_it_does_with_the_tiles_that_a_gpu_gets(ranker: str) -> None:
    compare_with_plain(few(tiny_setting(ranker=ranker, **FEW)))


def compare_with_plain(setting: Setting) -> None:
    plan = kernel_plan(setting, "interpreted")
    advance = compile_rounds(setting, plan, platform="cpu")
    state, shown = advance(initial_state(setting, plan), 1, setting.rounds)
    for number, cell in enumerate(plan.cells):
        params, online = run_plainly(setting, cell, setting.rounds)
        assert np.abs(params).max() > 0.003
        np.testing.assert_allclose(np.asarray(state[PARAMS])[number], params, atol=2e-6)
        np.testing.assert_allclose(shown["online"][:, number], online, atol=2e-6)


def test_of_equal_documents_the_first_in_the_list_stand_first() -> None:
    """A page of (5, 3, -) meets a tile of (3, 5, 4, 5): by hand 5 5 5 | 4 3 3, each with its place in the list."""
    nothing = -np.inf
    page = gpu_lists.ShownPage(
        *(np.array(x) for x in ([5.0, 3.0, nothing, nothing], [2, 7, 0, 0], [1.0, 2.0, 0.0, 0.0]))
    )
    tile = gpu_lists.ShownPage(*(np.array(x) for x in ([3.0, 5.0, 4.0, 5.0], [8, 9, 10, 11], [3.0, 4.0, 5.0, 6.0])))
    new, is_passed, is_evicted = gpu_lists.merge_tile(3, np.arange(4), page, tile)
    assert new.noisy.tolist() == [5.0, 5.0, 5.0, nothing]
    assert new.documents.tolist()[:3] == [2, 9, 11]
    assert new.scores.tolist()[:3] == [1.0, 4.0, 6.0]
    assert is_passed.tolist() == [True, False, True, False]
    assert is_evicted.tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"k": 32}, "compiled"),
        ({"k": 33}, ""),
        ({"ranker": LinearRanker(256)}, "compiled"),
        ({"ranker": LinearRanker(257)}, ""),
        ({"ranker": MlpRanker(136, 118)}, "compiled"),  # 136 * 118 + 2 * 118 = 16,284 of 16,384 parameters
        ({"ranker": MlpRanker(136, 119)}, ""),
    ],
)
def test_what_the_kernel_cannot_hold_is_left_to_xla(changes: dict[str, Any], kind: str) -> None:
    setting = change_method(tiny_setting(**FEW), **changes)
    assert make_plans(setting, platform="gpu")[0].shape.kernel == kind


@pytest.mark.parametrize("is_missing", [True, False], ids=["no Pallas for Triton", "no GPU that Triton knows"])
def test_where_the_kernel_cannot_be_compiled_xla_does_the_same_and_says_so_once(
    is_missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_fallback, "_FAILURES", {})
    if is_missing:
        monkeypatch.setitem(sys.modules, "hushrank.engine.gpu_kernel", None)
    setting = few(tiny_setting(**FEW))
    plan, tried = kernel_plan(setting, "compiled"), []

    def compile_plan(setting: Setting, plan: Plan) -> Any:
        tried.append(plan.shape.kernel)
        return compile_rounds(setting, plan, platform="cpu")  # which has no Triton

    for _ in range(2):
        advance = compile_with_fallback(compile_plan, setting, plan, "gpu")
    assert tried == ["compiled", "", ""]
    state, _ = advance(initial_state(setting, plan), 1, 2)
    np.testing.assert_allclose(np.asarray(state[PARAMS])[0], run_plainly(setting, plan.cells[0], 2)[0], atol=2e-6)
    (notice,) = review_kernel(setting)
    assert str(why_no_kernel(setting)) in notice.sentence
    assert review_kernel(change_method(setting, k=4)) == []
    assert notice.kind == "note"


def test_want_of_memory_is_no_reason_to_give_the_kernel_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_fallback, "_FAILURES", {})
    setting = few(tiny_setting(**FEW))

    def compile_plan(_setting: Setting, _plan: Plan) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 byte.")

    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
        compile_with_fallback(compile_plan, setting, kernel_plan(setting, "compiled"), "gpu")
    assert why_no_kernel(setting) is None


def test_scores_that_are_no_numbers_point_to_no_document_beyond_the_list() -> None:
    empty = gpu_lists.ShownPage(np.full(4, -np.inf), np.zeros(4, np.int32), np.zeros(4))
    tile = gpu_lists.ShownPage(np.full(8, np.nan), np.arange(8, 16), np.full(8, np.nan))
    page, _, _ = gpu_lists.merge_tile(3, np.arange(4), empty, tile)
    assert page.documents.max() > 10  # Why: otherwise nothing is tested
    kept = gpu_lists.keep_inside(page.documents, 11)
    assert kept.min() >= 0
    assert kept.max() == 10
