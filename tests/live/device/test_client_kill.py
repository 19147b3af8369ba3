"""kill -9 of a client at any moment neither loses nor repeats an interaction: the ranker is that of a quiet training.

One pretend person is the whole federation, so that an interaction lost or learnt twice would move the ranker; its
rounds wait for it as long as it takes. It is seeded, and so keeps no ledger: dying while it pays is tested in
test_client.py and test_device_ledger.py.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_processes import Server, create_federation, finish, serving, start_person

from hushrank.engine.simulate import Options, simulate
from hushrank.live.device.outbox import SENT
from hushrank.live.device.store import STORE, Interactions
from hushrank.recipes.files import find_recipe
from hushrank.recipes.recipe import change_recipe
from hushrank.recipes.resolve import resolve

# {where: (what it is about to do or has just done, how often before)}
POINTS = {
    "the credential is kept": ("after", "Interactions.keep_membership", 1),
    "the token is used": ("after", "membership.enrol", 1),
    "a ranker is kept": ("after", "Interactions.keep_ranker", 1),
    "one list was shown": ("after", "Interactions.add", 1),
    "three more were shown": ("after", "Interactions.add", 3),
    "the answer is made": ("before", "Outbox.commit", 1),
    "the answer is committed": ("after", "Outbox.commit", 2),
    "it was sent": ("before", "Outbox.confirm", 1),
    "it is known to count": ("after", "Outbox.confirm", 2),
}
# A client that ends itself, as by kill -9, at one of these points.
MORTAL = """
import os, signal, sys
when, place, left = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1))
from hushrank.live.device import membership
from hushrank.live.device.outbox import Outbox
from hushrank.live.device.store import Interactions
owner, name = place.split(".")
owner = {"Interactions": Interactions, "Outbox": Outbox, "membership": membership}[owner]
real = getattr(owner, name)
def mortal(*given, **named):
    global left
    left -= 1
    if when == "before" and not left:
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*given, **named)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(owner, name, mortal)
from hushrank.cli.main import main
main()
"""


def found(place: Path, method: str, rounds: int, **chosen: Any) -> None:
    words = ("--method", method, "--features", 8, "--simulate", "--seed", 2, "--tokens", 1)
    create_federation(place / "server", *words, **chosen, rounds=rounds, deadline_s=3600, asleep_after_s=3600)


def person_words(server: Server, home: Path) -> list[str]:
    given = {"--simulate": "tiny", "--home": home, "--tokens": server.directory / "tokens.txt"}
    return ["client", server.url, *(str(word) for pair in given.items() for word in pair)]


def check_all_counted(place: Path, server: Server, method: str, rounds: int, **chosen: Any) -> None:
    """Every list of every round is in exactly one answer, and the ranker is the simulator's."""
    with Interactions(place / "people" / "0" / STORE) as store:
        answers = store.outbox.answers()
        assert [(a.round, a.state) for a in answers] == [(round, SENT) for round in range(1, rounds + 1)]
        shown = {round: store.count_shown(round=round) for round in range(1, rounds + 1)}
        assert store.count_used() == shown == dict.fromkeys(shown, 4)
    same = {"data": "tiny", "folds": [1], "clicks": "perfect", "n_clients": 1, "rounds": rounds, "seed": 2}
    (quiet,), _ = simulate(resolve(change_recipe(find_recipe(method), {**chosen, **same})), Options(engine="plain"))
    np.testing.assert_allclose(server.export(), quiet.params, rtol=0, atol=1e-6 * np.abs(quiet.params).max())


@pytest.mark.slow
def test_killed_at_every_point_once_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    rounds, noise = 15, {"privacy": "paper", "epsilon": 4.5, "n_clients": 1}
    found(tmp_path, "fpdgd", rounds, **noise)
    with serving(tmp_path / "server") as server:
        words = person_words(server, tmp_path / "people")
        for where, (when, place, n) in POINTS.items():
            command = [sys.executable, "-c", MORTAL, when, place, str(n), *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            assert done.returncode == -signal.SIGKILL, f"{where}: {done.stderr}"
        finish([start_person(server, tmp_path / "people", 0)])
        check_all_counted(tmp_path, server, "fpdgd", rounds, **noise)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fpdgd", "foltr-es"])
def test_killed_thirty_times_at_random_moments_the_ranker_is_that_of_a_quiet_training(
    method: str, tmp_path: Path
) -> None:
    rounds, moments, kills = 600, random.Random(7), 0
    found(tmp_path, method, rounds, pause_s=0.05)  # Why: thirty lives of a second must not be enough for all rounds
    with serving(tmp_path / "server") as server:
        for _ in range(30):
            person = start_person(server, tmp_path / "people", 0)
            time.sleep(moments.uniform(0.3, 2.5))  # half a second of it is the start
            kills += person.poll() is None
            person.send_signal(signal.SIGKILL)
            person.communicate()
        assert kills == 30, "the federation ended before the client could be killed: make it longer"
        finish([start_person(server, tmp_path / "people", 0)])
        check_all_counted(tmp_path, server, method, rounds)
