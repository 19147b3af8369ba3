"""A live federation whose processes are killed at random moments, and a check that nothing was lost or counted twice.

    python -m benchmarks.chaos [--rounds 300] [--kills 200] [--restores 10] [--clones 6] [--clock-jumps 20]
        [--clients 8] [--method fpdgd|foltr-es] [--out DIR]

A real server and real clients (pretend people) over loopback. Again and again one of them gets SIGKILL and is started
again: at once, a little later, or after the round has gone on without it. Two clients join late, and one of an older
version of the wire knocks now and then. Now and then

- an operator puts an old copy of the server's file in its place: the clients recognise it, no round opens, and the
  operator puts the newer file back;
- a client's home is copied, and a second client is started on the copy: one of the two is stopped, as a clone or
  because its ledger lacks what the other has spent; its owner removes one of the homes, as the message says, and the
  other goes on;
- the wall clock of a running process jumps by hours, forward or backward.

When the federation is finished, `chaos_checks.py` reads the files that are left.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.chaos_checks import (
    CopiedHome,
    Files,
    check_files,
    count_closed,
    is_enrolled,
    read_copied,
    read_newest,
    read_seen,
)
from hushrank.live.wire.protocol import WIRE_HEADER

HOST = "127.0.0.1"
DATA = "mq2008-like"
DEADLINE_S, PAUSE_S = 4.0, 0.3  # Why a pause: on a quiet machine rounds would be over before anybody could be killed
PATIENCE_S = 120.0  # without a new round
NAP_S = (0.0, 0.0, 0.5, 6.0)  # that a victim stays dead; the last one is longer than a round
N_LATE = 2  # clients that join late
JUMP_H = (1.0, 12.0)  # hours, forward or backward
SHIFTED_CLOCK = Path(__file__).with_name("shifted_clock")
EPSILON = "1000000"  # of a client's budget. Why so much: answers of two copies of a home count as spent in both
LAST_WORDS = 6  # lines of each log that a failure repeats
COPY = " copy"  # after the name of a client: the process on the copy of its home


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
    clones: int = 0  # homes that are copied; each client's at most once
    clock_jumps: int = 0  # of the wall clock of one process

    def __post_init__(self) -> None:
        if self.clones > self.clients - N_LATE:
            raise ValueError(
                f"{self.clones} clones, but only {self.clients - N_LATE} clients are there from the start."
            )


@dataclass
class Stage:
    """The processes, and what was done to them."""

    plan: Plan
    port: int
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)  # {who is dead: when it starts again}
    people: dict[str, Path] = field(default_factory=dict)  # {client: where its home lies, if not with all others}
    killed: Counter[str] = field(default_factory=Counter)
    n_restored: int = 0  # old copies that were put in place, and recognised
    copied: dict[str, CopiedHome] = field(default_factory=dict)  # {client: its home that was copied}
    cloned: Counter[str] = field(default_factory=Counter)  # {which of two homes went on: how often}
    stopped: Counter[str] = field(default_factory=Counter)  # {by what one of two processes was stopped: how often}
    jumped: Counter[str] = field(default_factory=Counter)  # {who: how often its clock has jumped}
    old_versions: Counter[int] = field(default_factory=Counter)  # {status: how often a client of another wire heard it}

    @property
    def server_home(self) -> Path:
        return self.plan.out / "server"

    @property
    def file(self) -> Path:
        return self.server_home / "federation.sqlite"

    @property
    def tokens(self) -> Path:
        """A copy. Why: the server's own is away for a moment while an old copy takes its place."""
        return self.plan.out / "tokens.txt"

    @property
    def names(self) -> list[str]:
        return ["server", *(f"client {i}" for i in range(self.plan.clients))]

    @property
    def has_ledgers(self) -> bool:
        """Whether clients count what they spend."""
        return self.plan.method == "foltr-es"

    @property
    def late(self) -> list[str]:
        """Who joins late, the last one first."""
        return self.names[: -N_LATE - 1 : -1]

    @property
    def restore_at(self) -> float:
        """After how many rounds an old copy of the server's file is due."""
        is_left = self.n_restored < self.plan.restores
        return (self.n_restored + 1) * self.plan.rounds / (self.plan.restores + 1) if is_left else math.inf

    def home_of(self, name: str) -> Path:
        """Of a client."""
        return self.people.get(name, self.plan.out / "people") / name.split()[1]

    def log_of(self, name: str) -> Path:
        return self.plan.out / f"{name.replace(' ', '-')}.log"

    def clock_of(self, name: str) -> Path:
        return self.plan.out / "clocks" / name

    def start(self, name: str, *more: str) -> None:
        url = f"http://{HOST}:{self.port}"
        if name == "server":
            words = ["server", str(self.server_home), "--port", str(self.port)]
        else:
            words = ["client", url, "--simulate", DATA, "--users", "1", "--first", name.split()[1]]
            words += ["--home", str(self.home_of(name).parent), "--tokens", str(self.tokens)]
            words += ["--epsilon", EPSILON] if self.has_ledgers else []
        paths = [str(SHIFTED_CLOCK), *filter(None, [os.environ.get("PYTHONPATH")])]
        clock = {"PYTHONPATH": os.pathsep.join(paths), "CHAOS_CLOCK": str(self.clock_of(name))}
        with self.log_of(name).open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "hushrank", *words, *more],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **clock},
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
    parser.add_argument("--clones", type=int, default=6, help="at most two fewer than clients")
    parser.add_argument("--clock-jumps", type=int, default=20)
    parser.add_argument("--out", type=Path, help="kept; default: a temporary directory")
    given = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as temporary:
        plan = Plan(**{**given, "out": given["out"] or Path(temporary)})
        json.dump(run_chaos(plan), sys.stdout, indent=1)
        print()


