"""A client's state on disk: it comes back as it was, and an older copy is of no use."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sum_table import ENROLLED, at_the_end_of, config_for, entropy_of

from hushrank.privacy.secure_client import (
    ClientState,
    begin_client,
    mask_values,
    reveal_shares,
    share_secrets,
    sign_survivors,
)
from hushrank.privacy.secure_messages import SumPhase
from hushrank.privacy.secure_state import STATE, STEPS, decode_state, encode_state, keep_state, load_state

STATES = {phase: at_the_end_of(phase).clients[0] for phase in (SumPhase.ADVERTISE, SumPhase.SHARE, SumPhase.MASK)}


def keep_all(folder: Path, *phases: SumPhase) -> list[bytes]:
    """The state file after the last step of each phase."""
    copies = []
    for phase in phases:
        keep_state(folder, STATES[phase])
        copies.append((folder / STATE).read_bytes())
    return copies


@pytest.mark.parametrize("state", [*STATES.values(), at_the_end_of(SumPhase.SIGN).clients[1]])
def test_a_state_comes_back_as_it_was(state: ClientState) -> None:
    assert decode_state(encode_state(state)) == state


def test_a_client_goes_on_after_a_restart(tmp_path: Path) -> None:
    keep_all(tmp_path, *STATES)
    table = at_the_end_of(SumPhase.MASK)
    _, signed = sign_survivors(load_state(tmp_path), table.said[0], enrolment=ENROLLED[0])
    assert signed == sign_survivors(table.clients[0], table.said[0], enrolment=ENROLLED[0])[1]


def test_an_older_copy_of_the_state_is_refused(tmp_path: Path) -> None:
    older = keep_all(tmp_path, *STATES)
    for copy in older[:-1]:
        (tmp_path / STATE).write_bytes(copy)
        with pytest.raises(ValueError, match="is not the last one: this client takes no further part"):
            load_state(tmp_path)


def test_nothing_is_signed_or_revealed_twice(tmp_path: Path) -> None:
    table = at_the_end_of(SumPhase.MASK)
    (_, _, before), said = keep_all(tmp_path, *STATES), table.said[0]
    for survivors in (said, replace(said, client_ids=(0, 1, 2))):
        state, _ = sign_survivors(decode_state(before), survivors, enrolment=ENROLLED[0])
        if survivors is said:
            keep_state(tmp_path, state)
        else:
            with pytest.raises(ValueError, match="taken this step of the sum already"):
                keep_state(tmp_path, state)
    done, _ = reveal_shares(load_state(tmp_path), at_the_end_of(SumPhase.SIGN).said, enrolment=ENROLLED[0])
    keep_state(tmp_path, done)
    assert load_state(tmp_path) == done and not done.shares and done.phase is SumPhase.DONE


def test_a_session_begins_once(tmp_path: Path) -> None:
    keep_all(tmp_path, SumPhase.ADVERTISE)
    again, _ = begin_client(config_for(4), 0, enrolment=ENROLLED[0], entropy=entropy_of(8))
    with pytest.raises(ValueError, match="taken this step of the sum already"):
        keep_state(tmp_path, again)
    (tmp_path / STATE).unlink()
    with pytest.raises(ValueError, match="taken this step of the sum already"):
        keep_state(tmp_path, again)
    keep_state(tmp_path, replace(again, config=replace(again.config, session=bytes(32))))


def test_a_step_cannot_be_kept_without_the_one_before(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="or none before it: nothing may be sent"):
        keep_state(tmp_path, STATES[SumPhase.MASK])


def test_a_crash_between_the_two_files_leaves_a_silent_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_all(tmp_path, SumPhase.ADVERTISE)

    def crash(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr("hushrank.privacy.secure_state.write_bytes", crash)
    with pytest.raises(OSError, match="no room"):
        keep_state(tmp_path, STATES[SumPhase.SHARE])
    with pytest.raises(ValueError, match="takes no further part"):
        load_state(tmp_path)


def test_older_copies_of_both_files_are_not_noticed(tmp_path: Path) -> None:
    """What is not protected, and said: a whole folder put back is the folder as it was."""
    here, copy = tmp_path / "here", tmp_path / "copy"
    here.mkdir()
    keep_all(here, SumPhase.ADVERTISE)
    shutil.copytree(here, copy)
    table = at_the_end_of(SumPhase.ADVERTISE)
    for folder in (here, copy):
        state, _ = share_secrets(load_state(folder), table.said, enrolment=ENROLLED[0])
        keep_state(folder, state)
    assert (here / STEPS).read_bytes() == (copy / STEPS).read_bytes()


def test_a_state_of_a_newer_version_is_refused() -> None:
    content = encode_state(STATES[SumPhase.SHARE]).replace(b'"format": 1', b'"format": 2')
    with pytest.raises(ValueError, match="written by a newer hushrank"):
        decode_state(content)


def test_a_kept_state_masks_to_the_same_words() -> None:
    table = at_the_end_of(SumPhase.SHARE)
    kept = decode_state(encode_state(table.clients[0]))
    words = [
        mask_values(s, table.said[0], np.zeros(5), enrolment=ENROLLED[0])[1].words for s in (kept, table.clients[0])
    ]
    assert np.array_equal(words[0], words[1])
