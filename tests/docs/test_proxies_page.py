"""What docs/howto/proxies.md says of who learns what agrees with what updates were found to tell, and with the code."""

from __future__ import annotations

import pytest
from shown_blocks import ROOT

PAGE = (ROOT / "docs" / "howto" / "proxies.md").read_text(encoding="utf-8")


def read_row(first: str) -> list[str]:
    """The cells of the one row of a table that begins so."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("layer", ["proxy", "group server", "server", "everybody"])
def test_whoever_gets_updates_or_sums_learns_what_they_tell_of_searches(layer: str) -> None:
    """One update tells much about words, even with frozen word vectors (tests/leaks/test_words_in_updates.py)."""
    _, _, updates, searches = read_row(layer)
    assert updates != "nothing" and searches.startswith("what ") and "tell" in searches


def test_the_page_lists_all_that_a_straggler_s_proxy_gets() -> None:
    """As `offloading.py` exchanges it: the last argument of `step_side`, and the half of the update that it adds."""
    _, proxy_gets, _ = read_row("`upper`")
    assert "squared length of the client's gradients" in proxy_gets
    assert "how the lower layers changed, as it is" in proxy_gets
    assert "sends the part of the lower layers to the proxy openly" in PAGE
