"""A real HTTP server that says what a test tells it to: for answers that a good server rarely gives."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Request:
    """What came."""

    method: str
    path: str  # with its query
    headers: dict[str, str]
    body: bytes
    time: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Response:
    """What goes back."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def saying(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode())


@contextmanager
def serving(
    answer: Callable[[Request], Response], *, closes: bool = False, certificate: Path | None = None
) -> Iterator[tuple[str, list[Request]]]:
    """The server's address, and the requests that it got. `closes`: connections, without saying so."""
    requests = list[Request]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, dict(self.headers), body)
            requests.append(request)
            response = answer(request)
            self.send_response(response.status)
            for name, value in {"Content-Length": str(len(response.body)), **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)
            self.close_connection = closes

        do_GET = do_PUT = do_POST = handle_one  # noqa: N815 - the names that the library wants

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[socket.socket, Any]:
            connection, address = super().get_request()
            if certificate is None:
                return connection, address
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)  # Why for each connection: a test may change it
            return context.wrap_socket(connection, server_side=True), address

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_certificate(path: Path, address: str, *, until: timedelta = timedelta(days=1)) -> Path:
    """Key and certificate of a server that vouches for itself. until: from now on; it began two days ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, path.name)])
    now, host = datetime.now(UTC), x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + until)
        .add_extension(host, critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path
