"""How much a live server takes: updates per second through 100 connections, and the time of a round with two clients.

`python -m benchmarks.live_load` starts a real server process with synchronous=FULL and drives it from this one: every
client polls, fetches the ranker and answers each round once. Afterwards every acknowledged update must be in the store,
and the final ranker must be what a replay of the stored updates makes. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks.live_generator import Seen, connect, enrol, make_person, take_part
from hushrank.files import write_json
from hushrank.live.server import store
from hushrank.live.server.config import make_config
from hushrank.live.server.creation import TOKENS, create_federation
from hushrank.live.server.new_ranker import first_ranker, next_ranker
from hushrank.live.server.schema import ROUNDS, UPDATES
from hushrank.live.wire.agreement import Agreement, make_agreement
from hushrank.live.wire.news import Outcome
from hushrank.live.wire.terms import count_params

_FEATURES = 46
_SERVER = "from hushrank.cli.main import main; main()"


def measure_fsync(directory: Path, n: int = 200) -> dict[str, float]:
    """Milliseconds of a flush after 4 kB: what a commit waits for."""
    times = []
    with (directory / "fsync").open("wb", buffering=0) as file:
        for _ in range(n):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return {"p50_ms": 1e3 * float(np.median(times)), "p99_ms": 1e3 * float(np.quantile(times, 0.99))}


class Server:
    """A real server process on its own directory."""

    def __init__(self, directory: Path, *, n_clients: int, rounds: int | None) -> None:
        self.directory = directory
        self.agreement: Agreement = make_agreement("load", n_features=_FEATURES, rounds=rounds)
        limits = {"requests_per_address": 1e6}  # Why: all clients of a load have one address
        config = make_config({"port": 0, "min_clients": n_clients, "keep_updates": True, **limits})
        create_federation(directory, self.agreement, config, n_tokens=n_clients)
        self.tokens = (directory / TOKENS).read_text().split()

    def start(self) -> int:
        """The port."""
        command = [sys.executable, "-c", _SERVER, "server", str(self.directory), "--json"]
        self._log = (self.directory / "log").open("w")
        self._process = subprocess.Popen(command, stderr=self._log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for line in (self.directory / "log").read_text().splitlines():
                if '"listening"' in line:
                    return int(json.loads(line)["url"].rpartition(":")[2])
            time.sleep(0.05)
        raise RuntimeError("the server did not start within a minute")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self.memory_mb = read_memory(self.pid)
        self._process.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._log.close()
        if self._process.returncode:
            raise RuntimeError(f"the server ended with {self._process.returncode}")
        self.cpu_s = used.ru_utime + used.ru_stime


def read_memory(pid: int, field: str = "VmHWM") -> int | None:
    """In MB, where the system tells; VmHWM: at its peak. Why not getrusage: a child's begins at its parent's."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(field)), None)


async def watch_memory(pid: int, seconds: float, n: int = 20) -> list[int | None]:
    """MB of the process, so many times until the end: it should not grow."""
    found = []
    for _ in range(n):
        await asyncio.sleep(seconds / n)
        found.append(read_memory(pid, "VmRSS"))
    return found


@contextmanager
def running(server: Server) -> Iterator[int]:
    """The port, while it runs."""
    port = server.start()
    try:
        yield port
    finally:
        server.stop()


async def drive(
    server: Server,
    port: int,
    *,
    n_clients: int,
    n_connections: int,
    seconds: float,
    rate: float = math.inf,
    watches: bool = True,
) -> dict[str, Any]:
    """Enrol everybody, then take part for so many seconds; rate: most updates per second; watches: the server's memory
    meanwhile."""
    people = [make_person() for _ in range(n_clients)]
    connections = [await connect(port) for _ in range(n_connections)]

    async def enrol_some(place: int) -> None:
        for i in range(place, n_clients, n_connections):
            await enrol(connections[place], people[i], server.tokens[i])

    await asyncio.gather(*(enrol_some(place) for place in range(n_connections)))
    seen, began, cpu = Seen(), time.perf_counter(), time.process_time()
    options: dict[str, Any] = {"digest": server.agreement.digest, "n_params": count_params(server.agreement)}
    options |= {"interval_s": n_connections / rate}
    tasks = [
        take_part(c, people[i::n_connections], seen, until=began + seconds, seed=i, **options)
        for i, c in enumerate(connections)
    ]
    memory, *_ = await asyncio.gather(watch_memory(server.pid, seconds, 20 if watches else 0), *tasks)
    wall = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return {"seen": seen, "wall_s": wall, "generator_cpu_s": time.process_time() - cpu, "memory_mb": memory}


