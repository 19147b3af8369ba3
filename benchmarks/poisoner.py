"""How far one poisoner among twenty honest clients moves the ranker in one round, with and without a bound on updates.

    python -m benchmarks.poisoner --data DIR/MQ2008 > docs/benchmarks/poisoner.json

A federation of twenty learns with the defaults of `hushrank server init`. After some rounds one more client sends the
worst that it can think of: straight against the ranker, against what the others learnt, or towards a ranker that was
trained on reversed labels; as long as the server takes it, and with the largest weight. The fall of test nDCG@10 is
against the same round without it. Five folds, five seeds, navigational people.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

import numpy as np

from hushrank.engine.plain import make_federation
from hushrank.engine.plan import Cell
from hushrank.federation.local import learn
from hushrank.federation.round import Federation
from hushrank.learners.offline import mse_ranker
from hushrank.metrics.ndcg import mean_ndcg
from hushrank.privacy.clipping import clip_update
from hushrank.privacy.none import choose_norm
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.streams import seed_key, stream
from hushrank.types import Array, Client, Fold, QuerySet

N_HONEST, B, LOOKS, SEEDS = 20, 4, (1, 5, 20, 100), 5
AGREED = choose_norm(learning_rate=0.1, interactions=B)  # what `server init` agrees on by default
BEFORE = 100.0  # the norm that a server took where nothing was agreed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like")
    chosen = parser.parse_args(arguments)
    changes = {"data": chosen.data, "n_clients": N_HONEST, "interactions": B, "clicks": ["navigational"]}
    setting = resolve(change_recipe(NAMED["fpdgd"], changes))
    falls: dict[tuple[float, int], list[float]] = {}
    norms = list[float]()
    for place, fold in enumerate(setting.dataset.folds):
        federation = make_federation(setting, Cell(user=0, fold=place, repeat=0))
        worst = anti_ranker(fold)
        for seed in range(SEEDS):
            found, lengths = follow(federation, fold, worst, key=stream(seed_key(seed), 0, fold.number))
            for look, norm, fall in found:
                falls.setdefault((norm, look), []).append(fall)
            norms += lengths
            print(f"fold {fold.number}, seed {seed}", file=sys.stderr)
    rows = [
        {"norm": norm, "round": look, "mean_fall": round(float(np.mean(each)), 4), "largest_fall": round(max(each), 4)}
        for (norm, look), each in sorted(falls.items())
    ]
    honest = {f"{q:g}": round(float(np.quantile(norms, q)), 3) for q in (0.1, 0.5, 0.9, 0.99, 1)}
    about = {"data": chosen.data.rsplit("/", 1)[-1].lower(), "honest": N_HONEST, "n": len(next(iter(falls.values())))}
    print(json.dumps({**about, "honest_norms": honest, "agreed": AGREED, "falls": rows}, indent=2))
    return 0


def anti_ranker(fold: Fold) -> Array:
    """[p] of length 1: weights learnt from reversed labels."""
    reversed_ = replace(fold.train, grades=fold.train.grades.max() - fold.train.grades)
    weights = np.asarray(mse_ranker(reversed_), np.float64)
    return weights / np.linalg.norm(weights)


def follow(
    federation: Federation, fold: Fold, worst: Array, *, key: Array
) -> tuple[list[tuple[int, float, float]], list[float]]:
    """(round, norm, fall of test nDCG@10) at each look; norms of honest updates."""
    params, found, norms = np.zeros(len(worst), np.float32), list[tuple[int, float, float]](), list[float]()
    for round in range(1, max(LOOKS) + 1):
        deltas = [learn(federation, params, Client(i, B), key=key, round=round)[0].delta for i in range(N_HONEST)]
        clipped = [clip_update(delta, AGREED) for delta in deltas]
        mean = np.mean(clipped, axis=0)
        norms += [float(np.linalg.norm(delta)) for delta in deltas]
        if round in LOOKS:
            honest = quality(fold.test, params + mean)
            for norm in (AGREED, BEFORE):
                lies = [norm * unit(direction) for direction in (-params, -mean, worst)]
                fallen = [quality(fold.test, params + (mean * N_HONEST + lie) / (N_HONEST + 1)) for lie in lies]
                found.append((round, norm, honest - min(fallen)))
        params = (params + mean).astype(np.float32)
    return found, norms


def unit(direction: Array) -> Array:
    return direction / max(float(np.linalg.norm(direction)), 1e-12)


def quality(queries: QuerySet, params: Array) -> float:
    return mean_ndcg(queries, queries.features @ params.astype(np.float64)).value


if __name__ == "__main__":
    sys.exit(main())
