"""What holds for every model: padding is nothing, the past is read and the future is not, first values are fixed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from personal_inputs import SMALL, draw_inputs, draw_vectors, make_model, score_fast

from hushrank.personal.inputs import InputWidths, PersonalInputs, pad_inputs, take_queries
from hushrank.personal.models.history_fast import compact_history
from hushrank.personal.models.knrm import Knrm, score_knrm
from hushrank.personal.models.named_fast import MODELS, named_model, score_searches
from hushrank.personal.models.parameters import (
    WordSharing,
    find_frequent,
    flatten_parameters,
    initial_personal,
    initial_shared,
    join_shared,
    split_shared,
    unflatten_parameters,
)
from hushrank.streams import seed_key
from hushrank.types import Array

NAMES = list(MODELS)
WITH_HISTORY = ["hrnn", "htps"]


@pytest.mark.parametrize("name", NAMES)
def test_padding_never_changes_a_score(name: str) -> None:
    model, shared, personal = make_model(name)
    inputs = draw_inputs(3)
    wide = pad_inputs(inputs, InputWidths(queries=6, documents=7, history=12, query_words=5, document_words=8))
    scores = np.asarray(score_fast(model, shared, personal, inputs))
    padded = np.asarray(score_fast(model, shared, personal, wide))
    np.testing.assert_allclose(padded[:4, :5], scores, atol=1e-6)
    assert np.isfinite(padded).all() and not padded[~wide.is_document].any()


@pytest.mark.parametrize("name", ["hrnn", "htps"])
def test_history_may_be_wider_than_titles(name: str) -> None:
    """A row of history holds the titles of all clicks of a search, a candidate has one."""
    model, shared, personal = make_model(name)
    inputs = draw_inputs(3)
    history = inputs.history._replace(clicked_words=np.pad(inputs.history.clicked_words, ((0, 0), (0, 5))))
    scores, wide = (score_fast(model, shared, personal, i) for i in (inputs, inputs._replace(history=history)))
    np.testing.assert_allclose(np.asarray(wide), np.asarray(scores), atol=1e-6)


def test_knrm_by_hand() -> None:
    vectors = np.array([[0, 0], [0, 0], [1, 0], [0, 1]], dtype=np.float32)
    inputs = draw_inputs(1, n_queries=1, n_documents=2)._replace(
        query_words=np.array([[2, 0]]),
        document_words=np.array([[[2, 3, 0], [3, 3, 3]]]),
        is_document=np.ones((1, 2), bool),
    )
    weights = np.zeros((11, 1), dtype=np.float32)
    weights[0] = 1.0  # only the kernel that counts equal words
    shared = {"words": vectors, "kernels/weights": weights, "kernels/bias": np.zeros(1, np.float32)}
    scores = score_knrm(Knrm(dim=2), shared, {}, inputs)
    # The first title has the query word once, the second never: 0.01 log 1, and 0.01 log of the floor.
    np.testing.assert_allclose(scores, [[np.tanh(0.01 * np.log(1.0)), np.tanh(0.01 * np.log(1e-10))]], atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_no_model_reads_clicks_or_the_future(name: str) -> None:
    model, shared, personal = make_model(name)
    inputs = draw_inputs(3)._replace(n_long=np.array([0, 1, 2, 3], np.int32), n_before=np.array([0, 2, 4, 5], np.int32))
    later = np.arange(len(inputs.history.sessions)) >= 5
    changed = inputs.history._replace(query_words=np.where(later[:, None], 7, inputs.history.query_words))
    other = inputs._replace(is_clicked=~inputs.is_clicked, history=changed)
    assert (score_fast(model, shared, personal, inputs) == score_fast(model, shared, personal, other)).all()


@pytest.mark.parametrize("name", WITH_HISTORY)
@pytest.mark.parametrize(("row", "which"), [(0, "before the session"), (4, "in the session")])
def test_models_with_history_read_the_past(name: str, row: int, which: str) -> None:
    model, shared, personal = make_model(name)
    inputs = draw_inputs(3)._replace(n_long=np.array([0, 1, 2, 3], np.int32), n_before=np.array([0, 2, 4, 5], np.int32))
    is_row = (np.arange(len(inputs.history.sessions)) == row)[:, None]
    changed = inputs.history._replace(clicked_words=np.where(is_row, 7, inputs.history.clicked_words))
    moved = score_fast(model, shared, personal, inputs) != score_fast(
        model, shared, personal, inputs._replace(history=changed)
    )
    reads = np.asarray(inputs.n_before) > row
    assert np.asarray(moved).any(axis=1).tolist() == reads.tolist(), which


@pytest.mark.parametrize("name", ["hrnn", pytest.param("htps", marks=pytest.mark.slow)])
def test_the_rows_in_the_windows_are_as_good_as_the_whole_history(name: str) -> None:
    model, shared, personal = make_model(name)
    inputs = draw_inputs(3)

    def score_one(shared: dict[str, Array], inputs: PersonalInputs, place: int) -> jax.Array:
        one = take_queries(inputs, jnp.asarray(place)[None])
        return score_searches(model, shared, personal, compact_history(one))[0]

    compiled = jax.jit(score_one)
    one_by_one = [compiled(shared, inputs, place) for place in range(4)]
    np.testing.assert_allclose(one_by_one, score_fast(model, shared, personal, inputs), atol=1e-6)


def test_hrnn_begins_anew_in_each_session() -> None:
    model, shared, personal = make_model("hrnn")
    inputs = draw_inputs(3)._replace(n_long=np.full(4, 9, np.int32), n_before=np.full(4, 9, np.int32))
    one = inputs._replace(history=inputs.history._replace(sessions=np.zeros(9, np.int32)))
    two = inputs._replace(history=inputs.history._replace(sessions=np.repeat([0, 1], [4, 5]).astype(np.int32)))
    renamed = inputs._replace(history=inputs.history._replace(sessions=np.repeat([3, 8], [4, 5]).astype(np.int32)))
    scores = [np.asarray(score_fast(model, shared, personal, each)) for each in (one, two, renamed)]
    assert (scores[0] != scores[1]).any() and (scores[1] == scores[2]).all()


def test_dropout_is_keyed_and_off_without_a_key() -> None:
    model, shared, personal = make_model("htps")
    inputs = draw_inputs(3)
    plain = score_fast(model, shared, personal, inputs)
    first, again, other = (score_fast(model, shared, personal, inputs, seed_key(seed)) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any() and (first != plain).any()


def test_personal_vectors_belong_to_one_user_and_move_only_that_users_scores() -> None:
    model, shared, personal = make_model("peps")
    inputs = draw_inputs(3)
    nobody = inputs._replace(query_rows=np.full_like(inputs.query_rows, -1))
    other = {name: part + 1.0 for name, part in personal.items()}
    assert (score_fast(model, shared, personal, inputs) != score_fast(model, shared, other, inputs)).any()
    assert (score_fast(model, shared, personal, nobody) == score_fast(model, shared, other, nobody)).all()


@pytest.mark.parametrize("name", NAMES)
def test_only_peps_has_personal_parameters_and_every_model_starts_the_same_everywhere(name: str) -> None:
    model, vectors = named_model(name, **SMALL[name]), draw_vectors(1)
    own = initial_personal(model, vectors[[3, 5]], n_own=4)
    assert set(own) == ({"own-words"} if name == "peps" else set())
    if own:
        assert (own["own-words"][:2] == vectors[[3, 5]]).all() and not own["own-words"][2:].any()
    first, again = (flatten_parameters(initial_shared(model, vectors, key=seed_key(7))) for _ in range(2))
    assert (first == again).all() and first.dtype == np.float32
    assert (first != flatten_parameters(initial_shared(model, vectors, key=seed_key(8)))).any()


def test_full_size_has_the_shapes_of_the_papers() -> None:
    shapes = {name: {p.name: p.shape for p in named_model(name).parameters} for name in NAMES}
    assert shapes["peps"]["attention/personal/query"] == (100, 8 * 50)
    assert shapes["peps"]["combine/weights"] == (6, 1)
    assert shapes["htps"]["words/query"] == (100, 6 * 50) and shapes["htps"]["words/inner/weights"] == (100, 256)
    assert shapes["hrnn"]["searches/input"] == (200, 300)


def test_the_three_cases_send_all_frequent_or_no_word_vectors() -> None:
    _, shared, _ = make_model("knrm")
    for sharing, rows in ((WordSharing("all"), 30), (WordSharing("frequent", (4, 9, 11)), 3), (WordSharing(), 0)):
        sent, kept = split_shared(shared, sharing)
        assert len(flatten_parameters(sent)) == 11 + 1 + rows * 6
        joined = join_shared(sent, kept, sharing)
        assert all((joined[name] == shared[name]).all() for name in shared)


def test_frequent_words_stay_in_their_rows_and_rare_ones_as_they_were() -> None:
    _, shared, _ = make_model("knrm")
    sharing = WordSharing("frequent", (4, 9))
    sent, kept = split_shared(shared, sharing)
    moved = join_shared({**sent, "words": sent["words"] + 1.0}, kept, sharing)["words"]
    assert np.flatnonzero((moved != shared["words"]).any(axis=1)).tolist() == [4, 9]


def test_frequent_words_are_those_of_most_documents() -> None:
    assert find_frequent(np.array([0, 99, 3, 7, 7, 1, 9]), most=3) == (3, 4, 6)


def test_the_flat_vector_has_the_order_of_ravel_pytree() -> None:
    _, shared, _ = make_model("peps")
    flat = flatten_parameters(shared)
    assert (flat == np.asarray(ravel_pytree(shared)[0])).all()
    back = unflatten_parameters(flat, shared)
    assert all((back[name] == shared[name]).all() for name in shared)
    with pytest.raises(ValueError, match="these parameters have"):
        unflatten_parameters(flat[1:], shared)


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of knrm, peps, hrnn, htps"):
        named_model("bert")
    with pytest.raises(ValueError, match="must be all, frequent or frozen"):
        WordSharing("some")
    with pytest.raises(ValueError, match="must be named"):
        WordSharing("frequent")
    with pytest.raises(ValueError, match="ascending"):
        WordSharing("frequent", (4, 4))
    with pytest.raises(ValueError, match=r"must be \[n_words, 6\]"):
        initial_shared(named_model("knrm", **SMALL["knrm"]), np.zeros((3, 5)), key=seed_key(1))
    with pytest.raises(ValueError, match="room for 1"):
        initial_personal(named_model("peps", **SMALL["peps"]), draw_vectors(1)[2:4], n_own=1)
