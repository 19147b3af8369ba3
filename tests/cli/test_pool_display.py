"""What a pool says while it runs and nobody looks at a terminal."""

from __future__ import annotations

import time

import pytest

from hushrank.cli.pool_display import PoolDisplay
from hushrank.runs.pool import Step


def wait_for(text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed until the text came, or in half a minute."""
    printed = ""
    for _ in range(3000):
        printed += capsys.readouterr().err
        if text in printed:
            break
        time.sleep(0.01)
    return printed


def test_a_pipe_hears_of_the_start_of_every_end_and_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with PoolDisplay("figure", ["a", "b"], line_seconds=0.05) as display:
        assert capsys.readouterr().err == ""  # what is refused before the first run is the only line
        display.hear(Step(0, 0.0))
        assert capsys.readouterr().err.startswith("figure: 2 runs\n")
        display.hear(Step(0, 0.5, 0.4))
        assert "figure: 0 of 2 finished, 1 running, 25% done" in wait_for("25% done", capsys)
        display.hear(Step(0, 1.0, is_over=True))
        assert "a finished, vali nDCG@10 .400" in wait_for("a finished", capsys)
    capsys.readouterr()
    display.hear(Step(1, 0.0))
    assert capsys.readouterr().err == ""


def test_a_run_whose_data_have_nothing_to_measure_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with PoolDisplay("figure", ["a"]) as display:
        display.hear(Step(0, 0.5, float("nan"), "MAP"))
        display.hear(Step(0, 1.0, is_over=True))
    assert "a finished, vali MAP nothing to measure\n" in capsys.readouterr().err


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with PoolDisplay("figure", ["a"], quiet=True, line_seconds=0.001) as display:
        display.hear(Step(0, 0.0))
        display.hear(Step(0, 1.0, is_over=True))
    assert capsys.readouterr().err == ""
