"""A live federation whose processes are killed at random moments, and a check that nothing was lost or counted twice.

    python -m benchmarks.chaos [--rounds 300] [--kills 200] [--clients 8] [--method fpdgd|foltr-es] [--out DIR]

A real server and real clients (pretend people) over loopback. Again and again one of them gets SIGKILL and is started
again: at once, a little later, or after the round has gone on without it. Two clients join late, and one of an older
version of the wire knocks now and then. Now and then an operator puts an old copy of the server's file in its place:
the clients recognise it, no round opens, and the operator puts the newer file back. When the federation is finished,
from the files alone:

- every update that a client was told is accepted is in the server's file, byte for byte, once, in a round that was not
  abandoned without the client hearing of it;
- every update in the server's file is one that its client made, with the weight of the impressions that it used up;
- the ranker after every round is what the accepted updates give: bit for bit with the server's own function and, for
  FPDGD, to rounding with the formula written down here.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.live.device.outbox import REFUSED, SENT, WAITING
from hushrank.live.device.store import STORE
from hushrank.live.server.new_ranker import Body, first_ranker, next_ranker
from hushrank.live.wire.agreement import Agreement, parse_agreement
from hushrank.live.wire.protocol import WIRE_HEADER
from hushrank.types import Array

HOST = "127.0.0.1"
DATA = "mq2008-like"
DEADLINE_S, PAUSE_S = 4.0, 0.2  # Why a pause: on a quiet machine rounds would be over before anybody could be killed
PATIENCE_S = 120.0  # without a new round
NAP_S = (0.0, 0.0, 0.5, 6.0)  # that a victim stays dead; the last one is longer than a round


@dataclass(frozen=True)
class Plan:
    """How much of it."""

    out: Path
    rounds: int = 300
    kills: int = 200
    clients: int = 8
    method: str = "fpdgd"
    seed: int = 0
    restores: int = 0  # times that an old copy of the server's file is put in its place


@dataclass
class Stage:
    """The processes, and what was done to them."""

    plan: Plan
    port: int
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)  # {who is dead: when it starts again}
    killed: Counter[str] = field(default_factory=Counter)
    n_restored: int = 0  # old copies that were put in place, and recognised
    old_versions: Counter[int] = field(default_factory=Counter)  # {status: how often a client of another wire heard it}

    @property
    def server_home(self) -> Path:
        return self.plan.out / "server"

    @property
    def people(self) -> Path:
        return self.plan.out / "people"

    @property
    def names(self) -> list[str]:
        return ["server", *(f"client {i}" for i in range(self.plan.clients))]

    def start(self, name: str) -> None:
        url = f"http://{HOST}:{self.port}"
        if name == "server":
            words = ["server", str(self.server_home), "--port", str(self.port)]
        else:
            first = name.split()[1]
            words = ["client", url, "--simulate", DATA, "--users", "1", "--first", first, "--home", str(self.people)]
            words += ["--tokens", str(self.server_home / "tokens.txt")]
        with (self.plan.out / f"{name.replace(' ', '-')}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "hushrank", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.due.pop(name, None)

    def kill(self, name: str, *, nap_s: float, is_counted: bool = True) -> None:
        process = self.running.pop(name)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            self.killed["server" if name == "server" else "clients"] += is_counted
        process.wait()
        self.due[name] = time.monotonic() + nap_s

    def wake_due(self) -> None:
        for name in [name for name, when in self.due.items() if when <= time.monotonic()]:
            self.start(name)

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--method", choices=["fpdgd", "foltr-es"], default="fpdgd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restores", type=int, default=10)
    parser.add_argument("--out", type=Path, help="kept; default: a temporary directory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = given.out or Path(temporary)
        plan = Plan(out, given.rounds, given.kills, given.clients, given.method, given.seed, given.restores)
        json.dump(run_chaos(plan), sys.stdout, indent=1)
        print()


def run_chaos(plan: Plan) -> dict[str, Any]:
    """What was done and found; raises AssertionError where something was lost, doubled or changed."""
    plan.out.mkdir(parents=True, exist_ok=True)
    began, stage = time.monotonic(), Stage(plan, find_port())
    create_federation(stage)
    try:
        torment(stage)
    finally:
        stage.end()
    said = {"method": plan.method, "clients": plan.clients, "seconds": round(time.monotonic() - began, 1)}
    done = {"killed": dict(stage.killed), "restored": stage.n_restored, "old_versions": dict(stage.old_versions)}
    return {**said, **done, **check_files(stage)}


def create_federation(stage: Stage) -> None:
    plan = stage.plan
    words = ["server", "init", str(stage.server_home), "--simulate", "--seed", str(plan.seed)]
    words += ["--method", plan.method, "--tokens", str(plan.clients)]
    half = plan.clients // 2
    settings = {"rounds": plan.rounds, "deadline_s": DEADLINE_S, "pause_s": PAUSE_S, "keep_updates": "true"}
    settings |= {"quorum": half, "min_clients": half}
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    subprocess.run([sys.executable, "-m", "hushrank", *words], check=True, capture_output=True)


def torment(stage: Stage) -> None:
    """Kill somebody whenever the federation has come a little further, until it is finished."""
    plan, dice = stage.plan, random.Random(stage.plan.seed)
    late = {f"client {plan.clients - 1}": plan.rounds // 4, f"client {plan.clients - 2}": plan.rounds // 8}
    for name in stage.names:
        if name not in late:
            stage.start(name)
    n_killed, newest, moved_at = 0, 0, time.monotonic()
    while (n := count_closed(stage)) < plan.rounds:
        if n != newest:
            newest, moved_at = n, time.monotonic()
        assert time.monotonic() - moved_at < PATIENCE_S, f"stalled after {n} rounds: see {plan.out}"
        stage.wake_due()
        for name in [name for name, when in late.items() if n >= when]:
            stage.start(name)
            del late[name]
        if stage.n_restored < plan.restores and n >= (stage.n_restored + 1) * plan.rounds / (plan.restores + 1):
            restore(stage)
        if n_killed < plan.kills and n >= 0.8 * n_killed * plan.rounds / plan.kills:
            time.sleep(dice.uniform(0.0, PAUSE_S))
            victims = [name for name in stage.names if name in stage.running]
            name = "server" if "server" in victims and dice.random() < 0.25 else dice.choice(victims)
            stage.kill(name, nap_s=dice.choice(NAP_S if name != "server" else NAP_S[:-1]))
            n_killed += 1
            knock(stage)
        time.sleep(0.02)
    wait_for_clients(stage)


def restore(stage: Stage) -> None:
    """An old copy in the place of the server's file, until its clients have recognised it; then the newer one again.

    The first time only the copy is made, of which the next one is the old one.
    """
    if "server" in stage.running:
        stage.kill("server", nap_s=0.0, is_counted=False)
    old, newer = stage.plan.out / "old", stage.plan.out / "newer"
    if not old.exists():
        shutil.copytree(stage.server_home, old)
        stage.n_restored += 1
        return stage.start("server")
    stage.server_home.rename(newer)
    shutil.copytree(old, stage.server_home)
    stage.start("server")
    began = time.monotonic()
    while ask_health(stage) != "behind":
        assert time.monotonic() - began < PATIENCE_S, f"an old file was not recognised: see {stage.plan.out}"
        stage.wake_due()
        time.sleep(0.05)
    stage.kill("server", nap_s=0.0, is_counted=False)
    shutil.rmtree(stage.server_home)
    newer.rename(stage.server_home)
    shutil.rmtree(old)
    shutil.copytree(stage.server_home, old)
    stage.n_restored += 1
    return stage.start("server")


def ask_health(stage: Stage) -> str:
    """ok, the reason of a refusal, or nothing where nobody answers."""
    connection = http.client.HTTPConnection(HOST, stage.port, timeout=5)
    try:
        connection.request("GET", "/v1/health")
        said = json.loads(connection.getresponse().read())
        return str(said.get("reason") or said.get("status"))
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


def wait_for_clients(stage: Stage) -> None:
    """Who is alive hears that the federation is finished, and ends well."""
    for name in list(stage.due):
        stage.start(name)
    for name in stage.names[1:]:
        status = stage.running[name].wait(PATIENCE_S)
        assert status == 0, f"{name} ended with {status}: see {stage.plan.out}"


def knock(stage: Stage) -> None:
    """A client that speaks a wire of another time."""
    connection = http.client.HTTPConnection(HOST, stage.port, timeout=5)
    try:
        connection.request("GET", "/v1/round?after=0&wait=0", headers={WIRE_HEADER: "0"})
        stage.old_versions[connection.getresponse().status] += 1
    except OSError:
        pass  # Why: the server may be dead at this moment
    finally:
        connection.close()


def check_files(stage: Stage) -> dict[str, Any]:
    """The promises, from what the processes left on the disk."""
    with opened(stage.server_home / "federation.sqlite") as server:
        agreement = parse_agreement(json.loads(server.execute("SELECT agreement FROM federation").fetchone()[0]))
        states = dict(server.execute("SELECT number, state FROM rounds"))
        clients = dict(server.execute("SELECT credential_hash, id FROM clients"))
        counted = dict(server.execute("SELECT id, accepted FROM clients"))
        accepted = {
            (r, c): Body(w, b) for r, c, w, b in server.execute("SELECT round, client, weight, body FROM updates")
        }
        rankers = {r: np.frombuffer(p, "<f4") for r, p in server.execute("SELECT round, params FROM rankers")}
        refused = dict(server.execute("SELECT reason, n FROM refused"))
    made, n_acknowledged, n_freed = dict[tuple[int, int], bytes](), 0, 0
    for home in sorted(stage.people.iterdir()):
        with opened(home / STORE) as store:
            credential = store.execute("SELECT credential FROM membership").fetchone()[0]
            client = clients[hashlib.sha256(credential.encode()).digest()]
            used = dict(store.execute("SELECT used_in, COUNT(*) FROM impressions WHERE used_in IS NOT NULL GROUP BY 1"))
            for round, body, weight, state, reason in store.execute(
                "SELECT round, body, weight, state, reason FROM outbox"
            ):
                made[round, client] = body
                is_counted = (round, client) in accepted and states[round] == "closed"
                if state == SENT:
                    n_acknowledged += 1
                    assert (round, client) in accepted, f"round {round}: an acknowledged update is lost"
                    assert accepted[round, client].content == body, f"round {round}: another update took its place"
                if state == REFUSED:
                    n_freed += 1
                    assert not is_counted, (
                        f"round {round}: counted, though its client was told that it was not ({reason})"
                    )
                if is_counted:
                    assert state in (SENT, WAITING)
                    assert used[round] == agreement.interactions, f"round {round}: impressions were lost or repeated"
                    if agreement.method == "fpdgd":
                        assert accepted[round, client].weight == weight == used[round]
    for cell, body in accepted.items():
        assert made.get(cell) == body.content, f"round {cell[0]}: an update that its client never made was counted"
    for client, n in counted.items():
        assert n == sum(c == client for _, c in accepted), "a client's count of accepted updates is wrong"
    difference = check_rankers(agreement, states, accepted, rankers)
    return {
        "rounds_closed": sum(state == "closed" for state in states.values()),
        "rounds_abandoned": sum(state == "abandoned" for state in states.values()),
        "updates_accepted": len(accepted),
        "acknowledged": n_acknowledged,
        "acknowledged_lost": 0,
        "counted_twice": 0,
        "not_counted_and_free_again": n_freed,
        "refused": refused,
        "rankers_equal_bit_for_bit": len(rankers),
        "largest_difference_from_formula": difference,
    }


def check_rankers(
    agreement: Agreement, states: dict[int, str], accepted: dict[tuple[int, int], Body], rankers: dict[int, Array]
) -> float | None:
    """Replays every closed round from the accepted updates; the largest difference from the plain formula."""
    params, state = first_ranker(agreement)
    assert np.array_equal(params, rankers[0])
    largest = 0.0 if agreement.method == "fpdgd" else None
    for round in sorted(r for r, s in states.items() if s == "closed"):
        bodies = [accepted[cell] for cell in sorted(accepted) if cell[0] == round]
        before = params
        params, state = next_ranker(agreement, params, state, bodies, round=round)
        assert np.array_equal(params, rankers[round]), f"round {round}: the ranker is not what its updates give"
        if largest is not None:  # weighted mean [fpdgd, Algorithm 2]
            deltas = np.array([np.frombuffer(body.content, "<f4") for body in bodies], np.float64)
            weights = np.array([body.weight for body in bodies])
            wanted = before + agreement.server_rate * (weights @ deltas) / weights.sum()
            largest = max(largest, float(np.abs(wanted - params).max()))
            assert np.allclose(wanted, params, atol=1e-5), f"round {round}: the ranker is not the mean of its updates"
    return largest


def count_closed(stage: Stage) -> int:
    with opened(stage.server_home / "federation.sqlite") as server:
        return int(server.execute("SELECT COUNT(*) FROM rounds WHERE state = 'closed'").fetchone()[0])


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def find_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
