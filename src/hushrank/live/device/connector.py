"""How a device connects to its server: never in the clear beyond this machine, through a proxy where there is one, and
with a clear sentence where the two do not speak the same language.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from hushrank.live.wire.addresses import is_loopback

# What OpenSSL calls an answer that is not TLS; which of them depends on its version.
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}
)
_WRONG_DATE = (9, 10)  # what OpenSSL says of a certificate that is not yet valid, or no longer
_PROBE_S = 5.0  # for a server that may speak TLS


class WrongSchemeError(ValueError):
    """The address says http where the server speaks https, or the other way round, or it is no such server at all."""


@dataclass(frozen=True, slots=True)
class Connector:
    """Makes connections to one server."""

    url: str
    host: str
    port: int | None
    prefix: str  # of every path
    context: ssl.SSLContext | None  # None: not encrypted

    def connect(self) -> http.client.HTTPConnection:
        if self.context is None:
            return http.client.HTTPConnection(self.host, self.port)
        return _connect_encrypted(self.host, self.port, self.context)

    def explain(self, error: Exception) -> str | None:
        """What is wrong with the address, where this error of a new connection says so; None: it does not."""
        if self.context is not None:
            is_plain = isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS
            return f"{self.url} does not speak TLS. {_ADVICE_PLAIN}" if is_plain else None
        if not isinstance(error, http.client.BadStatusLine | http.client.UnknownProtocol | ConnectionResetError):
            return None
        if self._speaks_tls():
            return f"{self.url} speaks TLS: write https:// instead of http://, with --ca FILE if it needs that."
        is_silent = isinstance(error, ConnectionResetError)  # a server that was stopped, perhaps
        return None if is_silent else f"{self.url} does not speak HTTP: another program listens there. Check the port."

    def _speaks_tls(self) -> bool:
        """Whether the server would have understood https. Nothing is sent but the beginning of a handshake."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # Why: only whether, not who
        try:
            with (
                socket.create_connection((self.host, self.port or 80), timeout=_PROBE_S) as plain,
                context.wrap_socket(plain, server_hostname=self.host),
            ):
                return True
        except OSError:
            return False


_ADVICE_PLAIN = (
    "If it is a hushrank server on this machine, write http://; beyond this machine it needs TLS (hushrank server init "
    "--tls HOST), or a proxy that adds it. Check the port, too."
)


def make_connector(url: str, ca: Path | None, *, carries: str = "credential and updates") -> Connector:
    """Refuses a way on which others could listen. ca: certificates to trust beside the system's.

    carries: what of this device goes that way, in words.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r} is no address of a server; write one such as https://search.example.org:8765")
    host, port, prefix = parts.hostname, parts.port, parts.path.rstrip("/")
    if parts.scheme == "https":
        context = ssl.create_default_context()
        if ca is not None:
            _trust(context, ca)
        return Connector(url, host, port, prefix, context)
    if not is_loopback(host):
        raise ValueError(
            f"{url} is not encrypted: whoever is on the way would read this device's {carries}. "
            "Use https://, with --ca FILE if the server made its certificate itself."
        )
    return Connector(url, host, port, prefix, None)


class EncryptedConnection(http.client.HTTPSConnection):
    """One whose handshake can be cut: its socket is known before the handshake begins."""

    def __init__(self, host: str, port: int | None, *, context: ssl.SSLContext, name: str) -> None:
        """name: whose certificate it must be; `host` may be a proxy."""
        super().__init__(host, port, context=context)
        self._tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)  # and the proxy's tunnel
        encrypted = self._tls.wrap_socket(self.sock, server_hostname=self._name, do_handshake_on_connect=False)
        self.sock = encrypted
        try:
            encrypted.do_handshake()
        except BaseException:
            self.close()
            raise


def _connect_encrypted(host: str, port: int | None, context: ssl.SSLContext) -> EncryptedConnection:
    """Straight, or through the proxy that the system names (HTTPS_PROXY): it sees where to, and nothing else."""
    proxy = urlsplit(getproxies().get("https", ""))
    if proxy.hostname is None or proxy_bypass(host):
        return EncryptedConnection(host, port, context=context, name=host)
    connection = EncryptedConnection(proxy.hostname, proxy.port or 8080, context=context, name=host)
    headers = {}
    if proxy.username is not None:
        known = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(known.encode()).decode()}"
    connection.set_tunnel(host, port or 443, headers)
    return connection


def _trust(context: ssl.SSLContext, ca: Path) -> None:
    try:
        context.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"{ca} holds no certificates to trust ({error}). Name a PEM file.") from error


def refuse_bad_certificate(error: Exception, url: str, *, has_worked: bool) -> None:
    """has_worked: with this server before; then a date that is wrong may come right again."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _WRONG_DATE and has_worked:
            return
        if error.verify_code in _WRONG_DATE:
            raise ValueError(
                f"{url}: its certificate is not valid now ({error.verify_message}). Check this device's clock; if that "
                "is right, tell whoever runs the server."
            ) from error
        raise ValueError(
            f"{url}: its certificate is not trusted ({error.verify_message}). If the server made it itself, get the "
            "file from whoever runs it, not from the network, and name it with --ca FILE."
        ) from error
