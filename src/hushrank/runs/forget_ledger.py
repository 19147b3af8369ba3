"""Which trainings have forgotten clients of a run with noise: `forgettings.json` in the run's directory.

Rankers that were published stay published, so a training counts from its beginning on, whether or not it ends and
whether or not its directory is still there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hushrank.engine.setting import Setting
from hushrank.files import read_json, refuse_newer, write_json
from hushrank.runs.forget_methods import Forgetting, hash_forgetting

LEDGER = "forgettings.json"
_FORMAT = 1


class Counted(NamedTuple):
    """A training that was begun."""

    key: str  # equal keys: the same rounds with the same noise, which publish nothing new
    name: str  # for people
    rounds: int
    first_round: int  # of the streams
    stride: int

    @property
    def drawn(self) -> range:
        """The rounds whose draws it has."""
        return range(self.first_round, self.first_round + self.rounds * self.stride, self.stride)


def count_training(setting: Setting, forgetting: Forgetting) -> Counted:
    """setting: of the training that forgets."""
    method, clients = setting.method, forgetting.clients
    who = f"client {clients[0]}" if len(clients) == 1 else f"{len(clients):,} clients"
    key = f"{hash_forgetting(forgetting)}-{method.noise_number or 0:08x}"
    return Counted(key, f"{forgetting.method} without {who}", setting.rounds, method.first_round, method.stride)


def read_counted(run: Path) -> tuple[Counted, ...]:
    """In the order in which they were begun."""
    path = run / LEDGER
    if not path.is_file():
        return ()
    try:
        found = read_json(path)
        refuse_newer(path, found["format"], _FORMAT)
        return tuple(Counted(**each) for each in found["trainings"])
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged: what was spent is not known. Restore it from a copy.") from error


def join_counted(known: Sequence[Counted], new: Iterable[Counted]) -> tuple[Counted, ...]:
    """All of them, each once."""
    return tuple({each.key: each for each in (*known, *new)}.values())


def write_counted(run: Path, trainings: Sequence[Counted]) -> None:
    """Whole or not at all; whoever writes holds the run's lock."""
    write_json(run / LEDGER, {"format": _FORMAT, "trainings": [each._asdict() for each in trainings]})