def check_store(server: Server, seen: Seen) -> int:
    """Every acknowledged update is stored once, and the ranker is what the stored ones make; how many rounds."""
    engine = store.open_store(server.directory / store.FILE, read_only=True)
    with engine.begin() as connection:
        stored = Counter((row.round, row.body) for row in connection.execute(sa.select(UPDATES)))
        lost = sum(stored[update] != 1 for update in seen.acknowledged)
        if lost:
            raise AssertionError(f"{lost} acknowledged updates are not in the store exactly once")
        params, state = first_ranker(server.agreement)
        closed = sa.select(ROUNDS.c.number).where(ROUNDS.c.state == Outcome.closed).order_by(ROUNDS.c.number)
        numbers = list(connection.execute(closed).scalars())
        for number in numbers:
            bodies = store.read_bodies(connection, number)
            params, state, _ = next_ranker(server.agreement, params, state, bodies, round=number)
        if not np.array_equal(store.read_ranker(connection)[0], params):
            raise AssertionError("the final ranker is not what a replay of the stored updates gives")
    return len(numbers)


def summarise(times: list[float]) -> dict[str, float]:
    ordered = 1e3 * np.sort(np.array(times))
    p50, p99 = np.quantile(ordered, [0.5, 0.99])
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "max_ms": round(float(ordered[-1]), 2)}


def run_load(directory: Path, *, n_clients: int, n_connections: int, seconds: float, rate: float) -> dict[str, Any]:
    server = Server(directory, n_clients=n_clients, rounds=None)
    with running(server) as port:
        driving = drive(server, port, n_clients=n_clients, n_connections=n_connections, seconds=seconds, rate=rate)
        found = asyncio.run(driving)
    server_cpu, seen, wall = server.cpu_s, found["seen"], found["wall_s"]
    return {
        "clients": n_clients,
        "connections": n_connections,
        "seconds": round(wall, 2),
        "rounds": check_store(server, seen),
        "updates": len(seen.acknowledged),
        "updates_per_second": round(len(seen.acknowledged) / wall, 1),
        "requests_per_second": round(seen.n_requests / wall, 1),
        "update_latency": summarise(seen.update_s),
        "refused": seen.refused,
        "server_cpu_s": round(server_cpu, 2),
        "server_memory_mb": server.memory_mb,
        "server_memory_mb_over_time": found["memory_mb"],
        "generator_cpu_s": round(found["generator_cpu_s"], 2),
    }


def run_rounds(directory: Path, *, n_rounds: int) -> dict[str, Any]:
    """Two clients on two connections, until the federation is finished."""
    server = Server(directory, n_clients=2, rounds=n_rounds)
    with running(server) as port:
        found = asyncio.run(drive(server, port, n_clients=2, n_connections=2, seconds=600, watches=False))
    check_store(server, found["seen"])
    lines = [json.loads(line) for line in (directory / "log").read_text().splitlines()]
    times = [line["seconds"] for line in lines if line["event"] == "round-closed"]
    return {"rounds": len(times), "mean_ms": round(1e3 * found["wall_s"] / n_rounds, 2), **summarise(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--rate", type=float, default=math.inf, help="most updates per second; default: no limit")
    parser.add_argument("--rounds", type=int, default=200, help="of the federation of two clients")
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        result = {
            "cores": os.cpu_count(),
            "fsync": {key: round(value, 3) for key, value in measure_fsync(directory).items()},
            "load": run_load(
                directory / "load",
                n_clients=options.clients,
                n_connections=options.connections,
                seconds=options.seconds,
                rate=options.rate,
            ),
            "two_clients": run_rounds(directory / "two", n_rounds=options.rounds),
        }
    if options.json:
        write_json(options.json, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
