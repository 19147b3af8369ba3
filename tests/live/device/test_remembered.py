"""What joining named is remembered: later commands need no option again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from scripted_federation import ScriptedFederation
from scripted_server import serving, write_certificate

from hushrank.live.device import transport
from hushrank.live.device.client import Ending, Listeners
from hushrank.live.device.membership import TRUSTED
from hushrank.live.device.service import Device, leave_device, serve_device
from hushrank.live.device.transport import Stop
from hushrank.live.wire.agreement import make_agreement

AGREEMENT = make_agreement("scripted", n_features=2)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE_S", 0.01)


def run_once(device: Device) -> Ending:
    return serve_device(device, Listeners(), Stop())


def test_certificates_named_on_joining_are_trusted_ever_after(tmp_path: Path) -> None:
    home, federation = tmp_path / "home", ScriptedFederation(AGREEMENT)
    federation.is_finished = True
    named = tmp_path / "named.pem"
    certificate = write_certificate(tmp_path / "both.pem", "127.0.0.1")
    named.write_bytes(certificate.read_bytes())
    with serving(federation, certificate=certificate) as (url, requests):
        with pytest.raises(ValueError, match="certificate is not trusted"):
            run_once(Device(home, url, "t", is_once=True))
        assert not home.exists()
        assert run_once(Device(home, url, "t", ca=named, is_once=True)) is Ending.finished
        named.unlink()
        assert run_once(Device(home, is_once=True)) is Ending.finished  # neither the address nor the file
        assert leave_device(Device(home), print) == url
    assert [request.path for request in requests].count("/v1/enrol") == 1
    assert stat.S_IMODE((home / TRUSTED).stat().st_mode) == 0o600


def test_a_newer_file_takes_the_place_of_the_older(tmp_path: Path) -> None:
    home, federation = tmp_path / "home", ScriptedFederation(AGREEMENT)
    federation.is_finished = True
    old, new = (write_certificate(tmp_path / name, "127.0.0.1") for name in ("old.pem", "new.pem"))
    with serving(federation, certificate=old) as (url, _):
        run_once(Device(home, url, "t", ca=old, is_once=True))
    with serving(federation, certificate=new) as (url, _):
        with pytest.raises(ValueError, match="not trusted"):
            run_once(Device(home, url, is_once=True))
        run_once(Device(home, url, ca=new, is_once=True))
        assert run_once(Device(home, is_once=True)) is Ending.finished
    assert (home / TRUSTED).read_bytes() == new.read_bytes()
