"""Every refusal has a reason, and every reason a status."""

from __future__ import annotations

from hushrank.live.wire.refusals import STATUS, Reason


def test_every_reason_has_a_status_of_a_refusal() -> None:
    assert set(STATUS) == set(Reason) and all(400 <= status < 600 for status in STATUS.values())
    assert 500 not in STATUS.values()
