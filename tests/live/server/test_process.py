"""Where a server listens and what it says at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hushrank.live.server.config import ServerConfig
from hushrank.live.server.creation import create_federation
from hushrank.live.server.process import bind, check_listening, serve
from hushrank.live.wire.addresses import is_loopback
from hushrank.live.wire.agreement import make_agreement


def test_beyond_this_machine_a_server_needs_tls_or_a_proxy() -> None:
    for host in ("0.0.0.0", "192.168.1.2", "example.org", "::"):
        with pytest.raises(ValueError, match=rf"host is {host}, which others can reach, but there is no TLS"):
            check_listening(ServerConfig(host=host), behind_proxy=False)
        check_listening(ServerConfig(host=host), behind_proxy=True)
        check_listening(ServerConfig(host=host, tls_certificate="c", tls_key="k"), behind_proxy=False)
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert is_loopback(host)
        check_listening(ServerConfig(host=host), behind_proxy=False)


def test_a_port_in_use_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1:{port}"), bind(ServerConfig(port=port)):
            pass


def test_a_server_refuses_a_directory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Create a federation with: hushrank server init"):
        serve(tmp_path, tell=lambda *_, **__: None)
    create_federation(tmp_path / "f", make_agreement("x", n_features=3), ServerConfig(), n_tokens=1)
    (tmp_path / "f" / "keys").unlink()
    with pytest.raises(ValueError, match="does not hold the server's keys"):
        serve(tmp_path / "f", port=0, tell=lambda *_, **__: None)
