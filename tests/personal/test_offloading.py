"""What a slow client hands to its proxy: both halves together train as the client alone would."""

from __future__ import annotations

import numpy as np
import pytest
from personal_inputs import draw_inputs, draw_vectors, make_model

from hushrank.personal.inputs import PersonalInputs
from hushrank.personal.models.parameters import OWN_WORDS, WORDS, WordSharing, split_shared
from hushrank.personal.models.peps import LowerValues, Peps
from hushrank.personal.offloading import (
    find_pull,
    follow_lower,
    follow_upper,
    read_lower,
    score_upper,
    split_layers,
    train_offloaded,
)
from hushrank.personal.training import LocalTraining, bound_move, find_gradients, train_peps
from hushrank.streams import seed_key
from hushrank.types import Array

CASES = [WordSharing("all"), WordSharing("frequent", (2, 3, 5, 8, 13)), WordSharing()]
SHORT = LocalTraining(epochs=2, batch=4, chunk=2, rate=0.01)
TIGHT = LocalTraining(epochs=1, batch=4, chunk=2, rate=0.01, clip_norm=1e-4)  # so that the length of both halves counts


def make_peps() -> tuple[Peps, dict[str, Array], dict[str, Array]]:
    model, shared, personal = make_model("peps")
    assert isinstance(model, Peps)
    return model, shared, personal


@pytest.mark.parametrize("training", [SHORT, TIGHT])
@pytest.mark.parametrize("sharing", CASES)
def test_both_halves_train_as_the_client_alone(sharing: WordSharing, training: LocalTraining) -> None:
    model, shared, personal = make_peps()
    inputs = draw_inputs(3, n_queries=7)
    alone, halves = (
        train(model, shared, personal, inputs, training=training, sharing=sharing, key=seed_key(4))
        for train in (train_peps, train_offloaded)
    )
    assert alone.n_pairs == halves.n_pairs and np.abs(alone.delta).max() > 0.005
    np.testing.assert_allclose(halves.delta, alone.delta, atol=1e-6)
    np.testing.assert_allclose(halves.personal[OWN_WORDS], alone.personal[OWN_WORDS], atol=1e-6)


def test_the_proxy_has_the_upper_layers_and_no_log_no_profile_no_features() -> None:
    model, shared, personal = make_peps()
    sent, kept = split_shared(shared, WordSharing())
    lower, upper = split_layers({**sent, **personal})
    assert set(lower) == {OWN_WORDS, "features/weights", "features/bias"}
    assert {name.split("/")[0] for name in upper} == {"attention", "kernels", "encoder", "document", "combine"}
    assert not set(LowerValues._fields) & set(PersonalInputs._fields)  # of the log, only what these layers give
    inputs = draw_inputs(3)
    some = {name: part for name, part in lower.items() if name != OWN_WORDS}
    values = read_lower(some, kept, personal, inputs, WordSharing())
    scores = score_upper(model, upper, values)  # with upper parameters alone
    pull = find_pull(scores, inputs)
    of_upper, answer = follow_upper(model, upper, values, pull)
    of_lower = follow_lower(some, kept, personal, inputs, answer, WordSharing())
    whole = find_gradients(model, sent, kept, personal, inputs, sharing=WordSharing(), chunk=len(scores))
    together = {**of_upper, **of_lower}
    assert set(together) == set(whole) and set(of_upper) == set(upper)
    scale = together["combine/weights"][0, 0] / whole["combine/weights"][0, 0]  # the sum over pairs, not the mean
    for name in whole:
        np.testing.assert_allclose(together[name], scale * whole[name], rtol=1e-4, atol=1e-5)


def test_a_proxy_can_look_up_the_words_whose_vectors_it_gets() -> None:
    """Why handing over the upper layers needs trust, too: stated in the docs."""
    _, shared, personal = make_peps()
    inputs = draw_inputs(3)
    values = read_lower(*split_shared(shared, WordSharing()), personal, inputs, WordSharing())
    vectors = draw_vectors(1)
    assert np.array_equal(vectors, shared[WORDS])  # public
    distance = np.abs(values.query[:, :, None, :] - vectors).sum(axis=-1)
    assert np.array_equal(distance.argmin(axis=-1)[values.is_word], inputs.query_words[values.is_word])


def test_no_update_is_larger_than_adam_can_make_it() -> None:
    model, shared, personal = make_peps()
    for n_queries, training in ((7, SHORT), (1, SHORT), (7, TIGHT)):
        inputs = draw_inputs(5, n_queries=n_queries)
        found = train_peps(
            model, shared, personal, inputs, training=training, sharing=WordSharing("all"), key=seed_key(4)
        )
        assert np.abs(found.delta).max() <= bound_move(training, n_queries) * (1 + 1e-5)
    assert bound_move(LocalTraining(), 16) == pytest.approx(0.001)  # the first step is as long as the rate
    sparse = np.zeros(40)
    sparse[-1] = 1.0  # the worst for one step: a gradient that comes once, at the end
    first, second = 0.1 * sparse[-1], 0.001 * sparse[-1] ** 2
    step = (first / (1 - 0.9**40)) / (second / (1 - 0.999**40)) ** 0.5
    assert 0.001 * step < bound_move(LocalTraining(), 40 * 16) - bound_move(LocalTraining(), 39 * 16)
