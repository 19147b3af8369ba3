"""What works together: every cell of the table, and every reason."""

from __future__ import annotations

from enum import StrEnum
from itertools import combinations, product
from typing import Any

import pytest

from hushrank.aggregation.compatibility import (
    REFUSED,
    Aggregation,
    Attendance,
    Combination,
    Conduct,
    Learner,
    Part,
    Privacy,
    Topology,
    check_compatible,
)
from hushrank.aggregation.named import STREAMED

KINDS: tuple[Any, ...] = (Learner, Aggregation, Privacy, Attendance, Topology, Conduct)
# One row and one column per part; x: the two cannot meet. Written out by hand, not made from the table.
EXPECTED = """
              streamed gathered none responses paper server_noise client_noise everybody some direct secure_sum summing_proxy honest lying misclicking misreporting
updates       .        .        .    x         .     .            .            .         .    .      .          .             .      .     .           x
log           .        .        .    x         .     .            .            .         .    .      .          .             .      .     x           x
rewards       .        x        .    .         x     x            x            .         .    .      x          .             .      x     .           .
central       .        x        .    x         x     x            x            .         x    .      x          x             .      x     x           x
streamed      -        -        .    .         .     .            .            .         .    .      .          .             .      .     .           .
gathered      -        -        .    .         x     x            x            .         .    .      x          x             .      .     .           .
none          -        -        -    -         -     -            -            .         .    .      .          .             .      .     .           .
responses     -        -        -    -         -     -            -            .         .    .      .          .             .      .     .           .
paper         -        -        -    -         -     -            -            .         x    .      .          .             .      .     .           .
server_noise  -        -        -    -         -     -            -            .         .    .      x          .             .      .     .           .
client_noise  -        -        -    -         -     -            -            .         .    .      .          .             .      .     .           .
everybody     -        -        -    -         -     -            -            -         -    .      .          .             .      .     .           .
some          -        -        -    -         -     -            -            -         -    .      .          .             .      .     .           .
direct        -        -        -    -         -     -            -            -         -    -      -          -             .      .     .           .
secure_sum    -        -        -    -         -     -            -            -         -    -      -          -             .      x     .           .
summing_proxy -        -        -    -         -     -            -            -         -    -      -          -             .      .     .           .
"""  # noqa: E501 - a table reads better whole


def part_called(name: str) -> Part:
    return next(kind[name] for kind in KINDS if name in kind.__members__)


def expected_pairs() -> dict[tuple[Part, Part], bool]:
    """{pair: whether it is refused}"""
    header, *rows = (line.split() for line in EXPECTED.strip().splitlines())
    found = {}
    for name, *cells in rows:
        for other, cell in zip(header, cells, strict=True):
            if cell != "-":
                found[part_called(name), part_called(other)] = cell == "x"
    return found


PAIRS = expected_pairs()


def combine_parts(parts: tuple[StrEnum, ...]) -> Combination:
    learner, aggregation, privacy, attendance, topology, conduct = parts
    return Combination(
        Learner(learner),
        STREAMED if aggregation == Aggregation.streamed else "krum",
        Privacy(privacy),
        Topology(topology),
        Attendance(attendance),
        None if conduct == Conduct.honest else "sign-flip",
        Conduct(conduct),
    )


def test_the_written_table_has_a_cell_for_every_two_parts() -> None:
    every = {pair for first, second in combinations(KINDS, 2) for pair in product(first, second)}
    assert set(PAIRS) == every


def test_exactly_the_crossed_pairs_are_refused() -> None:
    assert set(REFUSED) == {pair for pair, is_refused in PAIRS.items() if is_refused}


# Ways that work, counted by hand (attendance x conduct, unless said otherwise).
# log: directly, and by a proxy: none 4, paper 2, server 4, clients 4; secretly, all honest: none 2, paper 1,
# clients 2; by a rule: none 4. updates: the same, and as often as all honest again with misclicking: 7, 7, 5 and 2.
# rewards: none and responses, directly and by a proxy, honest, misclicking or misreporting: 6 each. central: itself.
@pytest.mark.parametrize(
    ("learner", "n_ways"),
    [
        (Learner.updates, 14 + 14 + 5 + 4 + 7 + 7 + 5 + 2),
        (Learner.log, 14 + 14 + 5 + 4),
        (Learner.rewards, 24),
        (Learner.central, 1),
    ],
)
def test_a_combination_works_when_every_two_of_its_parts_do(learner: Learner, n_ways: int) -> None:
    for others in product(*KINDS[1:]):
        combination = combine_parts((learner, *others))
        wrong = [pair for pair in combinations(combination.parts, 2) if PAIRS[pair]]
        if not wrong:
            check_compatible(combination)
            n_ways -= 1
            continue
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the reason is compared below
            check_compatible(combination)
        names = {"aggregation": combination.aggregation, "attack": combination.attack}
        assert str(refused.value) in {REFUSED[pair].format(**names) for pair in wrong}
    assert n_ways == 0


@pytest.mark.parametrize("pair", REFUSED, ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_every_reason_says_what_to_do(pair: tuple[Part, Part]) -> None:
    reason = REFUSED[pair].format(aggregation="krum", attack="sign-flip")
    assert reason.endswith(".") and "{" not in reason
    assert any(word in reason for word in ("leave ", "use ", "set ", "run ", "Leave ", " is for ", " sends"))


def test_the_reason_names_the_users_own_words() -> None:
    with pytest.raises(
        ValueError, match="aggregation=bulyan needs every update by itself, and a secure sum shows only"
    ):
        check_compatible(Combination(aggregation="bulyan", topology=Topology.secure_sum))
    with pytest.raises(ValueError, match="attack=shout replaces updates, but recipe foltr-es sends a seed"):
        check_compatible(Combination(Learner.rewards, attack="shout"))
