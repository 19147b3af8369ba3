"""The ledger never under-counts, whatever happens to the process or the file."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import pick_seed

from hushrank.privacy.chain import LedgerError
from hushrank.privacy.ledger import (
    Budget,
    BudgetSpentError,
    Entry,
    compare_length,
    count_rounds_left,
    describe_ledger,
    open_ledger,
    read_ledger,
    reserve_round,
)
from hushrank.privacy.renyi import Spend, composed_epsilon

PRICE = Spend("gaussian", 1 / 30)
BUDGET = Budget("library search", "client 7", epsilon=1.0, delta=1e-5, price=PRICE)
WIDE = replace(BUDGET, epsilon=1000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spent.jsonl"


def spend_rounds(path: Path, n: int, budget: Budget = WIDE) -> bytes:
    """The file after n rounds."""
    open_ledger(path, budget)
    for round in range(n):
        reserve_round(path, round=round)
    return path.read_bytes()


def test_what_rounds_spent_is_composed(path: Path) -> None:
    spend_rounds(path, 5)
    reserve_round(path, round=9, spend=Spend("laplace", 0.5))
    ledger = read_ledger(path)
    assert [entry.round for entry in ledger.entries] == [0, 1, 2, 3, 4, 9]
    assert ledger.epsilon_spent == composed_epsilon([PRICE] * 5 + [Spend("laplace", 0.5)], delta=1e-5)


def test_a_client_whose_budget_is_used_up_stops_and_says_so(path: Path) -> None:
    open_ledger(path, BUDGET)
    left = count_rounds_left(read_ledger(path))
    for round in range(left):
        assert reserve_round(path, round=round).epsilon_spent <= 1.0
    before = path.read_bytes()
    with pytest.raises(
        BudgetSpentError, match=rf"used up: epsilon \S+ of 1 was spent in {left} rounds against readers"
    ):
        reserve_round(path, round=left)
    assert path.read_bytes() == before and count_rounds_left(read_ledger(path)) == 0


def test_a_pure_budget_counts_by_hand(path: Path) -> None:
    budget = Budget("f", "c", epsilon=1.0, delta=None, price=Spend("pure", 0.125, times=2))
    open_ledger(path, budget)
    assert count_rounds_left(read_ledger(path)) == 4  # 1 / (2 * .125)
    reserve_round(path, round=1)
    assert read_ledger(path).epsilon_spent == 0.25
    with pytest.raises(BudgetSpentError, match="one more would make inf"):
        reserve_round(path, round=2, spend=PRICE)  # Gaussian noise has no pure epsilon


def test_a_reservation_is_on_the_disk_before_the_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ledger(path, WIDE)
    flushed: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda _: flushed.append(path.read_bytes()))
    reserve_round(path, round=3)
    assert flushed == [path.read_bytes()] and b'"round":3' in flushed[0]


def test_the_same_round_answered_anew_is_spent_anew(path: Path) -> None:
    open_ledger(path, WIDE)
    reserve_round(path, round=3)
    assert len(reserve_round(path, round=3).entries) == 2


def test_opening_again_keeps_what_was_spent_and_another_budget_is_refused(path: Path) -> None:
    spend_rounds(path, 3)
    assert len(open_ledger(path, WIDE).entries) == 3
    with pytest.raises(LedgerError, match="Budgets are not changed in place"):
        open_ledger(path, replace(WIDE, epsilon=2000.0))


def test_a_file_cut_off_anywhere_in_its_last_line_counts_it(path: Path) -> None:
    whole = spend_rounds(path, 3)
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start + 1, len(whole)):
        path.write_bytes(whole[:end])
        assert len(read_ledger(path).entries) == 3 and read_ledger(path).is_torn
    repaired = reserve_round(path, round=7)
    assert [entry.round for entry in repaired.entries] == [0, 1, None, 7]
    assert read_ledger(path) == repaired and not repaired.is_torn


def test_a_cut_off_line_costs_as_much_as_the_dearest(path: Path) -> None:
    spend_rounds(path, 1)
    reserve_round(path, round=1, spend=Spend("gaussian", 1.0))
    path.write_bytes(path.read_bytes() + b'{"entry":3')
    assert read_ledger(path).entries[-1].spend == Spend("gaussian", 1.0)
    path.write_bytes(path.read_bytes()[:-10] + b"\0" * 200 + b"\n")  # after a power cut
    assert reserve_round(path, round=2).entries[-2].spend == Spend("gaussian", 1.0)
    assert b"\0" not in path.read_bytes()


@pytest.mark.parametrize("content", [b"", b'{"adjac'])
def test_a_ledger_whose_making_was_interrupted_counts_one(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="no whole first line"):
        read_ledger(path)
    assert [entry.round for entry in open_ledger(path, WIDE).entries] == [None]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_changed_byte_makes_it_count_less(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("edited") / "spent.jsonl"
    whole = bytearray(spend_rounds(path, 3))
    before = read_ledger(path)
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole))
    try:
        after = read_ledger(path)
    except LedgerError:
        return
    assert len(after.entries) >= 3 and after.epsilon_spent >= before.epsilon_spent


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda lines: [lines[0], lines[1], *lines[3:]], r"line 3: it does not follow .* missing or swapped"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], r"line 2: it does not follow the line before"),
        (lambda lines: [*lines[:2], lines[2].replace(b'"round":1', b'"round":9'), *lines[3:]], "line 3: its hash"),
        (lambda lines: [*lines[:2], lines[2][:40], *lines[3:]], "line 3: this is no line of a ledger"),
        (lambda lines: [lines[0].replace(b"1000.0", b"9000.0"), *lines[1:]], "line 1: its hash does not fit"),
        (lambda lines: lines[1:], "line 1: it does not follow"),
        (lambda lines: [*lines[:2], b"", *lines[2:]], "line 3: this is no line of a ledger"),
        (lambda _: [b"[1, 2]", b""], "line 1: this is no line of a ledger"),
    ],
)
def test_an_edited_file_is_refused_with_the_place(path: Path, edit: Any, message: str) -> None:
    path.write_bytes(b"\n".join(edit(spend_rounds(path, 4).split(b"\n"))))
    with pytest.raises(LedgerError, match=message):
        read_ledger(path)
    with pytest.raises(LedgerError, match=message):
        reserve_round(path, round=5)


def test_a_ledger_that_was_kept_is_read_and_goes_on(path: Path) -> None:
    """Golden: clients have such files on their devices. One of a later format is kept beside this one."""
    path.write_bytes((Path(__file__).parent / "kept" / "ledger-1.jsonl").read_bytes())
    budget = Budget("library search", "client 7", epsilon=8.0, delta=1e-5, price=Spend("gaussian", 0.25))
    spends = [budget.price, Spend("laplace", 0.5), budget.price, Spend("pure", 0.125, times=2)]
    ledger = read_ledger(path)
    assert ledger.budget == replace(budget, adjacency="add-remove") and not ledger.is_torn
    assert ledger.entries == tuple(Entry(n, spend) for n, spend in zip((1, 2, None, 4), spends, strict=True))
    assert ledger.head == "0b66bef74d2356fddda95838d1545da9766551560ca636a2301af57d9def105a"
    assert len(reserve_round(path, round=5).entries) == len(read_ledger(path).entries) == 5


def test_an_older_ledger_opens_for_the_relation_of_today_and_says_what_it_means(path: Path) -> None:
    """Earlier versions wrote add-remove, which does not hold live; the price, and so every number, is the same."""
    older = replace(WIDE, adjacency="add-remove")
    before = spend_rounds(path, 2, older)
    ledger = open_ledger(path, WIDE)
    assert WIDE.adjacency == "zero-out" and ledger.budget == older and path.read_bytes() == before
    found = describe_ledger(ledger)
    assert found["adjacency"] == "add-remove" and "(zero-out); add-remove was written by an earlier" in found["holds"]
    for other in (
        replace(WIDE, epsilon=999.0),
        replace(WIDE, price=Spend("gaussian", 1 / 15), adjacency="replace-one"),
    ):
        with pytest.raises(LedgerError, match="Budgets are not changed in place"):
            open_ledger(path, other)


def test_a_newer_ledger_is_of_one_relation(path: Path) -> None:
    spend_rounds(path, 1)
    with pytest.raises(LedgerError, match="Budgets are not changed in place"):
        open_ledger(path, replace(WIDE, adjacency="replace-one"))


def test_an_account_says_against_whom_it_counts(path: Path, tmp_path: Path) -> None:
    spend_rounds(path, 1)
    assert describe_ledger(read_ledger(path))["holds"].startswith("against readers of rankers, not the")
    responses = Budget("f", "c", epsilon=9.0, delta=None, price=Spend("pure", 0.5), adjacency="replace-one")
    found = describe_ledger(open_ledger(tmp_path / "other.jsonl", responses))
    assert found["holds"].startswith("against everybody, the server included, if one client is replaced")


def test_two_lines_that_became_one_are_damage_and_no_cut_off_line(path: Path) -> None:
    lines = spend_rounds(path, 3).split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], lines[2] + b"\0" + lines[3], b""]))
    with pytest.raises(LedgerError, match="line 3: this is no line of a ledger"):
        read_ledger(path)


def test_a_rolled_back_file_is_noticed_by_the_servers_count(path: Path) -> None:
    older = spend_rounds(path, 2)
    reserve_round(path, round=2)
    compare_length(read_ledger(path), 3)
    compare_length(read_ledger(path), 1)  # reserved, but never arrived
    path.write_bytes(older)
    with pytest.raises(LedgerError, match=r"has 2 entries, but the server has seen 3 updates .* was rolled back"):
        compare_length(read_ledger(path), 3)


def test_a_description_is_json_with_everything_but_data(path: Path) -> None:
    spend_rounds(path, 2)
    found = json.loads(json.dumps(describe_ledger(read_ledger(path))))
    assert found["entries"] == 2 and found["epsilon_budget"] == 1000.0 and found["chain"] == "intact"
    assert found["rounds"][1] == {"round": 1, "mechanism": "gaussian", "ratio": 1 / 30, "times": 1}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(lines[1]) == {"entry", "round", "mechanism", "ratio", "times", "previous", "hash"}


def test_budgets_that_cannot_be_kept_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"one round alone spends epsilon \S+, more than the budget of 0.01"):
        replace(BUDGET, epsilon=0.01)
    with pytest.raises(ValueError, match="epsilon is 0, must be above 0"):
        replace(BUDGET, epsilon=0)
    with pytest.raises(ValueError, match="delta is 0, must be above 0"):
        replace(BUDGET, delta=0)
    with pytest.raises(ValueError, match="adjacency is 'neighbours', must be one of zero-out, replace-one, add-remove"):
        replace(BUDGET, adjacency="neighbours")
    with pytest.raises(ValueError, match="needs the names"):
        replace(BUDGET, client="")
    open_ledger(path, BUDGET)
    with pytest.raises(ValueError, match="round is -1"):
        reserve_round(path, round=-1)


CLIENT = """
import sys
from pathlib import Path
from hushrank.privacy.ledger import reserve_round
for round in range(int(sys.argv[2])):
    reserve_round(Path(sys.argv[1]), round=round)
    print(round, flush=True)  # the answer
