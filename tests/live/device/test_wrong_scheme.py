"""Who writes http for https, or knocks at another program, is told so and does not wait for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from scripted_federation import ScriptedFederation, no
from scripted_server import Request, Response, serving, write_certificate

from hushrank.live.device import transport
from hushrank.live.device.client import Listeners
from hushrank.live.device.connector import WrongSchemeError
from hushrank.live.device.service import Device, serve_device
from hushrank.live.device.transport import Reply, Stop, Transport
from hushrank.live.wire.agreement import make_agreement
from hushrank.live.wire.refusals import Reason

AGREEMENT = make_agreement("scripted", n_features=2)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def whole(reply: Reply) -> Reply:
    return reply


def call(url: str, ca: Path | None = None) -> None:
    with Transport(url, ca=ca, patience_s=1.0) as way:
        way.call("GET", "/", parse=whole)


def test_https_at_a_server_without_tls_says_so() -> None:
    with serving(lambda _: Response()) as (url, _), pytest.raises(WrongSchemeError, match="does not speak TLS"):
        call(url.replace("http:", "https:"))


def test_http_at_a_server_with_tls_says_so(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "both.pem", "127.0.0.1")
    with (
        serving(lambda _: Response(), certificate=certificate) as (url, requests),
        pytest.raises(WrongSchemeError, match=r"speaks TLS: write https:// instead of http://"),
    ):
        call(url.replace("https:", "http:"))
    assert not requests


@contextmanager
def greeting(*banners: bytes) -> Iterator[str]:
    """A program that answers each connection with the next of these, whatever it is asked."""

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            for banner in banners:
                client, _ = listening.accept()
                with client:
                    client.recv(4096)
                    client.sendall(banner)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_another_program_is_recognised() -> None:
    banner = b"SSH-2.0-OpenSSH_9.2\r\n"
    with greeting(banner, banner) as url, pytest.raises(WrongSchemeError, match="does not speak HTTP: another program"):
        call(url)


def test_a_server_that_has_answered_before_is_tried_again() -> None:
    good = b"HTTP/1.1 204 No Content\r\n\r\n"
    with greeting(good, b"220 mail\r\n", good) as url, Transport(url, patience_s=30.0) as way:
        assert [way.call("GET", "/", parse=whole).status for _ in range(2)] == [204, 204]


@pytest.mark.parametrize("path", ["/v1/enrol", "/v1/ranker", "/v1/round?"])
def test_another_version_of_the_wire_is_explained_wherever_it_is_noticed(path: str, tmp_path: Path) -> None:
    federation = ScriptedFederation(AGREEMENT)

    def refuse(request: Request) -> Response:
        return no(Reason.version) if path in request.path else federation(request)

    with serving(refuse) as (url, _), pytest.raises(ValueError, match=r"another version of the wire: update hushrank"):
        serve_device(Device(tmp_path / "home", url, "t", is_once=True), Listeners(), Stop())


def test_a_certificate_whose_dates_are_wrong_ends_no_client_that_it_has_served(tmp_path: Path) -> None:
    """The clock of this device jumped, or the operator is late: both come right again."""
    shown = write_certificate(tmp_path / "shown.pem", "127.0.0.1")
    good = shown.read_bytes()
    expired = write_certificate(tmp_path / "expired.pem", "127.0.0.1", until=timedelta(days=-1)).read_bytes()
    (tmp_path / "ca.pem").write_bytes(good + expired)
    told = list[str]()

    def tell(sentence: str) -> None:
        told.append(sentence)
        shown.write_bytes(good)

    with serving(lambda _: Response(), closes=True, certificate=shown) as (url, _):
        with Transport(url, ca=tmp_path / "ca.pem", tell=tell) as way:
            way.call("GET", "/", parse=lambda reply: reply)
            shown.write_bytes(expired)
            assert way.call("GET", "/", parse=lambda reply: reply).status == 200
        assert len(told) == 1 and "certificate has expired" in told[0]
        shown.write_bytes(expired)
        with (
            Transport(url, ca=tmp_path / "ca.pem") as way,
            pytest.raises(ValueError, match="Check this device's clock"),
        ):
            way.call("GET", "/", parse=lambda reply: reply)
