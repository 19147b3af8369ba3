"""Numbers as people write them."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushrank.look.numbers import (
    align_spreads,
    format_bytes,
    format_count,
    format_duration,
    format_p,
    format_seconds,
    format_short,
    format_signed,
    format_spread,
    format_value,
)


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.70213, 0.00421, ".702 ± .004"),
        (0.70213, 0.0123, ".702 ± .012"),  # a spread that starts with 1 keeps a second digit
        (0.70213, 0.0996, ".70 ± .10"),  # which rounding carries over to .10
        (0.9996, 0.004, "1.000 ± .004"),
        (1234.5, 12.3, "1,234 ± 12"),
        (54.71, 0.51, "54.7 ± .5"),
        (-0.0, 0.4, ".0 ± .4"),
        (0.7, 0.0, ".700 ± .000"),
        (0.7, None, ".700"),
        (0.7, nan, ".700"),
        (nan, 0.1, "–"),
        (None, None, "–"),
        (1.0, inf, "1.000"),
    ],
)
def test_a_mean_has_the_digits_that_its_spread_allows(mean: float | None, std: float | None, text: str) -> None:
    assert format_spread(mean, std) == text


@given(st.floats(-1e6, 1e6), st.floats(1e-5, 1e6))
def test_rounding_moves_a_spread_by_less_than_a_seventh(mean: float, std: float) -> None:
    shown = float(format_spread(mean, std).split(" ± ")[1].replace(",", ""))
    assert abs(shown - std) <= std / 7 + 1e-12


def test_points_stand_below_each_other() -> None:
    assert align_spreads([".7021 ± .0012", ".70 ± .04", ".700", "12 ± 3"], pad="_") == [
        ".7021 ± .0012",
        ".70__ ± .04__",
        ".700_________",
        "12_____ ± 3_____",
    ]


def test_what_is_not_known_is_a_bare_dash_among_aligned_numbers() -> None:
    assert align_spreads(["–", ".70 ± .04", ".7 ± .1"], pad="_") == ["–", ".70 ± .04", ".7_ ± .1_"]


def test_other_quantities() -> None:
    assert [format_duration(s) for s in (42.2, 192.4, 7500)] == ["42 s", "3 min", "2 h 5 min"]
    assert [format_seconds(s) for s in (0.83, 42.2, 192.4, 7500, None)] == [
        ".8 s",
        "42 s",
        "3 min 12 s",
        "2 h 5 min",
        "–",
    ]
    assert [format_bytes(b) for b in (184, 1536, 2.3e6, None)] == ["184 B", "1.54 kB", "2.3 MB", "–"]
    assert [format_short(x) for x in (0, 0.25, 400_000, 1_250_000)] == ["0", ".25", "400k", "1.25M"]
    assert [format_p(p) for p in (0.0, 0.0503, 0.231, 1.0)] == ["< .001", ".050", ".23", "1"]
    assert [format_signed(d, decimals=3) for d in (0.0131, -0.004, 0.0001)] == ["+.013", "\u2212.004", ".000"]
    assert (format_count(400_000), format_count(None), format_value(0.5)) == ("400,000", "–", ".500")
