"""Golden bits: digests of rankers, curves and recipes, so that two commits can be compared on one machine.

    python -m benchmarks.golden before.json --source /path/to/another/checkout/src
    python -m benchmarks.golden after.json --compare before.json

Runs every recipe below through the command line on each engine that can do it, so that it works on any commit. Other
processors may round otherwise: compare on one machine only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from hushrank.files import write_json

_SAME = ("data=tiny", "seed=11", "rounds=6", "eval_every=2")
_SMALL = ("n_clients=9", "interactions=3")
_SOUND = ("privacy=sound", "noise_multiplier=0.5")
_ES = ("n_clients=9", "interactions=4")
_HURRIED = "click_tables={hurried = {click = [0.02, 0.3, 0.8], eta = 0.7}}"
_ALL, _PLAIN = ("plain", "numba", "xla"), ("plain",)

# (name, recipe, engines, settings)
RECIPES: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("linear", "fpdgd", _ALL, (*_SMALL, 'clicks=["perfect", "informational"]', "repeats=2")),
    ("cohort-dropout", "fpdgd", _ALL, ("n_clients=12", "interactions=[1, 3, 2]", "cohort=7", "dropout=0.3")),
    ("poisson-momentum", "fpdgd", _ALL, (*_SMALL, "sampling=poisson", "cohort=5", "server_optimiser=momentum")),
    ("many-clients", "fpdgd", ("numba", "xla"), ("n_clients=600", "interactions=2", "server_fade=true")),
    ("network-adam", "fpdgd", ("plain", "xla"), (*_SMALL, "ranker=mlp", "hidden=5", "server_optimiser=adam")),
    (
        "position-user",
        "fpdgd",
        _ALL,
        (*_SMALL, "clicks=hurried", _ := "click_tables={hurried = {click = [0.02, 0.3, 0.8], eta = 0.7}}"),
    ),
    ("paper", "fpdgd", _ALL, (*_SMALL, "privacy=paper", "epsilon=4.5")),
    ("sound-server", "fpdgd", _ALL, (*_SMALL, *_SOUND)),
    ("sound-clients", "fpdgd", _ALL, (*_SMALL, *_SOUND, "mechanism=laplace", "noise_at=clients", "n_honest=6")),
    ("sound-unequal", "fpdgd", _ALL, ("n_clients=9", "interactions=[1, 4]", *_SOUND, "cohort=6", "dropout=0.4")),
    ("secure-open", "fpdgd", _ALL, ("n_clients=9", "interactions=[1, 3]", "secure_sum=true", "dropout=0.2")),
    ("secure-paper", "fpdgd", _ALL, (*_SMALL, "secure_sum=true", "privacy=paper", "epsilon=10")),
    ("secure-sound", "fpdgd", _ALL, (*_SMALL, *_SOUND, "secure_sum=true", "noise_at=clients", "n_honest=7")),
    ("central", "pdgd", _ALL, ("interactions=12", "batch=3")),
    ("central-network", "pdgd", ("plain", "xla"), ("interactions=12", "ranker=mlp", "hidden=5")),
    ("evolution", "foltr-es", _ALL, (*_ES, "p=0.5")),
    ("evolution-network", "foltr-es", _ALL, (*_ES, "ranker=mlp", "antithetic=false", "reward=nDCG", "dropout=0.3")),
    ("sign-flip", "fpdgd", _PLAIN, (*_SMALL, "attack=sign-flip", "n_malicious=2")),
    ("log", "fpdgd", _PLAIN, ("log=log.jsonl", "interactions=3", "max_weight=2.0", "folds=[1]")),
    ("log-central", "pdgd", _PLAIN, ("log=log.jsonl", "interactions=6", "batch=2", "folds=[1]")),
    ("ranking-svm", "ranking-svm", ("auto",), ()),
)
# (name, arguments of `server init`)
AGREEMENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("open", ()),
    ("evolution", ("--method", "foltr-es")),
    ("paper", ("--set", "privacy=paper", "--set", "epsilon=4.5", "--set", "n_clients=20")),
    ("sound", ("--set", "privacy=sound", "--set", "epsilon=8", "--set", "n_clients=50")),
    ("seeded-network", ("--set", "ranker=mlp", "--simulate", "--seed", "7")),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src", help="folder of the package")
    parser.add_argument("--compare", type=Path, help="digests of another commit")
    asked = parser.parse_args(arguments)
    found = measure(asked.source.resolve())
    write_json(asked.out, found)
    if asked.compare is None:
        return 0
    before = json.loads(asked.compare.read_text(encoding="utf-8"))
    lines = list(compare(before, found))
    print("\n".join(lines) or f"{len(found)} digests, all equal")
    return 1 if lines else 0


def measure(source: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as pool:
        call(source, Path(place), "data", "log", "--data", "tiny", "--out", "log.jsonl", *_LOGGED)
        runs = [(name, engine) for name, _, engines, _ in RECIPES for engine in engines]
        digests = pool.map(lambda run: digest_run(source, Path(place), *run), runs)
        found = {f"{name}/{engine}": digest for (name, engine), digest in zip(runs, digests, strict=True)}
        agreed = pool.map(lambda row: digest_agreement(source, Path(place), *row), AGREEMENTS)
        return found | {f"agreement/{name}": digest for (name, _), digest in zip(AGREEMENTS, agreed, strict=True)}


_LOGGED = ("--impressions", "200", "--clients", "5", "--seed", "3")


def call(source: Path, place: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "hushrank", *arguments]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def digest_run(source: Path, place: Path, name: str, engine: str) -> dict[str, str]:
    """Of the rankers' and curves' bits, of the recipe as stored, and the hash in the directory's name."""
    recipe, settings = next((recipe, settings) for known, recipe, _, settings in RECIPES if known == name)
    own = place / f"{name}-{engine}"
    own.mkdir()
    if (place / "log.jsonl").exists():
        (own / "log.jsonl").symlink_to(place / "log.jsonl")
    same = [text for text in _SAME if recipe != "ranking-svm" or text.startswith(("data", "seed"))]
    given = [part for text in (*same, *settings) for part in ("--set", text)]
    call(source, own, "run", recipe, "--engine", engine, "--quiet", *given)
    (run,) = (own / "runs").iterdir()
    return {
        "hash": run.name.rpartition("-")[2],
        "recipe": digest(json.dumps(json.loads((run / "recipe.json").read_text()), sort_keys=True).encode()),
        "curves": digest((run / "metrics.jsonl").read_bytes()),
        "rankers": digest(*pack(load_file(run / "rankers.safetensors"))),
    }


def pack(arrays: dict[str, Any]) -> Iterator[bytes]:
    for name in sorted(arrays):
        yield name.encode()
        yield np.ascontiguousarray(arrays[name]).tobytes()


def digest_agreement(source: Path, place: Path, name: str, arguments: tuple[str, ...]) -> dict[str, str]:
    call(source, place, "server", "init", f"federation-{name}", "--name", name, *arguments)
    said = json.loads(call(source, place, "server", "status", f"federation-{name}", "--json"))
    return {"digest": said["digest"]}


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def compare(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        for part in sorted(old.keys() | new.keys()):
            if old.get(part) != new.get(part):
                yield f"{name}: {part} was {old.get(part)}, is {new.get(part)}"


if __name__ == "__main__":
    sys.exit(main())
