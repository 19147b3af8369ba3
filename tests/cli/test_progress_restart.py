"""One display, several trainings one after another."""

from __future__ import annotations

import pytest

from hushrank.cli.progress import ProgressDisplay
from hushrank.engine.simulate import News


def news(share: float) -> News:
    return News(batch=0, n_batches=1, share=share, searches=int(1000 * share), test=0.5, vali=0.5)


def test_a_second_training_is_counted_from_its_own_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay("forget")
    for share in (0.0, 0.5, 1.0, 0.0, 1.0):
        display.report(news(share))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("forget: 100%") and "interactions/s" in first
    assert second == "forget: 100%, nDCG@10 0.500"  # the first step of a training has no rate yet
