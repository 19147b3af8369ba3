"""What tests of the live system share: clients that answer at once, unless a test says otherwise."""

from __future__ import annotations

import pytest

from hushrank.live.device import service


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SPREAD", 0.0)
