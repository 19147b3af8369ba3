"""What people search for and click stays with them: planted secrets are in no message, log or file of a live server.

A real server and real clients, every logger at its most talkative. A relay between them keeps every byte of the wire.
Inside the boundary are the data and each client's home; outside are the server's directory, the wire, and what both
sides print.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from live_processes import create_federation, finish, wait_for_url
from planted_data import N_FEATURES, Planted, plant
from secret_search import Leak, search_bytes, search_files

TALKATIVE = """
import logging, os, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
os.environ["HUSHRANK_DEBUG"] = "1"
from hushrank.cli.main import main
main()
"""
FEDERATIONS = {
    "open": ("fpdgd", {}),
    "sound": ("fpdgd", {"privacy": "sound", "epsilon": 4, "n_clients": 3}),
    "rewards": ("foltr-es", {}),
}


class Relay:
    """Passes bytes on in both directions, and keeps them."""

    def __init__(self, port: int) -> None:
        self.heard = bytearray()
        self._port, self._handlers = port, list[threading.Thread]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                handler = threading.Thread(target=self._connect, args=[near], daemon=True)
                self._handlers.append(handler)
                handler.start()

    def _connect(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            back = threading.Thread(target=self._pass_on, args=[far, near])
            back.start()
            self._pass_on(near, far)
            back.join()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(65536):
                self.heard += content
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """After both sides are gone."""
        self._listener.shutdown(socket.SHUT_RDWR)  # Why: closing alone does not end an accept in another thread
        self._listener.close()
        for handler in self._handlers:
            handler.join(10)


@contextmanager
def relayed(directory: Path, log: Path) -> Iterator[Relay]:
    with log.open("wb") as file:
        words = ["server", str(directory), "--port", "0"]
        server = subprocess.Popen([sys.executable, "-c", TALKATIVE, *words], stdout=file, stderr=file)
    relay = Relay(int(wait_for_url(server, log).rsplit(":", 1)[1]))
    try:
        yield relay
    finally:
        server.terminate()
        assert server.wait(60) == 0
        relay.close()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant(tmp_path_factory.mktemp("person"))


@pytest.mark.parametrize("name", FEDERATIONS)
def test_a_live_federation_tells_nothing(planted: Planted, tmp_path: Path, name: str) -> None:
    leaks = find_leaks(planted, tmp_path / "once", name)
    if leaks:  # Why again: keys and noise are random, and eight digits of some hash stand in them by chance
        leaks &= find_leaks(planted, tmp_path / "again", name)
    assert leaks == set()


def find_leaks(planted: Planted, place: Path, name: str) -> set[Leak]:
    """What a federation of its own tells: of the wire, of what clients say, and of the server's directory."""
    method, settings = FEDERATIONS[name]
    outside, homes = place / "outside", place / "homes"
    outside.mkdir(parents=True)
    create_federation(
        outside / "server", "--method", method, "--features", N_FEATURES, rounds=3, min_clients=3, keep_updates="true",
        interactions=2, **settings,
    )  # fmt: skip
    environment = os.environ | {"HUSHRANK_DATA": str(planted.data.parent / "cache")}
    with relayed(outside / "server", outside / "server.log") as relay:
        words = ["client", relay.url, "--simulate", str(planted.data), "--users", "3", "--home", str(homes)]
        words += ["--tokens", str(outside / "server" / "tokens.txt")]
        people = subprocess.Popen(
            [sys.executable, "-c", TALKATIVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        said = finish([people])
        heard = bytes(relay.heard)
    assert heard.count(b"PUT /v1/rounds/") == 9
    assert search_files(homes, planted.secrets), "the search would not find what is there"
    leaks = search_bytes(heard, planted.secrets, where="wire")
    leaks += search_bytes("".join(said).encode(), planted.secrets, where="what clients say")
    return {*leaks, *search_files(outside, planted.secrets)}
