"""Rounds of one batch of cells by `round.run_round` itself: slow, but does whatever the stages can do.

Click logs run here, and a user's own learner or click model, because they have no fast twin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hushrank.aggregation.server_step import ServerStep
from hushrank.engine.inputs import PARAMS, Advance, cell_key
from hushrank.engine.plan import Cell, Plan
from hushrank.engine.record import stack_named
from hushrank.engine.setting import Setting, attack_of
from hushrank.federation.cohort import count_interactions, sample_ids
from hushrank.federation.local import learn
from hushrank.federation.round import Federation, run_round
from hushrank.federation.seen import ONLINE, SEARCHES
from hushrank.federation.state import RULE, part_of, replace_owner, with_owner
from hushrank.types import Array, NamedArrays


def repeat_rounds(setting: Setting, plan: Plan) -> Advance:
    """`advance(state, first, n)`: the state after n rounds, and what they showed."""
    federations = [make_federation(setting, cell) for cell in plan.cells]
    keys = [cell_key(setting, cell) for cell in plan.cells]

    def advance(state: NamedArrays, first: int, n: int) -> tuple[NamedArrays, NamedArrays]:
        shown = []
        for round in map(setting.method.round_of, range(first, first + n)):
            seen = []
            for c, (federation, key) in enumerate(zip(federations, keys, strict=True)):
                memory, params, found = run_round(
                    federation, take_cell(state, c), state[PARAMS][c], key=key, round=round
                )
                state = put_cell(state, c, {**memory, PARAMS: params})
                ids = sample_ids(federation.population, key, round)
                seen.append({**found, SEARCHES: count_searches(setting, plan.cells[c], ids)})
            shown.append(stack_named(seen))
        return state, _as_recorded(stack_named(shown))

    return advance


def take_cell(state: NamedArrays, cell: int) -> dict[str, Array]:
    """What one cell remembers: its row of every array, and what its own rule keeps."""
    rows = {name: array[cell] for name, array in state.items() if name != PARAMS and not name.startswith(f"{RULE}/")}
    return {**rows, **with_owner(RULE, part_of(state, f"{RULE}/{cell}"))}


def put_cell(state: NamedArrays, cell: int, changed: NamedArrays) -> dict[str, Array]:
    """The way back; arrays are copied, so that an earlier state stays as it is."""
    rules = {name: array for name, array in state.items() if name.startswith(f"{RULE}/")}
    after = replace_owner(rules, f"{RULE}/{cell}", part_of(changed, RULE))
    for name, array in state.items():
        if not name.startswith(f"{RULE}/"):
            after[name] = array.copy()
            after[name][cell] = changed[name]
    return after


def _as_recorded(shown: dict[str, Array]) -> dict[str, Array]:
    """In the types of the fast engines."""
    kinds = {name: np.float32 for name in shown if name.startswith(ONLINE)} | {SEARCHES: np.int32}
    return {name: array.astype(kinds.get(name, array.dtype)) for name, array in shown.items()}


def count_searches(setting: Setting, cell: Cell, ids: Array) -> int:
    """Of these clients in one round; who has nothing in a log has none."""
    counts = count_interactions(setting.method.population, ids)
    if setting.replays is not None:
        counts = counts * [len(setting.replays[cell.fold].own[client]) > 0 for client in ids]
    return int(counts.sum())


def make_federation(setting: Setting, cell: Cell) -> Federation:
    """Central training is a federation of one, whose client takes the server's steps too."""
    method = setting.method
    is_central = method.batch is not None
    federation = Federation(
        method.ranker,
        setting.users[cell.user][1],
        setting.dataset.folds[cell.fold].train,
        method.population,
        groups=setting.groups_of(cell.fold, cell.repeat) if setting.groups else (),
        learner=method.learner,
        remedy=method.remedy,
        learning_rate=method.learning_rate * (method.server_step.rate if is_central else 1.0),
        batch=method.batch or 1,
        attack=attack_of(setting, cell.fold) if method.has_liars else None,
        misreports=method.misreports,
        n_malicious=method.n_malicious,
        rule=method.rule,
        server_step=ServerStep() if is_central else method.server_step,
        k=method.k,
        study=setting.replays[cell.fold] if setting.replays else learn,
        keep_every=method.keep_every,
        calibrate_every=method.stride if method.calibrates else None,
        keeps_sums=method.keeps_sums,
        noise_number=method.noise_number,
    )
    return replace(method.summation.equip(method.exchange.equip(federation), method.protection), quorum=method.quorum)
