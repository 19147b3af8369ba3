"""A client of today before a server of a version to come, whose agreement has gained keys."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from scripted_federation import ScriptedFederation
from scripted_server import serving

from hushrank.keys import key
from hushrank.live.device.membership import AgreementChangedError, ask_agreement, check_agreement
from hushrank.live.device.transport import Transport
from hushrank.live.wire.agreement import Agreement


@dataclass(frozen=True)
class AgreementToCome(Agreement):
    masks: str | None = key(None, "who hides whose updates")
    theme: str = key("light", "of the status page", is_essential=False)


def ask(agreement: Agreement) -> Agreement:
    with serving(ScriptedFederation(agreement)) as (url, _), Transport(url) as transport:
        return ask_agreement(transport)


def test_it_joins_where_new_keys_have_their_defaults_or_may_be_ignored() -> None:
    assert ask(AgreementToCome("x", 2)) == Agreement("x", 2)
    dark = ask(AgreementToCome("x", 2, theme="dark"))
    assert dark.digest == AgreementToCome("x", 2, theme="dark").digest and dark.others == (("theme", '"dark"'),)


def test_it_does_not_join_where_it_would_have_to_know_more() -> None:
    with pytest.raises(ValueError, match=r"'masks', which this version .* Update hushrank to join"):
        ask(AgreementToCome("x", 2, masks="pairs"))


def test_a_key_that_appears_later_is_a_change() -> None:
    joined = ask(AgreementToCome("x", 2))
    with pytest.raises(AgreementChangedError, match=r"theme None -> dark"):
        check_agreement(joined, ask(AgreementToCome("x", 2, theme="dark")))
