"""Fang et al.'s attack on Trimmed Mean and Median: numbers just beyond the honest ones, backwards [fang2020]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushrank.attacks.knowledge import explain_no_spread, knowledge_key, known_updates
from hushrank.streams import draw_uniform
from hushrank.types import Array, AttackView

_B = 2.0  # [fang2020, Section 4.1]
_NEAR, _FAR = 3.0, 4.0  # [fang2020, Section 3.3] standard deviations


@dataclass(frozen=True)
class FangTrimmedMean:
    """Each draws each coordinate of its model against the direction in which honest models move the shared one.

    Full knowledge: between the outermost honest number and twice (or half) of it, whichever lies further out. Partial:
    3 to 4 standard deviations from the mean of what the liars learnt. The numbers are those of models, not of updates.
    """

    knowledge: str = knowledge_key()

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        known = known_updates(view).astype(np.float64)
        rises = known.mean(axis=0) > 0
        draws = draw_uniform(key, view.n_malicious * known.shape[1]).reshape(view.n_malicious, -1)
        near, far = self._range(view, known, rises)
        return (near + draws * (far - near)).astype(known_updates(view).dtype)

    def why_harmless(self, *, n_clients: int, n_malicious: int) -> str | None:
        """Why these malicious clients lie about nothing; None: they do."""
        del n_clients
        return explain_no_spread(self.knowledge, n_malicious=n_malicious)

    def _range(self, view: AttackView, known: Array, rises: Array) -> tuple[Array, Array]:
        """[n_params] where the numbers sent begin and end, as updates; rises: where honest ones raise the model's."""
        if view.others is None:
            mean, side = known.mean(axis=0), np.where(rises, -1.0, 1.0)
            std = known.std(axis=0)
            return mean + side * _NEAR * std, mean + side * _FAR * std
        last = view.params + np.where(rises, known.min(axis=0), known.max(axis=0))  # the outermost honest models
        stretches = rises == (last <= 0)  # b times it lies further out; else it divided by b does
        return last - view.params, np.where(stretches, _B, 1 / _B) * last - view.params
