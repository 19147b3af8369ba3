"""Rounds of one batch of cells by `round.run_round` itself: slow, but does whatever the stages can do.

A user's own learner, aggregation, attack or click model runs here, because it has no fast twin.
"""

from __future__ import annotations

import numpy as np

from hushrank.aggregation.server_step import ServerState, ServerStep
from hushrank.engine.gather import Advance, Seen, State, cell_key
from hushrank.engine.plan import Cell, Plan
from hushrank.engine.setting import Setting
from hushrank.federation.cohort import count_interactions, sample_ids
from hushrank.federation.round import Federation, run_round
from hushrank.types import Array


def repeat_rounds(setting: Setting, plan: Plan) -> Advance:
    """`advance(state, first, n)`: the state after n rounds, and what they showed."""
    federations = [make_federation(setting, cell) for cell in plan.cells]
    keys = [cell_key(setting, cell) for cell in plan.cells]

    def advance(state: State, first: int, n: int) -> tuple[State, Seen]:
        quality, searches = np.zeros((n, len(keys)), np.float32), np.zeros((n, len(keys)), np.int32)
        for i in range(n):
            moved = []
            for c, (federation, key) in enumerate(zip(federations, keys, strict=True)):
                server, params = ServerState(*(part[c] for part in state.server)), state.params[c]
                server, params, quality[i, c] = run_round(federation, server, params, key=key, round=first + i)
                searches[i, c] = count_searches(
                    setting, plan.cells[c], sample_ids(federation.population, key, first + i)
                )
                moved.append((params, server))
            servers = ServerState(*(np.stack(parts) for parts in zip(*(server for _, server in moved), strict=True)))
            state = State(np.stack([params for params, _ in moved]), servers)
        return state, Seen(quality, searches)

    return advance


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
        learner=method.learner,
        learning_rate=method.learning_rate * (method.server_step.rate if is_central else 1.0),
        batch=method.batch or 1,
        attack=method.attack,
        n_malicious=method.n_malicious,
        aggregation=method.aggregation,
        server_step=ServerStep() if is_central else method.server_step,
        k=method.k,
        study=setting.replays[cell.fold] if setting.replays else None,
    )
    return method.summation.equip(method.exchange.equip(federation), method.protection)
