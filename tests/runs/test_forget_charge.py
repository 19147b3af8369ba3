"""What forgetting spends of the privacy of those who stay: every training that was begun, and what is agreed to."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hushrank.engine.simulate import News
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.runs.forget import ForgetWishes, erase_clients
from hushrank.runs.forget_methods import Forgetting
from hushrank.runs.forgetting import ForgetRequest
from hushrank.runs.run import Run, RunOptions, run_recipe

SIZE = {"data": "tiny", "n_clients": 5, "interactions": 5, "rounds": 12, "keep_every": 2}
SOUND = {"privacy": "sound", "epsilon": 5.0, "delta": 1e-5}
NOISY: dict[str, Any] = {"privacy": "sound", "noise_multiplier": 2.0, "delta": 1e-5}


def train(out: Path, **changes: Any) -> Path:
    recipe = change_recipe(NAMED["fpdgd"], {**SIZE, "clicks": "perfect", "folds": [1], **changes})
    return run_recipe(recipe, RunOptions(out=out)).directory


def forget(run: Path, out: Path, wishes: ForgetWishes | None = None, **how: Any) -> Run:
    request = ForgetRequest(run, Forgetting(**{"clients": (3,), **how}))
    return erase_clients(request, RunOptions(out=out), wishes or ForgetWishes())


def test_all_trainings_that_forgot_in_a_run_are_charged_together(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **NOISY)
    first = forget(run, tmp_path / "first", clients=(3,)).result["privacy_spent"]
    sibling = forget(run, tmp_path / "sibling", clients=(1,), method="retrain").result
    assert sibling["privacy_spent"]["rounds"] == [12, 6, 12]
    names = ["the run", "eraser without client 3", "retrain without client 1"]
    assert sibling["privacy_spent"]["trainings"] == names
    assert sibling["privacy_spent"]["epsilon"] == epsilon_of(tmp_path / "long", rounds=30) > first["epsilon"]
    assert f"12 + 6 + 12 rounds together ({', '.join(names)})" in (tmp_path / "sibling" / "report.html").read_text()
    shutil.rmtree(tmp_path / "sibling")  # Why: what was published stays published
    again = forget(run, tmp_path / "again", clients=(3,)).result["privacy_spent"]
    assert again["rounds"] == [12, 6, 12]  # the same rankers once more are nothing new


def epsilon_of(out: Path, **changes: Any) -> float:
    """Of one run."""
    found: float = json.loads((train(out, **{**NOISY, **changes}) / "result.json").read_text())["guarantee"]["epsilon"]
    return found


def test_a_comparison_is_charged_under_noise(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **NOISY)
    spent = forget(run, tmp_path / "out", ForgetWishes(compares=True)).result["privacy_spent"]
    assert spent["rounds"] == [12, 6, 12] and spent["epsilon"] == epsilon_of(tmp_path / "long", rounds=30)


def test_a_promised_epsilon_covers_comparison_and_siblings(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **SOUND)
    enough = ForgetWishes(extra_epsilon=needed(run, tmp_path / "out"))
    with pytest.raises(ValueError, match="promised epsilon 5"):
        forget(run, tmp_path / "out", replace(enough, compares=True))
    assert not (tmp_path / "out").exists()
    forget(run, tmp_path / "out", enough)
    with pytest.raises(ValueError, match="promised epsilon 5"):
        forget(run, tmp_path / "sibling", enough, clients=(1,))
    assert forget(run, tmp_path / "copy", enough).result["privacy_spent"]["rounds"] == [12, 6]


def needed(run: Path, out: Path) -> float:
    """The extra epsilon that a refusal names."""
    with pytest.raises(ValueError, match="promised epsilon") as caught:
        forget(run, out)
    return float(str(caught.value).removesuffix(".").rpartition(" ")[2])


def test_what_was_begun_counts_and_resuming_it_costs_nothing_more(tmp_path: Path) -> None:
    class Stop(Exception):  # noqa: N818 - not an error
        """Somebody presses Ctrl-C."""

    def stop(_: News) -> None:
        raise Stop

    run = train(tmp_path / "run", **NOISY)
    request, begun = ForgetRequest(run, Forgetting((3,))), RunOptions(out=tmp_path / "begun", report=stop, workers=1)
    with pytest.raises(Stop):
        erase_clients(request, begun, ForgetWishes())
    assert forget(run, tmp_path / "other", clients=(1,)).result["privacy_spent"]["rounds"] == [12, 6, 6]
    again = erase_clients(request, RunOptions(out=tmp_path / "begun", resume=True), ForgetWishes())
    assert again.result["privacy_spent"]["rounds"] == [12, 6, 6]


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **NOISY)
    for content in ("{", "[]", '{"format": 1, "trainings": [{"key": 1}]}'):
        (run / "forgettings.json").write_text(content)
        with pytest.raises(ValueError, match=r"forgettings\.json is damaged: what was spent is not known"):
            forget(run, tmp_path / "out")


def test_sampled_rounds_are_drawn_once(tmp_path: Path) -> None:
    sampled = {"sampling": "poisson", "cohort": 4}
    run = train(tmp_path / "run", **NOISY, **sampled)
    for wishes, how in ((ForgetWishes(), {}), (ForgetWishes(compares=True), {"method": "continue"})):
        with pytest.raises(ValueError, match="with sampling=poisson and noise no round can be repeated"):
            forget(run, tmp_path / "out", wishes, **how)
    first = forget(run, tmp_path / "first", method="continue")
    assert first.result["privacy_spent"]["epsilon"] == pytest.approx(
        epsilon_of(tmp_path / "long", rounds=18, **sampled)
    )
    with pytest.raises(ValueError, match="with sampling=poisson and noise no round can be repeated"):
        forget(first.directory, tmp_path / "second", method="continue", clients=(1,))


def test_under_sound_privacy_the_rounds_of_both_are_composed(tmp_path: Path) -> None:
    """12 rounds and 6 that forget cost what one run of 18 rounds with that noise costs."""
    costs = [epsilon_of(tmp_path / str(rounds), rounds=rounds) for rounds in (12, 18)]
    spent = forget(tmp_path / "12", tmp_path / "out").result["privacy_spent"]
    assert [spent["run_epsilon"], spent["epsilon"]] == pytest.approx(costs)


def test_a_promised_epsilon_is_exceeded_only_where_that_was_agreed(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **SOUND)
    extra = needed(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="promised epsilon 5"):
        forget(run, tmp_path / "out", ForgetWishes(extra_epsilon=extra - 0.01))
    spent = forget(run, tmp_path / "out", ForgetWishes(extra_epsilon=extra)).result["privacy_spent"]
    assert 5 < spent["epsilon"] <= 5 + extra
    with pytest.raises(ValueError, match="would see what the leavers added, without noise"):
        forget(run, tmp_path / "no", ForgetWishes(extra_epsilon=99.0), method="subtract")


def test_rests_between_answers_do_not_hide_the_seam_of_two_trainings(tmp_path: Path) -> None:
    """11 rounds with rests of 5 have 3 answers of a client, and so has each of two trainings; 22 in one have 5."""
    turns = {"privacy": "sound", "mechanism": "correlated", "sampling": "rotation", "cohort": 1, "keep_every": None}
    run = train(tmp_path / "run", **turns, noise_multiplier=3.0, delta=1e-5, rounds=11)
    guarantee = forget(run, tmp_path / "out", method="retrain").result["guarantee"]
    assert guarantee["separation"] == 5 and guarantee["answers"] == 6  # 3 + 3
