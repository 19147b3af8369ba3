"""What clients that lie about rewards or choose their seeds do to an evolution strategy (attack `false-rewards`).

    python -m benchmarks.false_rewards --data DIR/MQ2008 --json docs/benchmarks/false_rewards.json

FOLtR-ES as by default: a linear ranker, four searches of each client in a round, p = .9. A fifth of the clients lies.
Honest clients make the same draws in every row, so that rows differ by the lie alone. Quality is nDCG@10 of the last
ranker on test queries, in every fold. Attacked runs take the plain engine: 150 CPU-seconds as above.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hushrank.engine.simulate import Options, simulate
from hushrank.files import Json, JsonObject, write_json
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve

USERS = ("perfect", "informational")
SETTING: Json = {"n_clients": 100, "n_malicious": 20, "rounds": 30}
HONEST = "nobody lies"
LIES: dict[str, JsonObject] = {
    HONEST: {"n_malicious": 0},
    "swapped rewards": {},
    "extreme rewards": {"extreme": True},
    "one of 1,000 seeds": {"n_seeds": 1000},
}


def measure(data: str, lie: JsonObject, changes: JsonObject) -> dict[str, list[float]]:
    """{user: quality in every fold}"""
    recipe = change_recipe(
        NAMED["foltr-es"],
        {"data": data, "clicks": USERS, "attack": "false-rewards", "seed": 0, **SETTING, **changes, **lie},
    )
    results, _ = simulate(resolve(change_recipe(recipe, {"eval_every": recipe.rounds})), Options(workers=1))
    return {user: [round(float(r.test[-1]), 5) for r in results if r.user == user] for user in USERS}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=SETTING["rounds"])
    parser.add_argument("--clients", type=int, default=SETTING["n_clients"], help="a fifth of them lies")
    chosen = parser.parse_args(arguments)
    size = {"n_clients": chosen.clients, "n_malicious": chosen.clients // 5, "rounds": chosen.rounds}
    rows = []
    for name, lie in LIES.items():
        rows.append({"lie": name, "test": measure(chosen.data, lie, size)})
        print(rows[-1], file=sys.stderr, flush=True)
    command = "python -m benchmarks.false_rewards --data MQ2008"
    write_json(chosen.json, {"command": command, "data": Path(chosen.data).name.lower(), **size, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