"""


def start_client(path: Path, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CLIENT, str(path), str(rounds)], stdout=subprocess.PIPE, text=True)


@pytest.mark.randomised
def test_a_client_killed_at_any_moment_never_counts_less_than_it_answered(path: Path) -> None:
    open_ledger(path, replace(WIDE, epsilon=1e9))
    answered, chance = 0, random.Random(pick_seed(5))
    for _ in range(5):
        client = start_client(path, 100_000)
        assert client.stdout is not None
        client.stdout.readline()
        time.sleep(chance.uniform(0, 0.15))
        client.send_signal(signal.SIGKILL)
        answered += 1 + client.stdout.read().count("\n")
        client.stdout.close()
        client.wait()
        counted = len(read_ledger(path).entries)
        assert answered <= counted <= answered + 10  # at most two for each death
    compare_length(reserve_round(path, round=0), answered)


def test_what_was_reserved_but_never_answered_counts(path: Path) -> None:
    open_ledger(path, WIDE)
    dies_while_flushing = "import os; os.fsync = lambda _: os.kill(os.getpid(), 9)\n" + CLIENT
    done = subprocess.run([sys.executable, "-c", dies_while_flushing, str(path), "5"], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL and done.stdout == b""
    assert [entry.round for entry in read_ledger(path).entries] == [0]


def test_two_processes_share_one_ledger(path: Path) -> None:
    open_ledger(path, WIDE)
    clients = [start_client(path, 20) for _ in range(2)]
    for client in clients:
        client.communicate()
    assert len(read_ledger(path).entries) == 40
