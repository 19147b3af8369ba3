"""Nothing personal comes out: queries, documents, people and clicks that are planted in the data are found nowhere.

The boundary. *Inside* are the person's own files: the data set, the click log, the copy of them in the data cache, and
what a person asks for by name (`hushrank data convert`, `evaluate --trec-run`), which holds queries and documents
because that is what it is for. *Outside* is all else: the run's directory with its checkpoints, metrics, rankers and
report, what is printed, every record of any logger, errors with their tracebacks, and the messages of clients.
Outside, the trained ranker and sums of features are allowed: how much they betray is measured, not searched for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from planted_data import FEATURES, N_DOCUMENTS, N_FEATURES, SHOWN, Planted, describe_impression, name_document, plant
from secret_search import Leak, search_bytes, search_files, search_text

from hushrank.data.clicklog import read_click_log
from hushrank.data.load import load_dataset
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import sample_cohort
from hushrank.federation.local import learn
from hushrank.live.wire.bodies import decode_reward, encode_reward
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.recipes.values import parse_assignments
from hushrank.streams import Purpose, stream
from hushrank.types import PrivateReward, PrivateUpdate

# Commands one after another in one process, with every logger at its most talkative; `!` before a command: interrupt it
# as Ctrl-C does once it has saved something.
SESSION = """
import json, logging, os, signal, sys, threading, time, traceback
from pathlib import Path
logging.basicConfig(filename="debug.log", level=logging.DEBUG, force=True)
os.environ["HUSHRANK_DEBUG"] = "1"
from hushrank.cli.main import main

def interrupt(checkpoints):
    while not list(checkpoints.glob("batch-*")):
        time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
for words in json.load(sys.stdin):
    if words[0] == "!":
        words = words[1:]
        place = Path(words[words.index("--out") + 1]) / "checkpoints"
        threading.Thread(target=interrupt, args=[place], daemon=True).start()
    sys.argv = ["hushrank", *words]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    print(f"ended with {code}: {words[0]}", file=sys.stderr)
"""
SMALL = ("--set", "rounds=4", "--set", "eval_every=2", "--checkpoint-every", "0")
CLIENTS = ("--set", "n_clients=6", "--set", "interactions=2")
FEDERATED = {
    "open": ("fpdgd", *CLIENTS),
    "paper": ("fpdgd", *CLIENTS, "--set", "privacy=paper", "--set", "epsilon=4.5"),
    "sound": ("fpdgd", *CLIENTS, "--set", "privacy=sound", "--set", "epsilon=4"),
    "shares": (
        *("fpdgd", *CLIENTS, "--engine", "plain", "--set", "privacy=sound", "--set", "epsilon=4"),
        *("--set", "noise_at=clients", "--set", "n_honest=5", "--set", "secure_sum=true"),
    ),
    "rewards": ("foltr-es", *CLIENTS, "--set", "p=0.9"),
    "network": ("fpdgd", *CLIENTS, "--engine", "xla", "--set", "ranker=mlp", "--set", "hidden=3"),
}
LEAKY = """
import base64, logging
from hushrank.learners.named import LEARNERS
from hushrank.learners.pdgd import pdgd_gradient

def leaky(ranker, params, features, scores, ranking, is_clicked):
    logging.getLogger("leaky").debug("learning from %s", base64.b64encode(features.tobytes()).decode())
    return pdgd_gradient(ranker, params, features, scores, ranking, is_clicked)

