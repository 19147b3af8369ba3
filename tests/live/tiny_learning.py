"""Clients of tiny agreements, as they learn."""

from __future__ import annotations

from typing import Any

from hushrank.live.device.learning import GradientLearning, Learning
from hushrank.live.device.named import make_learning
from hushrank.live.wire.agreement import make_agreement


def learning_of(**settings: Any) -> Learning:
    return make_learning(make_agreement("test", n_features=2, interactions=4, **settings))


def gradients_of(**settings: Any) -> GradientLearning:
    learning = learning_of(**settings)
    assert isinstance(learning, GradientLearning)
    return learning
