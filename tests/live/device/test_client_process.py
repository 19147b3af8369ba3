"""`hushrank client` as a process: what it loads, what it takes, what it says, how it stops, and what leaves it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_federation import ScriptedFederation
from scripted_server import Request, serving
from secret_search import fraction_secret, row_secret, search_bytes, search_text

from hushrank.cli.client import _report
from hushrank.live.device.client import Report
from hushrank.live.device.impressions import SAMPLED, Impression
from hushrank.live.device.store import STORE, Interactions
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.terms import SEEDED
from hushrank.privacy.renyi import Spend, composed_epsilon

AGREEMENT = make_agreement("process", n_features=3, interactions=2)
SOUND = make_agreement(
    "process", n_features=3, interactions=2, privacy="sound", noise_multiplier=2.0, n_clients=2, rounds=3
)
PARAMS = np.array([0.5, -0.25, 0.125], np.float32)
SECRET = np.array([0.73190426, 0.48127395, 0.92640183], np.float32)  # the features of a clicked document
CLICKS = [True, False, False, True, True, False, True, False, False]
# What `[client]` installs; packages that its packages look for and can do without are theirs.
OWN = {"hushrank", "numpy", "typer", "click", "rich", "safetensors", "cryptography"}
THEIRS = {"pydantic", "pydantic_core", "typing_extensions", "typing_inspection", "annotated_types", "annotated_doc"}
THEIRS |= {"shellingham", "mdurl", "markdown_it", "pygments"}
LISTING = """
import atexit, sys
atexit.register(lambda: print("LOADED", *{name.partition(".")[0] for name in sys.modules}))
from hushrank.cli.main import main
main()
"""


def run_client(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    at_once = () if words[0] in ("sent", "leave") else ("--spread", "0")
    command = [sys.executable, "-m", "hushrank", "client", *map(str, words), *at_once]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=120)


def plant(home: Path, n: int = 2) -> None:
    """Lists with secret features and clicks, in a home that has not joined yet."""
    made = np.random.default_rng(1)
    features = made.random((12, 3), dtype=np.float32)
    features[4] = SECRET
    ranking = np.array([4, 7, 0, 2, 5, 11, 8, 1, 9])
    with Interactions(home / STORE) as store:
        for _ in range(n):
            store.add(Impression(1, features, features @ PARAMS, ranking, np.array(CLICKS)))


def written(request: Request) -> bytes:
    """A request as bytes."""
    return b"\n".join([request.path.encode(), repr(request.headers).encode(), request.body])


@pytest.mark.parametrize("words", [(), ("--simulate", "tiny", "--users", "2")], ids=["person", "pretend people"])
def test_it_loads_nothing_that_a_client_does_not_install(words: tuple[str, ...], tmp_path: Path) -> None:
    agreement = make_agreement("process", n_features=8 if words else 3, interactions=2)
    federation = ScriptedFederation(agreement, np.zeros(agreement.n_features, np.float32))
    (tmp_path / "tokens").write_text("token-a\ntoken-b\n")
    given = ("--tokens", "tokens", "--home", "home") if words else ("--token", "token-a", "--home", "home")
    if not words:
        plant(tmp_path / "home")
    with serving(federation) as (url, _):
        command = [sys.executable, "-c", LISTING, "client", url, *words, *given, "--rounds", "1", "--spread", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    loaded = {name for name in line.split()[1:] if not name.startswith("_")} - set(sys.stdlib_module_names)
    assert {"hushrank", "numpy", "typer"} <= loaded
    assert not loaded - OWN - THEIRS, "add a package to [client], or do without it"


def test_what_leaves_and_what_is_said_holds_no_feature_and_no_click(tmp_path: Path) -> None:
    federation, home = ScriptedFederation(AGREEMENT, PARAMS), tmp_path / "home"
    plant(home)
    secrets = [fraction_secret(*map(float, SECRET)), row_secret("clicks", CLICKS)]
    with serving(federation) as (url, requests):
        done = run_client(url, "--home", home, "--token", "token", "--rounds", "1", "--json", cwd=tmp_path)
        sent = run_client("sent", "--home", home, cwd=tmp_path)
    assert done.returncode == sent.returncode == 0, done.stderr + sent.stderr
    leaks = [leak for request in requests for leak in search_bytes(written(request), secrets, where=request.path)]
    leaks += search_text(done.stdout + done.stderr + sent.stdout + sent.stderr, secrets, where="what was said")
    assert not leaks
    assert search_bytes((home / STORE).read_bytes(), secrets, where="the store")  # or else the search finds nothing
    (upload,) = federation.uploads
    assert len(upload.body) == 12 and any(np.frombuffer(upload.body, "<f4"))
    assert upload.body.hex(" ", 4) in sent.stdout


def test_it_says_what_it_did_and_what_it_spent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(ScriptedFederation(SOUND, PARAMS)) as (url, _):
        done = run_client(url, "--home", home, "--token", "token", "--rounds", "1", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "joined process: fpdgd, linear ranker, privacy=sound" in done.stderr
        assert "what protects you: differential privacy of one client" in done.stderr
        assert "round 1: learnt from 0 searches, sent 12 bytes; epsilon" in done.stderr
        spent = "spent at delta 1e-05 (zero-out, against readers of rankers, not the server), enough for 2 more"
        epsilon = f"{composed_epsilon([Spend('gaussian', 0.5)], delta=1e-5):.4g}, against readers of rankers"
        assert f"{spent}; this device, in all federations: epsilon {epsilon}, not the server" in done.stderr
        assert done.stdout == ""
        again = run_client("--home", home, "--json", cwd=tmp_path)  # where it joined, and without a token
        assert again.returncode == 0 and "ended: the federation is finished" in again.stderr
        told = [json.loads(line) for line in again.stdout.splitlines()]
        assert [(t["round"], t["bytes"], t["state"], t["rounds_left"]) for t in told] == [
            (2, 12, "sent", 1),
            (3, 12, "sent", 0),
        ]
        assert {(t["adjacency"], t["against"]) for t in told} == {("zero-out", "readers of rankers, not the server")}
        left = run_client("leave", "--home", home, cwd=tmp_path)
        assert left.returncode == 0 and f"left {url}" in left.stderr
    listed = run_client("sent", "--home", home, "--json", cwd=tmp_path).stdout.splitlines()
    assert [json.loads(line)["state"] for line in listed] == ["sent"] * 3


def test_pretend_people_of_a_seeded_federation_are_promised_nothing(tmp_path: Path) -> None:
    agreement = make_agreement(
        "process", n_features=8, privacy="sound", noise_multiplier=2.0, n_clients=1, rounds=2, seed=3
    )
    (tmp_path / "tokens").write_text("token-a\n")
    with serving(ScriptedFederation(agreement, np.zeros(8, np.float32))) as (url, _):
        done = run_client(url, "--simulate", "tiny", "--tokens", "tokens", "--home", "home", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sent = run_client("sent", "--home", "home/0", cwd=tmp_path).stdout
    assert f"what protects you: {SEEDED}" in done.stderr and sent.count(SEEDED) == 3
    assert "epsilon" not in done.stderr + done.stdout + sent and not (tmp_path / "home" / "0" / "ledger.jsonl").exists()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_round_under_a_seed_is_reported_without_an_epsilon(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    _report(Report(1, 2, 12, "sent", None, None, SEEDED), as_json=as_json)
    out, err = capsys.readouterr()
    if as_json:
        assert json.loads(out)["guarantee"] == SEEDED and json.loads(out)["epsilon_spent"] is None
    else:
        assert err == f"round 1: learnt from 2 searches, sent 12 bytes; {SEEDED}\n"


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for words, said in (
        (("sent",), "hushrank-client is no client's home"),
        (("--users", "5"), "give --simulate DATA too"),
        (("--simulate", "tiny", "--token", "t"), "pretend people have --tokens FILE and --rounds"),
        (("http://example.org", "--once"), "http://example.org is not encrypted"),
    ):
        done = run_client(*words, cwd=tmp_path)
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1


def start_waiting(url: str, home: Path, federation: ScriptedFederation) -> subprocess.Popen[str]:
    """A client that has joined and waits for a round."""
    federation.round = 0
    polls = list[int]()

    def hold(after: int) -> Any:
        polls.append(after)
        time.sleep(0.05)
        return federation.tell_round(after)

    federation.on_poll = hold
    command = [sys.executable, "-m", "hushrank", "client", url, "--home", str(home), "--token", "token"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(polls) < 3 and process.poll() is None:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_stop_it_cleanly(number: signal.Signals, code: int, tmp_path: Path) -> None:
    hearing = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children are born deaf
    try:
        with serving(federation := ScriptedFederation(AGREEMENT, PARAMS)) as (url, _):
            process = start_waiting(url, tmp_path / "home", federation)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
    finally:
        signal.signal(signal.SIGINT, hearing)
    assert process.returncode == code and "stopped; nothing is lost" in said


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_client_that_waits_takes_less_than_60_mb(tmp_path: Path) -> None:
    with serving(federation := ScriptedFederation(SOUND, PARAMS)) as (url, _):
        process = start_waiting(url, tmp_path / "home", federation)
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        process.communicate(timeout=60)
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert 10_000 < resident < 60_000  # kB


def test_a_home_is_used_by_one_client_at_a_time(tmp_path: Path) -> None:
    with serving(federation := ScriptedFederation(AGREEMENT, PARAMS)) as (url, _):
        process = start_waiting(url, tmp_path / "home", federation)
        second = run_client(url, "--home", tmp_path / "home", cwd=tmp_path)
        with Interactions(tmp_path / "home" / STORE) as store:  # but an application may write all the same
            store.finish(0)
            assert store.find_free(policy=SAMPLED, oldest_round=0, limit=1) == []
        process.terminate()
        process.communicate(timeout=60)
    assert second.returncode == 1 and "another client is at work in" in second.stderr
