"""Attacks on a running server by somebody without a credential, and what they cost it.

`python -m benchmarks.hostile` creates a federation, serves it on loopback, runs every attack in turn and prints JSON:
the largest resident memory of the server, and the longest that `/v1/health` took meanwhile.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hushrank.live.server.process import allow_many_files

T = TypeVar("T")
HEAD = b"GET /v1/health HTTP/1.1\r\nhost: x\r\n"
_TLS = ("--tls", "127.0.0.1")
_ATTACKERS = 16  # who shake hands
_LINES = b"a:b\r\n" * 10_000


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 80), timeout=10)


def send_endless_head(url: str, *, n_bytes: int) -> bytes:
    """Headers that never end; what the server said to it."""
    with connect(url) as attacker:
        with suppress(OSError):
            attacker.sendall(HEAD)
            for _ in range(n_bytes // len(_LINES)):
                attacker.sendall(_LINES)
        try:
            return attacker.recv(4096)
        except OSError:
            return b""


def send_without_reading(url: str, *, n_connections: int, seconds: float, at_once: int = 1000) -> int:
    """Requests for what is not there, one after another, and no answer read; a connection that is ended is made again.

    at_once: requests in a piece. How many connections the server has ended.
    """
    asked, attackers = b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n" * at_once, list[socket.socket]()
    until, n_ended = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        while len(attackers) < n_connections:
            attackers.append(connect(url))
            attackers[-1].setblocking(False)
        for attacker in tuple(attackers):
            try:
                attacker.send(asked)
            except BlockingIOError:
                continue
            except OSError:
                attackers.remove(attacker)
                attacker.close()
                n_ended += 1
    for attacker in attackers:
        attacker.close()
    return n_ended


def ask_often(url: str, path: str, *, n: int, headers: dict[str, str] | None = None) -> Counter[int]:
    """{status: how often} of requests as fast as they can be answered."""
    parts, statuses = urlsplit(url), Counter[int]()
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    for _ in range(n):
        connection.request("GET", path, headers=headers or {})
        reply = connection.getresponse()
        reply.read()
        statuses[reply.status] += 1
    connection.close()
    return statuses


def send_garbage(url: str, *, n: int) -> Counter[bytes]:
    """{first line of the answer: how often} for requests that are not HTTP."""
    said = Counter[bytes]()
    for _ in range(n):
        with connect(url) as attacker:
            attacker.sendall(b"\x00\x01 not HTTP\r\n\r\n")
            with suppress(OSError):
                said[attacker.recv(4096).partition(b"\r\n")[0]] += 1
    return said


def make_hello() -> bytes:
    """The first words of a client's handshake."""
    leaving = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), leaving, server_hostname="localhost").do_handshake()
    return leaving.read()


def hold_silent(url: str, *, n_connections: int, seconds: float, first: bytes = b"") -> int:
    """Connections that begin and say no more; one that is ended is made again. How many there were."""
    held, n_made, until = deque[socket.socket](), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError):
            held.append(connect(url))
            held[-1].sendall(first)
            n_made += 1
        if len(held) > n_connections:
            held.popleft().close()
    for each in held:
        each.close()
    return n_made


