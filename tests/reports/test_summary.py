"""Reading run directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_runs import make_run

from hushrank.reports.summary import from_directory


def test_a_run_with_several_users_is_read_by_user(tmp_path: Path) -> None:
    run = from_directory(make_run(tmp_path / "fpdgd"))
    assert list(run.metrics) == ["perfect", "navigational", "informational"]
    metric = run.metrics["perfect"]["offline/nDCG@10"]
    assert len(metric.values) == 5 * 2 and metric.std is not None
    assert (run.name, run.seed, run.bytes_per_client_round) == ("fpdgd", 1, 184)
    assert len(run.curve) == 3 * 5 * 2 * 20 * 3  # users, folds, repeats, evaluations, names


def test_a_run_with_one_user_is_read_the_same_way(tmp_path: Path) -> None:
    run = from_directory(make_run(tmp_path / "fpdgd", clicks="perfect", n_folds=1, n_repeats=1))
    assert list(run.metrics) == ["perfect"]
    assert run.metrics["perfect"]["offline/nDCG@10"].std is None


def test_what_was_not_recorded_is_left_out(tmp_path: Path) -> None:
    path = make_run(tmp_path / "fpdgd", clicks="perfect")
    result = json.loads((path / "result.json").read_text())
    for key in ("wall_s", "data", "privacy", "bytes_per_client_round", "format"):
        del result[key]
    (path / "result.json").write_text(json.dumps(result))
    (path / "environment.json").unlink()
    (path / "metrics.jsonl").unlink()
    run = from_directory(path)
    assert (run.wall_s, run.privacy, dict(run.environment), run.curve) == (None, None, {}, ())


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("result.json", '{"format": 2}', r"newer hushrank \(format 2, this one reads 1\)"),
        ("result.json", "{", r"result\.json cannot be read"),
        ("result.json", "[]", "must hold a JSON object"),
        ("result.json", "{}", r"result\.json is damaged"),
        ("result.json", '{"metrics": {"perfect": {"offline/nDCG@10": {}}}}', "is damaged"),
        ("metrics.jsonl", '{"click": "perfect"}\n', r"metrics\.jsonl, line 1 is damaged"),
        ("metrics.jsonl", '\n{"cli', r"metrics\.jsonl, line 2 is damaged"),
        ("environment.json", "nonsense", r"environment\.json cannot be read"),
    ],
)
def test_a_damaged_run_is_refused_in_one_line(tmp_path: Path, file: str, text: str, message: str) -> None:
    path = make_run(tmp_path / "run", n_folds=1)
    (path / file).write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        from_directory(path)
    assert "\n" not in str(caught.value)


def test_what_is_not_a_finished_run_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a directory"):
        from_directory(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is not a run"):
        from_directory(tmp_path)
    path = make_run(tmp_path / "killed", n_folds=1)
    (path / "result.json").unlink()
    with pytest.raises(ValueError, match=r"has not finished.*--resume --out"):
        from_directory(path)
