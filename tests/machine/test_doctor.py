"""`hushrank doctor` compares engines round by round, and says what it found."""

from __future__ import annotations

import re

import pytest

from hushrank.machine.doctor import compare_rounds, judge_rounds


def test_compiled_rounds_equal_the_plain_ones_from_equal_states() -> None:
    gaps, n_searches = compare_rounds()
    assert (len(gaps), n_searches) == (40, 40 * 8 * 4)  # rounds, clients and searches of each
    assert max(gaps) < 1e-6
    assert judge_rounds(gaps, n_searches)[0]


@pytest.mark.parametrize(
    ("n_other", "n_searches", "is_well", "words"),
    [
        (0, 1280, True, "40 compiled rounds with 1,280 searches equal the plain ones to 1e-08"),
        (1, 1280, True, "1 of 40 compiled rounds with 1,280 searches differ .* change places"),
        (2, 1280, False, "2 of 40 compiled rounds .* too many"),
        (1, 999, False, "1 of 40 compiled rounds .* too many"),
    ],
)
def test_rounds_may_differ_by_one_near_tie_in_a_thousand_searches(
    n_other: int, n_searches: int, is_well: bool, words: str
) -> None:
    found = judge_rounds([1e-8] * (40 - n_other) + [3e-3] * n_other, n_searches)
    assert found[0] == is_well
    assert re.match(words, found[1])


def test_a_round_that_is_no_number_is_not_equal() -> None:
    assert not judge_rounds([float("nan")], 100)[0]
