"""Own methods in one module: a learner, an aggregation rule, an attack and a click model.

    hushrank run fpdgd --plugin examples/own_methods.py --set learner=hinge --set clicks=skimming
    hushrank run fpdgd --plugin examples/own_methods.py --set aggregation=coordinate-median \
        --set attack=shout --set n_malicious=2 --set n_clients=10

Each is a plain function of arrays; the shapes are those of `hushrank.types`.
"""

from __future__ import annotations

import numpy as np

import hushrank
from hushrank.learners.pdgd import infer_preferences
from hushrank.streams import draw_normal
from hushrank.types import Array, AttackView, Ranker


@hushrank.learner("hinge")
def hinge_gradient(
    ranker: Ranker, params: Array, features: Array, scores: Array, ranking: Array, is_clicked: Array
) -> Array:
    """A pairwise hinge: raise each clicked document until it leads those skipped above it by one. No rho: biased."""
    weights = np.zeros(len(ranking), dtype=scores.dtype)
    for clicked, skipped in infer_preferences(is_clicked):
        if scores[ranking[clicked]] - scores[ranking[skipped]] < 1:
            weights[clicked] += 1
            weights[skipped] -= 1
    return ranker.score_gradient(params, features[ranking], weights)


@hushrank.rule("coordinate-median")
def coordinate_median(updates: Array, weights: Array) -> Array:
    """The median of each coordinate, among those that learnt something."""
    return np.median(updates[weights > 0], axis=0)


@hushrank.attack("shout", knowledge="everybody")
def shout(view: AttackView, *, key: Array) -> Array:
    """Malicious clients send noise a hundred times as long as an honest update."""
    assert view.others is not None
    length = np.linalg.norm(view.others, axis=1).mean()
    noise = draw_normal(key, view.n_malicious * len(view.params)).reshape(view.n_malicious, -1)
    return 100 * length * noise / np.linalg.norm(noise, axis=1, keepdims=True)


@hushrank.user("skimming")
def skim(grades: Array, click_draws: Array, stop_draws: Array) -> Array:  # noqa: ARG001
    """Looks at every second result and clicks on whatever is relevant there."""
    return (grades > 0) & (np.arange(len(grades)) % 2 == 0) & (click_draws < 0.9)
