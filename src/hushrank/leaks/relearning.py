"""How fast does a ranker learn somebody again who left and comes back? A measure of what it still knows of them.

The leaver joins again, and everybody trains on as in the run: the same recipe, and the searches of its rounds 1, 2, ...
once more. After every round it is asked how much the ranker prefers what the leaver clicked in the run, at the spread
of scores that the ranker has which was not forgotten (`membership.score_membership`). The leaver is learnt again after
the first round in which that is no less than in the ranker that was not forgotten; rounds are counted up to a limit.

A ranker that remembers needs fewer rounds than one that never met the leaver. It must be one that was trained as long:
a ranker of fewer rounds prefers all clicks less, and needs more rounds, whatever it remembers. So each way to forget is
compared with its twin: the same way in a run that the leaver never joined. The twin of an exact way is its own ranker.

It takes the rankers of every round. These come from trainings of one round each, which is fast and right only where the
server remembers nothing but its ranker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hushrank.data.clicklog import ClickLog
from hushrank.engine.inputs import cell_key, initial_memory, initial_params
from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.engine.simulate import Options, simulate
from hushrank.federation.cohort import sample_cohort
from hushrank.federation.recording import record
from hushrank.federation.state import OPTIMISER
from hushrank.files import Json
from hushrank.metrics.significance import Comparison, paired_t_test
from hushrank.types import Array


class Relearning(NamedTuple):
    """Rounds until each of many leavers is learnt again."""

    rounds: tuple[int, ...]  # by leaver; the limit for those that are not
    n_open: int  # leavers that are not learnt again within the limit

    def compare(self, other: Relearning) -> Comparison:
        """A paired t-test over leavers, in rounds: negative where these rankers need fewer than the others."""
        return paired_t_test(self.rounds, other.rounds)


def first_rankers(setting: Setting) -> Array:
    """[n_users, n_folds, repeats, n_params] with which the trainings of a setting begin."""
    shape = (len(setting.users), len(setting.dataset.folds), setting.repeats)
    return np.stack([initial_params(setting, Cell(*place)) for place in np.ndindex(shape)]).reshape(*shape, -1)


def follow_training(setting: Setting, starts: Array, rounds: Sequence[int], options: Options | None = None) -> Array:
    """[n_rounds + 1, n_users, n_folds, repeats, n_params] the rankers before these rounds and after each of them."""
    refuse_memory(setting)
    method = replace(setting.method, keep_every=None)
    found = [np.asarray(starts, np.float32)]
    for round in rounds:
        one = replace(setting, rounds=1, eval_every=1, starts=found[-1], method=replace(method, first_round=round))
        results, _ = simulate(one, options or Options())
        found.append(np.stack([result.params for result in results]).reshape(starts.shape))
    return np.stack(found)


def refuse_memory(setting: Setting) -> None:
    """Why: a training of one round begins with nothing but its ranker."""
    method = replace(setting.method, keep_every=None)
    params = np.zeros(method.n_params, np.float32)
    remembered = set(initial_memory(replace(setting, method=method), params)) - {f"{OPTIMISER}/n_steps"}
    if remembered or method.server_step.fade is not None or method.rule is not None or len(method.protection.echo) > 1:
        raise ValueError(
            "the server of this setting remembers something from round to round (in its optimiser, rule, remedy or "
            "noise), so that its rounds cannot be followed one by one: take server_optimiser=sgd and aggregation=mean."
        )


def record_client(setting: Setting, cell: Cell, rankers: Array, client: int) -> ClickLog:
    """One client's impressions in a training; rankers [n_rounds or more, n_params]: with which rounds 1, ... began."""
    federation, recording = record(make_federation(setting, cell))
    key = cell_key(setting, cell)
    for round, params in enumerate(rankers[: setting.rounds], start=1):
        for member in sample_cohort(federation.population, key, round):
            if member.id == client:
                recording(federation, params, member, key=key, round=round)
    return recording.as_log()


def count_rounds(scores: Sequence[float] | Array) -> int:
    """Rounds until the score is no longer below 0; scores: before the first round and after each. Never: all rounds."""
    reached = np.flatnonzero(np.asarray(scores) >= 0)
    return int(reached[0]) if len(reached) else len(scores) - 1


def measure_relearning(scores: Sequence[Sequence[float] | Array]) -> Relearning:
    """Of many leavers, each with its scores before the first round and after each."""
    return Relearning(tuple(count_rounds(each) for each in scores), sum(max(each) < 0 for each in scores))


def describe_relearning(found: Relearning, others: Mapping[str, Relearning]) -> Json:
    """As numbers for JSON; others: what it is compared with, by name."""
    said: Json = {
        "relearning/rounds": float(np.mean(found.rounds)),
        "relearning/rounds_std": float(np.std(found.rounds, ddof=1)),
        "relearning/leavers": len(found.rounds),
        "relearning/known": found.rounds.count(0),
        "relearning/open": found.n_open,
    }
    for name, other in others.items():
        test = found.compare(other)
        said |= {f"relearning/minus_{name}": test.mean_difference, f"relearning/minus_{name}_p": test.p}
        said |= {f"relearning/minus_{name}_low": test.interval[0], f"relearning/minus_{name}_high": test.interval[1]}
    return said
