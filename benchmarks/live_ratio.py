"""Updates per second of a live server's processor, beside those of another version of hushrank.

`python -m benchmarks.live_ratio TREE` starts a server of this tree and one of another (a checkout), enrols as many
clients with each and lets them work by turns, so that whatever else the machine does disturbs both alike. Prints JSON:
what each took, and the ratio of the two turns that stand side by side. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
_WARM_UP_S = 1.0


def read_cpu(pid: int) -> float:
    """Seconds of all threads of a process."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9


async def take_turns(server: Any, port: int, *, n_params: int, n_clients: int, n_connections: int) -> None:
    """A line of stdin is a turn of so many seconds; a line of stdout is what was done in it."""
    from benchmarks.live_generator import Seen, connect, enrol, make_person, take_part

    people = [make_person() for _ in range(n_clients)]
    connections = [await connect(port) for _ in range(n_connections)]

    async def enrol_some(place: int) -> None:
        for i in range(place, n_clients, n_connections):
            await enrol(connections[place], people[i], server.tokens[i])

    await asyncio.gather(*(enrol_some(place) for place in range(n_connections)))
    options = {"digest": server.agreement.digest, "n_params": n_params}
    print("ready", flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        seen, cpu, until = Seen(), read_cpu(server._process.pid), time.perf_counter() + float(line)
        tasks = [
            take_part(connection, people[i::n_connections], seen, until=until, seed=i, **options)
            for i, connection in enumerate(connections)
        ]
        await asyncio.gather(*tasks)
        print(len(seen.acknowledged) / (read_cpu(server._process.pid) - cpu), flush=True)
    for connection in connections:
        connection.close()


def work(n_clients: int, n_connections: int) -> None:
    """With the server and the generator of the tree that is on the path: an older one has them, and not this file."""
    from benchmarks.live_load import _FEATURES, Server

    with tempfile.TemporaryDirectory() as place:
        server = Server(Path(place) / "federation", n_clients=n_clients, rounds=None)
        port = server.start()
        people = {"n_clients": n_clients, "n_connections": n_connections}
        try:
            asyncio.run(take_turns(server, port, n_params=_FEATURES, **people))
        finally:
            server.stop()


class Worker:
    """A process with the server and the generator of one tree."""

    def __init__(self, tree: Path, n_clients: int, n_connections: int) -> None:
        command = [sys.executable, "-P", str(HERE), str(tree), "--work"]
        command += ["--clients", str(n_clients), "--connections", str(n_connections)]
        path = os.pathsep.join([str(tree), str(tree / "src")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment, cwd=tree, **pipes)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asking, self._answers = self._process.stdin, self._process.stdout
        if self._answers.readline().strip() != "ready":
            raise RuntimeError(f"{tree} did not start")

    def take_turn(self, seconds: float) -> float:
        """Updates per second of the server's processor."""
        self._asking.write(f"{seconds}\n")
        self._asking.flush()
        return float(self._answers.readline())

    def stop(self) -> None:
        self._asking.close()
        self._process.wait()


def compare(other: Path, *, turns: int, seconds: float, n_clients: int, n_connections: int) -> dict[str, Any]:
    workers = [Worker(tree, n_clients, n_connections) for tree in (other.resolve(), HERE.parents[1])]
    for worker in workers:
        worker.take_turn(_WARM_UP_S)
    rows = []
    for turn in range(turns):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        took = {i: workers[i].take_turn(seconds) for i in order}
        rows.append((took[0], took[1]))
    for worker in workers:
        worker.stop()
    before, now = np.array(rows).T
    setting = {"clients": n_clients, "connections": n_connections, "turns": turns, "seconds_of_a_turn": seconds}
    found = {"before": summarise(before, 0), "now": summarise(now, 0), "ratio": summarise(now / before, 2)}
    return {"cores": os.cpu_count(), **setting, **found}


def summarise(values: np.ndarray[Any, Any], digits: int) -> dict[str, float]:
    names, levels = ("least", "quarter", "median", "three_quarters", "most"), (0, 0.25, 0.5, 0.75, 1)
    quantiles = np.quantile(values, levels)
    return {name: round(float(value), digits) for name, value in zip(names, quantiles, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout of the other version")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    people = {"n_clients": chosen.clients, "n_connections": chosen.connections}
    if chosen.work:
        work(**people)
        return
    text = json.dumps(compare(chosen.tree, turns=chosen.turns, seconds=chosen.seconds, **people), indent=2)
    if chosen.json:
        chosen.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
