"""`hushrank privacy audit`: what it prints, writes, refuses, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hushrank.audit.updates import UpdateTrial
from hushrank.cli.privacy import app
from hushrank.privacy.gaussian import SoundGaussian
from hushrank.types import Array

WORDS = ("privacy=sound", "epsilon=4", "n_clients=5", "rounds=2")
SOUND = [word for key in WORDS for word in ("--set", key)]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, ["audit", "fpdgd", *SOUND, *words])


def test_claim_and_bound_stand_side_by_side() -> None:
    done = invoke("--runs", "5000")
    assert done.exit_code == 0
    lines = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    assert lines["relation"] == "zero-out" and lines["claimed"].startswith("epsilon ")
    assert lines["measured"].endswith("confidence 99.9 %") and "provided that the noise is normal" in lines["if normal"]
    assert done.stdout.rstrip().endswith("Nothing speaks against the claim.")


def test_json_is_one_object_and_the_page_shows_the_same(tmp_path: Path) -> None:
    done = invoke("--runs", "5000", "--relation", "replace-one", "--json", "--out", str(tmp_path / "audited"))
    found = json.loads(done.stdout)
    assert found["relation"] == "replace-one" and 0 < found["lower_bound"] < found["claimed_epsilon"]
    assert json.loads((tmp_path / "audited" / "audit.json").read_text(encoding="utf-8")) == found
    page = (tmp_path / "audited" / "audit.html").read_text(encoding="utf-8")
    assert (
        f"epsilon {found['claimed_epsilon']:.4g} (replace-one)" in page
        and "<svg" in page
        and "measured, at least" in page
    )


def test_a_refuted_claim_ends_with_1_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Callable[..., Array] = SoundGaussian.server_noise
    monkeypatch.setattr(SoundGaussian, "server_noise", lambda self, n, *, key: 0.2 * whole(self, n, key=key))
    done = invoke("--runs", "50000", "-q")
    assert done.exit_code == 1 and "The claim is refuted" in done.stdout


def test_ctrl_c_ends_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(UpdateTrial, "score_runs", press)
    done = invoke("--runs", "10")
    assert done.exit_code == 130 and done.stderr == "stopped; an audit keeps nothing, start it again\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--relation", "sideways"), "must be one of zero-out, replace-one, add-remove"),
        (("--confidence", "1.5"), "confidence is 1.5, must be from .5 to below 1"),
        (("--runs", "1"), "runs is 1, must be at least 2"),
        (("--estimator", "one-run", "--live"), "leave --estimator out"),
        (("--set", "privacy=none", "--set", "epsilon=none"), "nothing to audit"),
    ],
)
def test_mistakes_are_said(words: tuple[str, ...], says: str) -> None:
    done = invoke(*words)
    assert done.exit_code == 1 and isinstance(done.exception, ValueError) and says in str(done.exception)
