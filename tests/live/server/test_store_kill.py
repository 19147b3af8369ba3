"""Killed at any statement of the transaction that closes a round, the file is as before it or as after it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from hushrank.live.server import store
from hushrank.live.server.new_ranker import first_ranker
from hushrank.live.server.store import StoredRounds
from hushrank.live.wire.agreement import make_agreement

AGREEMENT = make_agreement("library", n_features=3, rounds=9)
# For each file: a child prepares an open round with two answers, closes it, opens the next, and dies at a moment.
SCRIPT = """
import os, signal, sys
from pathlib import Path
import numpy as np, sqlalchemy as sa
from hushrank.live.server import store
from hushrank.live.server.store import Closing, Opening, UpdateRow
from hushrank.privacy.renyi import Spend

def work(path, moment):
    engine = store.open_store(path)
    with engine.begin() as connection:
        store.add_tokens(connection, [b"1", b"2"], expires_at=9.0)
        clients = [store.enrol_client(connection, token, token, now=0.0).id for token in (b"1", b"2")]
        store.open_round(connection, Opening(1, clients), now=0.0)
        store.insert_updates(connection, [UpdateRow(1, "update", c, 1, b"d", bytes(12)) for c in clients])
    seen = []
    def die(*_):
        seen.append(1)
        if len(seen) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
    sa.event.listen(engine, "before_cursor_execute", die)
    sa.event.listen(engine, "commit", die)
    with engine.begin() as connection:
        params, state = store.read_ranker(connection)
        closing = Closing(1, (params + np.float32(1), state), Spend("gaussian", 0.5), keep_updates=False)
        store.close_round(connection, closing, now=1.0)
        store.add_refusals(connection, {"norm": 1})
        store.open_round(connection, Opening(2, clients), now=1.0)
    die()

for moment, path in enumerate(sys.argv[1:], start=1):
    child = os.fork()
    if not child:
        work(Path(path), moment)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def read(path: Path) -> tuple[StoredRounds, list[float], int, dict[str, int]]:
    with store.open_store(path).begin() as connection:
        spends, refused = len(store.read_spends(connection)), store.read_refusals(connection)
        return store.restore_rounds(connection), store.read_ranker(connection)[0].tolist(), spends, refused


def test_a_kill_at_any_statement_of_closing_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    digests = {("update", 1): b"d", ("update", 2): b"d"}
    before = (StoredRounds(1, 0, set(), True, {1, 2}, digests), [0.0, 0.0, 0.0], 0, dict[str, int]())
    after = (StoredRounds(2, 1, set(), True, {1, 2}, {}), [1.0, 1.0, 1.0], 1, {"norm": 1})
    paths = [tmp_path / f"{moment}.sqlite" for moment in range(1, 31)]
    for path in paths:
        store.create_store(path, AGREEMENT, *first_ranker(AGREEMENT))
    done = subprocess.run([sys.executable, "-c", SCRIPT, *map(str, paths)], capture_output=True, text=True, check=True)
    codes = [int(code) for code in done.stdout.split()]
    n_killed = codes.index(0)  # the moments after the last statement kill nobody
    assert n_killed > 10 and codes == [-signal.SIGKILL] * n_killed + [0] * (len(paths) - n_killed)
    assert [read(path) for path in paths] == [before] * (n_killed - 1) + [after] * (len(paths) - n_killed + 1)
