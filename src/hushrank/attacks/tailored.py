"""An attack that tries the server's own rule and sends what moves it furthest from the honest mean [shejwalkar2021].

The thesis names it as DYN-OPT [thesis, Section 7.4.1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushrank.attacks.knowledge import knowledge_key, known_updates, mean_length, send_alike
from hushrank.attacks.min_max import perturb, perturbation_key
from hushrank.keys import above_zero
from hushrank.keys import key as setting
from hushrank.streams import draw_normal
from hushrank.types import Array, AttackView

_HALVINGS, _REFINEMENTS = 8, 4


@dataclass(frozen=True)
class Tailored:
    """All send mean + gamma * perturbation with the gamma, by halving, that moves the rule furthest from the mean of
    the honest updates [shejwalkar2021, Eq. 2].

    With partial knowledge the rule is tried on honest updates as the liars imagine them. Differs: gamma has a largest
    value (`reach`), because a mean follows any.
    """

    tries_rule: ClassVar[bool] = True  # whether it asks what the server would make of a lie
    knowledge: str = knowledge_key()
    perturbation: str = perturbation_key()
    reach: float = setting(10.0, "longest step away from the mean, in lengths of an honest update", check=above_zero)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        assert view.try_rule is not None, "an attack on a rule needs a server"
        known = known_updates(view).astype(np.float64)
        others = imagine_others(view, key) if view.others is None else view.others
        mean, away = known.mean(axis=0), perturb(known, self.perturbation)
        length = np.sqrt(away @ away)
        if length == 0:
            return send_alike(view, mean)

        def moved(step: float) -> float:
            sent = send_alike(view, mean + step / length * away)
            assert view.try_rule is not None
            off = view.try_rule(np.concatenate([sent, others])) - mean
            return float(off @ off)

        return send_alike(view, mean + find_best(moved, self.reach * mean_length(known)) / length * away)


def find_best(moved: Callable[[float], float], longest: float) -> float:
    """The step from longest, longest / 2, ... that moves most; then ever smaller steps around it."""
    steps = [longest / 2**n for n in range(_HALVINGS)]
    most, best = max((moved(step), step) for step in steps)
    width = best / 2
    for _ in range(_REFINEMENTS):
        width /= 2
        around = [(moved(step), step) for step in (best - width, best + width) if step <= longest]
        most, best = max([(most, best), *around])
    return best


def imagine_others(view: AttackView, key: Array) -> Array:
    """[n_clients - n_malicious, n_params] updates with the mean and spread of what the liars learnt; one liar alone
    takes the length of its update for the spread."""
    assert view.own is not None
    own, n_others = view.own.astype(np.float64), view.n_clients - view.n_malicious
    n_params = own.shape[1]
    spread = own.std(axis=0, ddof=1) if len(own) > 1 else np.full(n_params, mean_length(own) / np.sqrt(n_params))
    draws = draw_normal(key, n_others * n_params).reshape(n_others, n_params)
    return np.asarray(own.mean(axis=0) + spread * draws).astype(view.own.dtype)
