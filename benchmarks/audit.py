"""Audit every mechanism, relation, sampling and placement, then six planted bugs: docs/audit.md shows the result.

    python -m benchmarks.audit --json docs/benchmarks/audit.json

Some ten minutes on one core. Every sound row must stay below its claim, every bug above it; it ends with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.planted_bugs import BUGS, CONFIDENCE, DELTA, ROUNDS, RUNS, audit_bug
from hushrank.audit.audit import AuditOptions, audit_trial
from hushrank.audit.recipe import Question, audit_recipe, describe_audit
from hushrank.audit.rewards import LaplaceReward, RewardTrial
from hushrank.files import write_json
from hushrank.recipes.recipe import NAMED, change_recipe

# Why these: small enough that two hundred thousand federations of real clients run in a minute, and a claim at which
# a bound has room on both sides.
EPSILON, SOUND_ROUNDS, SOUND_RUNS, SEED = 2.0, 2, 200_000, 1
TURN_ROUNDS = 4  # of clients that take turns: two answers
RELATIONS = ("zero-out", "replace-one", "add-remove")
SAMPLINGS: dict[str, dict[str, Any]] = {
    "everybody": {},
    "9 of 10": {"cohort": 9},
    "half, poisson": {"cohort": 5, "sampling": "poisson"},
}
HONEST = {
    "everybody": 10,
    "9 of 10": 9,
    "half, poisson": 2,
}  # Why 2: fewer answer in one round of ninety, which is lost
UNKNOWN = ("laplace", "server", "replace-one", "half, poisson")  # refused: nobody has analysed it
GAUSSIAN_EPSILONS = (1.0, 2.0, 4.0)


def list_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """(sampling, keys of a recipe) of every sound setting; what the accountant refuses is left out, and said so."""
    for mechanism in ("gaussian", "laplace"):
        for placement in ("server", "clients"):
            for relation in RELATIONS:
                for sampling, drawn in SAMPLINGS.items():
                    if placement == "clients" and relation == "add-remove":
                        continue  # refused: one client decides whether a round has enough answers
                    if (mechanism, placement, relation, sampling) == UNKNOWN:
                        continue
                    keys = {"mechanism": mechanism, "noise_at": placement, "adjacency": relation, **drawn}
                    yield sampling, keys | ({"n_honest": HONEST[sampling]} if placement == "clients" else {})


def list_turns() -> Iterator[tuple[str, dict[str, Any]]]:
    """As `list_cases`, of clients that take turns; add-remove is refused: it changes whose turn it is."""
    turns = {"cohort": 5, "sampling": "rotation", "rounds": TURN_ROUNDS}
    for relation in ("zero-out", "replace-one"):
        yield "half, in turn", {"mechanism": "correlated", "noise_at": "server", "adjacency": relation, **turns}


def audit_sound(keys: dict[str, Any], *, runs: int, confidence: float) -> dict[str, Any]:
    same = {"privacy": "sound", "epsilon": EPSILON, "n_clients": 10, "rounds": SOUND_ROUNDS}
    recipe = change_recipe(NAMED["fpdgd"], {**same, **keys})
    return audit_recipe(recipe, Question(), AuditOptions(runs=runs, confidence=confidence, seed=SEED))


def audit_published(*, runs: int, confidence: float) -> Iterator[dict[str, Any]]:
    """The mechanisms of the papers, and noise on rewards, which no recipe has."""
    options = AuditOptions(runs=runs, confidence=confidence, seed=SEED)
    paper = change_recipe(NAMED["fpdgd"], {"privacy": "paper", "epsilon": 1.2, "n_clients": 10, "rounds": SOUND_ROUNDS})
    yield audit_recipe(paper, Question(), options)
    yield audit_recipe(NAMED["foltr-es"], Question(), options)
    looks = audit_trial(
        RewardTrial(LaplaceReward(0.0, 1.0, EPSILON), 1.0, 0.0),
        lambda rounds: EPSILON * rounds,
        delta=None,
        options=options,
    )
    about = {"recipe": "none", "privacy": "paper", "mechanism": "laplace-reward", "noise_at": "clients"}
    yield describe_audit(looks, {**about, "sampling": "one search", "relation": "replace-one", "delta": None})


def audit_tightness() -> Iterator[dict[str, Any]]:
    """How much of a claim the default number of runs reaches, for Gaussian noise."""
    for epsilon in GAUSSIAN_EPSILONS:
        for rounds in (1, 50):
            keys = {"privacy": "sound", "epsilon": epsilon, "n_clients": 10, "rounds": rounds}
            yield audit_recipe(change_recipe(NAMED["fpdgd"], keys), Question(), AuditOptions(seed=SEED))
        many = {"privacy": "sound", "epsilon": epsilon, "n_clients": 2000, "rounds": 50}
        options = AuditOptions(estimator="one-run", seed=SEED)
        yield audit_recipe(change_recipe(NAMED["fpdgd"], many), Question(), options)


def tell(row: dict[str, Any]) -> dict[str, Any]:
    shown = {
        key: row.get(key)
        for key in ("bug", "mechanism", "noise_at", "relation", "cohort", "claimed_epsilon", "lower_bound")
    }
    print(json.dumps(shown), file=sys.stderr, flush=True)
    return {key: value for key, value in row.items() if key != "looks"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=SOUND_RUNS, help="of each federation of the sound rows")
    parser.add_argument("--json", type=Path, help="where to write the result")
    arguments = parser.parse_args()
    cases = list(list_cases())
    n_rows = len(cases) + 3
    each = 1 - (1 - CONFIDENCE) / n_rows  # Bonferroni: no row of the table is accused wrongly with this confidence
    sound = [
        tell({**audit_sound(keys, runs=arguments.runs, confidence=each), "sampling": sampling})
        for sampling, keys in cases
    ]
    sound += [tell(row) for row in audit_published(runs=arguments.runs, confidence=each)]
    turns = list(list_turns())
    some = 1 - (1 - CONFIDENCE) / len(turns)
    rested = [
        tell({**audit_sound(keys, runs=arguments.runs, confidence=some), "sampling": sampling})
        for sampling, keys in turns
    ]
    bugs = []
    for bug in BUGS:
        look = audit_bug(bug)
        found = {"bug": bug.name, "says": bug.says, "claimed_epsilon": look.claim, "lower_bound": look.bound.epsilon}
        bugs.append(tell({**found, "counts": look.bound.counts, "is_above_claim": look.is_above}))
    planted = {"rounds": ROUNDS, "runs": RUNS, "delta": DELTA, "confidence": CONFIDENCE, "rows": bugs}
    tight = [tell(row) for row in audit_tightness()]
    found = {"confidence": CONFIDENCE, "confidence_each": each, "sound": sound, "planted": planted, "tightness": tight}
    found["turns"] = rested
    if arguments.json:
        write_json(arguments.json, found)
    is_right = not any(row["is_above_claim"] for row in sound + rested) and all(row["is_above_claim"] for row in bugs)
    print("every sound row below its claim, every bug above it" if is_right else "NOT as it must be")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
