"""An audit of a live federation on this machine: a server process, clients with stores and credentials of their own,
and every message through the wire. One client is the canary.

A federation of so many rounds is divided into runs. In each, a coin decides whether the canary pushes with all that
clipping lets through or is its own neighbour. What everybody sees of a run are its rankers. The noise comes from the
operating system, so that no seed repeats it. A live round takes a hundredth of a second, so there are hundreds of runs
and not a million: only a promise that is broken badly is noticed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushrank.audit.updates import LOUD
from hushrank.live.device.client import Participant, take_part
from hushrank.live.device.learning import Draft, GradientLearning
from hushrank.live.device.membership import hold_home, join_federation
from hushrank.live.device.named import make_learning
from hushrank.live.device.rankers import ask_ranker
from hushrank.live.device.service import open_transport
from hushrank.live.device.store import Interactions, KeptRanker
from hushrank.live.device.transport import Stop, StoppedError
from hushrank.privacy.protection import UpdateProtection
from hushrank.types import Array, DenseUpdate

MOST_CLIENTS = 50  # Why: each is a thread that waits for a server on the same processor
_STARTS_S, _STOPS_S = 60.0, 30.0  # in which a server must have started, and stopped


@dataclass(frozen=True, slots=True)
class LiveTrial:
    """A federation to start, and what its canary does in it."""

    protection: UpdateProtection
    relation: str
    agreed: Mapping[str, object]  # keys of the agreement
    n_clients: int
    n_params: int
    rounds: int  # of one run
    is_here: Array  # [n_runs] whether the canary pushes

    def __post_init__(self) -> None:
        if not 2 <= self.n_clients <= MOST_CLIENTS:
            raise ValueError(
                f"n_clients is {self.n_clients}, must be from 2 to {MOST_CLIENTS} in a live audit: each is a real "
                "client on this machine. Change it with --set n_clients=4."
            )

    @property
    def n_rounds(self) -> int:
        return self.rounds * len(self.is_here)

    def push(self, round: int) -> Array:
        """[n_params] the canary's update: one way in one round, the other in the next."""
        pair = self.protection.contrast(self.n_params, self.relation)
        chosen = pair.here if self.is_here[(round - 1) // self.rounds] else pair.there
        return LOUD * (1.0 if round % 2 else -1.0) * chosen

    def score(self, rankers: Mapping[int, Array]) -> Array:
        """[n_runs] evidence for the canary, from the rankers that everybody saw."""
        pair, scores = self.protection.contrast(self.n_params, self.relation), np.zeros(len(self.is_here))
        for round in range(1, self.n_rounds + 1):
            if round not in rankers or round + 1 not in rankers:
                continue  # a round that was lost shows nothing
            step = (rankers[round + 1].astype(np.float64) - rankers[round]) * self.n_clients
            sign = 1.0 if round % 2 else -1.0
            ratios = [self.protection.log_ratio(step, sign * moved) for moved in (pair.here, pair.there)]
            scores[(round - 1) // self.rounds] += float(ratios[0] - ratios[1])
        return scores


@dataclass(frozen=True, slots=True)
class CanaryLearning(GradientLearning):
    """Learns from nobody, sends what the audit chose, and keeps every ranker that it is shown."""

    push: Callable[[int], Array]
    rankers: dict[int, Array] = field(default_factory=dict)  # {round: its ranker}
    report: Callable[[int], None] = lambda _: None

    def draft(self, store: Interactions, ranker: KeptRanker, *, is_last_call: bool) -> Draft | None:
        del store, is_last_call
        self.rankers[ranker.round] = ranker.params
        self.report(ranker.round)
        update = DenseUpdate(self.push(ranker.round).astype(np.float32), self.agreement.interactions)
        return Draft(ranker.round, update, (), self.price)


def observe_federation(trial: LiveTrial, *, report: Callable[[float], None] = lambda _: None) -> Array:
    """[n_runs] scores of a whole federation, which is started, observed and removed."""
    with tempfile.TemporaryDirectory(prefix="hushrank-audit-") as place:
        directory, home = Path(place) / "server", Path(place) / "clients"
        settings = [word for name, value in trial.agreed.items() for word in ("--set", f"{name}={value}")]
        sizes = ["--features", str(trial.n_params), "--tokens", str(trial.n_clients)]
        _run_command("server", "init", str(directory), *sizes, "--min-clients", str(trial.n_clients), *settings)
        tokens = (directory / "tokens.txt").read_text(encoding="utf-8").split()
        with serve_directory(directory) as url:
            rankers = _let_clients_live(trial, url, home, tokens, report)
    return trial.score(rankers)


def _let_clients_live(
    trial: LiveTrial, url: str, home: Path, tokens: Sequence[str], report: Callable[[float], None]
) -> dict[int, Array]:
    """The rankers that the canary saw, after all clients have answered in all rounds."""
    stop, errors, rankers = Stop(), list[BaseException](), dict[int, Array]()

    def live(id: int) -> None:
        try:
            with (
                hold_home(home / str(id), is_durable=False) as store,
                open_transport(store, url, None, stop=stop, tell=lambda _: None) as transport,
            ):
                learning = make_learning(join_federation(store, transport, token=tokens[id]))
                if id == 0:
                    parts = (learning.agreement, learning.ranker, learning.exchange, learning.body, learning.price)
                    share = lambda round: report(round / trial.n_rounds)  # noqa: E731 - a name for one line
                    learning = CanaryLearning(*parts, trial.push, rankers, share)  # type: ignore[arg-type]
                # Why no ledger: what is audited is the noise, and its accounts have tests of their own.
                take_part(Participant(store, transport, learning, None))
                if id == 0:
                    last = ask_ranker(transport, learning)
                    rankers[last.round] = last.params
        except BaseException as error:  # Why: whatever it is, the thread that began it all tells it
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=live, args=(id,), name=f"client {id}") for id in range(trial.n_clients)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except BaseException:
        stop.set()
        for thread in threads:
            thread.join(_STOPS_S)
        raise
    told = [error for error in errors if not isinstance(error, StoppedError)]
    if told:
        raise told[0]
    return rankers


@contextmanager
def serve_directory(directory: Path) -> Iterator[str]:
    """The address of a server that runs while this lasts."""
    said = directory.parent / "server.log"
    with said.open("wb") as log:
        command = [sys.executable, "-m", "hushrank", "server", str(directory), "--port", "0"]
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield _await_address(process, said)
    finally:
        process.terminate()
        try:
            process.wait(_STOPS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_address(process: subprocess.Popen[bytes], said: Path) -> str:
    last = time.monotonic() + _STARTS_S
    while process.poll() is None and time.monotonic() < last:
        if found := re.search(r"listening on (\S+)", said.read_text(encoding="utf-8")):
            return found[1]
        time.sleep(0.02)
    raise ValueError(f"the audit's server did not start: {said.read_text(encoding='utf-8').strip()[-300:]}")


def _run_command(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hushrank", *words], capture_output=True, text=True, check=False, timeout=_STARTS_S
    )
    if done.returncode != 0:
        raise ValueError(f"the audit's federation cannot be made: {done.stderr.strip()[-300:]}")
