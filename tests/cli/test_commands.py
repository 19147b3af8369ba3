"""The commands as a person uses them, one after another, and the contract that scripts rely on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import hushrank

SMALL = ("--data", "tiny", "--set", "n_clients=6", "--set", "interactions=2", "--set", "rounds=3", "--seed", "7", "-q")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one finished run, `one`, of two users."""
    place = tmp_path_factory.mktemp("work")
    done = hushrank("run", "fpdgd", *SMALL, "--set", 'clicks=["perfect", "informational"]', "--out", "one", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def test_a_run_leaves_its_files_and_prints_a_table(place: Path) -> None:
    names = {path.name for path in (place / "one").iterdir()}
    assert names >= {
        "recipe.json",
        "environment.json",
        "metrics.jsonl",
        "rankers.safetensors",
        "result.json",
        "report.html",
    }
    result = json.loads((place / "one" / "result.json").read_text())
    assert result["n_interactions"] == 6 * 2 * 3 * 5 * 2  # clients x interactions x rounds x folds x users
    assert result["metrics"]["perfect"]["offline/nDCG@10"]["mean"] == pytest.approx(
        sum(v["value"] for v in result["metrics"]["perfect"]["offline/nDCG@10"]["values"]) / 5
    )


def test_the_last_point_of_the_curve_is_the_result(place: Path) -> None:
    result = json.loads((place / "one" / "result.json").read_text())
    rows = [json.loads(line) for line in (place / "one" / "metrics.jsonl").read_text().splitlines()]
    last = {(r["click"], r["fold"]): r["value"] for r in rows if r["name"] == "offline/nDCG@10" and r["round"] == 3}
    for user, metrics in result["metrics"].items():
        for value in metrics["offline/nDCG@10"]["values"]:
            assert last[user, value["fold"]] == value["value"]


def test_json_is_one_object_with_the_same_numbers_for_the_same_seed(place: Path) -> None:
    both = [hushrank("run", "fpdgd", *SMALL, "--out", name, "--json", cwd=place) for name in ("a", "b")]
    first, second = (json.loads(done.stdout) for done in both)
    assert first["metrics"] == second["metrics"] and first["recipe"]["recipe"] == "fpdgd"
    assert {"recipe", "seed", "device", "wall_s", "cpu_s", "n_interactions", "metrics"} <= set(first)


def test_evaluating_a_run_gives_its_own_result(place: Path) -> None:
    found = json.loads(hushrank("evaluate", "one", "--json", cwd=place).stdout)
    result = json.loads((place / "one" / "result.json").read_text())
    ours = {v["ranker"]: v["value"] for v in found["metrics"]["nDCG@10"]["values"]}
    for user, metrics in result["metrics"].items():
        for v in metrics["offline/nDCG@10"]["values"]:
            assert ours[f"{user}/{v['fold']}/{v['repeat']}"] == pytest.approx(v["value"], abs=1e-9)
    assert found["metrics"]["nDCG@10"]["variant"] == "nDCG(dcg='exp-log2')@10"


def test_an_exported_ranker_ranks_elsewhere_and_writes_a_trec_run(place: Path) -> None:
    done = hushrank(
        "export", "one", "--clicks", "perfect", "--fold", "2", "--out", "ranker.safetensors", "--json", cwd=place
    )
    assert json.loads(done.stdout)["fold"] == 2
    words = ("evaluate", "ranker.safetensors", "--data", "tiny", "--trec-run", "out.run", "--json")
    found = json.loads(hushrank(*words, cwd=place).stdout)
    on_fold = {v["fold"]: v["value"] for v in found["metrics"]["nDCG@10"]["values"]}
    assert set(on_fold) == {2}  # never on the folds whose test queries it was trained on
    result = json.loads((place / "one" / "result.json").read_text())
    trained = {v["fold"]: v["value"] for v in result["metrics"]["perfect"]["offline/nDCG@10"]["values"]}
    assert on_fold[2] == pytest.approx(trained[2], abs=1e-9)
    query, q0, _, rank, _, tag = (place / "out.run").read_text().splitlines()[0].split()
    assert (q0, rank, tag) == ("Q0", "1", "hushrank-ranker") and query


def test_a_ranker_is_refused_on_data_with_other_features(place: Path) -> None:
    done = hushrank("evaluate", "one", "--data", "mq2008-like", cwd=place)
    assert done.returncode == 1 and "8 features" in done.stderr and "they do not fit" in done.stderr


def test_trees_are_not_kept_and_who_asks_for_them_is_told(place: Path) -> None:
    words = ("--data", "tiny", "--set", "folds=[1]", "-q", "--out", "trees")
    assert hushrank("run", "lambdamart", *words, cwd=place).returncode == 0
    for command in (("export", "trees"), ("evaluate", "trees"), ("evaluate", "trees", "--data", "tiny")):
        done = hushrank(*command, cwd=place)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert "trees trained trees (lambdamart), which are not kept" in done.stderr and "run mse" in done.stderr


def test_a_run_can_start_from_an_exported_ranker(place: Path) -> None:
    hushrank("export", "one", "--out", "start.safetensors", cwd=place)
    done = hushrank("run", "fpdgd", *SMALL, "--out", "warm", "--from", "start.safetensors", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (place / "warm" / "metrics.jsonl").read_text().splitlines()]
    assert hushrank("run", "--resume", "--out", "warm", "-q", cwd=place).returncode == 0  # without --from again
    first = [r["value"] for r in rows if r["name"] == "vali/nDCG@10" and r["round"] == 0]
    origin = json.loads((place / "start.json").read_text())["origin"]
    assert first[origin["fold"] - 1] == pytest.approx(origin["vali/nDCG@10"], abs=1e-9)


def test_report_compares_runs_on_one_page(place: Path) -> None:
    hushrank("run", "fpdgd", *SMALL, "--set", "server_rate=5", "--out", "fast", cwd=place)
    hushrank("run", "fpdgd", *SMALL, "--out", "slow", cwd=place)
    done = hushrank("report", "slow", "fast", "--out", "both.html", cwd=place)
    assert done.returncode == 0 and "slow" in done.stdout and "fast" in done.stdout
    page = (place / "both.html").read_text()
    assert "server_rate" in page and "http://" not in page.replace("http://www.w3.org", "")


def test_resuming_a_finished_run_changes_nothing(place: Path) -> None:
    shutil.copytree(place / "one", place / "again")
    before = (place / "again" / "rankers.safetensors").read_bytes()
    done = hushrank("run", "--resume", "--out", "again", "-q", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "again" / "rankers.safetensors").read_bytes() == before


def test_resuming_under_another_recipe_is_refused(place: Path) -> None:
    done = hushrank("run", "fpdgd", *SMALL, "--set", "learning_rate=0.5", "--resume", "--out", "one", cwd=place)
    assert done.returncode == 1 and "learning_rate was 0.1, is 0.5" in done.stderr


def test_a_recipe_file_with_its_own_click_table_runs(place: Path) -> None:
    text = (
        'recipe = "fpdgd"\ndata = "tiny"\nclicks = "eager"\nn_clients = 6\ninteractions = 2\nrounds = 3\nfolds = [1]\n'
    )
    (place / "mine.toml").write_text(text + "[click_tables.eager]\nclick = [0.5, 0.9, 1.0]\nstop = [0.0, 0.0, 0.5]\n")
    done = hushrank("run", "mine.toml", "--out", "mine", "--json", "-q", cwd=place)
    assert json.loads(done.stdout)["recipe"]["clicks"] == "eager"


def test_no_query_document_or_click_is_found_in_what_a_run_writes_or_says(place: Path) -> None:
    fold = place / "secret" / "Fold1"
    fold.mkdir(parents=True)
    lines = [f"{i % 3} qid:qXYZZY{i // 4} 1:0.{i + 1}13579 2:0.5 #docid = PLUGH-{i}\n" for i in range(12)]
    for split in ("train", "vali", "test"):
        (fold / f"{split}.txt").write_text("".join(lines))
    words = ("run", "fpdgd", "--data", "secret", "--set", "n_clients=2", "--set", "rounds=2", "--out", "quiet")
    done = hushrank(*words, cwd=place)
    assert done.returncode == 0, done.stderr
    written = b"".join(path.read_bytes() for path in (place / "quiet").rglob("*") if path.is_file())
    for secret in (b"XYZZY", b"PLUGH", b"13579"):
        assert secret not in written + done.stdout.encode() + done.stderr.encode()


def test_help_and_version_answer_at_once_and_load_nothing_heavy() -> None:
    code = "import sys, hushrank.cli.main; sys.exit(bool({'numpy', 'jax', 'rich.console', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "hushrank", "--version"], capture_output=True, text=True)
    assert (
        done.stdout.startswith("hushrank ") and time.perf_counter() - began < 30
    )  # Why: machines are noisy; .3 s by hand


def test_the_uninstalled_source_tree_runs_as_a_module(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-m", "hushrank", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(source), "PATH": ""},
    )
    assert done.returncode == 0 and "demo" in done.stdout


def test_shell_completion_offers_the_commands(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "hushrank"
    environment = {"_HUSHRANK_COMPLETE": "complete_bash", "COMP_WORDS": "hushrank ev", "COMP_CWORD": "1", "PATH": ""}
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "evaluate" in done.stdout
