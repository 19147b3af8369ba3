"""`hushrank forget` in Python: what is measured, charged, recorded and refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from hushrank.engine.simulate import News
from hushrank.recipes.recipe import NAMED, Recipe, change_recipe
from hushrank.reports.summary import from_directory
from hushrank.runs.forget import (
    ForgetWishes,
    check_erasure,
    erase_clients,
    parse_clients,
    place_of,
    read_wanted,
)
from hushrank.runs.forget_methods import METHODS, Forgetting
from hushrank.runs.forgetting import ForgetRequest
from hushrank.runs.rankers import export_ranker
from hushrank.runs.result import KEPT_FILE, RANKERS_FILE, read_rankers
from hushrank.runs.run import Run, RunOptions, run_recipe
from hushrank.types import Notice

SIZE = {"data": "tiny", "folds": [1, 2], "n_clients": 5, "interactions": 5, "rounds": 12, "keep_every": 2}
SOUND = {"privacy": "sound", "epsilon": 5.0, "delta": 1e-5}


def recipe_of(**changes: Any) -> Recipe:
    return change_recipe(NAMED["fpdgd"], {**SIZE, "clicks": ["perfect", "informational"], **changes})


def train(out: Path, **changes: Any) -> Path:
    return run_recipe(recipe_of(**changes), RunOptions(out=out)).directory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("forget") / "run")


def forget(run: Path, out: Path, wishes: ForgetWishes | None = None, *, resume: bool = False, **how: Any) -> Run:
    request = ForgetRequest(run, Forgetting(**{"clients": (3,), **how}))
    return erase_clients(request, RunOptions(out=out, resume=resume), wishes or ForgetWishes())


def mean(result: dict[str, Any], name: str) -> float:
    return float(result["metrics"]["perfect"][name]["mean"])


def same_rankers(one: Path, other: Path) -> bool:
    ours, theirs = read_rankers(one), read_rankers(other)
    return all(ours[cell].tobytes() == theirs[cell].tobytes() for cell in ours)


def test_the_result_says_what_it_took_and_reached_and_the_record_is_signed(run: Path, tmp_path: Path) -> None:
    found = forget(run, tmp_path / "out", clients=(1, 3))
    before = json.loads((run / "result.json").read_text())
    work = found.result["work"]
    assert work["rounds"] == {"run": 12, "forgetting": 6, "ratio": 2.0}
    assert work["searches"] == {"run": 4 * 12 * 5 * 5, "forgetting": 4 * 6 * 3 * 3, "ratio": 5 * 5 * 2 / 9}  # 4 cells
    assert work["bytes"]["ratio"] == pytest.approx(2 * 5 / 3)
    assert work["seconds"]["run"] == before["wall_s"] and work["seconds"]["forgetting"] == found.result["wall_s"]
    assert mean(found.result, "before/offline/nDCG@10") == pytest.approx(mean(before, "offline/nDCG@10"), abs=1e-6)
    record = found.result["record"]
    assert check_erasure(tmp_path / "out" / "record.json", key=None).record == record
    assert len(record["clients"]) == 2 and not record["is_exact"] and record["method"] == "eraser"
    assert record["verification"]["perfect/offline/nDCG@10"] == mean(found.result, "offline/nDCG@10")


@pytest.mark.parametrize("method", METHODS)
def test_a_record_of_every_method_says_whether_it_is_exact(method: str, run: Path, tmp_path: Path) -> None:
    found = forget(run, tmp_path / "out", method=method).result
    assert found["record"]["is_exact"] == found["is_exact"] == (method in ("retrain", "rollback", "fresh"))
    assert from_directory(tmp_path / "out").forgetting["newly"] == [3]


def test_all_rounds_and_searches_without_calibration_are_no_distance_from_retraining(run: Path, tmp_path: Path) -> None:
    same: dict[str, Any] = {"every": 1, "local_steps": 5, "is_calibrated": False}
    found = forget(run, tmp_path / "same", ForgetWishes(compares=True), **same).result
    assert mean(found, "distance/l2") == 0 and mean(found, "distance/rbo") == pytest.approx(1)
    assert mean(found, "distance/tau") == 1 and mean(found, "distance/cosine") == pytest.approx(1)
    assert mean(found, "retrained/offline/nDCG@10") == pytest.approx(mean(found, "offline/nDCG@10"), abs=1e-6)
    assert found["work"]["rounds"]["retrained"] == 12
    other = forget(run, tmp_path / "other", ForgetWishes(compares=True)).result
    assert mean(other, "distance/l2") > 0 and mean(other, "distance/tau") < 1
    with pytest.raises(ValueError, match="retrain is what the others are compared with"):
        forget(run, tmp_path / "no", ForgetWishes(compares=True), method="retrain")


def test_without_kept_lengths_the_run_is_repeated_and_that_is_said(tmp_path: Path) -> None:
    kept, bare = (train(tmp_path / name, keep_every=every) for name, every in (("kept", 10), ("bare", None)))
    with_lengths, without = (forget(run, tmp_path / f"{run.name}-out") for run in (kept, bare))
    assert same_rankers(with_lengths.directory, without.directory)
    assert "lengths-repeated" in [notice["name"] for notice in without.result["warnings"]]
    assert "lengths-repeated" not in [notice["name"] for notice in with_lengths.result["warnings"]]
    shutil.rmtree(tmp_path / "bare-out")
    rankers = load_file(bare / RANKERS_FILE)
    save_file({name: params + 1 for name, params in rankers.items()}, bare / RANKERS_FILE)
    with pytest.raises(ValueError, match="the run was repeated and gave other rankers"):
        forget(bare, tmp_path / "bare-out")


def spoil(run: Path, out: Path, change: Any) -> Path:
    """A copy of the run whose kept lengths are changed."""
    shutil.copytree(run, out)
    save_file({name: change(array.copy()) for name, array in load_file(run / KEPT_FILE).items()}, out / KEPT_FILE)
    return out


def drop(array: Any) -> Any:
    array[0, 2], array[1], array[3] = np.nan, np.nan, np.nan  # one length, all of client 1, all of the leaver
    return array


def test_lengths_that_are_missing_are_counted_and_filled(run: Path, tmp_path: Path) -> None:
    heard: list[Notice] = []
    request = ForgetRequest(spoil(run, tmp_path / "run", drop), Forgetting((3,)))
    found = erase_clients(request, RunOptions(out=tmp_path / "out", note=heard.append), ForgetWishes())
    (notice,) = (notice for notice in heard if notice.name == "lengths-missing")
    assert notice.sentence.startswith("28 lengths")  # 4 trainings x (1 + 6)
    assert "4 times a client has none at all" in notice.advice
    assert all(np.isfinite(params).all() for params in read_rankers(found.directory).values())


def test_damaged_lengths_and_rankers_are_refused(run: Path, tmp_path: Path) -> None:
    fewer = spoil(run, tmp_path / "fewer", lambda array: array[:4])
    with pytest.raises(ValueError, match=r"kept\.safetensors is damaged: it holds lengths of 4 clients in 6 rounds"):
        forget(fewer, tmp_path / "out")
    for name in (KEPT_FILE, RANKERS_FILE):
        broken = shutil.copytree(run, tmp_path / name)
        (broken / name).write_bytes((broken / name).read_bytes()[:50])
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            forget(broken, tmp_path / "out")
        save_file({"perfect/1/0": np.zeros(3, np.float32)}, broken / name)
        with pytest.raises(ValueError, match=f"{name} is damaged: it does not hold the arrays of this run"):
            forget(broken, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_data_that_changed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    lines = "".join(f"{i % 3 % 2} qid:{i // 5} 1:{i % 7 / 10} 2:{i % 5 / 10}\n" for i in range(40))
    for role in ("train", "vali", "test"):
        (tmp_path / "data" / f"{role}.txt").write_text(lines)
    run = train(tmp_path / "run", data=str(tmp_path / "data"), folds=[1], clicks="perfect")
    (tmp_path / "data" / "train.txt").write_text(lines.replace("1:0.3", "1:0.4"))
    with pytest.raises(ValueError, match="have changed since it was trained"):
        forget(run, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "changes"),
    [("pdgd", {"interactions": 8, "rounds": 2}), ("foltr-es", {"n_clients": 4, "rounds": 2}), ("mse", {})],
)
def test_runs_without_updates_of_clients_are_refused(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    recipe = change_recipe(NAMED[name], {"data": "tiny", "folds": [1], "clicks": "perfect", **changes})
    run = run_recipe(recipe, RunOptions(out=tmp_path / "run")).directory
    with pytest.raises(ValueError, match=f"is a run of {name}: only clients that send updates can be forgotten"):
        forget(run, tmp_path / "out", clients=(0,))


def test_what_was_asked_is_checked_before_anything_is_written(run: Path, tmp_path: Path) -> None:
    for how, message in (
        ({"clients": (5,)}, "there is no client 5: this run has the clients 0 to 4"),
        ({"clients": tuple(range(5))}, "nobody is left to train with"),
        ({"method": "erase"}, "did you mean 'eraser'"),
    ):
        with pytest.raises(ValueError, match=message):
            forget(run, tmp_path / "out", **how)
    with pytest.raises(ValueError, match="privacy=none promises no epsilon for all rounds"):
        forget(run, tmp_path / "out", ForgetWishes(extra_epsilon=1.0))
    unfinished = shutil.copytree(run, tmp_path / "unfinished")
    (unfinished / "result.json").unlink()
    with pytest.raises(ValueError, match=r"has not finished\. Finish it with: hushrank run --resume"):
        forget(unfinished, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Interrupt(Exception):  # noqa: N818 - not an error
    """Somebody presses Ctrl-C."""


@pytest.mark.parametrize("training", [1, 2, 3])
def test_stopped_in_any_of_its_trainings_it_continues_to_the_same_bits(training: int, tmp_path: Path) -> None:
    """The first repeats the run, the second trains without the leavers, the third forgets."""
    bare = train(tmp_path / "run", keep_every=None)
    wishes, seen = ForgetWishes(compares=True), [0.0]
    whole = forget(bare, tmp_path / "whole", wishes)

    def interrupt(news: News) -> None:
        seen.append(news.share)
        begun = 1 + sum(now < before for before, now in pairwise(seen))
        if begun == training and news.share > 0:
            raise Interrupt

    part = RunOptions(out=tmp_path / "part", report=interrupt, checkpoint_seconds=0, workers=1)
    request = ForgetRequest(bare, Forgetting((3,)))
    with pytest.raises(Interrupt):
        erase_clients(request, part, wishes)
    with pytest.raises(ValueError, match=r"has not finished\. Finish it with: hushrank forget --resume --out"):
        from_directory(tmp_path / "part")
    how = Forgetting(())
    asked, wished = read_wanted(None, None, how, ForgetWishes(), unfinished=tmp_path / "part")
    assert (asked.forgetting, wished) == (request.forgetting, wishes)
    again = erase_clients(asked, RunOptions(out=tmp_path / "part", resume=True), wished)
    assert same_rankers(whole.directory, again.directory) and again.result["metrics"] == whole.result["metrics"]


def test_what_has_finished_stays_as_it_was_signed(run: Path, tmp_path: Path) -> None:
    first = forget(run, tmp_path / "out", ForgetWishes(compares=True)).result
    files = ("record.json", "result.json", "rankers.safetensors")
    content = [(tmp_path / "out" / name).read_bytes() for name in files]
    for wishes in (ForgetWishes(), ForgetWishes(compares=True)):  # the comparison was asked for at the beginning
        assert forget(run, tmp_path / "out", wishes, resume=True).result == first
        assert [(tmp_path / "out" / name).read_bytes() for name in files] == content
    assert "perfect/distance/l2" in first["record"]["verification"]
    with pytest.raises(ValueError, match="forgets others, or in another way"):
        forget(run, tmp_path / "out", resume=True, clients=(1,))
    save_file({name: 2 * array for name, array in load_file(tmp_path / "out" / RANKERS_FILE).items()}, tmp_path / "x")
    shutil.move(tmp_path / "x", tmp_path / "out" / RANKERS_FILE)
    with pytest.raises(ValueError, match="these are not the rankers that"):
        forget(run, tmp_path / "out", resume=True)


def test_a_comparison_comes_before_the_record_or_in_another_directory(run: Path, tmp_path: Path) -> None:
    plain = forget(run, tmp_path / "out")
    content = (tmp_path / "out" / "record.json").read_bytes()
    with pytest.raises(ValueError, match="has finished without --compare, and its record stays as it was signed"):
        forget(run, tmp_path / "out", ForgetWishes(compares=True), resume=True)
    assert (tmp_path / "out" / "record.json").read_bytes() == content
    assert same_rankers(plain.directory, forget(run, tmp_path / "two", ForgetWishes(compares=True)).directory)


def list_files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("method", METHODS)
def test_what_holds_something_of_the_leavers_is_deleted_after_signing(method: str, run: Path, tmp_path: Path) -> None:
    done = forget(run, tmp_path / "out", method=method)
    assert list_files(done.directory) <= {
        *("forgetting.json", "environment.json", "lock", "spent.json", "report.html"),
        *("metrics.jsonl", "rankers.safetensors", "record.json", "result.json"),
    }
    assert forget(run, tmp_path / "out", method=method, resume=True).result == done.result


def test_of_a_repeated_run_only_lengths_of_those_who_stay_are_left_and_its_work_counts(tmp_path: Path) -> None:
    run = train(tmp_path / "run", keep_every=None)
    done = forget(run, tmp_path / "out", every=3)
    assert list_files(done.directory / "repeated") == {KEPT_FILE}
    for lengths in load_file(done.directory / "repeated" / KEPT_FILE).values():
        assert np.isnan(lengths[3]).all() and np.isfinite(np.delete(lengths, 3, axis=0)).all()
    work, figures = done.result["work"], done.result["record"]["verification"]
    assert work["rounds"] == {"run": 12, "forgetting": 12 + 4, "ratio": 12 / 16, "repeated": 12}
    assert work["searches"]["forgetting"] == 4 * (12 * 5 * 5 + 4 * 4 * 3)  # 4 cells
    assert (figures["rounds"], figures["repeated/rounds"]) == (16, 12)


def test_a_chain_leads_to_the_run_that_it_began_with(tmp_path: Path) -> None:
    """A run may be moved with what was forgotten in it; another one in its place is noticed."""
    small: dict[str, Any] = {"clicks": "perfect", "folds": [1]}
    run = train(tmp_path / "run", **small)
    forget(run, place_of(ForgetRequest(run, Forgetting((3,)))))
    outside = forget(run, tmp_path / "outside").directory
    moved = run.rename(tmp_path / "moved")
    train(tmp_path / "run", **small, seed=5)
    with pytest.raises(ValueError, match=r"is not the run of which .* forgot clients: its recipe, data or rankers are"):
        forget(outside, tmp_path / "wrong", clients=(1,))
    assert not (tmp_path / "wrong").exists()
    chained = forget(moved / "forgotten" / "eraser-3", tmp_path / "chained", clients=(1,))
    assert same_rankers(chained.directory, forget(moved, tmp_path / "both", clients=(1, 3)).directory)


def test_another_run_in_the_place_of_the_first_is_not_resumed(tmp_path: Path) -> None:
    small: dict[str, Any] = {"clicks": "perfect", "folds": [1]}
    out = forget(train(tmp_path / "run", **small), tmp_path / "out").directory
    (out / "result.json").unlink()
    other = train(tmp_path / "other", **small, seed=5)
    with pytest.raises(ValueError, match="is not the run of which"):
        forget(other, out, resume=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_began_with_a_given_ranker_is_forgotten_exactly_by_no_method(method: str, tmp_path: Path) -> None:
    small: dict[str, Any] = {"clicks": "perfect", "folds": [1]}
    first = train(tmp_path / "first", **small)
    export_ranker(first, tmp_path / "given.safetensors", user=None, fold=None, repeat=None)
    options = RunOptions(out=tmp_path / "run", start=tmp_path / "given.safetensors")
    found = forget(run_recipe(recipe_of(**small), options).directory, tmp_path / "out", method=method).result
    assert not found["is_exact"] and not found["record"]["is_exact"]
    assert "a ranker that was given to the run, which the leaver may have" in found["record"]["statement"]


def test_rounds_that_are_lost_after_leaving_are_told_and_recorded(tmp_path: Path) -> None:
    """4 of 5 clients must make the noise; after one has left, a round is lost as soon as one does not answer."""
    sums = {"secure_sum": True, "noise_at": "clients", "n_honest": 4, "dropout": 0.2, "keep_every": None}
    noise = {"privacy": "sound", "noise_multiplier": 2.0, "delta": 1e-5, "clicks": "perfect", "folds": [1]}
    heard: list[Notice] = []
    options = RunOptions(out=tmp_path / "out", note=heard.append)
    request = ForgetRequest(train(tmp_path / "run", **noise, **sums), Forgetting((3,), "retrain"))
    found = erase_clients(request, options, ForgetWishes()).result
    (notice,) = (notice for notice in heard if notice.name == "rounds-lost")
    assert found["rounds_lost"] > 0 and notice.sentence.startswith(f"{found['rounds_lost']} of 12 rounds")
    assert found["record"]["verification"]["rounds_lost"] == found["rounds_lost"]


def test_clients_leave_one_after_another(tmp_path: Path) -> None:
    run = train(tmp_path / "run", **SOUND)
    agreed = ForgetWishes(extra_epsilon=100.0)
    first = forget(run, tmp_path / "first", agreed, clients=(3,))
    second = forget(first.directory, tmp_path / "second", agreed, clients=(1,))
    both = forget(run, tmp_path / "both", agreed, clients=(1, 3))
    assert same_rankers(second.directory, both.directory)
    records = [done.result["record"] for done in (first, second, both)]
    assert (
        records[1]["from"] == records[0]["to"]
        and sorted(records[0]["clients"] + records[1]["clients"]) == (records[2]["clients"])
    )
    assert second.result["privacy_spent"]["rounds"] == both.result["privacy_spent"]["rounds"] == [12, 6, 6]
    third = forget(second.directory, tmp_path / "third", agreed, clients=(0,))
    assert third.result["forgetting"]["clients"] == [0, 1, 3] and third.result["forgetting"]["newly"] == [0]
    with pytest.raises(ValueError, match="client 3 is forgotten already in"):
        forget(second.directory, tmp_path / "no", agreed, clients=(3,))


@pytest.mark.parametrize("method", METHODS)
def test_after_a_robust_rule_the_same_rule_is_used(method: str, tmp_path: Path) -> None:
    run = train(tmp_path / "run", aggregation="median", clicks="perfect", folds=[1])
    if method == "subtract":
        with pytest.raises(ValueError, match="is known only with aggregation=mean"):
            forget(run, tmp_path / "out", method=method)
    else:
        found = forget(run, tmp_path / "out", method=method).result
        assert found["recipe"]["aggregation"] == "median" and found["record"]["method"] == method


def test_what_was_given_away_cannot_be_forgotten(tmp_path: Path) -> None:
    shares = {"remedy": "data-sharing", "partition": "labels-1", "n_clients": 3, "keep_every": None, "warm_up": 5}
    run = train(tmp_path / "run", **shares, clicks="perfect", folds=[1])
    with pytest.raises(ValueError, match="clients of this run gave data away"):
        forget(run, tmp_path / "out", clients=(1,), method="retrain")


def test_noise_that_all_clients_make_is_made_by_those_who_stay(tmp_path: Path) -> None:
    run = train(tmp_path / "run", privacy="paper", epsilon=4.5, clicks="perfect", folds=[1])
    assert forget(run, tmp_path / "out", method="fresh").result["rounds_lost"] == 0


def test_who_leaves_is_read_as_numbers_and_ranges() -> None:
    assert parse_clients("7, 3") == (3, 7) and parse_clients("0-2,9") == (0, 1, 2, 9)
    for text in ("", "x", "3;7", "-1", "5-3", "0-9999999999", "3,,7"):
        with pytest.raises(ValueError, match="name them by their numbers, such as 3,7 or 0-49"):
            parse_clients(text)


def test_the_place_is_named_after_method_and_clients(run: Path) -> None:
    few, many = Forgetting((1, 3)), Forgetting(tuple(range(50)), "fresh")
    assert place_of(ForgetRequest(run, few)) == run / "forgotten" / "eraser-1-3"
    place = place_of(ForgetRequest(run, many)).name
    assert place.startswith("fresh-50-clients-")
    assert place != place_of(ForgetRequest(run, replace(many, clients=tuple(range(1, 51))))).name
