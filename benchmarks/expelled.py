"""What `watchful` costs where clients differ and nobody lies: its rankers beside FedAvg's, and whom it left out.

    python -m benchmarks.expelled --data DIR/MQ2008 --json docs/benchmarks/expelled.json [--rounds 1000] [--repeats 2]
    python -m benchmarks.expelled --data DIR/MQ2008 --json docs/benchmarks/expelled.json --cases quantity --repeats 10

Thesis' sizes (three to five clients) and three times as many. FedAvg is the mean of all updates at once (`trimmed-mean`
that trims nobody), which gives the same bits as `watchful` while that leaves nobody out. Where clients judge documents
by labels of their own, a second row has the mean quality over clients by these. Paired t-tests for each row: two
one-sided ones for equality within .003, and one for not being lower by .003 (`not lower`) or being lower by more
(`lower`). p is corrected for the number of rows that are tested (Bonferroni; cases in which one client searches far
more often than all others answer another question and are counted apart). The file has every training's quality and
is written after every case; `--resume` runs the cases that it does not have with so many repeats.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from hushrank.aggregation.watchful import Watchful
from hushrank.engine.batch import OFFLINE, OWN
from hushrank.engine.simulate import CellResult, Options, simulate
from hushrank.files import Json, read_json, write_text
from hushrank.metrics.significance import bonferroni, equivalence_test, paired_t_test
from hushrank.recipes.recipe import NAMED, change_recipe
from hushrank.recipes.resolve import resolve

USERS = ("perfect", "navigational", "informational")
MARGIN, LEVEL = 0.003, 0.05
_DIGITS = 6
_INTENTS = "intent-change-like:n_queries=100"
DIFFERENT: dict[str, Json] = {
    "alike": {"n_clients": 10},
    "labels-1": {"partition": "labels-1", "n_clients": 3},
    "labels-1, 9 clients": {"partition": "labels-1", "n_clients": 9},
    "labels-2": {"partition": "labels-2", "n_clients": 3},
    "labels-2, 9 clients": {"partition": "labels-2", "n_clients": 9},
    "intents, carry 0": {"data": _INTENTS, "partition": "intents", "carry": 0.0, "n_clients": 4},
    "intents, carry 1": {"data": _INTENTS, "partition": "intents", "carry": 1.0, "n_clients": 4},
    "intents, carry .5, 12 clients": {"data": _INTENTS, "partition": "intents", "carry": 0.5, "n_clients": 12},
    "clicks (ccm)": {"partition": "clicks", "behaviour": "ccm", "n_clients": 3, "clicks": "perfect"},
    "clicks (pbm)": {"partition": "clicks", "behaviour": "pbm", "n_clients": 5, "clicks": "perfect"},
    "clicks (ccm), 9 clients": {"partition": "clicks", "behaviour": "ccm", "n_clients": 9, "clicks": "perfect"},
    "quantity": {"partition": "quantity", "n_clients": 5},
    "quantity, 10 clients": {"partition": "quantity", "n_clients": 10},
    "labels-2+quantity, 9 clients": {"partition": "labels-2+quantity", "n_clients": 9},
    "dirichlet, 10 clients": {"partition": "dirichlet", "n_clients": 10},
    "queries, 10 clients": {"partition": "queries", "n_clients": 10},
}
HEAVY: dict[str, Json] = {  # one of six clients searches so many times as often as the others
    f"{n} times": {"partition": "quantity", "quantities": [1] * 5 + [n], "n_clients": 6} for n in (10, 20, 60)
}
CASES = {**DIFFERENT, **HEAVY}
RULES: dict[str, Json] = {
    "mean": {"aggregation": "trimmed-mean", "assumed_malicious": 0},
    "watchful": {"aggregation": "watchful"},
    "at random": {"aggregation": "trimmed-mean", "assumed_malicious": 0, "dropout": 0.003},
}
CHANCE = ("labels-1, 9 clients",)


def train(data: str, case: str, rule: str, user: str, rounds: int, repeats: int) -> list[CellResult]:
    """The trainings of every fold and repeat."""
    size = {"data": data, "rounds": rounds, "repeats": repeats, "eval_every": rounds}
    searches = {} if "quantity" in CASES[case].get("partition", "") else {"interactions": 5}
    recipe = change_recipe(NAMED["fpdgd"], {**size, **searches, **RULES[rule], **CASES[case], "clicks": user})
    return simulate(resolve(recipe), Options(workers=1))[0]


def users_of(case: str) -> Sequence[str]:
    return (CASES[case]["clicks"],) if "clicks" in CASES[case] else USERS


def rules_of(case: str) -> Sequence[str]:
    return [rule for rule in RULES if rule != "at random" or case in CHANCE]


def make_rows(case: str, user: str, trained: Mapping[str, Sequence[CellResult]]) -> list[Json]:
    """A row by everybody's labels, and one by the clients' own where they have such; trained: {rule: trainings}."""
    watched, alike = trained["watchful"], trained["mean"]
    about = {
        **{
            "case": case,
            "user": user,
            "n_clients": CASES[case]["n_clients"],
            "repeats": 1 + max(training.repeat for training in watched),
        },
        "same_bits": all(np.array_equal(a.params, b.params) for a, b in zip(watched, alike, strict=True)),
        "left_out": round(float(np.mean([np.nanmean(t.shown["evidence/wronged"]) for t in watched])), 4),
    }
    by_labels = {"everybody's": OFFLINE, **({"own": OWN["test"]} if CASES[case].get("partition") == "intents" else {})}
    return [
        {**about, "labels": labels, **{rule: last_values(each, metric) for rule, each in trained.items()}}
        for labels, metric in by_labels.items()
    ]


def last_values(trainings: Sequence[CellResult], metric: str) -> list[float]:
    return [round(float(training.looks[metric][-1]), _DIGITS) for training in trainings]


def judge_rows(rows: Sequence[Json]) -> list[Json]:
    """The rows with their tests, and a verdict where somebody is judged; p is corrected for all that are tested."""
    compared = [{**row, **compare(row)} for row in rows]
    for question in (DIFFERENT, HEAVY):
        tested = [row for row in compared if row["p_equal"] is not None and row["case"] in question]
        for side in ("p_equal", "p_not_lower", "p_lower"):
            for row, p in zip(tested, bonferroni([row[side] for row in tested]), strict=True):
                row[side] = p
    return [{**row, "verdict": name_verdict(row)} for row in compared]


def compare(row: Json) -> Json:
    """p of one row alone; None: the rankers are the same, bit by bit."""
    ours, theirs = row["watchful"], row["mean"]
    gaps = np.subtract(ours, theirs)
    found: Json = {
        **{"n": len(gaps), "average": round(float(np.mean(theirs)), 4), "gap": round(float(gaps.mean()), 5)},
        "error": round(float(gaps.std(ddof=1) / np.sqrt(len(gaps))), 5),
    }
    if "at random" in row:
        by_chance = np.subtract(row["at random"], theirs)
        found["by_chance"] = {
            "gap": round(float(by_chance.mean()), 4),
            "deviation": round(float(by_chance.std(ddof=1)), 4),
            "p": paired_t_test(ours, row["at random"]).p,
        }
    if row["same_bits"]:
        return {**found, "p_equal": None, "p_not_lower": None, "p_lower": None}
    not_lower = find_p_not_lower(ours, theirs)
    equal = equivalence_test(ours, theirs, margin=MARGIN).p
    return {**found, "p_equal": equal, "p_not_lower": not_lower, "p_lower": 1 - not_lower}


def find_p_not_lower(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Small where ours is higher than theirs less the margin."""
    test = paired_t_test([value + MARGIN for value in ours], theirs)
    return test.p / 2 if test.mean_difference > 0 else 1 - test.p / 2


