"""A real server and real clients, each a process of its own, for tests of the whole."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushrank.rankers.named import read_ranker
from hushrank.types import Array

HUSHRANK = [sys.executable, "-m", "hushrank"]
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs."""

    directory: Path
    url: str
    process: subprocess.Popen[bytes]

    def export(self) -> Array:
        """[n_params] its newest ranker."""
        path = self.directory.parent / "exported.safetensors"
        run("server", "export", self.directory, path)
        return read_ranker(path)[1]


def run(*words: str | Path) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(
        [*HUSHRANK, *map(str, words)], capture_output=True, text=True, check=False, timeout=_PATIENCE_S
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


def settings(**chosen: Any) -> list[str]:
    return [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]


def create_federation(directory: Path, *words: str | int, **chosen: Any) -> None:
    run("server", "init", directory, *map(str, words), *settings(**chosen))


@contextmanager
def serving(directory: Path, *, port: int = 0) -> Iterator[Server]:
    """The federation's server while this lasts; it must end well."""
    server = start_server(directory, port=port)
    try:
        yield server
    finally:
        server.process.terminate()
        code = server.process.wait(timeout=60)
    assert code == 0, (directory.parent / "server.log").read_text()


def start_server(directory: Path, *, port: int = 0) -> Server:
    """The federation's server; whoever starts it ends it."""
    said = directory.parent / "server.log"
    with said.open("wb") as log:
        process = subprocess.Popen([*HUSHRANK, "server", str(directory), "--port", str(port)], stderr=log)
    return Server(directory, wait_for_url(process, said), process)


def find_port() -> int:
    """A free one, for servers that clients find again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for_url(process: subprocess.Popen[bytes], said: Path) -> str:
    while process.poll() is None:
        if found := re.search(r"listening on (\S+)", said.read_text()):
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"the server ended at once: {said.read_text()}")


def start_person(server: Server, home: Path, id: int, *words: str | Path) -> subprocess.Popen[bytes]:
    """A client process with one pretend person."""
    return subprocess.Popen(
        [
            *HUSHRANK, "client", server.url, "--simulate", "tiny", "--first", str(id), "--home", str(home),
            "--tokens", str(server.directory / "tokens.txt"), *map(str, words),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(processes: list[subprocess.Popen[bytes]]) -> list[str]:
    """What each of them said; all must end well."""
    said = [process.communicate(timeout=_PATIENCE_S)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(said)
    return said