LEARNERS["leaky"] = leaky
"""


@dataclass(frozen=True, slots=True)
class Said:
    """What a session printed."""

    stdout: str
    stderr: str

    @property
    def ends(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("ended with")]


def hold_session(planted: Planted, place: Path, commands: Sequence[Sequence[str]]) -> Said:
    """Run the commands in an empty directory; the cache, which is the person's own, stands beside it."""
    place.mkdir()
    environment = os.environ | {"HUSHRANK_DATA": str(planted.data.parent / "cache"), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        cwd=place,
        env=environment,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return Said(done.stdout, done.stderr)


def search_all(planted: Planted, place: Path, said: Said) -> list[Leak]:
    leaks = search_text(said.stdout, planted.secrets, where="stdout")
    leaks += search_text(said.stderr, planted.secrets, where="stderr")
    return leaks + search_files(place, planted.secrets)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant(tmp_path_factory.mktemp("person"))


def test_whole_runs_tell_nothing(planted: Planted, tmp_path: Path) -> None:
    data = ("--data", str(planted.data))
    commands: list[tuple[str, ...]] = [
        ("run", *words, *data, *SMALL, "--out", name, "--json") for name, words in FEDERATED.items()
    ]
    log = ("--set", f"log={planted.log}", "--set", "interactions=6")
    commands += [("run", name, *data, *SMALL, *log, "--out", f"log-{name}") for name in ("fpdgd", "pdgd")]
    commands += [("export", name) for name in ("open", "rewards", "log-fpdgd")]
    commands += [("evaluate", "open/ranker.safetensors", *data), ("evaluate", "paper", "--json")]
    commands += [("report", *FEDERATED, "log-pdgd", "--out", "compared.html")]
    long = (*data, *CLIENTS, "--set", "rounds=10000", "--set", "eval_every=1000", "--checkpoint-every", "0.01")
    commands += [("!", "run", "fpdgd", *long, "--out", "stopped"), ("run", "--resume", "--out", "stopped")]
    said = hold_session(planted, tmp_path / "runs", commands)
    assert [end.split(":")[0] for end in said.ends] == [
        "ended with 130" if command[0] == "!" else "ended with 0" for command in commands
    ]
    there = {path.name for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    assert there >= {"batch-000.safetensors", "metrics.jsonl", "report.html", "compared.html", "ranker.safetensors"}
    assert "DEBUG" in (tmp_path / "runs" / "debug.log").read_text()
    assert search_all(planted, tmp_path / "runs", said) == []


QUERY = "befund-glaukom"
BAD_ROWS = {
    "a query comes again": f"1 qid:{QUERY} 1:0.5 2:0.5",
    "no query": f"1 {QUERY} 1:0.5",
    "two queries": f"1 qid:verdacht-uveitis 1:0.5 qid:{QUERY}",
    "a name among the features": f"1 qid:verdacht-uveitis 1:0.5 {name_document(QUERY, 0)}",
    "a broken feature": f"1 qid:verdacht-uveitis 1:0.5 2:{FEATURES[0]}x",
    "a query as grade": f"{QUERY} qid:verdacht-uveitis 1:0.5",
    "a feature as grade": f"{FEATURES[0]} qid:verdacht-uveitis 1:0.5",
    "a name as feature": f"1 qid:verdacht-uveitis 1:{QUERY}",
    "a name for an index": f"1 qid:verdacht-uveitis {QUERY}:0.5",
    "bytes that are no text": f"1 qid:{QUERY}\udcff 1:0.5",
    "a grade that nobody clicks on": "7 qid:verdacht-uveitis 1:0.5 2:0.5",
}
BAD_LINES: dict[str, dict[str, Any]] = {
    "an unknown query": {"query": "verdacht-quittenbrot-2"},
    "an unknown document": {"shown": ["akte.99.befund", name_document(QUERY, 1)], "clicked": []},
    "a document twice": {"shown": [name_document(QUERY, 1)] * 2, "clicked": []},
    "a click on nothing": {"clicked": [name_document(QUERY, 11)], "shown": [name_document(QUERY, 1)]},
    "a row too many": {"shown": [*range(N_DOCUMENTS + 1)], "clicked": [], "propensities": [0.5] * (N_DOCUMENTS + 1)},
    "an impossible propensity": {"propensities": [-FEATURES[0], *[0.5] * (len(SHOWN) - 1)]},
    "no client": {"client": None},
}


def test_errors_and_their_tracebacks_tell_nothing(planted: Planted, tmp_path: Path) -> None:
    commands: list[tuple[str, ...]] = []
    bad_data = spoil_data(planted, tmp_path / "bad")
    for place in bad_data:
        commands.append(("run", "fpdgd", "--data", str(place), *CLIENTS, *SMALL))
    for place in bad_data[:2]:
        commands += [("data", "check", str(place)), ("data", "info", str(place))]
    for place in spoil_log(planted, tmp_path / "bad"):
        commands.append(("run", "fpdgd", "--data", str(planted.data), *SMALL, "--set", f"log={place}"))
    grid = f"data={planted.data},{bad_data[0]}"
    commands.append(("sweep", "fpdgd", "--grid", grid, *CLIENTS, *SMALL[:4], "--jobs", "1", "--out", "sweep"))
    said = hold_session(planted, tmp_path / "runs", commands)
    assert [end.split(":")[0] for end in said.ends] == ["ended with 1"] * len(commands)
    assert said.stderr.count("Traceback") >= len(BAD_ROWS) + len(BAD_LINES) and said.stderr.count(", line ") > 20
    assert "rows must stand together" in (tmp_path / "runs" / "sweep" / "report.html").read_text()
    assert search_all(planted, tmp_path / "runs", said) == []


def spoil_data(planted: Planted, place: Path) -> list[Path]:
    """The data set with one bad row at the end of its training file, once for each; and with bad list lengths."""
    good = {path.name: path.read_bytes() for path in (planted.data / "Fold1").iterdir()}
    made = []
    for number, row in enumerate([*BAD_ROWS.values(), None]):
        fold = place / f"data-{number}" / "Fold1"
        fold.mkdir(parents=True)
        for name, content in good.items():
            more = (row or "").encode("utf-8", "surrogateescape") + b"\n" if name == "train.txt" else b""
            (fold / name).write_bytes(content + more)
        if row is None:
            (fold / "train.txt.query").write_text(f"12\n{QUERY}\n")
        made.append(fold.parent)
    return made


def spoil_log(planted: Planted, place: Path) -> list[Path]:
    """The log with one bad line at its end, once for each; and one that is cut off."""
    good = planted.log.read_text()
    texts = [good + json.dumps(describe_impression(QUERY) | change) for change in BAD_LINES.values()]
    made = []
    for number, text in enumerate([*texts, good + json.dumps(describe_impression(QUERY))[:-20]]):
        made.append(place / f"log-{number}.jsonl")
        made[-1].write_text(text + "\n")
    return made


@pytest.mark.parametrize("name", ["open", "paper", "sound", "shares", "rewards"])
def test_messages_of_clients_tell_nothing(planted: Planted, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HUSHRANK_DATA", str(planted.data.parent / "cache"))
    recipe, *words = FEDERATED[name]
    changes = parse_assignments(word for word in words if "=" in word)
    setting, cell = resolve(change_recipe(NAMED[recipe], {"data": str(planted.data), **changes})), Cell(0, 0, 0)
    messages = list_messages(setting, cell)
    bodies = [m.delta.astype("<f4").tobytes() if isinstance(m, PrivateUpdate) else encode_reward(m) for m in messages]
    assert len(set(bodies)) > 1 and {len(body) for body in bodies} == {12 if name == "rewards" else 4 * N_FEATURES}
    refused = [refusal_of(body + b"!") for body in bodies]
    said = "\n".join([*map(repr, messages), *(message.guarantee for message in messages), *refused])
    assert search_bytes(b"".join(bodies), planted.secrets, where="bodies") == []
    assert search_text(said, planted.secrets, where="what is said about them") == []


def refusal_of(body: bytes) -> str:
    """What the server says about a message that is none."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is what is searched
        decode_reward(body)
    return str(refused.value)


def list_messages(setting: Setting, cell: Cell) -> list[PrivateUpdate | PrivateReward]:
    """What every client sends in the first four rounds, the ranker staying as it is."""
    federation, params, key = make_federation(setting, cell), initial_params(setting, cell), cell_key(setting, cell)
    study = federation.study or learn
    return [
        federation.privatise(
            study(federation, params, client, key=key, round=round)[0],
            key=stream(key, Purpose.PRIVATISE, round, client.id),
        )
        for round in range(1, 5)
        for client in sample_cohort(federation.population, key, round)
    ]


def test_the_secrets_are_where_they_belong(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the other tests would look for what is not there."""
    cache = planted.data.parent / "cache"
    monkeypatch.setenv("HUSHRANK_DATA", str(cache))
    fold = load_dataset(str(planted.data), keep_document_ids=True).folds[0]
    log = read_click_log(planted.log, fold.train)
    leaks = [leak for place in (planted.data, planted.log, cache) for leak in search_files(place, planted.secrets)]
    leaks += search_bytes(log.shown.tobytes() + log.is_clicked.tobytes(), planted.secrets, where="memory")
    assert {leak.secret for leak in leaks} == {secret.name for secret in planted.secrets}
    assert {leak.form for leak in leaks} >= {"raw", "digits", "bytes <f4", "bytes <i8", "bytes ?"}


def test_a_method_that_writes_down_what_it_sees_is_caught(planted: Planted, tmp_path: Path) -> None:
    plugin = tmp_path / "leaky.py"
    plugin.write_text(LEAKY)
    words = ("--plugin", str(plugin), "--set", "learner=leaky")
    said = hold_session(
        planted, tmp_path / "runs", [("run", *FEDERATED["open"], "--data", str(planted.data), *SMALL, *words)]
    )
    leaks = search_all(planted, tmp_path / "runs", said)
    assert {leak.where for leak in leaks} == {"debug.log"} and {leak.form for leak in leaks} <= {
        f"base64 after {n} <f4" for n in range(3)
    }
