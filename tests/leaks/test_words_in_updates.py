"""What updates of personalised search tell about clients' words, though no word vector is sent: a measure, no bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_users import tiny_task

from hushrank.engine.personal_setting import PersonalSetting
from hushrank.engine.personal_store import PersonalStore
from hushrank.federation.exchange import UpdateExchange
from hushrank.metrics.roc import area_under_roc
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.recipes.personal_setting import resolve_personal
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.types import Array, NamedArrays

DATA = "personal-like:n_users=8,n_documents=1200,n_candidates=6,n_short=6,seed=1"
SMALL = {"data": DATA, "word_dim": 16, "cohort": 8, "rounds": 1, "local_batch": 4, "seed": 1}
INWARD = ("encoder/input", *(f"attention/personal/{part}" for part in ("query", "key", "value")))  # words come in here
NOISY = UpdateExchange(SoundGaussian(0.05, 1.0))  # the server's noise


@pytest.fixture(scope="module")
def setting() -> PersonalSetting:
    """Case 3: word vectors are frozen and not sent."""
    return resolve_personal(change_recipe(NAMED["fedps"], SMALL))[1]


def score_words(change: NamedArrays, vectors: Array) -> Array:
    """[n_words] how well a word's vector v fits how matrices moved: the gradient of v W is an outer product with v."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return sum(np.linalg.norm(units @ change[name], axis=1) / np.linalg.norm(change[name]) for name in INWARD)


def rate_guesses(setting: PersonalSetting, *, is_published: bool = False, shift: int = 0, n_summed: int = 1) -> float:
    """Mean over clients of the area under ROC for the words that client + shift searched for, among everybody's.

    n_summed: clients whose updates are added up, each weighed by its pairs; then the words of any of them.
    """
    task = tiny_task(setting)
    state, step = task.start(), task.schedule.step_at(1)
    sent = list(task.visit_clients(state["params"], PersonalStore(state), step))
    changes = [m.delta for m in sent]
    if is_published:
        changes = [task.advance(state, 1, 1)[0]["params"] - state["params"]] * len(changes)
    visits = zip(step.ids, step.spans, strict=True)
    searched = [set(setting.people.inputs_of(int(i), span).query_words.ravel().tolist()) - {0, 1} for i, span in visits]
    if n_summed > 1:
        firsts = range(0, len(sent), n_summed)
        changes = [np.sum([m.weight * m.delta for m in sent[i : i + n_summed]], axis=0) for i in firsts]
        searched = [set().union(*searched[i : i + n_summed]) for i in firsts]
    areas = []
    for number, change in enumerate(changes):
        right = searched[(number + shift) % len(changes)]
        wrong = set().union(*searched) - right
        scores = score_words(task.arrays.sent(change), setting.vectors)
        areas.append(area_under_roc(scores[sorted(right)], scores[sorted(wrong)]))
    return float(np.mean(areas))


def test_without_noise_an_update_tells_its_clients_words(setting: PersonalSetting) -> None:
    assert rate_guesses(setting) > 0.7
    assert rate_guesses(setting, shift=1) < 0.6  # of another client it tells nothing: it is not that some words fit all


def test_a_sum_of_updates_still_tells_its_clients_words(setting: PersonalSetting) -> None:
    """What a group server gets of a proxy: docs/howto/proxies.md says .69 and .66."""
    assert rate_guesses(setting, n_summed=2) == pytest.approx(0.69, abs=0.02)
    assert rate_guesses(setting, n_summed=4) == pytest.approx(0.66, abs=0.02)
    assert rate_guesses(setting, n_summed=2, shift=1) < 0.6


def test_sound_hides_words_from_everybody_but_the_server(setting: PersonalSetting) -> None:
    noisy = replace(setting, exchange=NOISY)
    assert abs(rate_guesses(noisy, is_published=True) - 0.5) < 0.1
    assert rate_guesses(noisy) > 0.7  # the server, which adds the noise, reads what comes before it
