"""Without an extra, commands do what they can, and name the extra and how to install it where they cannot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from rooms import FILES, SOURCE

from hushrank import extras
from hushrank.extras import EXTRAS, MissingExtraError, advise_install, explain_missing, require_package

ROOT = SOURCE.parents[1]
HERE = f'pip install -e "{ROOT}[{{}}]"'
SMALL = ("--data", "tiny", "--set", "n_clients=4", "--set", "interactions=2", "--set", "rounds=2", "--set", "folds=[1]")
RUN = ("run", "fpdgd", *SMALL)


def hushrank(*words: str, cwd: Path, absent: tuple[str, ...] = tuple(EXTRAS)) -> subprocess.CompletedProcess[str]:
    """A command in an interpreter, and with children, that cannot import some packages."""
    place = cwd / "python"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n")
    environment = {**os.environ, "PYTHONPATH": f"{place}{os.pathsep}{SOURCE.parent}"}
    command = [sys.executable, "-m", "hushrank", *words]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (("server", "init"), "sqlalchemy"),
        (("server",), "sqlalchemy"),
        (("server", "status"), "sqlalchemy"),
        (("server", "export"), "sqlalchemy"),
        (("run", "mse", "--data", "tiny"), "sklearn"),
        (("run", "lambdamart", "--data", "tiny"), "lightgbm"),
        ((*RUN, "--engine", "numba"), "numba"),
        ((*RUN, "--engine", "xla"), "jax"),
        ((*RUN, "--devices", "2"), "jax"),
        ((*RUN, "--set", "secure_sum=true"), "cryptography"),
        (("run", "pdgd", "--data", "tiny", "--set", "server_optimiser=adam"), "jax"),
        (("privacy", "epsilon", "--mechanism", "gaussian", "--noise", "2", "--rounds", "3"), "dp_accounting"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks_and_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...], package: str
) -> None:
    done = hushrank(*words, cwd=tmp_path)
    said = done.stderr.strip().splitlines()[-1]
    extra = EXTRAS[package]
    assert said == f"hushrank: this needs {package}, which the extra {extra!r} installs: {HERE.format(extra)}"
    assert done.returncode == 1 and [path.name for path in tmp_path.iterdir()] == ["python"]


def test_a_certificate_names_the_extra_of_the_server(tmp_path: Path) -> None:
    done = hushrank("server", "init", "f", "--tls", "localhost", cwd=tmp_path, absent=("cryptography",))
    assert done.stderr.strip().endswith(HERE.format("server")) and not (tmp_path / "f").exists()


def test_a_sweep_says_what_its_runs_lacked(tmp_path: Path) -> None:
    words = ("sweep", "mse", "--data", "tiny", "--grid", "seed=1,2", "--out", "s", "--json", "-q")
    said = json.loads(hushrank(*words, cwd=tmp_path).stdout)
    errors = {run["error"] for run in said["runs"]}
    assert errors == {f"this needs sklearn, which the extra 'lab' installs: {HERE.format('lab')}"}


@pytest.mark.parametrize(
    ("changes", "absent", "engine", "missing"),
    [
        ((), ("jax", "numba"), "plain", "numba and jax"),
        (("--set", "ranker=mlp"), ("jax",), "numba", None),
        (("--set", "ranker=mlp"), ("numba",), "xla", "numba"),
        ((), ("jax",), "numba", None),
        ((), ("numba",), "xla", "numba"),
    ],
)
def test_a_run_takes_the_fastest_engine_that_is_installed_and_says_what_a_faster_one_needs(
    tmp_path: Path, changes: tuple[str, ...], absent: tuple[str, ...], engine: str, missing: str | None
) -> None:
    free = hushrank(*RUN, *changes, "--out", "free", cwd=tmp_path, absent=absent)
    assert free.returncode == 0, free.stderr
    slower = (
        f"engine {engine}: {missing} not installed, so a slower engine is used; for a faster one: {HERE.format('lab')}"
    )
    assert (slower in free.stderr) if missing else ("not installed" not in free.stderr)
    named = hushrank(*RUN, *changes, "--out", "named", "--engine", engine, cwd=tmp_path, absent=absent)
    assert named.returncode == 0 and "not installed" not in named.stderr
    assert (tmp_path / "free" / "metrics.jsonl").read_text() == (tmp_path / "named" / "metrics.jsonl").read_text()


def test_every_optional_package_that_is_imported_belongs_to_the_extra_that_is_named() -> None:
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {extra: {re.split(r"[<>=;\[ ]", need)[0].lower() for need in needs} for extra, needs in optional.items()}
    for package, distributions in metadata.packages_distributions().items():
        if package in EXTRAS:
            assert distributions[0].lower() in names[EXTRAS[package]], package
    imported = {match for path in FILES for match in re.findall(r"^ *(?:from|import) (\w+)", path.read_text(), re.M)}
    brought = {
        package
        for package, found in metadata.packages_distributions().items()
        if found[0].lower() in set().union(*names.values())
    }
    assert imported & brought <= set(EXTRAS)


def test_other_missing_modules_are_errors_of_their_own() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        __import__("no_such_module")
    assert explain_missing(caught.value) is None and explain_missing(ValueError("jax")) is None
    with pytest.raises(MissingExtraError, match="which the extra 'lab' installs"):
        require_package("jax_that_is_not_there", extra="lab")


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ({"url": "file:///home/me/hushrank"}, 'pip install "hushrank[lab] @ file:///home/me/hushrank"'),
        (
            {"url": "https://example.org/h.git", "vcs_info": {"vcs": "git"}},
            'pip install "hushrank[lab] @ git+https://example.org/h.git"',
        ),
        (None, 'pip install ".[lab]", in the source tree of hushrank'),
    ],
)
def test_an_installed_package_is_extended_from_where_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: object, advice: str
) -> None:
    place = tmp_path / "hushrank-0.1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: hushrank\nVersion: 0.1.0\n")
    if written is not None:
        (place / "direct_url.json").write_text(json.dumps(written))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extras, "_TREE", tmp_path)
    assert advise_install("lab") == advice


def test_nothing_advises_an_install_by_name() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = {path: path.read_text(encoding="utf-8") for path in [*FILES, *pages] if path.name != "extras.py"}
    assert not [path for path, text in texts.items() if re.search(r"pip install[^\n]*hushrank", text)]
