"""Connections without a client library: what the server says on them, byte by byte."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest
from live_processes import Server

from benchmarks.hostile import connect

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads another process's memory from /proc")


def said_by(server: Server) -> str:
    return (server.directory.parent / "server.log").read_text(encoding="utf-8")


def read_answer(asking: socket.socket) -> bytes:
    """Head and body of one answer."""
    content = b""
    while b"\r\n\r\n" not in content:
        content += asking.recv(65536) or pytest.fail("the connection ended before the answer did")
    head, _, body = content.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().splitlines() if line.startswith(b"content-length")]
    while len(body) < int(lengths[0].partition(b":")[2]):
        body += asking.recv(65536) or pytest.fail("the connection ended before the answer did")
    return head + b"\r\n\r\n" + body


def is_ended(asking: socket.socket) -> bool:
    try:
        return asking.recv(1) == b""
    except ConnectionResetError:
        return True


def connect_narrowly(url: str) -> socket.socket:
    """Little is on its way to whoever does not read."""
    asking = connect(url)
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return asking


def fill(asking: socket.socket, request: bytes) -> None:
    """Ask until the system takes no more of the answers, so that the next ones wait in the server."""
    before, queued = -1, 0
    while queued > before:
        before = queued
        for _ in range(2):  # Why: two answers are more than what a queue may grow by without taking one
            asking.sendall(request)
            time.sleep(0.02)
        queued = count_queued(asking)


def count_queued(asking: socket.socket) -> int:
    """Bytes that the system has taken from the server and not delivered."""
    here, there = (f"{each[1]:04X}" for each in (asking.getsockname(), asking.getpeername()))
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        if words[1].endswith(f":{there}") and words[2].endswith(f":{here}"):
            return int(words[4].partition(":")[0], 16)
    return 0
