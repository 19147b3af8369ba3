"""PEPS in NumPy, with gradients by hand, is PEPS in JAX; and the gradients are those of the loss."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from personal_inputs import draw_inputs, make_model, score_fast
from seeds import pick_seed

from hushrank.personal import loss, loss_fast
from hushrank.personal.inputs import InputWidths, PersonalInputs, pad_inputs
from hushrank.personal.models.knrm import Knrm, score_knrm
from hushrank.personal.models.named_fast import score_searches
from hushrank.personal.models.parameters import WordSharing, join_shared, split_shared
from hushrank.personal.models.peps import Peps, score_peps
from hushrank.personal.training import find_gradients
from hushrank.personal.training_fast import join_shared as join_fast
from hushrank.types import Array

WIDE = InputWidths(queries=6, documents=7, history=12, query_words=5, document_words=8)
CASES = [WordSharing("all"), WordSharing("frequent", (2, 3, 5, 8, 13)), WordSharing()]


def make_peps(seed: int = 1) -> tuple[Peps, dict[str, Array], dict[str, Array]]:
    model, shared, personal = make_model("peps", seed)
    assert isinstance(model, Peps)
    return model, shared, personal


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.randomised
def test_plain_and_fast_scores_agree(is_padded: bool) -> None:
    inputs = draw_inputs(pick_seed(3))
    inputs = pad_inputs(inputs, WIDE) if is_padded else inputs
    model, shared, personal = make_peps()
    fast = np.asarray(score_fast(model, shared, personal, inputs))
    plain = score_peps(model, shared, personal, inputs)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(np.where(inputs.is_document, plain, 0), fast, atol=2e-6)


@pytest.mark.randomised
def test_plain_and_fast_knrm_agree() -> None:
    model, shared, personal = make_model("knrm")
    assert isinstance(model, Knrm)
    inputs = draw_inputs(pick_seed(3))
    plain = np.where(inputs.is_document, score_knrm(model, shared, personal, inputs), 0)
    np.testing.assert_allclose(plain, np.asarray(score_fast(model, shared, personal, inputs)), atol=2e-6)


def derive(shared: dict[str, Array], personal: dict[str, Array], inputs: PersonalInputs) -> dict[str, Array]:
    def lose(parts: tuple[dict[str, Array], dict[str, Array]]) -> jax.Array:
        scores = score_searches(make_peps()[0], *parts, inputs)
        n_pairs = loss_fast.find_pairs(inputs.is_clicked, inputs.is_document).sum()
        return loss_fast.pair_loss(scores, inputs.is_clicked, inputs.is_document) / n_pairs

    of_shared, of_personal = jax.grad(lose)((shared, personal))
    return {**of_shared, **of_personal}


fast_gradients = jax.jit(derive)


@pytest.mark.parametrize("size", [(4, 5, 9), (1, 2, 1)])
@pytest.mark.randomised
def test_gradients_by_hand_are_those_of_jax(size: tuple[int, int, int]) -> None:
    inputs = pad_inputs(draw_inputs(pick_seed(5), *size), WIDE)
    model, shared, personal = make_peps()
    sharing = WordSharing("all")
    plain = find_gradients(model, shared, {}, personal, inputs, sharing=sharing, chunk=4)
    fast = fast_gradients(shared, personal, inputs)
    assert set(plain) == set(fast)
    largest = max(float(np.abs(part).max()) for part in fast.values())
    for name, part in plain.items():
        assert part.dtype == np.float32
        np.testing.assert_allclose(part, fast[name], atol=2e-6 * max(largest, 1.0), err_msg=name)


@pytest.mark.randomised
def test_gradients_by_hand_are_those_of_small_differences() -> None:
    """In float64, without JAX: the loss moves along a random direction as the gradient says."""
    inputs = draw_inputs(pick_seed(6))
    model, shared, personal = make_peps()
    params = {name: part.astype(np.float64) for name, part in {**shared, **personal}.items()}
    rng = np.random.default_rng(pick_seed(7))
    direction = {name: rng.normal(size=part.shape) for name, part in params.items()}

    def lose(step: float) -> float:
        moved = {name: part + step * direction[name] for name, part in params.items()}
        scores = score_peps(model, moved, moved, inputs)
        n_pairs = loss.count_pairs(inputs.is_clicked, inputs.is_document).sum()
        return loss.pair_loss(scores, inputs.is_clicked, inputs.is_document)[0] / n_pairs

    own = {"own-words": params["own-words"]}
    of_shared = {name: part for name, part in params.items() if name not in own}
    found = find_gradients(model, of_shared, {}, own, inputs, sharing=WordSharing("all"))
    expected = (lose(1e-6) - lose(-1e-6)) / 2e-6
    slope = sum(float(np.sum(found[name] * direction[name])) for name in params)
    assert slope == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("sharing", CASES, ids=lambda case: case.words)
def test_each_case_trains_only_what_it_sends(sharing: WordSharing) -> None:
    inputs = draw_inputs(5)
    model, shared, personal = make_peps()
    everything = find_gradients(model, shared, {}, personal, inputs, sharing=WordSharing("all"))
    sent, kept = split_shared(shared, sharing)
    found = find_gradients(model, sent, kept, personal, inputs, sharing=sharing)
    assert set(found) == {*sent, *personal}
    rows = sharing.rows if sharing.words == "frequent" else np.arange(30)
    for name, part in found.items():
        expected = everything[name][rows] if name == "words" else everything[name]
        np.testing.assert_array_equal(part, expected)
    fast = join_fast(sent, kept, sharing)
    assert all((np.asarray(fast[name]) == part).all() for name, part in join_shared(sent, kept, sharing).items())