def run_chaos(plan: Plan) -> dict[str, Any]:
    """What was done and found; raises AssertionError where something was lost, doubled or changed."""
    (plan.out / "clocks").mkdir(parents=True, exist_ok=True)
    began, stage = time.monotonic(), Stage(plan, find_port())
    create_federation(stage)
    try:
        torment(stage)
    except AssertionError as failed:
        raise AssertionError(f"{failed}\n{describe_processes(stage)}") from failed
    finally:
        stage.end()
    said = {"method": plan.method, "clients": plan.clients, "seconds": round(time.monotonic() - began, 1)}
    done = {
        "killed": dict(stage.killed),
        "restored": stage.n_restored,
        "clones_stopped_by": dict(stage.stopped),
        "clones_that_went_on": dict(stage.cloned),
        "clock_jumps": dict(stage.jumped),
        "old_versions": dict(stage.old_versions),
    }
    found = check_files(find_files(stage), is_clock_shifted=bool(stage.jumped))
    return {**said, **done, **found}


def describe_processes(stage: Stage) -> str:
    """Who runs, who ended, and what each said last. Why: where this fails, the files may be gone soon."""
    lines = [f"the server's health: {ask_health(stage) or 'no answer'}"]
    for name in [*stage.names, *(name for name in stage.people if name.endswith(COPY))]:
        process = stage.running.get(name)
        status = None if process is None else process.poll()
        doing = "not running" if process is None else "running" if status is None else f"ended with {status}"
        log = stage.log_of(name)
        said = log.read_text(encoding="utf-8").splitlines()[-LAST_WORDS:] if log.exists() else []
        lines += [f"{name}: {doing}", *(f"    {line}" for line in said)]
    return "\n".join(lines)


def create_federation(stage: Stage) -> None:
    plan = stage.plan
    words = ["server", "init", str(stage.server_home), "--method", plan.method, "--tokens", str(plan.clients)]
    if not stage.has_ledgers:  # Why: a seeded federation promises nothing, so that nobody keeps a ledger
        words += ["--simulate", "--seed", str(plan.seed)]
    half = plan.clients // 2
    settings = {"rounds": plan.rounds, "deadline_s": DEADLINE_S, "pause_s": PAUSE_S, "keep_updates": "true"}
    settings |= {"quorum": half, "min_clients": half}
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    subprocess.run([sys.executable, "-m", "hushrank", *words], check=True, capture_output=True)
    shutil.copy(stage.server_home / "tokens.txt", stage.tokens)


