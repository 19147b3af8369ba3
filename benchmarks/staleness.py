"""What lists of older rankers cost a live client: FPDGD from impressions that are some rounds old.

    python -m benchmarks.staleness docs/benchmarks/staleness.json

Every client learns in each round from lists that the federation's ranker of `age` rounds ago has shown; "own" are lists
of the client's own weights after every step, as in the simulator.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hushrank.clicks.named import named_user
from hushrank.data.load import load_dataset
from hushrank.learners.logged import rescored_pdgd_gradient
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.rankers.linear import LinearRanker
from hushrank.rankers.policy import sample_ranking
from hushrank.streams import Purpose, draw_below, draw_uniform, seed_key, stream
from hushrank.types import Array, Fold

SETTING: dict[str, Any] = {
    "data": "mq2007-like",
    "clicks": "navigational",
    "n_clients": 10,
    "interactions": 4,
    "rounds": 100,
}
SEEDS, RATE = (1, 2, 3), np.float32(0.1)
CASES: list[tuple[int | str, float | None]] = [
    ("own", None),
    *((age, weight) for age in (0, 5, 10, 20, 50) for weight in (None, 2.0)),
]


def train(fold: Fold, age: int | str, max_weight: float | None, *, seed: int) -> float:
    """nDCG@10 on test queries after all rounds."""
    ranker = LinearRanker(fold.train.n_features)
    params: Array = np.zeros(fold.train.n_features, np.float32)
    user, shown_by = named_user(SETTING["clicks"], n_grades=3), [params]
    for round in range(1, SETTING["rounds"] + 1):
        older = None if age == "own" else shown_by[max(0, len(shown_by) - 1 - int(age))]
        deltas = []
        for client in range(SETTING["n_clients"]):
            local = params
            for interaction in range(SETTING["interactions"]):
                names = (round, client, interaction)
                features, grades = search(fold, seed, names)
                scores = ranker.score(local if older is None else older, features)
                ranking = sample_ranking(scores, draw(seed, Purpose.SHOW, names, len(scores)))
                clicks, stops = (draw(seed, purpose, names, len(ranking)) for purpose in (Purpose.CLICK, Purpose.STOP))
                seen = (features, scores, ranking, user(grades[ranking], clicks, stops))
                local = local + RATE * rescored_pdgd_gradient(ranker, local, *seen, max_weight=max_weight)
            deltas.append(local - params)
        params = params + np.mean(deltas, axis=0)
        shown_by.append(params)
    return mean_ndcg(fold.test, ranker.score(params, fold.test.features)).value


def draw(seed: int, purpose: Purpose, names: tuple[int, int, int], n: int) -> Array:
    return draw_uniform(stream(seed_key(seed), purpose, *names), n)


def search(fold: Fold, seed: int, names: tuple[int, int, int]) -> tuple[Array, Array]:
    key = stream(seed_key(seed), Purpose.QUERY, *names)
    rows = fold.train.rows(int(draw_below(key, fold.train.n_queries, 1)[0]))
    return fold.train.features[rows], fold.train.grades[rows]


def measure() -> dict[str, Any]:
    fold = load_dataset(SETTING["data"], folds=[1]).folds[0]
    rows = list[dict[str, Any]]()
    for age, max_weight in CASES:
        values = [train(fold, age, max_weight, seed=seed) for seed in SEEDS]
        spread = float(np.std(values, ddof=1))
        rows.append({"age": age, "max_weight": max_weight, "nDCG@10": round(float(np.mean(values)), 4)})
        rows[-1] |= {"std": round(spread, 4), "values": [round(value, 4) for value in values]}
        print(rows[-1], file=sys.stderr, flush=True)
    return {"setting": SETTING, "seeds": SEEDS, "rows": rows}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