@dataclass
class Watch:
    """What an attack cost the server."""

    pid: int
    url: str
    trusted: Path | None = None  # the certificate of a server with TLS
    times_s: list[float] = field(default_factory=list)  # that health took to answer, or to fail
    n_answers: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if self.trusted is None:
            return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        context = ssl.create_default_context(cafile=str(self.trusted))
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=context)

    def look(self) -> None:
        while not self.is_over.is_set():
            begun = time.monotonic()
            with suppress(OSError, http.client.HTTPException):
                connection = self.connect()
                connection.request("GET", "/v1/health")
                self.n_answers += connection.getresponse().status == 200
                connection.close()
            self.times_s.append(time.monotonic() - begun)
            self.is_over.wait(0.05)

    @property
    def most_mb(self) -> float:
        """The largest resident memory so far."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


@contextmanager
def watching(pid: int, url: str, trusted: Path | None = None) -> Iterator[Watch]:
    watch = Watch(pid, url, trusted)
    thread = threading.Thread(target=watch.look)
    thread.start()
    try:
        yield watch
    finally:
        watch.is_over.set()
        thread.join()


def run_together(attack: Callable[[], T], n: int) -> list[T]:
    """The attack n times at once."""
    results: list[T] = []
    threads = [threading.Thread(target=lambda: results.append(attack())) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@contextmanager
def serving(directory: Path, *options: str, uvloop: bool = True) -> Iterator[tuple[int, str]]:
    """(process, address) of a new federation's server. uvloop: whether it finds it."""
    hushrank = [sys.executable, "-m", "hushrank", "server"]
    subprocess.run([*hushrank, "init", str(directory), *options], check=True, capture_output=True)
    command, environment = [*hushrank, str(directory), "--port", "0", "--json"], dict(os.environ)
    if not uvloop:
        hiding = directory / "hiding"
        hiding.mkdir()
        (hiding / "uvloop.py").write_text("raise ImportError", encoding="utf-8")
        environment["PYTHONPATH"] = os.pathsep.join([str(hiding), environment.get("PYTHONPATH", "")])
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    url = json.loads(process.stderr.readline())["url"]
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield process.pid, url
    finally:
        process.terminate()
        process.wait()


def measure(name: str, attack: Callable[[str], object], *options: str, uvloop: bool = True) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as place,
        serving(directory := Path(place) / "f", *options, uvloop=uvloop) as (pid, url),
    ):
        trusted = directory / "tls-certificate.pem" if url.startswith("https:") else None
        with watching(pid, url, trusted) as watch:
            said, most_mb = attack(url), watch.most_mb
    return {
        "attack": name,
        "most_mb": round(most_mb, 1),
        "longest_health_s": round(max(watch.times_s), 3),
        "health_asked": len(watch.times_s),
        "health_answers": watch.n_answers,
        "health_within_1_s": sum(seconds <= 1 for seconds in watch.times_s),
        "server_said": str(said)[:200],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="of a head without end")
    parser.add_argument("--connections", type=int, default=300, help="that never read")
    parser.add_argument("--seconds", type=float, default=21.0, help="that they last")
    parser.add_argument("--handshakes", type=int, default=4000, help="that are held at once, against a default server")
    chosen = parser.parse_args()
    allow_many_files()
    n_bytes = chosen.megabytes << 20
    attacks: dict[str, Callable[[str], object]] = {
        "one head without end": lambda url: send_endless_head(url, n_bytes=n_bytes)[:20],
        "eight heads without end": lambda url: run_together(lambda: send_endless_head(url, n_bytes=n_bytes)[:20], 8),
        "answers that nobody reads": lambda url: send_without_reading(
            url, n_connections=chosen.connections, seconds=chosen.seconds
        ),
        "answers that nobody reads, asked for slowly": lambda url: send_without_reading(
            url, n_connections=chosen.connections, seconds=chosen.seconds, at_once=1
        ),
        "10,000 paths that do not exist": lambda url: dict(ask_often(url, "/nothing", n=10_000)),
        "2,000 requests that are not HTTP": lambda url: dict(send_garbage(url, n=2_000)),
    }
    rows = [measure(name, attack) for name, attack in attacks.items()]
    few = ("--set", f"connections={chosen.connections}")  # Why: an attacker here cannot have more than a server

    def hold(url: str) -> int:
        return hold_silent(url, n_connections=4 * chosen.connections, seconds=chosen.seconds, first=HEAD)

    def shake_hands(url: str) -> int:
        """Why many attackers: one whose packet is dropped waits a second for its system to send it again."""
        each, hello = chosen.handshakes // _ATTACKERS, make_hello()
        return sum(
            run_together(lambda: hold_silent(url, n_connections=each, seconds=chosen.seconds, first=hello), _ATTACKERS)
        )

    rows.append(measure("more silent connections than there may be", hold, *few))
    flood = f"{chosen.handshakes:,} handshakes at once, none finished"
    rows.append(measure(flood, shake_hands, *_TLS))
    rows.append(measure(f"{flood}, without uvloop", shake_hands, *_TLS, uvloop=False))
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