def name_verdict(row: Json) -> str:
    """Why no further correction: each of the three follows from a test that only one side of the margin can fail."""
    if row["n_clients"] < Watchful.n_judged:
        return "nobody judged"
    if row["p_equal"] is None:
        return "same bits"
    verdicts = {"equal": row["p_equal"], "not lower": row["p_not_lower"], "lower": row["p_lower"]}
    return next((verdict for verdict, p in verdicts.items() if p < LEVEL), "not shown")


def read_kept(path: Path | None, about: Json) -> list[Json]:
    """Rows of earlier runs; refuses those of other settings."""
    if path is None or not path.exists():
        return []
    kept = read_json(path)
    if kept["about"] != about:
        raise ValueError(f"{path} has {kept['about']}, asked is {about}: name another file, or run as it was run.")
    return list(kept["rows"])


def write_rows(path: Path, about: Json, rows: Sequence[Json]) -> None:
    """A line for each row."""
    order = list(CASES)
    lines = (json.dumps(row) for row in judge_rows(sorted(rows, key=lambda row: order.index(row["case"]))))
    write_text(path, f'{{"about": {json.dumps(about)},\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    asked = make_parser().parse_args(arguments)
    about = {"data": Path(asked.data).name.lower(), "rounds": asked.rounds, "margin": MARGIN}
    rows = read_kept(asked.json, about)
    done = {row["case"] for row in rows if row["repeats"] == asked.repeats} if asked.resume else set()
    cases = {case: [user for user in users_of(case) if user in asked.users] for case in asked.cases if case not in done}
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        trained = {
            (case, user): [
                pool.submit(train, asked.data, case, rule, user, asked.rounds, asked.repeats) for rule in rules_of(case)
            ]
            for case, users in cases.items()
            for user in users
        }
        for case, users in cases.items():
            found: list[Json] = []
            for user in users:
                each = trained.pop((case, user))
                found += make_rows(case, user, dict(zip(rules_of(case), (t.result() for t in each), strict=True)))
            rows = [row for row in rows if row["case"] != case or row["user"] not in users] + found
            if asked.json is not None:
                write_rows(asked.json, about, rows)
            for row in judge_rows(found):
                where = f"{row['case']:34} {row['user']:14} {row['labels']:11}"
                print(f"{where} {row['average']:.4f} {row['gap']:+.4f} {row['left_out']:.3f}")
            sys.stdout.flush()
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="mq2008-like")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2, help="of one rule and user each, at once")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), help="the others stay as kept")
    parser.add_argument("--users", nargs="+", default=list(USERS), choices=USERS, help="the others stay as kept")
    parser.add_argument("--resume", action="store_true", help="leave out cases that the file has with so many repeats")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        sys.exit(f"expelled: {error}")