def find_files(stage: Stage) -> Files:
    """All that the processes left on the disk."""
    places = [stage.plan.out / place for place in ("people", "copies", "removed")]
    homes = [home for place in places if place.exists() for home in sorted(place.iterdir())]
    return Files(stage.file, homes, list(stage.copied.values()))


def torment(stage: Stage) -> None:
    """Do something to somebody whenever the federation has come a little further, until it is finished."""
    plan, dice = stage.plan, random.Random(stage.plan.seed)
    late = {name: plan.rounds // (4 * 2**i) for i, name in enumerate(stage.late)}
    for name in stage.names:
        if name not in late:
            stage.start(name)
    n_killed, newest, moved_at = 0, 0, time.monotonic()
    while (n := count_closed(stage.file)) < plan.rounds:
        if n != newest:
            newest, moved_at = n, time.monotonic()
        assert time.monotonic() - moved_at < PATIENCE_S, f"stalled after {n} rounds: see {plan.out}"
        stage.wake_due()
        for name in [name for name, when in late.items() if n >= when]:
            stage.start(name)
            del late[name]
        if n >= stage.restore_at:
            restore(stage)
        # Why not to the end: rounds go on until two processes of one client have met
        if len(stage.copied) < plan.clones and n >= (len(stage.copied) + 1) * 0.6 * plan.rounds / (plan.clones + 1):
            clone(stage, dice)
        if (n_jumps := stage.jumped.total()) < plan.clock_jumps and n >= n_jumps * 0.8 * plan.rounds / plan.clock_jumps:
            jump_clock(stage, dice)
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

    The first time only the copy is made, of which the next one is the old one. Only clients that can prove that it is
    old meet it: whoever enrols there, or learns of a round there, has something that the newer file does not hold.
    """
    if "server" in stage.running:
        stage.kill("server", nap_s=0.0, is_counted=False)
    old, newer = stage.plan.out / "old", stage.plan.out / "newer"
    if not old.exists():
        shutil.copytree(stage.server_home, old)
        stage.n_restored += 1
        return stage.start("server")
    # Why: clients that know the end have ended, and nobody would recognise anything
    assert count_closed(stage.file) < stage.plan.rounds, "the last round was over too soon: take more rounds"
    witnesses = find_witnesses(stage, newest=read_newest(old / stage.file.name))
    signal_others(stage, witnesses, signal.SIGSTOP)
    stage.server_home.rename(newer)
    shutil.copytree(old, stage.server_home)
    for name in ("server", *(name for name in witnesses if name in stage.due)):
        stage.start(name)
    began = time.monotonic()
    while ask_health(stage) != "behind":
        assert time.monotonic() - began < PATIENCE_S, f"an old file was not recognised: see {stage.plan.out}"
        time.sleep(0.05)
    stage.kill("server", nap_s=0.0, is_counted=False)
    shutil.rmtree(stage.server_home)
    newer.rename(stage.server_home)
    shutil.rmtree(old)
    shutil.copytree(stage.server_home, old)
    signal_others(stage, witnesses, signal.SIGCONT)
    stage.n_restored += 1
    return stage.start("server")


def find_witnesses(stage: Stage, *, newest: int) -> list[str]:
    """Clients that have a receipt of a later round than this one; they run, or were to start again."""
    begun = [name for name in (*stage.running, *stage.due) if name != "server"]
    return [name for name in begun if read_seen(stage.home_of(name)) > newest]


def clone(stage: Stage, dice: random.Random) -> None:
    """A second process on the copy of a client's home, until one of the two is stopped; then one home is removed."""
    out = stage.plan.out
    name = dice.choice([name for name in stage.names[1:] if name not in (*stage.late, *stage.copied)])
    wait_for_enrolment(stage, name)
    copy = name + COPY
    stage.people[copy] = out / "copies"
    copy_home(stage, name, stage.home_of(copy))
    stage.copied[name] = read_copied(stage.home_of(name), stage.home_of(copy))
    for process in ("server", name, copy):
        if process not in stage.running:
            stage.start(process)
    stopped = wait_for_refusal(stage, name, copy)
    lasting = copy if stopped == name else name
    stage.running.pop(stopped)
    if dice.random() < 0.5 or stage.has_ledgers:  # the owner stops the other one, too, and keeps any of them
        stage.running[lasting].terminate()
        stage.running.pop(lasting).wait(PATIENCE_S)
        stopped, lasting = dice.sample((name, copy), 2)
        start_again(stage, lasting)
    # Why it is not deleted: what was in it is checked in the end
    (out / "removed").mkdir(exist_ok=True)
    gone = stage.home_of(stopped).rename(out / "removed" / name.split()[1])
    stage.copied[name] = stage.copied[name].moved(stage.home_of(stopped), gone)
    stage.cloned["copy" if lasting == copy else "original"] += 1
    if lasting == copy:  # from now on it is the client
        stage.people[name] = stage.people[copy]
        stage.running[name] = stage.running.pop(copy)


def wait_for_enrolment(stage: Stage, name: str) -> None:
    """On a busy machine a client may not have got as far."""
    for process in ("server", name):
        if process not in stage.running:
            stage.start(process)
    began = time.monotonic()
    while not is_enrolled(stage.home_of(name)):
        assert time.monotonic() - began < PATIENCE_S, f"{name} was not enrolled: see {stage.plan.out}"
        stage.wake_due()
        time.sleep(0.02)


def copy_home(stage: Stage, name: str, to: Path) -> None:
    """As a copy of the disk at one moment finds it, whether its client runs or not."""
    process = stage.running.get(name)
    if process is not None:
        process.send_signal(signal.SIGSTOP)
    shutil.copytree(stage.home_of(name), to)
    if process is not None:
        process.send_signal(signal.SIGCONT)


def wait_for_refusal(stage: Stage, *names: str) -> str:
    """Which of two processes of one client was stopped."""
    began = time.monotonic()
    while not (ended := [name for name in names if stage.running[name].poll() is not None]):
        assert time.monotonic() - began < PATIENCE_S, f"a clone was not recognised: see {stage.plan.out}"
        stage.wake_due()
        # Why: it must be neither finished before the two have met, nor too far for what is due next
        if count_closed(stage.file) >= min(stage.restore_at, stage.plan.rounds - 3):
            signal_others(stage, names, signal.SIGSTOP)
        time.sleep(0.02)
    signal_others(stage, names, signal.SIGCONT)
    for name in ended:
        said = stage.log_of(name).read_text(encoding="utf-8").strip().splitlines()[-1]
        is_explained = "another copy of" in said or (stage.has_ledgers and "this home is a copy" in said)
        assert stage.running[name].returncode == 1 and is_explained, f"{name} ended with: {said}"
        stage.stopped["clone" if "another copy of" in said else "ledger"] += 1
    return ended[0]


def signal_others(stage: Stage, names: Sequence[str], number: signal.Signals) -> None:
    """All running clients but these."""
    for name, process in stage.running.items():
        if name not in ("server", *names) and process.poll() is None:
            process.send_signal(number)


def start_again(stage: Stage, name: str) -> None:
    """One of two copies. Its ledger lacks what the other one has spent: it is rebuilt before anything else happens."""
    if not stage.has_ledgers:
        return stage.start(name)
    n_said, began = stage.log_of(name).stat().st_size, time.monotonic()
    stage.start(name, "--rebuild-ledger")
    while b"ledger.jsonl " not in stage.log_of(name).read_bytes()[n_said:]:
        assert time.monotonic() - began < PATIENCE_S, f"a ledger was not rebuilt: see {stage.plan.out}"
        time.sleep(0.02)
    return None


def jump_clock(stage: Stage, dice: random.Random) -> None:
    """The wall clock of a process is so far from the true one from now on."""
    running = [name for name in stage.names if name in stage.running]
    name = "server" if "server" in running and dice.random() < 0.4 else dice.choice(running)
    hours = dice.uniform(*JUMP_H) * dice.choice((-1, 1))
    changed = stage.clock_of(name).with_suffix(".new")
    changed.write_text(f"{hours * 3600:.0f}", encoding="ascii")
    changed.replace(stage.clock_of(name))
    stage.jumped["server" if name == "server" else "clients"] += 1


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


def find_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
