"""A few searches before a run begins, whose results are let go: do people click at all?"""

from __future__ import annotations

import numpy as np

from hushrank.data.clicklog import ClickLog
from hushrank.engine.inputs import cell_key, initial_params
from hushrank.engine.plan import Cell
from hushrank.engine.setting import Setting
from hushrank.runs.click_log import LogRequest, simulate_log

N_SEARCHES = 200  # Why: who clicks in 5 of 100 searches is silent in all but one of 200 once in 3,000 trials


def try_searches(setting: Setting) -> dict[str, float]:
    """{user: share of trial searches with a click}, of lists that the first ranker shows in the first fold."""
    return {name: _try_user(setting, number) for number, (name, _) in enumerate(setting.users)}


def share_clicked(log: ClickLog) -> float:
    """Of a log's lists, those with a click."""
    return float(np.mean(np.add.reduceat(log.is_clicked, log.starts[:-1]) > 0)) if log.n_impressions else 0.0


def _try_user(setting: Setting, number: int) -> float:
    """The mean over groups of clients."""
    cell, method = Cell(number, 0, 0), setting.method
    params, person = initial_params(setting, cell), setting.users[number][1]
    request = LogRequest(setting.dataset.name, n_impressions=N_SEARCHES, k=method.k)
    shares = []
    for group in (each for each in setting.groups_of(0, 0) if each.is_honest):
        scores = method.ranker.score(params, group.train.features)
        user = person if group.user is None else group.user
        log = simulate_log(group.train, scores, user, request=request, key=cell_key(setting, cell))
        shares.append(share_clicked(log))
    return float(np.mean(shares))
