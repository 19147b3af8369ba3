"""What liars reach who see every update and all that `watchful` remembers, so that they know what it cannot see.

    python -m benchmarks.white_box --data DIR/MQ2008 --json docs/benchmarks/white_box.json [--jobs 2]

No client can know so much: the liars are in the server. That says how far the rule can be trusted at the worst, and
what a better one has to withstand. Each attack keeps a `watchful` of its own, which it shows what the server gets:

- *unseen*: against what the others have learnt so far, but for what the rule would see of it: at a right angle to their
  way as the rule measures it, five median lengths long;
- *sideways*: at a right angle to that way and else anywhere, in a new direction every fifty rounds, as long;
- *parole*: against what the others learn in the round, one median length long; whoever is left out agrees with the
  others until it is not, which pays for lies and does not count.

Ten clients, five searches each in 1,000 rounds, five folds, three users; nDCG@10 on test queries, mean over the looks
of the last half, since the last ranker alone depends on where in its course an attack is then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import numpy as np

from hushrank.aggregation.watchful import Watchful, find_ways, recall
from hushrank.attacks.cycle import turn_aside
from hushrank.attacks.named import ATTACKS, register_attack
from hushrank.engine.simulate import Options, simulate
from hushrank.files import Json, write_json
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve
from hushrank.types import Array, AttackView, Gathered, Knowledge, NamedArrays

USERS = ("perfect", "navigational", "informational")
RULES = ("mean", "watchful", "norm-bound", "multi-krum")
SHARES = (10, 20, 30)  # per cent
N_CLIENTS, ROUNDS, N_LOOKS = 10, 1000, 20
_LONG = 4.95  # median lengths; Why: the rule cuts what is longer than five
_LASTS = 50  # rounds of one direction
_NAME = "white-box"


@dataclass(frozen=True)
class Seen:
    """What an attack goes by, for one liar."""

    round: int
    way: Array  # [p] where the others have pointed so far
    normal: Array  # [p] updates at a right angle to it agree with nobody and oppose nobody, as the rule measures it
    honest: Array  # [p] mean of what honest clients and liars have learnt in this round
    is_out: bool


def unit(x: Array) -> Array:
    length = np.sqrt(x @ x)
    return x / length if length > 0 else x


def hide(push: Array, seen: Seen) -> Array:
    """Without what the rule would see of it."""
    normal = unit(seen.normal)
    return unit(push - (push @ normal) * normal)


def go_unseen(seen: Seen) -> Array:
    return _LONG * hide(-seen.way, seen)


def go_sideways(seen: Seen) -> Array:
    draws = np.random.default_rng(seen.round // _LASTS)
    return _LONG * hide(draws.standard_normal(len(seen.way)), seen)


def go_on_parole(seen: Seen) -> Array:
    return unit(seen.way) if seen.is_out else -unit(seen.honest)


WAYS: Mapping[str, Callable[[Seen], Array]] = {"unseen": go_unseen, "sideways": go_sideways, "parole": go_on_parole}


@dataclass(eq=False)
class WhiteBox:
    """An attack on one training: it goes on from round to round. push: median lengths and way of what a liar sends."""

    knowledge = Knowledge.everybody
    push: Callable[[Seen], Array]
    rule: Watchful = field(default_factory=Watchful)
    memory: NamedArrays = field(default_factory=dict)

    def __call__(self, view: AttackView, *, key: Array) -> Array:
        assert view.own is not None and view.others is not None
        honest = np.concatenate([view.own, view.others])
        n, ids = view.n_malicious, np.arange(len(honest))
        gathered = Gathered(honest, np.ones(len(ids)), ids, view.params, view.round, self.memory)
        sent = np.concatenate([self.choose(gathered, n, key=key), view.others])
        seen = Gathered(sent, gathered.weights, ids, view.params, view.round, self.memory)
        self.memory = dict(self.rule(seen).memory)
        return sent[:n]

    def choose(self, gathered: Gathered, n: int, *, key: Array) -> Array:
        """[n, p] of the liars, who come first; what they learnt, as long as the rule knows too little."""
        past, honest = recall(gathered, forget_after=ROUNDS), gathered.updates
        ways = find_ways(past, np.arange(len(honest)), np.arange(len(honest)))
        each = np.sqrt((honest[n:].astype(np.float64) ** 2).sum(axis=1))
        if ways is None or not (each > 0).any():
            return honest[:n]
        middle, mean = float(np.median(each[each > 0])), honest.mean(axis=0, dtype=np.float64)
        pushes = []
        for liar in range(n):
            own = ways.others[liar]
            seen = Seen(gathered.round, own / ways.scale, ways.scale * own, mean, bool(past.is_out[liar]))
            pushes.append(self.push(seen))
        # Why aside: no two liars may be copies; and the rule must not see it either
        aside = turn_aside(unit(pushes[0]), n, key=key) - unit(pushes[0])
        lies = [
            middle * np.sqrt(push @ push) * unit(unit(push) + unseen_part(side, ways.scale * own))
            for push, side, own in zip(pushes, aside, ways.others[:n], strict=True)
        ]
        return np.asarray(lies).astype(honest.dtype)


def unseen_part(x: Array, normal: Array) -> Array:
    """At a right angle to what the rule measures by."""
    return x - (x @ unit(normal)) * unit(normal)


def train(data: str, way: str, rule: str, share: int, user: str, rounds: int = ROUNDS) -> Json:
    """One row: a training of each fold, each with an attack of its own."""
    n_malicious = round(share * N_CLIENTS / 100)
    size = {"data": data, "n_clients": N_CLIENTS, "interactions": 5, "rounds": rounds, "seed": 0, "clicks": user}
    knows = {"assumed_malicious": n_malicious} if rule == "multi-krum" else {}
    found = []
    for fold in range(1, 6):
        register_attack(_NAME, WhiteBox(WAYS[way]))
        lies = {"attack": _NAME, "n_malicious": n_malicious, "aggregation": rule, **knows}
        recipe = change_recipe(NAMED["fpdgd"], {**size, **lies, "folds": [fold], "eval_every": rounds // N_LOOKS})
        try:
            (training,), _ = simulate(resolve(recipe), Options(workers=1))
        finally:
            del ATTACKS[_NAME]  # Why: it remembers this fold
        left_out = training.shown.get("evidence/caught")
        found.append((fmean(training.test[-N_LOOKS // 2 :]), None if left_out is None else float(np.nanmean(left_out))))
    row: Json = {"attack": way, "share": share, "rule": rule, "user": user, "test": [round(q, 5) for q, _ in found]}
    caught = [out for _, out in found if out is not None]
    return {**row, "caught": round(fmean(caught), 4)} if caught else row


def train_honest(data: str, user: str, rounds: int = ROUNDS) -> Json:
    size = {"data": data, "n_clients": N_CLIENTS, "interactions": 5, "rounds": rounds, "seed": 0, "clicks": user}
    recipe = change_recipe(NAMED["fpdgd"], {**size, "eval_every": rounds // N_LOOKS})
    trainings, _ = simulate(resolve(recipe), Options(workers=1))
    means = [round(fmean(each.test[-N_LOOKS // 2 :]), 5) for each in trainings]
    return {"attack": "none", "share": 0, "rule": "mean", "user": user, "test": means}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like")
    parser.add_argument("--json", type=Path, help="where the numbers go, besides stdout")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shares", type=int, nargs="+", default=list(SHARES), help="per cent malicious clients")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args(arguments)
    about = {"data": Path(asked.data).name.lower(), "n_clients": N_CLIENTS, "rounds": asked.rounds, "folds": 5}
    cells = [(way, rule, share, user) for way in WAYS for share in asked.shares for rule in RULES for user in USERS]
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        honest = [pool.submit(train_honest, asked.data, user, asked.rounds) for user in USERS]
        lied = [pool.submit(partial(train, rounds=asked.rounds), asked.data, *cell) for cell in cells]
        rows = [each.result() for each in (*honest, *lied)]
    if asked.json is not None:
        write_json(asked.json, {"about": about, "rows": rows})
    json.dump({"about": about, "rows": rows}, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
